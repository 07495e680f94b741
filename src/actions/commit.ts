import { HttpError } from '../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../core/handler.ts'
import type { StoredState } from '../stores/types.ts'
import { checkAuthorization } from './authorization.ts'
import { checkConditions } from './conditions.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { setState } from './state.ts'

const MAX_ATTEMPTS = 100
const PATIENT_ATTEMPTS = 3

interface Outcome {
  readonly outcome: string
}

type Attempt<Input, Result> = (exchange: ResourceExchange, input: Input) => MaybePromise<Result>
type Won<Result extends Outcome> = Exclude<Result, { outcome: 'conflict' }>

/**
 * Runs a compare-and-swap until it is won. A lost race is judged anew against the state that won it: authorisation and
 * conditions first (403, 412), then the next attempt, so that no update is lost and none happens on a state that nobody
 * allowed.
 * @param attempt makes one attempt, from the state on the exchange
 * @param input what it makes it with
 * @throws HttpError 409 when the resource keeps changing
 */
export function commit<Input, Result extends Outcome>(
  exchange: ResourceExchange,
  attempt: Attempt<Input, Result>,
  input: Input,
  attempts = 1,
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
  setState(exchange, (result as unknown as { readonly current: StoredState }).current)
  return andThen(checkAuthorization(exchange), () => {
    checkConditions(exchange)
    if (attempts < PATIENT_ATTEMPTS) return commit(exchange, attempt, input, attempts + 1)
    return pause(attempts).then(() => commit(exchange, attempt, input, attempts + 1))
  })
}

/** Waits a random moment, longer after more attempts, so that rivals do not meet again at once. */
function pause(attempts: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(50, attempts * 2)))
}
