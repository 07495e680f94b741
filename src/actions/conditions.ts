import { isHttpError } from '../core/errors.ts'
import { evaluateConditions, requireCondition } from '../core/fields.ts'
import { andThen, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { declaredLength } from '../core/request-content.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import { formatEntityTag } from '../protocol/preconditions.ts'
import type { Expectation } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Action } from './route.ts'

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
  if (route.preconditions === 'required' && !isSafeMethod(method) && method !== 'POST') {
    if (validators !== undefined) requireCondition(conditions, validators, route.context.now())
    // What another client puts there before the write needs a condition as well.
    exchange.isConditional = true
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
  const { method, conditions, current, route, foreseenVersion } = exchange
  if (foreseenVersion !== undefined) return { version: foreseenVersion }
  if (!exchange.isConditional) {
    // It replaces what there is, or restores it, and creates nothing.
    if (method !== 'PUT' || route.createsByPut) return 'any'
    return current === undefined ? 'absent' : 'present'
  }
  const takesAny = conditions?.ifMatch === '*' && conditions.ifNoneMatch === undefined
  if (takesAny && route.authorize === undefined && exchange.scope === undefined) return 'present'
  return current === undefined ? 'absent' : { version: current.version }
}

/** Bytes of content that arrive no later than the answer of a store about the state would. */
const SMALL = 16 * 1024

/** Reads the collection for a POST that is to be judged by its representation (RFC 9110 §13.2.1). */
export function whereConditional(load: Action['load']): Action['load'] {
  return (exchange) => (exchange.conditions === undefined ? undefined : load(exchange))
}

/** Reads the state for a PUT, unless its If-Match is left to the write. */
export function unlessForeseen(load: Action['load']): Action['load'] {
  return (exchange) => (foreseeVersion(exchange) ? undefined : load(exchange))
}

/**
 * Leaves If-Match of a PUT to the write, which replaces the version of the tag or nothing: one call of the store instead of
 * two. Only for small content of a client that does not wait for 100, and where no hook has to see the state before.
 * A request that is traced reads the state: its trace names what was decided by it.
 * @returns whether the state need not be read now
 */
function foreseeVersion(exchange: ResourceExchange): boolean {
  const { conditions, route } = exchange
  const tag = conditions?.ifMatch
  // A condition that was judged once is judged anew by what is stored.
  if (tag === undefined || !route.isComparedByWrite || exchange.isStateRead || exchange.isConditional) return false
  if (conditions!.ifNoneMatch !== undefined || exchange.field('expect') !== undefined) return false
  if (exchange.trace !== undefined || (declaredLength(exchange) ?? Number.POSITIVE_INFINITY) > SMALL) return false
  const version = tag.slice(1, -1)
  if (version === '' || formatEntityTag(version) !== tag) return false
  exchange.foreseenVersion = version
  return true
}

/**
 * Performs a write that decides on its condition. Another fault of the request is answered only where the current state meets
 * the condition: the state comes before the content in the order of decisions (RFC 9110 §13.2.1).
 * @throws HttpError 412, 404, 410 instead of a fault of the content
 */
export function performForeseen(exchange: ResourceExchange, perform: Action['perform']): MaybePromise<Reply> {
  return orElse(
    () => perform(exchange),
    (error) => {
      const isJudged = exchange.foreseenVersion === undefined
      if (isJudged || !isHttpError(error) || error.status >= 500) throw error
      return andThen(exchange.action.load(exchange), () => {
        checkConditions(exchange)
        throw error
      })
    },
  )
}
