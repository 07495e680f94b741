/**
 * The rules of the store contract, for the service and for every store: how paths and names are read, how a state comes to
 * be, and when a call is given up.
 */

import { Buffer, isAscii } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { viewOf } from '../core/byte-blocks.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type {
  Abortable,
  Content,
  ContentFields,
  Expectation,
  LargeBody,
  SmallBody,
  StagedBody,
  StoredResource,
  StoredState,
} from './types.ts'

const SLASH = 0x2f

export function memberPath(collection: string, name: string): string {
  return `${collection}/${name}`
}

/**
 * The collection of a path and its name there. A path without a slash, and one that ends with a slash, is a member of nothing
 * all the same.
 */
export function splitPath(path: string): { readonly collection: string; readonly name: string } {
  const name = nameOf(path)
  return { collection: path.slice(0, Math.max(path.length - name.length - 1, 0)), name }
}

export function nameOf(path: string): string {
  let at = path.length
  while (at > 0 && path.charCodeAt(at - 1) !== SLASH) at--
  return at === 0 ? path : path.slice(at)
}

/** The value of a name that is an integer in its one canonical spelling, and safe; `undefined` for other names. */
export function parseIntegerName(name: string): number | undefined {
  const length = name.length
  if (length === 0 || length > 16 || (length > 1 && name.charCodeAt(0) === 0x30)) return undefined
  let value = 0
  for (let i = 0; i < length; i++) {
    const digit = name.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return undefined
    value = value * 10 + digit
  }
  return Number.isSafeInteger(value) ? value : undefined
}

/** Whether `read` found a resource. */
export function isResource(state: StoredState): state is StoredResource {
  // What a prototype has does not count; to ask for that alone costs 120 instructions each time.
  return state !== undefined && !('removed' in state && Object.hasOwn(state, 'removed'))
}

/** Whether content can be read only in pieces. */
export function isLargeBody(body: SmallBody | LargeBody): body is LargeBody {
  return typeof body !== 'string' && !(body instanceof Uint8Array)
}

/** Whether content to be stored has been staged before. */
export function isStaged(body: Content['body']): body is StagedBody {
  return typeof body === 'object' && 'staged' in body
}

/** Length of small content in bytes. */
export function sizeOf(body: SmallBody): number {
  return typeof body === 'string' ? Buffer.byteLength(body) : body.length
}

/** Whether a state is the expected one. @param version that of the resource; `undefined` where none is shown */
export function isExpected(version: string | undefined, expect: Expectation): boolean {
  if (expect === 'any') return true
  if (expect === 'absent') return version === undefined
  return version !== undefined && (expect === 'present' || version === expect.version)
}

/**
 * Makes versions. Random per process and counted within it: none comes back, not after a restart either, nor when a
 * backup of the database is restored. 36 random bits: for a version to come back, two processes would have to draw the
 * same ones and write one path at the same count. Short, because every answer carries it, and every state keeps it: an
 * entity tag of at most 12 characters is one piece of text for V8. A longer one is three, which the check of the field
 * has to join first, for 1,200 of the 136,000 instructions of a small PUT.
 */
export function createVersions(): () => string {
  // Drawn at the first use: Workers may not draw random bytes while a module is loaded.
  let incarnation: string | undefined
  let count = 0
  return () => {
    incarnation ??= randomBytes(6).toString('base64url').slice(0, 6)
    return incarnation + (++count).toString(36)
  }
}

/** When a state begins, and whether its date names it alone. */
export interface Change {
  readonly changed: number
  readonly strong: boolean
}

/**
 * The date of a resource never goes back, whatever the clocks of several processes say.
 * @param before that of the state before, as far as one is known
 */
export function decideChange(before: number | undefined, now: number): Change {
  if (before === undefined) return { changed: now, strong: true }
  return { changed: Math.max(before, now), strong: Math.floor(before / 1000) < Math.floor(now / 1000) }
}

/** Content without its bytes. */
export type Description = Omit<Content, 'body'>

/** Content as a store keeps it. */
export interface StoredContent {
  readonly size: number
  readonly body: SmallBody | LargeBody
  /** Of large content. */
  readonly sha256?: Uint8Array | undefined
}

export type MutableResource = { -readonly [Name in keyof StoredResource]: StoredResource[Name] }

/** The state that a write leaves. */
export function createResource(
  path: string,
  version: string,
  { contentType, contentEncoding, contentLanguage, filename, indexed }: ContentFields & Pick<StoredResource, 'indexed'>,
  { size, body, sha256 }: StoredContent,
  { changed, strong }: Change,
): MutableResource {
  const resource: MutableResource = {
    path,
    version,
    contentType,
    size,
    body,
    lastModified: changed,
    dateIsStrong: strong,
  }
  if (contentEncoding !== undefined) resource.contentEncoding = contentEncoding
  if (contentLanguage !== undefined) resource.contentLanguage = contentLanguage
  if (filename !== undefined) resource.filename = filename
  if (sha256 !== undefined) resource.sha256 = sha256
  if (indexed !== undefined) {
    resource.indexed = { index: { version: indexed.index.version }, values: { ...indexed.values } }
  }
  return resource
}

/** Bytes up to this length that are ASCII are kept as text: half the memory, and sent without another copy. */
const TEXT_LIMIT = 16 * 1024

/** Small ASCII content as text; `undefined` for what stays bytes. */
export function readAsText(bytes: Uint8Array): string | undefined {
  if (bytes.length > TEXT_LIMIT || !isAscii(bytes)) return undefined
  return viewOf(bytes).toString('latin1')
}

/**
 * Options of a store call that ends when the client has left. The signal is made when it is first read: it costs 29,000
 * instructions, a sixth of a small PUT, and a store that answers at once does not need it. A class: an object literal with
 * a getter has a hidden class of its own, which made a GET cost 1.7 times as much.
 */
export class UntilLeft {
  readonly #exchange: Exchange

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  get signal(): AbortSignal {
    return this.#exchange.signal
  }

  /** What `signal.aborted` would say. */
  get isAborted(): boolean {
    return this.#exchange.hasLeft
  }
}

/** A list cannot be answered by an index that is not complete: it may be asked for again in a second. */
export function createIndexingError(): HttpError {
  const detail = 'The items of this collection are being indexed.'
  return new HttpError(503, 'ERR_INDEXING', { detail, headers: { 'Retry-After': '1' } })
}

/** Whether a call was aborted before it began. Options of the service tell it without making their signal. */
export function isAborted(options: Abortable): boolean {
  return options instanceof UntilLeft ? options.isAborted : options.signal?.aborted === true
}

/** @throws the reason of the signal */
export function throwIfAborted(options: Abortable): void {
  if (isAborted(options)) options.signal!.throwIfAborted()
}
