import { isHttpError } from '../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { declaredLength } from '../core/request-content.ts'
import { formatEntityTag } from '../protocol/preconditions.ts'
import { observesChanges } from './changes.ts'
import { checkConditions } from './conditions.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { hasFileProperties } from './server-properties.ts'

/** Bytes of content that arrive no later than the answer of a store about the state would. */
const SMALL = 16 * 1024

/**
 * Leaves If-Match of a PUT to the write, which replaces the version of the tag or nothing: one call of the store instead of
 * two. Only for small content of a client that does not wait for 100, and where no hook has to see the state before.
 * A request that is traced reads the state: its trace names what was decided by it.
 * @returns whether the state need not be read now
 */
export function foreseeVersion(exchange: ResourceExchange): boolean {
  const tag = exchange.conditions?.ifMatch
  // A condition that was judged once is judged anew by what is stored.
  if (tag === undefined || exchange.isStateRead || exchange.isConditional || !isDecidedByWrite(exchange)) return false
  const version = tag.slice(1, -1)
  if (version === '' || formatEntityTag(version) !== tag) return false
  exchange.foreseenVersion = version
  return true
}

function isDecidedByWrite(exchange: ResourceExchange): boolean {
  const { route } = exchange
  if (route.context.store.supports?.tagsAreVersions !== true || !route.isJson) return false
  if (exchange.conditions?.ifNoneMatch !== undefined || exchange.field('expect') !== undefined) return false
  if (route.authorize !== undefined || route.conflict !== undefined || route.beforeWrite !== undefined) return false
  if (route.hasParent || route.renditions.length > 0 || hasFileProperties(route) || observesChanges(route)) return false
  return (declaredLength(exchange) ?? Number.POSITIVE_INFINITY) <= SMALL && exchange.trace === undefined
}

/**
 * Performs a write that decides on its condition. Another fault of the request is answered only where the current state meets
 * the condition: the state comes before the content in the order of decisions (RFC 9110 §13.2.1).
 * @throws HttpError 412, 404, 410 instead of a fault of the content
 */
export function performForeseen(
  exchange: ResourceExchange,
  perform: (exchange: ResourceExchange) => MaybePromise<Reply>,
): MaybePromise<Reply> {
  try {
    const reply = perform(exchange)
    return isPromise(reply) ? reply.then(undefined, (error) => judgeFirst(exchange, error)) : reply
  } catch (error) {
    return judgeFirst(exchange, error)
  }
}

function judgeFirst(exchange: ResourceExchange, error: unknown): MaybePromise<never> {
  const isJudged = exchange.foreseenVersion === undefined
  if (isJudged || !isHttpError(error) || error.status >= 500 || exchange.hasLeft) throw error
  return andThen(exchange.action.load(exchange), () => {
    checkConditions(exchange)
    throw error
  })
}
