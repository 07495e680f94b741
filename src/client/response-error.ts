import type { JsonValue } from '../core/json.ts'

/** An answer that was not foreseen, or no answer. */
export class ResponseError extends Error {
  override readonly name: string = 'ResponseError'
  /** 0 where no answer came. */
  readonly status: number
  /** The problem document (RFC 9457), where the server sent one. */
  readonly problem: JsonValue | undefined
  /** Whether the request may have changed something although it failed. */
  readonly mayHaveTakenEffect: boolean

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
