import { parseHttpDate } from '../protocol/dates.ts'
import { type Conditions, evaluatePreconditions, type Validators } from '../protocol/preconditions.ts'
import { note } from './diagnostics.ts'
import { HttpError, malformedField } from './errors.ts'
import type { Exchange } from './exchange.ts'

/**
 * Evaluates the conditions of a request (RFC 9110 §13.2.2).
 * @returns whether the client has the current representation already (304)
 * @throws HttpError 412; 400 for a malformed If-Match or, on an unsafe method, If-None-Match
 */
export function evaluateConditions(
  exchange: Exchange,
  conditions: Conditions | undefined,
  validators: Validators | undefined,
  now: number,
): 'proceed' | 'not-modified' {
  if (conditions === undefined) return 'proceed'
  const result = evaluatePreconditions(conditions, validators, exchange.method, now)
  if (exchange.trace !== undefined) {
    note(exchange, result.field === undefined ? 'conditions met' : `${result.field} ${result.outcome}`)
  }
  if (result.outcome === 'failed') throw new HttpError(412, 'ERR_PRECONDITION_FAILED')
  if (result.outcome === 'malformed') throw malformedField(`${result.field} is not a list of entity tags.`)
  return result.outcome
}

/**
 * Refuses a change of what exists that comes without a condition. A condition that is ignored does not count: a date
 * that is none, or that meets a state without one (RFC 9110 §13.1.4).
 * @throws HttpError 428 (RFC 6585 §3)
 */
export function requireCondition(conditions: Conditions | undefined, current: Validators, now: number): void {
  if (conditions?.ifMatch !== undefined || conditions?.ifNoneMatch !== undefined) return
  if (conditions?.ifUnmodifiedSince !== undefined && current.lastModified !== undefined) {
    if (parseHttpDate(conditions.ifUnmodifiedSince, now) !== undefined) return
  }
  throw new HttpError(428, 'ERR_PRECONDITION_REQUIRED', { detail: 'Send the ETag you have in If-Match.' })
}
