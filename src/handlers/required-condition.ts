import { conditionsOf } from '../core/conditions.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { parseHttpDate } from '../protocol/http-date.ts'
import type { Validators } from '../protocol/preconditions.ts'

/**
 * Refuses a change of what exists that comes without a condition. A condition that is ignored does not count: a date
 * that is none, or that meets a state without one (RFC 9110 §13.1.4).
 * @throws HttpError 428 (RFC 6585 §3)
 */
export function requireCondition(exchange: Exchange, current: Validators, now: number): void {
  const { ifMatch, ifNoneMatch, ifUnmodifiedSince } = conditionsOf(exchange)
  if (ifMatch !== undefined || ifNoneMatch !== undefined) return
  if (ifUnmodifiedSince !== undefined && current.lastModified !== undefined) {
    if (parseHttpDate(ifUnmodifiedSince, now) !== undefined) return
  }
  throw new HttpError(428, 'ERR_PRECONDITION_REQUIRED', { detail: 'Send the ETag you have in If-Match.' })
}
