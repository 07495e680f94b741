import type { ResourceExchange } from '../actions/resource-exchange.ts'
import type { Route } from '../actions/route.ts'
import { type Step, sequence } from '../core/sequence.ts'
import { isReadMethod, isSafeMethod, type Method } from '../protocol/methods.ts'

/** A step of the requests to a resource. */
export interface ResourceStep {
  /** `undefined` where an option leaves it out. */
  readonly step: Step<ResourceExchange> | undefined
  /**
   * Whether requests of a method to a route take the step, by what is the same for all of them. For others it has nothing
   * to decide. Default: all take it.
   */
  readonly when?: Condition
}

type Condition = (route: Route, method: Method) => boolean

export const isUnsafe: Condition = (_, method) => !isSafeMethod(method)

export const isBelowParent: Condition = ({ hasParent }) => hasParent

/** Whose items exist for the caller; an outbox, that of the item for a file, may write into any collection. */
export const dependsOnScope: Condition = ({ indexing, outbox, isFile }) =>
  indexing?.scope !== undefined || outbox !== undefined || isFile

export const isAuthorized: Condition = ({ authorize }) => authorize !== undefined

/** Content of DELETE means nothing, and may have digests. */
export const mayHaveContent: Condition = ({ actions }, method) =>
  actions[method]?.content !== undefined || method === 'DELETE'

/** Other methods are idempotent. */
export const takesKeys: Condition = ({ idempotency }, method) =>
  idempotency !== undefined && (method === 'POST' || method === 'PATCH')

/** Hidden resources are shown where a hook decides who may see them; what is shown depends on Accept where there are renditions. */
export const mayShowOther: Condition = ({ renditions, deletion, authorize }, method) =>
  isReadMethod(method) && (renditions.length > 0 || (deletion === 'soft' && authorize !== undefined))

/** 406 needs a type that the definition names. */
export const mayRefuseType: Condition = ({ accept, usualType }, method) =>
  isReadMethod(method) && accept === 'strict' && usualType !== undefined

export const mayChooseType: Condition = ({ accept, offers }, method) =>
  isReadMethod(method) && (accept === 'strict' || offers.length > 0)

export const isRead: Condition = (_, method) => isReadMethod(method)

type Plan = Partial<Record<Method, Step<ResourceExchange>>>

/** Makes one step of those that the route and the method of a request need, in their order. */
export function createResourceSteps(steps: readonly ResourceStep[]): Step<ResourceExchange> {
  const plans = new Map<Route, Plan>()

  function plan(route: Route, method: Method): Step<ResourceExchange> {
    const needed = steps.flatMap(({ step, when }) =>
      step !== undefined && (when === undefined || when(route, method)) ? [step] : [],
    )
    return sequence(needed)
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
