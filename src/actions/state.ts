import { hasConditions } from '../core/conditions.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../core/handler.ts'
import { isResource, type StoredState } from '../stores/types.ts'
import { selectedValidators } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Reads the current state of the target, once a request. */
export function readState(
  exchange: ResourceExchange,
  options?: { readonly metadataOnly: boolean },
): MaybePromise<void> {
  if (exchange.isStateRead) return undefined
  const { store } = exchange.route.context
  const state = store.read(
    exchange.storePath,
    exchange.wantsHidden ? { ...options, hidden: true } : (options ?? undefined),
  )
  return isPromise(state) ? state.then((state) => setState(exchange, state)) : setState(exchange, state)
}

/** Takes a state as the current one, with the validators of the representation that the request selects. */
export function setState(exchange: ResourceExchange, state: StoredState): void {
  exchange.isStateRead = true
  exchange.state = state
  exchange.validators = isResource(state) ? selectedValidators(exchange, state) : undefined
}

const METADATA = { metadataOnly: true }

/** Reads the state of a target that need not exist (PUT), where a condition is about to ask for it. */
export function loadIfPresent(exchange: ResourceExchange): MaybePromise<void> {
  if (exchange.route.preconditions === 'optional' && !hasConditions(exchange)) return undefined
  return readState(exchange, METADATA)
}

/** What HEAD needs of a state: no content, unless fields of the answer are made from it. */
export function neededOf({ method, route }: ResourceExchange): typeof METADATA | undefined {
  return method === 'HEAD' && route.renditions.length === 0 && !route.showsWork ? METADATA : undefined
}

/** Reads the state of a target that must exist, with its content unless the method is HEAD. */
export function loadPresent(exchange: ResourceExchange): MaybePromise<void> {
  return andThen(readState(exchange, neededOf(exchange)), () => requirePresent(exchange))
}

/** @throws HttpError 404, or 410 where the resource is known to have been removed (RFC 9110 §15.5.11) */
export function requirePresent(exchange: ResourceExchange): void {
  const { state } = exchange
  if (isResource(state)) return
  note(exchange, state === undefined ? 'nothing is stored here' : 'it was removed')
  if (state === undefined) throw new HttpError(404, 'ERR_NOT_FOUND')
  throw new HttpError(410, 'ERR_GONE')
}
