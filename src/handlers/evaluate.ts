import { conditionsOf, hasConditions } from '../core/conditions.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { evaluatePreconditions, type PreconditionResult, type Validators } from '../protocol/preconditions.ts'

/**
 * Evaluates the conditions of a request (RFC 9110 §13.2.2).
 * @returns whether the client has the current representation already (304)
 * @throws HttpError 412; 400 for a malformed If-Match or, on an unsafe method, If-None-Match
 */
export function evaluateConditions(
  exchange: Exchange,
  validators: Validators | undefined,
  now: number,
): 'proceed' | 'not-modified' {
  if (!hasConditions(exchange)) return 'proceed'
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
