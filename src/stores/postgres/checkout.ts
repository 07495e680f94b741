import { type IdleWatch, stopWatch, watchIdle } from '../../core/idle-watch.ts'
import { type Abortable, isAborted, throwIfAborted } from '../aborted.ts'
import type { PostgresClient, PostgresPool, PostgresStatement, PostgresValue } from './connection.ts'
import { createUnavailableError } from './errors.ts'
import { connectTo, guardClient, guardPool, limitConnectionTime } from './pool-guard.ts'
import { canRunAhead, runSingles, runUse, type SendQuery, type Single, type TurnOptions } from './turn.ts'

export interface CheckoutOptions extends TurnOptions {
  /** Milliseconds to wait for a connection. */
  readonly connectTimeout: number
  /** Calls that may wait for a connection at the same time. */
  readonly maxWaiting: number
}

/**
 * Takes connections and gives them back; one that broke or missed a deadline is destroyed. Bounded in time and in number,
 * whatever limits the pool itself has.
 */
export interface Checkout {
  /**
   * Runs one statement, which is a transaction of its own. Where more calls wait than the pool has connections, several
   * leave together: a write to a socket costs a third of a GET.
   */
  runSingle(statement: PostgresStatement, values: PostgresValue[], call: Abortable): Promise<unknown[]>
  /** Lends a connection for one use. */
  lend<Result>(use: (send: SendQuery, client: PostgresClient) => Promise<Result>, call: Abortable): Promise<Result>
}

/** A call that waits for a connection. */
interface Waiting {
  readonly call: Abortable
  /** On the clock of `performance.now`. */
  readonly since: number
  readonly reject: (error: unknown) => void
  /** What it waits for: to run one statement, or to have a connection. */
  readonly single: Single | undefined
  readonly take: ((client: PostgresClient) => void) | undefined
}

/** Calls that wait are looked at this often, in milliseconds, instead of listening to a signal each: that costs 4 us. */
const LOOK_PERIOD = 50
/** The most statements that leave together: each waits for those before it. */
const LARGEST_SHARE = 8

export function createCheckout(pool: PostgresPool, options: CheckoutOptions): Checkout {
  const { connectTimeout, maxWaiting } = options
  guardPool(pool)
  limitConnectionTime(pool, connectTimeout)
  const line: Waiting[] = []
  /** Connections that the pool has been asked for and has not given. */
  let asked = 0
  let watch: IdleWatch | undefined

  function enter(call: Abortable, waiting: Waiting): void {
    throwIfAborted(call)
    // A pool without a limit keeps what it was asked for by calls that are over.
    if (Math.max(line.length, asked) >= maxWaiting) {
      throw createUnavailableError(new Error(`${maxWaiting} calls wait for a connection already.`))
    }
    line.push(waiting)
    watch ??= watchIdle(Math.min(LOOK_PERIOD, connectTimeout), look)
    askForConnections()
  }

  /** One for each call, and no more than the pool has. */
  function askForConnections(): void {
    const wanted = Math.min(line.length, pool.options?.max ?? Number.POSITIVE_INFINITY)
    while (asked < wanted) {
      asked++
      connectTo(pool).then(serve, (error) => {
        for (const { reject } of line.splice(0, takeShare())) reject(error)
      })
    }
  }

  /** How many of the calls one connection serves, so that each of those that were asked for serves as many. */
  function takeShare(): number {
    return Math.ceil(line.length / asked--)
  }

  /** Serves those that have waited longest. */
  function serve(client: PostgresClient): void {
    guardClient(client)
    const share = Math.min(takeShare(), LARGEST_SHARE)
    const first = findFirst()
    if (first === undefined) client.release()
    else if (first.single !== undefined) runSingles(client, takeSingles(client, share), options)
    else {
      line.shift()
      first.take!(client)
    }
    askForConnections()
  }

  /** The first one in line whose caller has not left. */
  function findFirst(): Waiting | undefined {
    while (line.length > 0 && isAborted(line[0]!.call)) {
      const { call, reject } = line.shift()!
      reject(call.signal!.reason)
    }
    return line[0]
  }

  /** Takes the first statement out of the line, and with it those behind it that the connection can run ahead. */
  function takeSingles(client: PostgresClient, share: number): readonly Single[] {
    const singles: Single[] = []
    for (let next = line[0]!.single; next !== undefined; next = findFirst()?.single) {
      const isAhead = canRunAhead(client, next.statement, options)
      if (singles.length > 0 && !isAhead) break
      line.shift()
      singles.push(next)
      if (singles.length === share || !isAhead) break
    }
    return singles
  }

  /** Ends the waits of those who have left, and of those who have waited for too long. */
  function look(): void {
    const latest = performance.now() - connectTimeout
    for (const waiting of [...line]) {
      const { call, since, reject } = waiting
      const hasLeft = isAborted(call)
      if (!hasLeft && since > latest) continue
      line.splice(line.indexOf(waiting), 1)
      if (hasLeft) reject(call.signal!.reason)
      else reject(createUnavailableError(new Error(`No connection was free within ${connectTimeout} ms.`)))
    }
    if (line.length > 0) return
    stopWatch(watch!)
    watch = undefined
  }

  return {
    runSingle: (statement, values, call) =>
      new Promise((resolve, reject) => {
        const single = { statement, values, resolve, reject }
        enter(call, { call, since: performance.now(), reject, single, take: undefined })
      }),

    async lend(use, call) {
      const client = await new Promise<PostgresClient>((take, reject) => {
        enter(call, { call, since: performance.now(), reject, single: undefined, take })
      })
      return runUse(client, use, options)
    },
  }
}
