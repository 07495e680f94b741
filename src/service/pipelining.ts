import type { Socket } from 'node:net'
import type { Exchange, Undecided } from '../core/exchange.ts'
import { isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { isSafeMethod } from '../protocol/methods.ts'

type Decision = MaybePromise<Reply | undefined>

/** The request of a connection that was taken last, with those before it that were not decided then. */
class InFlight implements Undecided {
  /** Whether safe requests may go beside it: it is safe, and waits for nothing that is not. */
  readonly isSafe: boolean
  before: InFlight | undefined
  decision: PromiseLike<Reply | undefined> | undefined
  isDecided = false

  constructor(isSafe: boolean, before: InFlight | undefined, decision: PromiseLike<Reply | undefined>) {
    this.isSafe = isSafe
    this.before = before
    this.decision = decision
  }

  /** Lets go of what is decided: a connection may live for days. */
  decided(): void {
    this.isDecided = true
    this.decision = undefined
    this.before = undecided(this.before)
  }
}

const IN_FLIGHT = Symbol('requests in flight')

/**
 * Takes requests of one connection in their order, as far as they are not all safe (RFC 9112 §9.3.2). Node hands over a
 * pipelined request while the one before it is still being processed: without this, a GET sent after a PUT on the same
 * connection would not see what was put, and the second of two PUTs might lose.
 */
export function decideInOrder<E extends Exchange>(exchange: E, decide: (exchange: E) => Decision): Decision {
  if (exchange.isHttp2) return decide(exchange) // streams have no order
  const connection = exchange.req.socket as Socket & { [IN_FLIGHT]?: InFlight }
  const before = undecided(connection[IN_FLIGHT])
  const isSafe = isSafeMethod(exchange.method)
  const waits = before !== undefined && !(isSafe && before.isSafe)
  const decision = waits ? decideAfter(before, exchange, decide) : decide(exchange)
  if (!isPromise(decision)) return decision
  exchange.undecided = connection[IN_FLIGHT] = new InFlight(isSafe && !waits, before, decision)
  return decision
}

/** The last request that is still in flight, if any. */
function undecided(request: InFlight | undefined): InFlight | undefined {
  let last = request
  while (last?.isDecided === true) last = last.before
  return last
}

async function decideAfter<E extends Exchange>(
  request: InFlight,
  exchange: E,
  decide: (exchange: E) => Decision,
): Promise<Reply | undefined> {
  for (let last = undecided(request); last !== undefined; last = undecided(request)) {
    try {
      await last.decision
    } catch {
      // Its own request answers for it.
    }
    last.decided()
  }
  return decide(exchange)
}
