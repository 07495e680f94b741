import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { ContentReader } from './fetch.ts'
import { type Failure, type ResourceHandle, ResponseError } from './results.ts'

/** A response that was read to its end, or whose content is still to be read. */
export interface Answer {
  readonly url: string
  /** The address of another resource that a redirect led to: the validators are its own. */
  readonly target: string | undefined
  readonly status: number
  readonly headers: { get(name: string): string | null }
  /** Empty where the content is a stream. */
  readonly text: string
  readonly reader?: ContentReader | undefined
  readonly isWrite: boolean
  /** Whether an earlier attempt at the same request got no answer, so that it may have had its effect. */
  readonly isRepeated: boolean
}

/** @throws ResponseError for an answer that is not foreseen */
export function refuse<Status extends number>(answer: Answer, foreseen: readonly Status[]): Failure<Status> {
  const { status } = answer
  if (!(foreseen as readonly number[]).includes(status)) throw createError(answer)
  return { ok: false, status, problem: { type: 'about:blank', ...parseProblem(answer), status } } as Failure<Status>
}

/** A response that cannot be used. A write may have taken effect unless a 4xx refused each attempt at it. */
export function createError(answer: Answer, message?: string): ResponseError {
  const { status, isWrite, isRepeated } = answer
  const problem = status < 400 ? undefined : parseProblem(answer)
  const reason = message ?? problem?.['detail'] ?? problem?.['title']
  const text = reason ? `${status}: ${reason}` : `${status}`
  const mayHaveTakenEffect = isWrite && (isRepeated || status < 400 || status >= 500)
  return new ResponseError(status, problem, text, { mayHaveTakenEffect })
}

/** Throws an error of the read after a write again: the write may have taken effect all the same. */
export function throwAfterWrite(error: unknown): never {
  throw error instanceof ResponseError ? Object.assign(error, { mayHaveTakenEffect: true }) : error
}

/** The media types of JSON (RFC 8259, RFC 6839). */
const JSON_TYPE = /^\s*((application|text)\/json|[^;\s]+\+json)\s*(;|$)/i

/** The content; `undefined` where it is not JSON. */
export function readJson({ headers, text }: Answer): JsonValue | undefined {
  try {
    return JSON_TYPE.test(headers.get('content-type') ?? '') ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** @throws ResponseError for content that is not JSON */
export function parseContent(answer: Answer): JsonValue {
  const value = readJson(answer)
  if (value === undefined) throw createError(answer, 'The content of the response is not JSON.')
  return value
}

/** The problem document. Members that are not text although they should be do not count (RFC 9457 §3.1). */
function parseProblem(answer: Answer): JsonObject | undefined {
  const problem = readJson(answer) as Record<string, JsonValue> | undefined
  if (!isJsonObject(problem)) return undefined
  for (const name of ['type', 'title', 'detail']) if (typeof problem[name] !== 'string') delete problem[name]
  return problem
}

/**
 * A reference in a response, made absolute.
 * @throws ResponseError for a malformed one, and for another origin: credentials must not go there
 */
export function resolveReference(answer: Answer, reference: string): string {
  const { origin } = new URL(answer.url)
  try {
    const url = new URL(reference, answer.url)
    if (url.origin === origin) return url.href
  } catch {}
  throw createError(answer, `The response refers to another origin: ${reference}.`)
}

export function readValidators({ headers }: Answer): Pick<ResourceHandle, 'entityTag' | 'lastModified'> {
  return { entityTag: headers.get('etag') ?? undefined, lastModified: headers.get('last-modified') ?? undefined }
}

/**
 * The condition that holds only for the state that was read (RFC 9110 §13.1.1: a weak tag never matches If-Match).
 * @throws TypeError for a state without validators
 */
export function conditionOn(match: ResourceHandle | 'any' | 'absent'): Readonly<Record<string, string>> {
  if (match === 'any') return { 'If-Match': '*' }
  if (match === 'absent') return { 'If-None-Match': '*' }
  const { entityTag, lastModified } = match
  if (entityTag?.startsWith('"')) return { 'If-Match': entityTag }
  if (lastModified) return { 'If-Unmodified-Since': lastModified }
  throw new TypeError('The document has neither a strong ETag nor Last-Modified.')
}
