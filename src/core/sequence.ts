import type { Exchange } from './exchange.ts'
import { isPromise, type MaybePromise } from './maybe-promise.ts'
import type { Reply } from './reply.ts'

/** One decision of a request. A reply ends the request; `undefined` goes on to the next step. */
export type Step<E extends Exchange = Exchange> = (exchange: E) => MaybePromise<Reply | undefined>

type Decision = MaybePromise<Reply | undefined>

/**
 * Makes one step of several: they run in order until one replies. Control only moves forward.
 * @param rest goes on where none of them replies, and notes its own steps
 */
export function sequence<E extends Exchange>(steps: readonly Step<E>[], rest?: Step<E>): Step<E> {
  // Bundlers tell functions of one name apart by a number.
  const names = steps.map(({ name }) => name.replace(/\$?\d+$/, ''))
  const last = rest === undefined ? steps.length - 1 : steps.length

  function runFrom(exchange: E, first: number): Decision {
    for (let i = first; i < steps.length; i++) {
      exchange.trace?.push(names[i]!)
      const reply = steps[i]!(exchange)
      if (reply === undefined) continue
      return i < last && isPromise(reply) ? reply.then((reply) => reply ?? runFrom(exchange, i + 1)) : reply
    }
    return rest === undefined ? undefined : rest(exchange)
  }

  return (exchange) => runFrom(exchange, 0)
}
