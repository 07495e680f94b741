import type { ContentError, ParameterError } from '../core/errors.ts'
import type { JsonValue } from '../core/json.ts'
import { type Answer, createError, parseProblem } from './answer.ts'
import type { Conflict } from './merge.ts'
import { ResponseError } from './response-error.ts'

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
  /** Where its monitor is. */
  readonly url: string
  /** Milliseconds after which the server wants to be asked first, where it said so. */
  readonly retryAfter: number | undefined
  /** The state of the monitor; a type only. */
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

/** A 412 that could not be resolved. */
export interface ChangeConflict<Value, Path extends string> extends Omit<Failure<412>, 'ok'> {
  readonly ok: false
  /** Where both sides changed the same property; empty where others were faster too often. */
  readonly conflicts: readonly Conflict[]
  /** The document as others have left it. */
  readonly theirs: ResourceDocument<Value, Path>
}

/** The refusals that reading foresees. */
export const READING = [401, 403, 404, 410] as const
export const LISTING = [400, 401, 403, 404] as const
export const CREATING = [401, 403, 404, 409, 413, 422] as const
/** 412: the state is not the one that was read. */
export const CHANGING = [401, 403, 404, 409, 410, 412, 413, 422] as const
export const REMOVING = [401, 403, 404, 409, 410, 412] as const

/** @throws ResponseError for an answer that is not foreseen */
export function refuse<Status extends number>(answer: Answer, foreseen: readonly Status[]): Failure<Status> {
  const { status } = answer
  if (!(foreseen as readonly number[]).includes(status)) throw createError(answer)
  return { ok: false, status, problem: { type: 'about:blank', ...parseProblem(answer), status } } as Failure<Status>
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
