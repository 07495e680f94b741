import { leadsOut, listReadings } from '../protocol/path-prefix.ts'
import { parseRequestTarget, pathOfTarget } from '../protocol/request-target.ts'
import { HttpError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'

/** What is left in a decoded path that programs read differently: an escape that was escaped, and `;` parameters. */
const AMBIGUOUS = /%[0-9a-f]{2}|;/i

/**
 * Puts path and query on the exchange of a middleware. A target that has no path of one reading, such as
 * `/@scope%2Fname`, is the host's to judge: its path is what was received, and `readings` what programs may take it
 * for.
 * @throws HttpError 400 for a target that may or may not be below the mount of the middleware, or leads out of it; for `*`
 *   with another method than OPTIONS (RFC 9112 §3.2.4)
 */
export function readTarget(exchange: Exchange): void {
  const { place } = exchange
  const { target } = place
  if (target === '*' && exchange.method === 'OPTIONS') {
    exchange.path = '*'
    exchange.queryText = ''
    exchange.readings = undefined
    return
  }
  const parsed = parseRequestTarget(target)
  const path = parsed?.path ?? pathOfTarget(target)
  const readings = parsed === undefined || AMBIGUOUS.test(path) ? listReadings(path) : [path]
  const isLeft = place.mount !== '' && leadsOut(readings)
  if (!place.isClear || target === '*' || readings === undefined || isLeft) {
    throw new HttpError(400, 'ERR_MALFORMED_TARGET', { detail: 'The target of the request is malformed.' })
  }
  exchange.path = path
  exchange.queryText = parsed?.query ?? target.slice(path.length + 1)
  exchange.readings = readings.length > 1 ? readings : undefined
}

/**
 * Asks about the path of a request: where programs read it differently, about every reading, until an answer counts.
 * @param ask reads `exchange.path`
 * @param counts whether the other readings cannot change the answer
 * @returns the answer that counts, or the last one
 */
export function askEachReading<Answer>(
  exchange: Exchange,
  ask: () => MaybePromise<Answer>,
  counts: (answer: Answer) => boolean,
): MaybePromise<Answer> {
  const { path, readings } = exchange
  if (readings === undefined) return ask()
  const askFrom = (index: number): MaybePromise<Answer> => {
    exchange.path = readings[index]!
    return andThen(ask(), (answer) => goOn(answer, index))
  }
  const goOn = (answer: Answer, index: number): MaybePromise<Answer> => {
    exchange.path = path
    return counts(answer) || index === readings.length - 1 ? answer : askFrom(index + 1)
  }
  return askFrom(0)
}
