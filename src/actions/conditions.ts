import { conditionsOf, hasConditions } from '../core/conditions.ts'
import { HttpError } from '../core/errors.ts'
import { evaluateConditions } from '../handlers/evaluate.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import { type Conditions, evaluatePreconditions } from '../protocol/preconditions.ts'
import type { Expectation } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/**
 * Evaluates the conditions of a request against the state on the exchange.
 * @returns whether the client has the current representation already (304)
 * @throws HttpError 412; 400 for a malformed If-Match or, on an unsafe method, If-None-Match; 428 where the resource
 *   requires a condition and the request has none that counts
 */
export function checkConditions(exchange: ResourceExchange): 'proceed' | 'not-modified' {
  const { validators, route } = exchange
  if (!hasConditions(exchange)) {
    if (route.preconditions === 'required') requireCondition(exchange, {})
    return 'proceed'
  }
  if (route.preconditions === 'required') requireCondition(exchange, conditionsOf(exchange))
  const outcome = evaluateConditions(exchange, validators, route.context.now())
  if (outcome === 'proceed') exchange.isConditional = true
  return outcome
}

/** RFC 6585 §3. Only for changes of what exists; a date that is ignored is no condition. */
function requireCondition(exchange: ResourceExchange, conditions: Conditions): void {
  const { validators, method, route } = exchange
  if (validators === undefined || isSafeMethod(method) || method === 'POST') return
  if (conditions.ifMatch !== undefined || conditions.ifNoneMatch !== undefined) return
  if (conditions.ifUnmodifiedSince !== undefined) {
    // An ignored condition must not count as given: try it against a state that fails every date.
    const probe = { entityTags: [], lastModified: Number.MAX_SAFE_INTEGER }
    const result = evaluatePreconditions(
      { ifUnmodifiedSince: conditions.ifUnmodifiedSince },
      probe,
      method,
      route.context.now(),
    )
    if (result.outcome === 'failed' && validators.lastModified !== undefined) return
  }
  throw new HttpError(428, 'ERR_PRECONDITION_REQUIRED', {
    detail: 'This resource is changed only under a condition: read it, then send its ETag in If-Match.',
  })
}

/** The state in which a write may happen so that the conditions that were met are still met. */
export function expectationOf(exchange: ResourceExchange): Expectation {
  const { current, headers } = exchange
  if (!exchange.isConditional) return 'any'
  if (headers['if-match'] === '*' && headers['if-none-match'] === undefined) return 'present'
  return current === undefined ? 'absent' : { version: current.version }
}
