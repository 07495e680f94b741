import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { onceFor } from '../core/caches.ts'
import { HttpError, isHttpError } from '../core/errors.ts'
import { isJsonObject, readMember } from '../core/json.ts'
import { shareCall } from '../core/time.ts'
import { isResource } from '../stores/rules.ts'
import type { ResourceStore } from '../stores/types.ts'
import { NO_RELATED_WRITES } from './commit.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { fetchJson, parseStored } from './resource-view.ts'

/**
 * Cursors that name an entry which the client may not see, where a page has to end behind one, or that depend on values
 * which must not be in a target. A store's own cursor tells the name to a client that decodes it; these are encrypted
 * (AES-256-GCM).
 */

/** No cursor of a store begins with it. */
const PREFIX = '\0sealed:'
/** Without a slash in front, so that no pattern of a definition leads to it. */
const KEY_PATH = 'secrets/cursors'
const NONCE = 12
const TAG = 16
/** Cursors are filled up to a multiple of this, so that their length does not tell that of a name. */
const BLOCK = 64

export function isSealed(cursor: string): boolean {
  return cursor.startsWith(PREFIX)
}

/** The size of a cursor of so many bytes once it is sealed. */
export function sealedSize(size: number): number {
  return PREFIX.length + Math.ceil(((NONCE + filled(size) + TAG) * 4) / 3)
}

function filled(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK
}

/** Encrypts a cursor; always to the same text, so that a page keeps its entity tag. */
export async function sealCursor(exchange: ResourceExchange, cursor: string): Promise<string> {
  const key = await keyFinderOf(exchange.route.context.store)()
  const text = Buffer.alloc(filled(Buffer.byteLength(cursor)))
  text.write(cursor)
  const place = placeOf(exchange)
  const nonce = createHmac('sha256', key)
    .update(`${place.length}:`)
    .update(place)
    .update(text)
    .digest()
    .subarray(0, NONCE)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(place)
  const sealed = Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
  return PREFIX + sealed.toString('base64url')
}

/** @throws HttpError 400 for a cursor that was not sealed for this collection */
export async function openCursor(exchange: ResourceExchange, cursor: string): Promise<string> {
  const sealed = Buffer.from(cursor.slice(PREFIX.length), 'base64url')
  const key = await keyFinderOf(exchange.route.context.store)()
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE), { authTagLength: TAG })
    decipher.setAAD(placeOf(exchange)).setAuthTag(sealed.subarray(-TAG))
    const text = Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()])
    return text.toString().replace(/\0+$/, '')
  } catch {
    throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail: 'after is a cursor from a Link field.' })
  }
}

/** The list that a cursor belongs to, with the values of its query that are nowhere else in the cursor. */
function placeOf({ storePath, listing }: ResourceExchange): Buffer {
  return Buffer.from(listing?.isSecret === true ? `${storePath}\n${listing.key}` : storePath)
}

/** What finds the key of a store, which all processes share: a walk through the pages may meet any of them. */
const keyFinderOf = onceFor((store: ResourceStore) => {
  let known: Buffer | undefined
  const read = shareCall(async () => {
    const key = await readKey(store)
    // Two that were read beside each other may differ where the store keeps none: the first counts.
    return (known ??= key)
  })
  // After a failure the next request tries again.
  return async () => known ?? read()
})

/**
 * Writes the key, if there is none. A store of the rows of one table refuses the path: then the key is that of this process,
 * and a page of another process does not open its cursors. The refusal would be taken for one of the list.
 */
async function keepKey(store: ResourceStore, key: Buffer): Promise<boolean> {
  const body = JSON.stringify({ key: key.toString('base64url') })
  try {
    const options = { expect: 'absent', related: NO_RELATED_WRITES } as const
    const result = await store.write(KEY_PATH, { contentType: 'application/json', body }, options)
    return result.outcome !== 'conflict'
  } catch (error) {
    if (isHttpError(error) && error.status < 500) return true
    throw error
  }
}

/** Reads the key, or makes it; of several processes one does. */
async function readKey(store: ResourceStore): Promise<Buffer> {
  const key = randomBytes(32)
  let state = await store.read(KEY_PATH)
  if (!isResource(state)) {
    if (await keepKey(store, key)) return key
    state = await store.read(KEY_PATH)
  }
  const value = isResource(state) ? parseStored(await fetchJson(state, 1024, undefined)) : undefined
  const text = isJsonObject(value) ? readMember(value, 'key') : undefined
  if (typeof text !== 'string') throw new Error(`The store holds no key for cursors at ${KEY_PATH}.`)
  return Buffer.from(text, 'base64url')
}
