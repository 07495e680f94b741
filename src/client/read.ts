import type { JsonValue } from '../core/json.ts'
import {
  type Answer,
  conditionOn,
  createError,
  parseContent,
  readValidators,
  refuse,
  throwAfterWrite,
} from './answers.ts'
import type { Failure, ResourceDocument, Success } from './results.ts'
import { pause, type RequestOptions, readRetryAfter, type Send, type Target } from './transport.ts'

/** What every request of a client needs. */
export interface ClientContext {
  readonly base: string
  readonly send: Send
  readonly cache: ReturnType<typeof createTagCache>
  /** `undefined`: that of `createPatch`. */
  readonly prefer: 'merge' | 'json' | undefined
  readonly maxAttempts: number
  /** Paths of collections that keep keys of creations. */
  readonly keyed: readonly string[]
}

/** One request of a program, and what it needs. */
export interface Call<Options extends RequestOptions = RequestOptions> extends ClientContext, Target<Options> {}

/** The refusals that reading foresees. */
export const READING = [401, 403, 404, 410] as const

export type ReadResult<Value, Path extends string> =
  | Success<200, { readonly document: ResourceDocument<Value, Path> }>
  | Failure<(typeof READING)[number]>

export async function readDocument(call: Call): Promise<ReadResult<JsonValue, string>> {
  const answer = await getJson(call)
  if (answer.status !== 200) return refuse(answer, READING)
  return { ok: true, status: 200, document: describeDocument(answer, call.url) }
}

/** GET of JSON. What has not changed since it was last read comes from memory. */
export async function getJson(call: Call): Promise<Answer> {
  const { cache, url } = call
  const known = cache.find(url)
  const request = (condition: Readonly<Record<string, string>>): Promise<Answer> =>
    call.send(call, { method: 'GET', headers: { Accept: 'application/json, */*;q=0.5', ...condition } })
  // Only answers with a tag are kept.
  let answer = await request(known ? { 'If-None-Match': known.headers.get('etag')! } : {})
  // The tag of another resource is of no use. Under this condition, which always holds, the service does not redirect.
  if (answer.target) answer = await request(conditionOn('any'))
  if (answer.status === 304 && known) {
    cache.keep(known)
    // What it says anew counts (RFC 9111 §3.2), but not of Content-* and ETag: a proxy may have weakened the tag.
    const get = (name: string): string | null => (name > 'f' && answer.headers.get(name)) || known.headers.get(name)
    return { ...known, headers: { get } }
  }
  if (answer.status === 200) cache.keep(answer)
  else cache.forget(url)
  return answer
}

/** @throws ResponseError for content that is not JSON */
function describeDocument(answer: Answer, url: string): ResourceDocument {
  return { url, value: parseContent(answer), text: answer.text, ...readValidators(answer) }
}

/**
 * The document after a write: from the answer where it carries the whole representation with its tag, otherwise read.
 * A server that changes content before it stores it sends no tag with it (RFC 9110 §9.3.4).
 * @throws ResponseError where it cannot be read, although the write took effect
 */
export async function readWritten(call: Call, answer: Answer): Promise<ResourceDocument> {
  const { headers, status } = answer
  const { cache, url } = call
  cache.forget(url)
  const location = headers.get('content-location')
  const isRepresentation = location && URL.canParse(location, answer.url) && new URL(location, answer.url).href === url
  if ((status === 200 || status === 201) && isRepresentation && headers.get('etag')) {
    return describeDocument(answer, url)
  }
  const reading = getJson(call).then((current) => {
    if (current.status === 200) return describeDocument(current, url)
    throw createError(current, 'The change took effect, but its result cannot be read.')
  })
  return reading.catch(throwAfterWrite)
}

/**
 * Answers by URL, so that what has not changed is not sent again (304). The oldest go first.
 * @param size the most answers that are kept
 */
export function createTagCache(size: number) {
  /** The longest content that is kept, in characters. */
  const maxLength = 100_000
  const answers = new Map<string, Answer>()
  return {
    /** The answer to send If-None-Match for. */
    find: (url: string): Answer | undefined => answers.get(url),
    keep(answer: Answer): void {
      answers.delete(answer.url)
      if (!answer.headers.get('etag') || answer.text.length > maxLength) return
      answers.set(answer.url, answer)
      if (answers.size > size) answers.delete(answers.keys().next().value!)
    },
    forget: (url: string): void => void answers.delete(url),
  }
}

export type WaitResult<Value> = ReadResult<Value, string>

/** Reads the monitor of accepted work until the work has ended. */
export async function waitForEnd(call: Call, retryAfter: number | undefined): Promise<WaitResult<JsonValue>> {
  /** Milliseconds between two looks at work of which the server does not say when to look again. */
  const usualPause = 1000
  /** However soon the server wants to be asked again. */
  const shortestPause = 100
  const signal = call.options?.signal
  if (retryAfter) await pause(retryAfter, signal)
  while (true) {
    const answer = await getJson(call)
    if (answer.status !== 200) return refuse(answer, READING)
    const document = describeDocument(answer, call.url)
    const state = (document.value as { readonly state?: JsonValue } | null)?.state
    if (state !== 'pending' && state !== 'running') return { ok: true, status: 200, document }
    await pause(Math.max(readRetryAfter(answer) ?? usualPause, shortestPause), signal)
  }
}
