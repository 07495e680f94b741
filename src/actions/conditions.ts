import { evaluateConditions, requireCondition } from '../core/conditions.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import type { Expectation } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/**
 * Evaluates the conditions of a request against the state on the exchange.
 * A condition that is left to the write counts as met until the write has failed.
 * @returns whether the client has the current representation already (304)
 * @throws HttpError 412; 400 for a malformed If-Match or, on an unsafe method, If-None-Match; 428 where the resource
 *   requires a condition and the request has none that counts
 */
export function checkConditions(exchange: ResourceExchange): 'proceed' | 'not-modified' {
  const { conditions, validators, route, method } = exchange
  if (exchange.foreseenVersion !== undefined) {
    exchange.isConditional = true
    return 'proceed'
  }
  if (route.preconditions === 'required' && validators !== undefined && !isSafeMethod(method) && method !== 'POST') {
    requireCondition(conditions, validators, route.context.now())
  }
  if (conditions === undefined) return 'proceed'
  // The clock takes 200 instructions, and tags do without it.
  const isDated = conditions.ifModifiedSince !== undefined || conditions.ifUnmodifiedSince !== undefined
  const outcome = evaluateConditions(exchange, conditions, validators, isDated ? route.context.now() : 0)
  if (outcome === 'proceed') exchange.isConditional = true
  return outcome
}

/** The state in which a write may happen: the conditions are still met, and the hook that allowed it has seen that state. */
export function expectationOf(exchange: ResourceExchange): Expectation {
  const { conditions, current, route, foreseenVersion } = exchange
  if (foreseenVersion !== undefined) return { version: foreseenVersion }
  if (!exchange.isConditional) {
    if (!isPutWithoutCreation(exchange)) return 'any'
    return current === undefined ? 'absent' : 'present'
  }
  const takesAny = conditions?.ifMatch === '*' && conditions.ifNoneMatch === undefined
  if (takesAny && route.authorize === undefined && exchange.scope === undefined) return 'present'
  return current === undefined ? 'absent' : { version: current.version }
}

/** Whether PUT replaces what there is, or restores it, and creates nothing. */
function isPutWithoutCreation({ method, route }: ResourceExchange): boolean {
  return method === 'PUT' && !route.createsByPut
}
