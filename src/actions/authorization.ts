import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { loadView } from './hooks.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { readState } from './state.ts'

/**
 * Asks the definition whether the request may go on, with the state that a write would replace.
 * @throws HttpError 403; 404 where even existence is a secret
 */
export function checkAuthorization(exchange: ResourceExchange): MaybePromise<void> {
  const { authorize } = exchange.route
  if (authorize === undefined) return undefined
  const wantsState = judgesState(exchange.route)
  return andThen(wantsState && isAboutState(exchange) ? readState(exchange) : undefined, () => {
    const { current } = exchange
    if (wantsState) exchange.isConditional = true
    const view = wantsState ? loadView(current, exchange.route.context.limits.parsedSize) : undefined
    const verdict = andThen(view, (view) => authorize(exchange.principal, exchange, view))
    return andThen(verdict, (verdict) => {
      if (verdict === true) return
      note(exchange, verdict === 'hide' ? 'authorize hides it' : 'authorize refused')
      if (verdict === 'hide') throw new HttpError(404, 'ERR_NOT_FOUND')
      throw new HttpError(403, 'ERR_FORBIDDEN')
    })
  })
}

/** Whether a route asks its hook about the state of the target. A hook that takes none spares the store a read. */
export function judgesState({ authorize }: Pick<Route, 'authorize'>): boolean {
  return authorize !== undefined && (authorize.length === 0 || authorize.length > 2)
}

/** A collection has no state of its own; its members are authorised one by one. */
function isAboutState(exchange: ResourceExchange): boolean {
  return exchange.method !== 'POST' && exchange.route.collection === undefined
}
