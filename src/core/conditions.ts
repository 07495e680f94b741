import { parseHttpDate } from '../protocol/http-date.ts'
import {
  type Conditions,
  evaluatePreconditions,
  type PreconditionResult,
  type Validators,
} from '../protocol/preconditions.ts'
import { note } from './diagnostics.ts'
import { HttpError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { countField } from './fields.ts'

/** Whether a request carries a condition at all. */
export function hasConditions(exchange: Exchange): boolean {
  return (
    exchange.field('if-none-match') !== undefined ||
    exchange.field('if-match') !== undefined ||
    exchange.field('if-modified-since') !== undefined ||
    exchange.field('if-unmodified-since') !== undefined
  )
}

/** The conditions of a request. A date that is given more than once is not a date, and is ignored (RFC 9110 §13.1.3). */
function conditionsOf(exchange: Exchange): Conditions {
  const { req } = exchange
  const modifiedSince = exchange.field('if-modified-since')
  const unmodifiedSince = exchange.field('if-unmodified-since')
  const isSingle = (name: string): boolean => countField(req, name) === 1
  return {
    ifMatch: exchange.field('if-match'),
    ifNoneMatch: exchange.field('if-none-match'),
    ifModifiedSince: modifiedSince !== undefined && isSingle('if-modified-since') ? modifiedSince : undefined,
    ifUnmodifiedSince: unmodifiedSince !== undefined && isSingle('if-unmodified-since') ? unmodifiedSince : undefined,
  }
}

/**
 * Evaluates the conditions of a request (RFC 9110 §13.2.2).
 * @returns whether the client has the current representation already (304); `unconditional` without a condition
 * @throws HttpError 412; 400 for a malformed If-Match or, on an unsafe method, If-None-Match
 */
export function evaluateConditions(
  exchange: Exchange,
  validators: Validators | undefined,
  now: number,
): 'unconditional' | 'proceed' | 'not-modified' {
  if (!hasConditions(exchange)) return 'unconditional'
  const result = evaluatePreconditions(conditionsOf(exchange), validators, exchange.method, now)
  if (exchange.trace !== undefined) note(exchange, describeResult(result))
  if (result.outcome === 'failed') throw new HttpError(412, 'ERR_PRECONDITION_FAILED')
  if (result.outcome === 'malformed') {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: `${result.field} is not a list of entity tags.` })
  }
  return result.outcome
}

function describeResult(result: PreconditionResult): string {
  return result.field === undefined ? 'conditions met' : `${result.field} ${result.outcome}`
}

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
