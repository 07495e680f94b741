import type { JsonValue } from '../core/json.ts'
import { ANY_TEXT, checkValues, either, FUNCTION, recordOf } from '../core/option-values.ts'
import { readOptions } from '../core/options.ts'
import { isWeakTag } from '../protocol/entity-tag.ts'
import { isJsonType, parseMediaType } from '../protocol/media-type.ts'
import { createPatch } from './create-patch.ts'
import { ResponseError } from './response-error.ts'

/** As much of a response as is used; that of every `fetch` fits. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  text(): Promise<string>
}

/** As much of `fetch` as is used. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string
    readonly headers: Record<string, string>
    readonly cache: 'no-cache'
    readonly body?: string
    readonly signal?: AbortSignal
  },
) => Promise<FetchResponse>

export interface ResourceClientOptions {
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch
  /** Fields of every request, such as Authorization; or what gives them, asked before each request. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)
  /** The patch format to prefer: see {@link createPatch}. Default `merge`. */
  readonly prefer?: 'merge' | 'json'
  /** How often an edit is tried while others change the document meanwhile, and a creation whose answer is lost. Default 5. */
  readonly maxAttempts?: number
}

/** A document as the server has it. */
export interface ResourceDocument {
  readonly document: JsonValue
  /** Its ETag, where the server told one. */
  readonly entityTag: string | undefined
  /** Its Last-Modified, where the server told one. */
  readonly lastModified: string | undefined
}

/** A document that was created. */
export interface CreatedDocument {
  /** `undefined` where the answer does not show it. */
  readonly document: JsonValue | undefined
  /** Where it is, in full. */
  readonly location: string | undefined
  readonly entityTag: string | undefined
}

/** Gives a document as it shall be, from a copy that it may change. */
export type DocumentChange = (document: JsonValue) => JsonValue | PromiseLike<JsonValue>

export interface ResourceClient {
  /**
   * Reads a JSON document.
   * @throws {@link ResponseError} for any answer but 200 with JSON
   */
  read(url: string | URL, options?: { readonly signal?: AbortSignal }): Promise<ResourceDocument>
  /**
   * Creates an item of a collection, once: the request carries an Idempotency-Key, and is sent again with the same key when
   * its answer is lost or is 429, 502, 503 or 504. Only for collections with `idempotency`: others would create again.
   * @returns the item, as far as the answer shows it, and where it is
   * @throws {@link ResponseError} for any answer but 201 and 202; the error of `fetch` at the last attempt
   */
  create(
    url: string | URL,
    document: JsonValue,
    options?: { readonly signal?: AbortSignal; readonly key?: string },
  ): Promise<CreatedDocument>
  /**
   * Reads a document, has it changed, and sends the difference as a patch that applies only to what was read
   * (If-Match; If-Unmodified-Since where there is no strong ETag). When somebody else was faster (412) all of that is
   * done anew.
   * @param change called once per attempt
   * @returns the document as it is now; nothing is sent where the change makes no difference
   * @throws {@link ResponseError} for any other answer, and for 412 at the last attempt; Error for a document that has
   *   neither ETag nor Last-Modified, which cannot be changed safely
   */
  edit(
    url: string | URL,
    change: DocumentChange,
    options?: { readonly signal?: AbortSignal },
  ): Promise<ResourceDocument>
}

interface Answer {
  readonly response: FetchResponse
  readonly text: string
}

/**
 * Makes a client for documents that are changed by more than one party.
 * @throws TypeError for an option that does not exist or makes no sense
 * @example
 * const client = createResourceClient({ headers: { Authorization: `Bearer ${token}` } })
 * await client.edit('https://example.org/users/42', (user) => ({ ...user, role: 'admin' }))
 */
