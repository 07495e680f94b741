import type { ContentError, ParameterError } from '../core/errors.ts'
import type { JsonValue } from '../core/json.ts'

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
  /** The absolute URL of the resource. */
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
  /** The parsed content. */
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
  /** The value that both sides began with. */
  readonly base: JsonValue | undefined
  /** The value of this side. */
  readonly mine: JsonValue | undefined
  /** The value of the other side, as it is stored. */
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

/** The error for a response that is not among the results of a request, and for no response. */
export class ResponseError extends Error {
  override readonly name: string = 'ResponseError'
  /** 0 where no response came. */
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
