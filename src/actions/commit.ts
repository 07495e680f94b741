import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import type { StoredState } from '../stores/types.ts'
import { checkAuthorization } from './authorization.ts'
import { checkConditions } from './conditions.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { setState } from './state.ts'

const MAX_ATTEMPTS = 100
const PATIENT_ATTEMPTS = 3

/**
 * Runs a compare-and-swap until it is won. A lost race is judged anew against the state that won it: authorisation and
 * conditions first (403, 412), then the next attempt, so that no update is lost and none happens on a state that nobody
 * allowed.
 * @param attempt makes one attempt, from the state on the exchange
 * @throws HttpError 409 when the resource keeps changing
 */
export function commit<Result extends { readonly outcome: string }>(
  exchange: ResourceExchange,
  attempt: () => MaybePromise<Result>,
  attempts = 1,
): MaybePromise<Exclude<Result, { outcome: 'conflict' }>> {
  return andThen(attempt(), (result) => {
    if (result.outcome !== 'conflict') return result as Exclude<Result, { outcome: 'conflict' }>
    if (attempts === MAX_ATTEMPTS) {
      throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The resource is being changed by others all the time.' })
    }
    setState(exchange, (result as unknown as { readonly current: StoredState }).current)
    return andThen(checkAuthorization(exchange), () => {
      checkConditions(exchange)
      if (attempts < PATIENT_ATTEMPTS) return commit(exchange, attempt, attempts + 1)
      return pause(attempts).then(() => commit(exchange, attempt, attempts + 1))
    })
  })
}

/** Waits a random moment, longer after more attempts, so that rivals do not meet again at once. */
function pause(attempts: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(50, attempts * 2)))
}