export function createResourceClient(options?: ResourceClientOptions): ResourceClient {
  const given = readOptions('createResourceClient', options, ['fetch', 'headers', 'prefer', 'maxAttempts'])
  const { fetch = globalThis.fetch as Fetch, headers = {}, prefer = 'merge', maxAttempts = 5 } = given
  if (typeof fetch !== 'function') throw new TypeError('createResourceClient needs a fetch function.')
  checkValues('createResourceClient', given, { headers: either(recordOf(ANY_TEXT), FUNCTION) })
  if (prefer !== 'merge' && prefer !== 'json') {
    throw new TypeError("createResourceClient takes prefer: 'merge' or 'json'.")
  }
  if (!(maxAttempts >= 1)) throw new TypeError('createResourceClient needs a maxAttempts of at least 1.')

  async function send(
    url: string | URL,
    init: {
      readonly method: string
      readonly headers: Readonly<Record<string, string>>
      readonly body?: string
      readonly signal: AbortSignal | undefined
    },
  ): Promise<Answer> {
    const { signal, ...rest } = init
    const common = typeof headers === 'function' ? headers() : headers
    const response = await fetch(String(url), {
      ...rest,
      headers: { ...common, ...init.headers },
      // A cache may hold an older state for a while: editing that would fail again and again.
      cache: 'no-cache',
      ...(signal === undefined ? {} : { signal }),
    })
    // Always read, or the connection cannot be used again.
    return { response, text: await response.text() }
  }

  async function read(url: string | URL, signal: AbortSignal | undefined): Promise<ResourceDocument> {
    const answer = await send(url, { method: 'GET', headers: { Accept: 'application/json, */*;q=0.5' }, signal })
    if (answer.response.status !== 200) throw createError(answer)
    return describeDocument(answer, parseDocument(answer))
  }

  /** @returns the 412 where somebody else was faster */
  async function tryEdit(
    url: string | URL,
    change: DocumentChange,
    signal: AbortSignal | undefined,
  ): Promise<ResourceDocument | ResponseError> {
    const before = await read(url, signal)
    const changed = await change(structuredClone(before.document))
    // What JSON does not know, such as members that are undefined, is not sent either.
    const after = JSON.parse(JSON.stringify(changed)) as JsonValue
    const difference = createPatch(before.document, after, prefer)
    if (difference === undefined) return before
    const answer = await send(url, {
      method: 'PATCH',
      headers: { 'Content-Type': difference.contentType, ...conditionOn(before) },
      body: JSON.stringify(difference.patch),
      signal,
    })
    const { status } = answer.response
    if (status === 412) return createError(answer)
    if (status !== 200 && status !== 204) throw createError(answer)
    return describeDocument(answer, status === 200 && isJson(answer) ? parseDocument(answer) : after)
  }

  async function create(
    url: string | URL,
    document: JsonValue,
    { signal, key = crypto.randomUUID() }: { readonly signal?: AbortSignal; readonly key?: string } = {},
  ): Promise<CreatedDocument> {
    const init = {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': `"${key}"` },
      body: JSON.stringify(document),
      signal,
    }
    for (let attempts = 1; ; attempts++) {
      let answer: Answer | undefined
      try {
        answer = await send(url, init)
      } catch (error) {
        if (attempts >= maxAttempts || signal?.aborted === true) throw error
      }
      if (answer !== undefined) {
        const { status, headers } = answer.response
        if (status === 201 || status === 202) return describeCreated(url, answer)
        if (!PASSING.includes(status) || attempts >= maxAttempts) throw createError(answer)
        await pauseFor(headers.get('retry-after'))
      }
      await pause(attempts)
    }
  }

  return {
    create,
    read: (url, options) => read(url, options?.signal),
    async edit(url, change, options) {
      for (let attempts = 1; ; attempts++) {
        const result = await tryEdit(url, change, options?.signal)
        if (!(result instanceof ResponseError)) return result
        if (attempts >= maxAttempts) throw result
        await pause(attempts)
      }
    },
  }
}

/** The condition that holds only for what was read (RFC 9110 §13.1.1: a weak tag never matches If-Match). */
function conditionOn({ entityTag, lastModified }: ResourceDocument): Record<string, string> {
  if (entityTag !== undefined && !isWeakTag(entityTag)) return { 'If-Match': entityTag }
  if (lastModified !== undefined) return { 'If-Unmodified-Since': lastModified }
  throw new Error('The document has neither a strong ETag nor Last-Modified, so it cannot be changed safely.')
}

function describeDocument({ response: { headers } }: Answer, document: JsonValue): ResourceDocument {
  return {
    document,
    entityTag: headers.get('etag') ?? undefined,
    lastModified: headers.get('last-modified') ?? undefined,
  }
}

function describeCreated(url: string | URL, answer: Answer): CreatedDocument {
  const { headers } = answer.response
  const location = headers.get('location')
  // Relative to a page, the address of the request may be relative as well.
  const base = URL.canParse(String(url)) ? String(url) : undefined
  return {
    document: isJson(answer) && answer.text !== '' ? parseDocument(answer) : undefined,
    location: location === null ? undefined : base === undefined ? location : new URL(location, base).href,
    entityTag: headers.get('etag') ?? undefined,
  }
}

/** Answers that may be another at the next attempt. */
const PASSING: readonly number[] = [429, 502, 503, 504]
/** Milliseconds that the service may ask to wait. */
const LONGEST_WAIT = 10_000

/** Waits as Retry-After asks, where that is a number of seconds. */
function pauseFor(retryAfter: string | null): Promise<void> {
  const seconds = /^\d+$/.test(retryAfter ?? '') ? Number(retryAfter) : 0
  return new Promise((resolve) => setTimeout(resolve, Math.min(seconds * 1000, LONGEST_WAIT)))
}

function isJson({ response }: Answer): boolean {
  return isJsonType(parseMediaType(response.headers.get('content-type') ?? '')?.essence ?? '')
}

function parseDocument(answer: Answer): JsonValue {
  const { status } = answer.response
  if (!isJson(answer)) throw new ResponseError(status, undefined, 'The content of the answer is not JSON.')
  try {
    return JSON.parse(answer.text)
  } catch {
    throw new ResponseError(status, undefined, 'The content of the answer is not valid JSON.')
  }
}

function createError(answer: Answer): ResponseError {
  const { status } = answer.response
  const problem = isJson(answer) ? parseProblem(answer.text) : undefined
  const { title, detail } = (problem ?? {}) as { readonly title?: unknown; readonly detail?: unknown }
  const reason = typeof detail === 'string' ? detail : title
  return new ResponseError(status, problem, typeof reason === 'string' ? `${status}: ${reason}` : `${status}`)
}

function parseProblem(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Waits a random moment, longer after more attempts, so that rivals do not meet again at once. */
function pause(attempts: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * attempts * 20))
}
