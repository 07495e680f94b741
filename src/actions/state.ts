import { refuse } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { judgeConditions, requireCondition } from '../core/fields.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { isJsonType, parseMediaType } from '../protocol/media-type.ts'
import { isSafeMethod } from '../protocol/request-line.ts'
import { isResource, splitPath } from '../stores/rules.ts'
import type { Expectation, StoredState } from '../stores/types.ts'
import { isOthersResource } from './other-definitions.ts'
import { selectedValidators } from './representation.ts'
import { HIDDEN, METADATA, type Reading, ReadUntilLeft, type ResourceExchange, WHOLE } from './resource-exchange.ts'
import type { Action, Route } from './route.ts'
import { readInScope, refuseOutOfScope, tombstoneOf } from './scope.ts'

/** Reads the current state of the target, once a request. */
export function readState(exchange: ResourceExchange, needed: Reading): MaybePromise<void> {
  if (exchange.isStateRead) return undefined
  const { storePath, scope, route, wantsHidden: hidden } = exchange
  const reading = new ReadUntilLeft(exchange, hidden ? { ...needed, hidden } : needed)
  const state =
    scope === undefined ? route.context.store.read(storePath, reading) : readInScope(exchange, storePath, reading)
  return isPromise(state) ? state.then((state) => setState(exchange, state)) : setState(exchange, state)
}

/** Takes a state as the current one, with the validators of the representation that the request selects. */
export function setState(exchange: ResourceExchange, state: StoredState): void {
  exchange.isStateRead = true
  exchange.foreseenVersion = undefined
  exchange.state = state
  exchange.current = isResource(state) ? state : undefined
  exchange.validators = exchange.current && selectedValidators(exchange, exchange.current)
}

/**
 * Reads the current state of the target or, of a file, of its item; a softly deleted one as well, which then stands in
 * `hidden` while the state says that it is gone.
 */
export function readWithHidden(exchange: ResourceExchange): MaybePromise<void> {
  if (exchange.route.isFile) return readItem(exchange)
  // What a lost race tells of a hidden state is a tombstone.
  if (exchange.isStateRead && exchange.state === exchange.current) return undefined
  const state = readInScope(exchange, exchange.storePath, new ReadUntilLeft(exchange, HIDDEN))
  if (isPromise(state)) return state.then((state) => setState(exchange, splitHidden(exchange, state)))
  return setState(exchange, splitHidden(exchange, state))
}

/** Reads the state of the item that a file belongs to, once a request. */
function readItem(exchange: ResourceExchange): MaybePromise<void> {
  if (exchange.isItemRead) return undefined
  const { collection: path } = splitPath(exchange.storePath)
  // An item of another definition has rights of its own, and none of these files.
  const isOthers = isOthersResource(exchange.route, path)
  const read = isOthers ? undefined : readInScope(exchange, path, new ReadUntilLeft(exchange, HIDDEN))
  return andThen(read, (state) => {
    exchange.isItemRead = true
    exchange.item = splitHidden(exchange, state)
  })
}

/** A state as the request sees it; a hidden one that it does not ask for is kept in `hidden`. */
function splitHidden(exchange: ResourceExchange, state: StoredState): StoredState {
  const isHidden = isResource(state) && state.hidden === true
  exchange.hidden = isHidden ? state : undefined
  return !isHidden || exchange.wantsHidden ? state : tombstoneOf(exchange, state)
}

/** Reads the state of a file, whose item must exist. A file that was hidden with its item is there again with it. */
export function readFile(exchange: ResourceExchange, needed: Reading): MaybePromise<void> {
  return andThen(readItem(exchange), () => {
    requireState(exchange, exchange.item)
    const { store } = exchange.route.context
    const file = store.read(exchange.storePath, new ReadUntilLeft(exchange, { ...needed, hidden: true }))
    return andThen(file, (state) => setState(exchange, state))
  })
}

/** Reads the state of a file that PUT replaces. */
export function loadFileTarget(exchange: ResourceExchange): MaybePromise<void> {
  return readFile(exchange, METADATA)
}

/** Whether a media type is that of a patch format of the service. */
export function isPatchType({ context }: Route, essence: string): boolean {
  return context.patchFormats.some((format) => format.mediaType === essence)
}

/**
 * Reads the state of a target that PUT replaces and that need not exist, where a condition is about to ask for it, or
 * where the content is a patch document.
 * @throws HttpError 415 for a patch document over a JSON resource: it would become the resource (RFC 5789 §2)
 */
export function loadReplaced(exchange: ResourceExchange): MaybePromise<void> {
  const { route, contentType } = exchange
  if (route.isJson || !isPatchType(route, contentType)) {
    const isJudged = route.preconditions === 'required' || exchange.conditions !== undefined
    return isJudged ? readState(exchange, METADATA) : undefined
  }
  return andThen(readState(exchange, METADATA), () => {
    const { current } = exchange
    const stored = current === undefined ? undefined : parseMediaType(current.contentType)?.essence
    if (stored === undefined || stored === contentType || !isJsonType(stored)) return
    throw new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', {
      detail: `${contentType} describes changes: send it with PATCH.`,
      headers: { Accept: exchange.action.content!.types.join(', ') },
    })
  })
}

/**
 * Reads the state of a target that PUT replaces, a hidden one as well, which it restores. Where items have a scope, one that
 * is out of it does not exist, and is not replaced either.
 * @throws HttpError 404, 410
 */
export function loadReplacedOrHidden(exchange: ResourceExchange): MaybePromise<void> {
  // Not read again: another state than the one that `authorize` was shown would be replaced.
  return andThen(exchange.isStateRead ? undefined : readWithHidden(exchange), () => {
    refuseOutOfScope(exchange)
    if (!exchange.route.createsByPut && exchange.hidden === undefined) requirePresent(exchange)
  })
}

/** What a method needs of a state: its content only where that is sent, patched, shown to hooks, or makes a field of the answer. */
export function neededOf(exchange: ResourceExchange): Reading {
  const { method, route } = exchange
  if (route.showsWork) return WHOLE
  // What PUT replaces is read once more where a hook sees it.
  if (method === 'PUT') return METADATA
  if (method === 'DELETE') return route.observesChanges ? WHOLE : METADATA
  if (method !== 'HEAD' || route.renditions.length > 0) return WHOLE
  return exchange.field('want-repr-digest') === undefined ? METADATA : WHOLE
}

/** Reads the state of a target that must exist, with as much of it as the method needs. */
export function loadPresent(exchange: ResourceExchange): MaybePromise<void> {
  const reading = readState(exchange, neededOf(exchange))
  if (isPromise(reading)) return reading.then(() => requirePresent(exchange))
  requirePresent(exchange)
}

/** @throws HttpError 404, or 410 where the resource is known to have been removed (RFC 9110 §15.5.11) */
export function requirePresent(exchange: ResourceExchange): void {
  if (exchange.current === undefined) requireState(exchange, exchange.state)
}

function requireState(exchange: ResourceExchange, state: StoredState): void {
  if (isResource(state)) return
  if (state === undefined) {
    refuseOutOfScope(exchange)
    refuse(exchange, 'nothing is stored here', new HttpError(404, 'ERR_NOT_FOUND'))
  }
  refuse(exchange, 'it was removed', new HttpError(410, 'ERR_GONE'))
}

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
  const outcome = judgeConditions(exchange, conditions, validators, isDated ? route.context.now() : 0)
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

/** Reads the collection for a POST that is to be judged by its representation (RFC 9110 §13.2.1). */
export function whereConditional(load: Action['load']): Action['load'] {
  return (exchange) => (exchange.conditions === undefined ? undefined : load(exchange))
}
