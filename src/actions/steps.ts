import type { Exchange } from '../core/exchange.ts'
import type { Step } from '../core/handler.ts'
import { isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { isReadMethod, isSafeMethod, type Method } from '../protocol/methods.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'

/** A step of the requests to a resource. */
export interface ResourceStep {
  /** `undefined` where an option leaves it out. */
  readonly step: Step<ResourceExchange> | undefined
  /** Which requests take the step; for all others it would change nothing. Default: all take it. */
  readonly when?: Condition
}

/** Decided once for a route and a method, so by nothing that one request alone has. */
type Condition = (route: Route, method: Method) => boolean

export const isUnsafe: Condition = (_, method) => !isSafeMethod(method)

export const isBelowParent: Condition = ({ hasParent }) => hasParent

/** An outbox may write into any collection, whose scope then counts. A file has the outbox of its item. */
export const dependsOnScope: Condition = ({ indexing, outbox, isFile }) =>
  indexing?.scope !== undefined || outbox !== undefined || isFile

export const isAuthorized: Condition = ({ authorize }) => authorize !== undefined

/** The content of DELETE is not read, but its digest fields have to be well-formed. */
export const mayHaveContent: Condition = ({ actions }, method) =>
  actions[method]?.content !== undefined || method === 'DELETE'

/** Other methods are idempotent. */
export const takesKeys: Condition = ({ idempotency }, method) =>
  idempotency !== undefined && (method === 'POST' || method === 'PATCH')

/** `?deleted=true` needs an `authorize` that decides who may see hidden resources; renditions add Accept to Vary. */
export const hasHiddenOrRenditions: Condition = ({ renditions, deletion, authorize }, method) =>
  isReadMethod(method) && (renditions.length > 0 || (deletion === 'soft' && authorize !== undefined))

/** Where the definition alone can tell that nothing is acceptable. */
export const canRefuseType: Condition = ({ accept, usualType }, method) =>
  isReadMethod(method) && accept === 'strict' && usualType !== undefined

/** Where Accept selects a rendition, or refuses what is stored. */
export const negotiatesStored: Condition = ({ accept, offers }, method) =>
  isReadMethod(method) && (accept === 'strict' || offers.length > 0)

export const isRead: Condition = (_, method) => isReadMethod(method)

type Plan = Partial<Record<Method, Step<ResourceExchange>>>

/** Makes one step of those that the route and the method of a request need, in their order. */
export function createResourceSteps(steps: Readonly<Record<string, ResourceStep>>): Step<ResourceExchange> {
  const plans = new Map<Route, Plan>()

  function plan(route: Route, method: Method): Step<ResourceExchange> {
    const needed = Object.entries(steps).filter(([, { when }]) => when === undefined || when(route, method))
    return sequence(Object.fromEntries(needed.map(([name, { step }]) => [name, step])))
  }

  return (exchange) => {
    const { route } = exchange
    // The methods that a route has: it was checked that this is one of them.
    const method = exchange.method as Method
    let own = plans.get(route)
    if (own === undefined) plans.set(route, (own = {}))
    return (own[method] ??= plan(route, method))(exchange)
  }
}

/**
 * Makes one step of several: they run in order until one replies. Control only moves forward.
 * @param named the steps by the names that traces show; those of functions are not the same in every bundle. `undefined` is
 *   left out
 * @param rest goes on where none of them replies, and notes its own steps
 */
export function sequence<E extends Exchange>(
  named: Readonly<Record<string, Step<E> | undefined>>,
  rest?: Step<E>,
): Step<E> {
  const names = Object.keys(named).filter((name) => named[name] !== undefined)
  const steps = names.map((name) => named[name]!)
  const last = rest === undefined ? steps.length - 1 : steps.length

  function runFrom(exchange: E, first: number): MaybePromise<Reply | undefined> {
    for (let i = first; i < steps.length; i++) {
      exchange.trace?.push(names[i]!)
      const reply = steps[i]!(exchange)
      if (reply === undefined) continue
      return i < last && isPromise(reply)
        ? Promise.resolve(reply).then((reply) => reply ?? runFrom(exchange, i + 1))
        : reply
    }
    return rest === undefined ? undefined : rest(exchange)
  }

  return (exchange) => runFrom(exchange, 0)
}
