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
  readonly reader: ContentReader | undefined
  readonly isWrite: boolean
  /** Whether an earlier attempt at the same request got no answer, so that it may have had its effect. */
  readonly isRepeated: boolean
}

/** Whether the content is JSON (RFC 8259, RFC 6839). */
export function hasJson({ headers }: Answer): boolean {
  return /^\s*(?:application\/json|text\/json|[^;\s]+\+json)\s*(?:;|$)/i.test(headers.get('content-type') ?? '')
}

/** @throws ResponseError for content that is not JSON */
export function parseContent(answer: Answer): JsonValue {
  try {
    if (hasJson(answer)) return JSON.parse(answer.text)
  } catch {}
  throw new ResponseError(answer.status, undefined, 'The content of the response is not JSON.')
}

export function parseProblem(answer: Answer): JsonObject | undefined {
  try {
    const problem = parseContent(answer)
    return isJsonObject(problem) ? problem : undefined
  } catch {
    return undefined
  }
}

/**
 * A reference in a response, made absolute.
 * @throws ResponseError for another origin: credentials must not go there
 */
export function resolveReference(answer: Answer, reference: string): string {
  const url = new URL(reference, answer.url)
  if (url.origin === new URL(answer.url).origin) return url.href
  throw new ResponseError(answer.status, undefined, `The response refers to another origin: ${url.origin}.`)
}
