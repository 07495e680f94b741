import { HttpError } from '../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { MAX_ATTEMPTS, PATIENT_ATTEMPTS, pause } from '../core/turns.ts'
import type { StoredState, WriteConflict } from '../stores/types.ts'
import { requireAuthorization } from './authorization.ts'
import { checkConditions } from './conditions.ts'
import { checkParent } from './parent.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { setState } from './state.ts'

interface Outcome {
  readonly outcome: string
}

type Attempt<Input, Result> = (exchange: ResourceExchange, input: Input) => MaybePromise<Result>
type Won<Result extends Outcome> = Exclude<Result, { outcome: 'conflict' }>

/**
 * Runs a compare-and-swap until it is won. A lost race is judged anew against the state that won it: authorisation and
 * conditions first (403, 412), then the next attempt, so that no update is lost and none happens on a state that was not
 * allowed by the hooks.
 *
 * The requests of this process that change one resource take turns. To be called once the content is here: a client that
 * sends slowly would make all others wait.
 * @param attempt makes one attempt, from the state on the exchange
 * @param input what it makes it with
 * @throws HttpError 409 when the resource keeps changing; 503 when too many requests wait for their turn
 */
export function commit<Input, Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Input, Result>,
  input: Input,
): MaybePromise<Won<Result>> {
  const { storePath, isStateRead, route } = exchange
  return route.context.turns.take(
    storePath,
    (entry) => {
      if (entry === 'at-once') return swap(exchange, attempt, input, 1)
      return andThen(judgeAnew(exchange), () => swap(exchange, attempt, input, 1))
    },
    // A write that depends on no state wins at its first attempt.
    isStateRead ? 'refuse' : 'go-on',
  )
}

/** The same without a turn, for content that is still on its way. @see commit */
export function commitWithoutTurn<Input, Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Input, Result>,
  input: Input,
): MaybePromise<Won<Result>> {
  return swap(exchange, attempt, input, 1)
}

function swap<Input, Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Input, Result>,
  input: Input,
  attempts: number,
): MaybePromise<Won<Result>> {
  const result = attempt(exchange, input)
  if (isPromise(result)) return result.then((result) => settle(exchange, attempt, input, attempts, result))
  return settle(exchange, attempt, input, attempts, result)
}

function settle<Input, Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Input, Result>,
  input: Input,
  attempts: number,
  result: Result,
): MaybePromise<Won<Result>> {
  if (result.outcome !== 'conflict') return result as Won<Result>
  if (attempts === MAX_ATTEMPTS) {
    throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The resource is being changed by others all the time.' })
  }
  const isParentMissing = (result as Partial<WriteConflict>).missing !== undefined
  if (isParentMissing || attempts >= PATIENT_ATTEMPTS || exchange.scope !== undefined) {
    // The state of before the pause is not the current one any more, and what a store says of one is not in scope yet.
    const paused = attempts >= PATIENT_ATTEMPTS ? pause(attempts) : Promise.resolve()
    return paused
      .then(() => (isParentMissing ? checkParent(exchange) : undefined))
      .then(() => judgeAnew(exchange))
      .then(() => swap(exchange, attempt, input, attempts + 1))
  }
  const wasForeseen = exchange.foreseenVersion !== undefined
  setState(exchange, (result as unknown as { readonly current: StoredState }).current)
  // 404 and 410 come before the condition; this is the first look at the state.
  if (wasForeseen)
    return andThen(exchange.action.load(exchange), () => judgeAndSwap(exchange, attempt, input, attempts))
  return judgeAndSwap(exchange, attempt, input, attempts)
}

function judgeAndSwap<Input, Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Input, Result>,
  input: Input,
  attempts: number,
): MaybePromise<Won<Result>> {
  return andThen(requireAuthorization(exchange), () => {
    checkConditions(exchange)
    return swap(exchange, attempt, input, attempts + 1)
  })
}

/** Reads the current state and judges the request by it, in the order in which it was judged first. */
function judgeAnew(exchange: ResourceExchange): MaybePromise<void> {
  exchange.isStateRead = false
  exchange.isItemRead = false
  return andThen(requireAuthorization(exchange), () =>
    andThen(exchange.action.load(exchange), () => void checkConditions(exchange)),
  )
}
