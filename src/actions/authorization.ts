import { note, refuse } from '../core/diagnostics.ts'
import { HttpError, isHttpError } from '../core/errors.ts'
import { andThen, isPromise, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import { describeValue } from '../core/option-values.ts'
import { refuseRenamedValue } from '../core/options.ts'
import { asJudged, asRead, type RequestView } from '../core/request-view.ts'
import { isReadMethod } from '../protocol/request-line.ts'
import { isResource } from '../stores/rules.ts'
import type { StoredResource, StoredState, Tombstone } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { askAbout, viewRemoved } from './resource-view.ts'
import { refuseOutOfScope } from './scope.ts'
import { checkConditions, readWithHidden, setState } from './state.ts'

/**
 * Asks the definition whether the request may go on, with the state that it would show or replace.
 * @throws HttpError 403; 404 where even existence is a secret
 */
export function requireAuthorization(exchange: ResourceExchange): MaybePromise<void> {
  if (exchange.route.authorize === undefined) return undefined
  if (!isAboutState(exchange)) return judge(exchange, undefined)
  const reading = readWithHidden(exchange)
  return isPromise(reading) ? reading.then(() => judgeState(exchange)) : judgeState(exchange)
}

function judgeState(exchange: ResourceExchange): MaybePromise<void> {
  // The write must find the very state that the hook is shown.
  exchange.isConditional = true
  const state = subjectOf(exchange)
  if (state === undefined || isResource(state)) return judge(exchange, state)
  const judged = judge(exchange, exchange.hidden)
  return exchange.hidden === undefined ? andThen(judged, () => concealRemoval(exchange, state)) : judged
}

/**
 * The same as a step of the order. A 404 of the hook waits until the state would be missed: a request with another fault
 * gets the same answer for a target that is hidden as for one that never was there. Where the request may create the
 * target, the two differ in any case.
 */
export function checkAuthorization(exchange: ResourceExchange): MaybePromise<undefined> {
  const { method, route } = exchange
  // A file is created below an item that is there.
  const mayCreate = method === 'POST' || (method === 'PUT' && route.createsByPut && !route.isFile)
  if (route.authorize === undefined || mayCreate || !isAboutState(exchange)) {
    return requireAuthorization(exchange) as MaybePromise<undefined>
  }
  const conceal = (error: unknown): void => {
    if (!isHttpError(error) || error.status !== 404) throw error
    exchange.concealed = error
  }
  return orElse(
    () => requireAuthorization(exchange),
    (error) => {
      conceal(error)
      if (route.collection === undefined || exchange.state === undefined || !isReadMethod(method)) return undefined
      // Any path may be a list: one whose resource is hidden is judged as one that has none.
      setState(exchange, undefined)
      const judged = () => andThen(judge(exchange, undefined), () => void (exchange.concealed = undefined))
      return orElse(judged, conceal)
    },
  ) as MaybePromise<undefined>
}

/**
 * Judges a request anew right before a write that creates a resource, for definitions whose deletion is soft: a store compares
 * the versions of what it shows, and while the content arrived another resource may have been put there and deleted.
 */
export function recheckAbsence(exchange: ResourceExchange): MaybePromise<void> {
  const { scope, current, route } = exchange
  const isJudged = route.authorize !== undefined || scope !== undefined
  if (!isJudged || current !== undefined) return undefined
  exchange.isStateRead = false
  return andThen(readWithHidden(exchange), () => {
    refuseOutOfScope(exchange)
    return andThen(requireAuthorization(exchange), () => void checkConditions(exchange))
  })
}

/**
 * Asks the definition whether the current state may be read, for a write that turns out to tell of it.
 * @throws HttpError 403; 404 where even existence is a secret
 */
export function checkReading(exchange: ResourceExchange): MaybePromise<void> {
  if (exchange.route.authorize === undefined || exchange.revealsState) return undefined
  const state = subjectOf(exchange)
  return ask(exchange, asRead(exchange), isResource(state) ? state : exchange.hidden)
}

/** A collection has no state of its own, and a POST to it none to replace. Any path of the open service may have one. */
function isAboutState({ route }: ResourceExchange): boolean {
  return route.collection === undefined || route.collection.content === 'any'
}

/** The state that the right to a request depends on. */
function subjectOf(exchange: ResourceExchange): StoredState {
  return exchange.route.isFile ? exchange.item : exchange.state
}

/** Asks the hook, and for a write whose answer tells the current state a second time, as if it were read. */
function judge(exchange: ResourceExchange, resource: StoredResource | undefined): MaybePromise<void> {
  const asked = ask(exchange, asJudged(exchange), resource)
  return exchange.revealsState ? andThen(asked, () => ask(exchange, asRead(exchange), resource)) : asked
}

function ask(
  exchange: ResourceExchange,
  request: RequestView,
  resource: StoredResource | undefined,
): MaybePromise<void> {
  const { route, principal } = exchange
  const limit = route.context.limits.bodySize
  return andThen(askAbout(resource, limit, route.authorize!, principal, request), (verdict) => {
    if (verdict === true) return
    refuseRenamedValue('authorize', 'authorize', verdict)
    if (verdict === 'not-found') refuse(exchange, 'authorize hides it', new HttpError(404, 'ERR_NOT_FOUND'))
    // A function without `return` refuses everything.
    const isRefusal = verdict === false
    const reason = isRefusal ? 'authorize refused' : `authorize returned ${describeValue(verdict)}, which refuses`
    refuse(exchange, reason, new HttpError(403, 'ERR_FORBIDDEN'))
  })
}

/**
 * Makes a removed resource one that never existed, unless the principal may read every state of that path: 410 would
 * disclose a resource that GET answered with 404. The content that names its owner is gone, so the hook is asked without it.
 */
async function concealRemoval(exchange: ResourceExchange, state: Tombstone): Promise<void> {
  const { route, principal } = exchange
  let verdict: boolean | 'not-found'
  try {
    verdict = await route.authorize!(principal, asRead(exchange), viewRemoved(state))
  } catch {
    verdict = 'not-found' // the hook needs the content
  }
  if (verdict === true) return
  refuseRenamedValue('authorize', 'authorize', verdict)
  note(exchange, 'authorize hides its removal')
  if (route.isFile) exchange.item = undefined
  else setState(exchange, undefined)
}
