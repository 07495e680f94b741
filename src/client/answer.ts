import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { ContentReader } from './fetch.ts'
import { ResponseError } from './response-error.ts'

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

/** The media types of JSON (RFC 8259, RFC 6839). */
const JSON_TYPE = /^\s*(?:(?:application|text)\/json|[^;\s]+\+json)\s*(?:;|$)/i

/** A response that cannot be used. A write may have taken effect unless it was refused by a 4xx. */
export function createError(answer: Answer, message?: string): ResponseError {
  const { status, isWrite } = answer
  const problem = status < 400 ? undefined : parseProblem(answer)
  const reason = message ?? problem?.['detail'] ?? problem?.['title']
  const text = typeof reason === 'string' ? `${status}: ${reason}` : `${status}`
  const mayHaveTakenEffect = isWrite && (status < 400 || status >= 500)
  return new ResponseError(status, problem, text, { mayHaveTakenEffect })
}

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

/** The problem document. A type that is not text does not count (RFC 9457 §3.1). */
export function parseProblem(answer: Answer): JsonObject | undefined {
  const problem = readJson(answer) as { type?: JsonValue } | undefined
  if (!isJsonObject(problem)) return undefined
  if (typeof problem.type !== 'string') delete problem.type
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
