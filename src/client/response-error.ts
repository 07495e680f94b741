import type { JsonValue } from '../core/json.ts'

/** An answer that is not what was asked for. */
export class ResponseError extends Error {
  override readonly name: string = 'ResponseError'
  readonly status: number
  /** The problem document (RFC 9457), where the server sent one. */
  readonly problem: JsonValue | undefined

  constructor(status: number, problem: JsonValue | undefined, message: string) {
    super(message)
    this.status = status
    this.problem = problem
  }
}
