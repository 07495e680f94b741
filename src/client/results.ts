import type { ContentError, ParameterError } from '../core/errors.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { ContentReader } from './fetch.ts'

/** A problem document (RFC 9457). `about:blank` is its type where the server sent none. */
export interface Problem<Status extends number = number> {
  readonly type: string
  readonly status: Status
  readonly title?: string
  readonly detail?: string
  /** Faults in the content that was sent. */
  readonly errors?: readonly (ContentError | ParameterError)[]
  readonly [name: string]: unknown
}

/** A resource at a URL, in the state that its tag names: changes apply to this state only. */
export interface ResourceHandle<Path extends string = string> {
  readonly url: string
  /** The ETag, where the server sent one. */
  readonly entityTag: string | undefined
  /** Last-Modified, where the server sent it. */
  readonly lastModified: string | undefined
  /** The path in the definitions; a type only. */
  readonly '~path'?: Path
}

/** A JSON document as it was read, with the tag of that state. */
export interface ResourceDocument<Value = JsonValue, Path extends string = string> extends ResourceHandle<Path> {
  readonly value: Value
  /** The content as it was received. Changes are computed from it, whatever has been done to `value`. */
  readonly text: string
}

/** Work that the server has accepted; see `wait`. */
export interface Operation<Value = JsonValue> {
  /** Where the accepted item is, or the monitor of a removal. */
  readonly url: string
  /** Milliseconds after which the server wants to be asked first, where it said so. */
  readonly retryAfter: number | undefined
  /** What is read there; a type only. */
  readonly '~value'?: Value
}

export type Success<Status extends number, Members = object> = {
  readonly ok: true
  readonly status: Status
} & Members

/** A refusal that is part of the protocol. */
export type Failure<Status extends number> = Status extends number
  ? { readonly ok: false; readonly status: Status; readonly problem: Problem<Status> }
  : never

/** A place that both sides changed, each in its own way. `undefined`: the property is not there. */
export interface Conflict {
  /** JSON Pointer (RFC 6901) of the property; empty for the whole document. */
  readonly pointer: string
  readonly base: JsonValue | undefined
  readonly mine: JsonValue | undefined
  readonly theirs: JsonValue | undefined
}

/** A 412 that could not be resolved. */
export interface ChangeConflict<Value, Path extends string> extends Failure<412> {
  /** Where both sides changed the same property; empty where others were faster too often. */
  readonly conflicts: readonly Conflict[]
  /** The document as others have left it. */
  readonly theirs: ResourceDocument<Value, Path>
}

/**
 * The result of a request that has to succeed.
 * @throws ResponseError for a refusal
 * @example
 * const { document } = expectSuccess(await client.read('/config'))
 */
export function expectSuccess<Result extends { readonly ok: boolean }>(
  result: Result,
): Extract<Result, { readonly ok: true }> {
  if (result.ok) return result as Extract<Result, { readonly ok: true }>
  const { status, problem } = result as unknown as Failure<number>
  throw new ResponseError(status, problem as JsonValue, `${status}: ${problem.detail ?? problem.title ?? 'refused'}`)
}

/** An answer that was not foreseen, or no answer. */
export class ResponseError extends Error {
  override readonly name: string = 'ResponseError'
  /** 0 where no answer came. */
  declare readonly status: number
  /** The problem document (RFC 9457), where the server sent one. */
  declare readonly problem: JsonValue | undefined
  /** Whether the request may have changed something although it failed. */
  declare readonly mayHaveTakenEffect: boolean

  constructor(
    status: number,
    problem: JsonValue | undefined,
    message: string,
    options: { readonly cause?: unknown; readonly mayHaveTakenEffect?: boolean } = {},
  ) {
    super(message, options)
    this.status = status
    this.problem = problem
    this.mayHaveTakenEffect = options.mayHaveTakenEffect ?? false
  }
}

/** A mistake of the program: the request is neither sent nor tried again. */
export class UsageError extends TypeError {}

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
