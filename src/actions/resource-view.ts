import { collectWhole, viewOf } from '../core/byte-blocks.ts'
import type { JsonValue } from '../core/json.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import type { RequestView } from '../core/request-view.ts'
import { isJsonContentType } from '../protocol/media-type.ts'
import { isLargeBody } from '../stores/rules.ts'
import type { SmallBody, StoredResource, Tombstone } from '../stores/types.ts'
import type { Authorize, ResourceState } from './hook-types.ts'

/** The text of small content, decoded as UTF-8; `undefined` for content that can be read only in pieces. */
export function textOf({ body }: StoredResource): string | undefined {
  return isLargeBody(body) ? undefined : decodeBody(body)
}

export function decodeBody(body: SmallBody): string {
  return typeof body === 'string' ? body : viewOf(body).toString()
}

/**
 * Fetches content that the store gives in pieces, where it is JSON that may be parsed: which stores keep in one piece
 * must not decide what can be patched, or what a hook sees.
 * @param limit the most bytes to fetch
 * @param request whose end ends the wait for them
 */
export function fetchJson(
  resource: StoredResource,
  limit: number,
  request: { readonly signal: AbortSignal } | undefined,
): MaybePromise<StoredResource> {
  const { body, size } = resource
  if (!isLargeBody(body) || !mustBeFetched(resource, limit)) return resource
  // The signal costs more than all else here: it is read where there is something to wait for.
  const options = request === undefined ? undefined : { signal: request.signal }
  return collectWhole(body.open(0, size - 1, options), size, options?.signal).then((body) => ({ ...resource, body }))
}

/** Whether content is to be fetched before it can be parsed. */
function mustBeFetched(resource: StoredResource, limit: number): boolean {
  return isLargeBody(resource.body) && resource.size <= limit && isJsonContentType(resource.contentType)
}

/**
 * Asks `authorize` about a state. Content that the store gives in pieces is fetched only where the hook reads `value`:
 * its answer is then made without it and does not count, and the hook is asked again.
 * @param limit the most bytes to fetch
 */
export function askAbout(
  resource: StoredResource | undefined,
  limit: number,
  authorize: Authorize,
  principal: RequestView['principal'],
  request: RequestView,
): ReturnType<Authorize> {
  if (resource === undefined) return authorize(principal, request, undefined)
  if (!mustBeFetched(resource, limit)) return authorize(principal, request, new StateView(resource, limit))
  let isWanted = false
  const view = new StateView(resource, limit, () => {
    isWanted = true
  })
  const askAgain = (): ReturnType<Authorize> =>
    andThen(fetchJson(resource, limit, request), (fetched) =>
      authorize(principal, request, new StateView(fetched, limit)),
    )
  const fail = (error: unknown): ReturnType<Authorize> => {
    if (isWanted) return askAgain()
    throw error
  }
  try {
    const verdict = authorize(principal, request, view)
    if (isPromise(verdict)) return Promise.resolve(verdict).then((verdict) => (isWanted ? askAgain() : verdict), fail)
    return isWanted ? askAgain() : verdict
  } catch (error) {
    return fail(error)
  }
}

/** A stored state as hooks see it. Its value is parsed when it is first read; a copy, by spread for example, has the value. */
export class StateView implements ResourceState {
  readonly #resource: StoredResource
  readonly #limit: number
  readonly #onValue: (() => void) | undefined
  #parsed: { readonly value: JsonValue | undefined } | undefined
  readonly path: string
  readonly contentType: string
  readonly lastModified: ResourceState['lastModified']
  readonly size: number
  readonly deleted: boolean
  declare readonly value: JsonValue | undefined

  /**
   * @param limit the most bytes that are parsed
   * @param onValue called when a hook reads the value
   */
  constructor(resource: StoredResource, limit: number, onValue?: () => void) {
    this.#resource = resource
    this.#limit = limit
    this.#onValue = onValue
    this.path = resource.path
    this.contentType = resource.contentType
    this.lastModified = resource.lastModified
    this.size = resource.size
    this.deleted = resource.hidden === true
    Object.defineProperty(this, 'value', StateView.VALUE)
  }

  /** One accessor for all states: a getter of its own for each costs 500 ns in place of 80, for another hidden class. */
  private static readonly VALUE: PropertyDescriptor & ThisType<StateView> = {
    get() {
      this.#onValue?.()
      this.#parsed ??= { value: this.size > this.#limit ? undefined : parseStored(this.#resource) }
      return this.#parsed.value
    },
    enumerable: true,
  }
}

/** A removed resource as hooks see it: its content is gone. */
export function viewRemoved({ path, removedAt }: Tombstone): ResourceState {
  return { path, contentType: '', lastModified: removedAt, size: 0, deleted: true, value: undefined }
}

/** The JSON value of a stored resource; `undefined` when it is not JSON, too large, or malformed. */
export function parseStored(resource: StoredResource): JsonValue | undefined {
  if (!isJsonContentType(resource.contentType)) return undefined
  const text = textOf(resource)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

const MAX_SIZE = 16 * 1024
/** Bytes of documents in each of the two maps. A value takes up to 21 times as much memory as its JSON text. */
const MOST = 512 * 1024
/** Counted for a document beside its text. */
const OVERHEAD = 64

/**
 * Documents that a patch has made, by the state that holds them: the next patch of that state does not parse them again.
 * The older map is forgotten when the younger one is full.
 */
let young = new WeakMap<StoredResource, JsonValue>()
let old = new WeakMap<StoredResource, JsonValue>()
let used = 0

export function rememberDocument(resource: StoredResource, value: JsonValue): void {
  if (resource.size > MAX_SIZE) return
  used += OVERHEAD + resource.size
  if (used > MOST) {
    old = young
    young = new WeakMap()
    used = OVERHEAD + resource.size
  }
  young.set(resource, value)
}

/** The parsed content of a state, if a patch made that very state not long ago. Shared: never change it. */
export function recallDocument(resource: StoredResource): JsonValue | undefined {
  return young.get(resource) ?? old.get(resource)
}
