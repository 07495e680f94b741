import { conditionOn } from './address.ts'
import { type Answer, createError, parseContent } from './answer.ts'
import { ResponseError } from './response-error.ts'
import { type Failure, READING, type ResourceDocument, refuse, type Success } from './results.ts'
import type { TagCache } from './tag-cache.ts'
import type { RequestOptions, Send } from './transport.ts'

export type { RequestOptions }

/** What every request of a client needs. */
export interface ClientContext {
  readonly base: string
  readonly send: Send
  readonly cache: TagCache
  /** `undefined`: that of `createPatch`. */
  readonly prefer: 'merge' | 'json' | undefined
  readonly maxAttempts: number
  /** Paths of collections that keep keys of creations. */
  readonly keyed: readonly string[]
}

export type ReadResult<Value, Path extends string> =
  | Success<200, { readonly document: ResourceDocument<Value, Path> }>
  | Failure<(typeof READING)[number]>

/** GET of JSON. What has not changed since it was last read comes from memory. */
export async function getJson({ send, cache }: ClientContext, url: string, options?: RequestOptions): Promise<Answer> {
  const known = cache.find(url)
  const request = (condition: Readonly<Record<string, string>>): Promise<Answer> =>
    send({ method: 'GET', url, headers: { Accept: 'application/json, */*;q=0.5', ...condition }, options })
  // Only answers with a tag are kept.
  let answer = await request(known ? { 'If-None-Match': known.headers.get('etag')! } : {})
  // The tag of another resource is of no use. Under this condition, which always holds, the service does not redirect.
  if (answer.target !== undefined) answer = await request(conditionOn('any'))
  if (answer.status === 304 && known) {
    cache.keep(known)
    return known
  }
  if (answer.status === 200) cache.keep(answer)
  else cache.forget(url)
  return answer
}

export async function readDocument<Value, Path extends string>(
  context: ClientContext,
  url: string,
  options?: RequestOptions,
): Promise<ReadResult<Value, Path>> {
  const answer = await getJson(context, url, options)
  if (answer.status !== 200) return refuse(answer, READING)
  return { ok: true, status: 200, document: describeDocument(answer, url) }
}

/** @throws ResponseError for content that is not JSON */
export function describeDocument<Value, Path extends string>(
  answer: Answer,
  url: string,
): ResourceDocument<Value, Path> {
  return { url, value: parseContent(answer) as Value, text: answer.text, ...readValidators(answer) }
}

export function readValidators({ headers }: Answer): {
  readonly entityTag: string | undefined
  readonly lastModified: string | undefined
} {
  return {
    entityTag: headers.get('etag') ?? undefined,
    lastModified: headers.get('last-modified') ?? undefined,
  }
}

/**
 * The document after a write: from the answer where it carries the whole representation with its tag, otherwise read.
 * A server that changes content before it stores it sends no tag with it (RFC 9110 §9.3.4).
 * @throws ResponseError where it cannot be read, although the write took effect
 */
export async function readWritten<Value, Path extends string>(
  context: ClientContext,
  answer: Answer,
  url: string,
  options?: RequestOptions,
): Promise<ResourceDocument<Value, Path>> {
  const { headers, status } = answer
  context.cache.forget(url)
  const location = headers.get('content-location')
  const isRepresentation = location !== null && new URL(location, answer.url).href === url
  if ((status === 200 || status === 201) && isRepresentation && headers.get('etag') !== null) {
    return describeDocument(answer, url)
  }
  try {
    const current = await getJson(context, url, options)
    if (current.status === 200) return describeDocument(current, url)
    throw createError(current, 'The change took effect, but its result cannot be read.')
  } catch (error) {
    // It is the reading that failed.
    throw error instanceof ResponseError ? Object.assign(error, { mayHaveTakenEffect: true }) : error
  }
}
