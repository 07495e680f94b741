import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { Content, NewState, StoredResource } from '../stores/types.ts'
import { foresee } from './foreseen-state.ts'
import { loadView, viewState } from './hooks.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'

/** A state that has no version yet. */
const UNWRITTEN: NewState = { version: '' }

/**
 * Asks `conflict` of the definition about a change of its resource. The write that follows has to insist on `current`.
 * @param path of the resource
 * @param current the state that the change replaces; `undefined` where it creates
 * @throws HttpError 409 with the sentence that the hook gives
 */
export function checkConflict(
  exchange: ResourceExchange,
  path: string,
  content: Content,
  current: StoredResource | undefined,
  route: Route = exchange.route,
): MaybePromise<void> {
  const { conflict, context } = route
  if (conflict === undefined) return undefined
  const { bodySize } = context.limits
  const proposed = viewState(foresee(path, content, UNWRITTEN), bodySize)
  const verdict = andThen(loadView(current, bodySize, exchange), (view) => conflict(proposed, view, exchange))
  return andThen(verdict, (detail) => {
    if (detail !== undefined) throw new HttpError(409, 'ERR_CONFLICT', { detail })
  })
}
