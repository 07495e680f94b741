import type { Socket } from 'node:net'
import type { Exchange } from '../core/exchange.ts'
import { isPromise, type MaybePromise } from '../core/handler.ts'
import type { Reply } from '../core/reply.ts'
import { isSafeMethod } from '../protocol/methods.ts'

type Decision = MaybePromise<Reply | undefined>

/** What has arrived on a connection and is not decided yet. */
interface InFlight {
  readonly settled: PromiseLike<unknown>
  /** Whether safe requests may go beside it: it is safe, and waits for nothing that is not. */
  readonly isSafe: boolean
}

const IN_FLIGHT = Symbol('requests in flight')

/**
 * Takes requests of one connection in their order, as far as they are not all safe (RFC 9112 §9.3.2). Node hands over a
 * pipelined request while the one before it is still being processed: without this, a GET sent after a PUT on the same
 * connection would not see what was put, and the second of two PUTs might lose.
 */
export function decideInOrder<E extends Exchange>(exchange: E, decide: (exchange: E) => Decision): Decision {
  if (exchange.isHttp2) return decide(exchange) // streams have no order
  const connection = exchange.req.socket as Socket & { [IN_FLIGHT]?: InFlight | undefined }
  const before = connection[IN_FLIGHT]
  const isSafe = isSafeMethod(exchange.method)
  const waits = before !== undefined && !(isSafe && before.isSafe)
  const decision = waits ? before.settled.then(() => decide(exchange)) : decide(exchange)
  if (!isPromise(decision)) return decision
  const own = decision.then(ignore, ignore)
  const inFlight: InFlight =
    before === undefined || waits
      ? { settled: own, isSafe: isSafe && !waits }
      : { settled: Promise.all([before.settled, own]), isSafe }
  connection[IN_FLIGHT] = inFlight
  inFlight.settled.then(() => {
    if (connection[IN_FLIGHT] === inFlight) connection[IN_FLIGHT] = undefined
  })
  return decision
}

function ignore(): void {}
