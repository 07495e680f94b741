import { publishFailure } from '../../core/diagnostics.ts'
import { stopWatch, watchIdle } from '../../core/idle-watch.ts'
import { type Abortable, isAborted, throwIfAborted } from '../types.ts'
import type { PostgresClient, PostgresPool, PostgresQuery } from './connection.ts'
import { createUnavailableError, isConnectionIntact } from './errors.ts'

export interface CheckoutOptions {
  /** Milliseconds that a statement may take. */
  readonly statementTimeout: number
  /** Milliseconds to wait for a connection. */
  readonly connectTimeout: number
  readonly waiting: WaitingCalls
}

/** The calls that wait for a connection. */
export interface WaitingCalls {
  /** @throws HttpError 503 when too many wait already */
  enter(): void
  leave(): void
}

/** Sends a query on a connection. @returns its rows. Fails when its deadline is over. */
export type SendQuery = (query: PostgresQuery) => Promise<unknown[]>

/**
 * Takes a connection for one use and gives it back; a connection that broke or missed its deadline is destroyed.
 * Bounded in time and in number, whatever limits the pool itself has.
 */
export type Checkout = <Result>(
  use: (send: SendQuery, client: PostgresClient) => Promise<Result>,
  call: Abortable,
) => Promise<Result>

/** A wait looks this often whether its caller has left, in milliseconds: an AbortSignal each would cost 4 us. */
export const LOOK_PERIOD = 50

/** @param limit calls that may wait at the same time */
export function createWaitingCalls(limit: number): WaitingCalls {
  let count = 0
  return {
    enter() {
      if (count >= limit) {
        throw createUnavailableError(new Error(`${limit} calls wait for a connection already.`))
      }
      count++
    },
    leave() {
      count--
    },
  }
}

export function createCheckout(
  pool: PostgresPool,
  { statementTimeout, connectTimeout, waiting }: CheckoutOptions,
): Checkout {
  guardPool(pool)
  limitConnectionTime(pool, connectTimeout)
  const lookPeriod = Math.min(LOOK_PERIOD, connectTimeout)

  function connect(call: Abortable): Promise<PostgresClient> {
    return new Promise((resolve, reject) => {
      throwIfAborted(call)
      // Counted until the pool has answered: a pool without a limit keeps a call in its queue after the caller has left.
      waiting.enter()
      const start = performance.now()
      let isOver = false
      const watch = watchIdle(lookPeriod, () => {
        if (isAborted(call)) return fail(call.signal!.reason)
        if (performance.now() - start < connectTimeout) return
        fail(createUnavailableError(new Error(`No connection was free within ${connectTimeout} ms.`)))
      })

      function settle(): void {
        isOver = true
        stopWatch(watch)
      }

      function fail(error: unknown): void {
        settle()
        reject(error)
      }

      connectTo(pool).then(
        (client) => {
          waiting.leave()
          guardClient(client)
          if (isOver) return client.release()
          settle()
          resolve(client)
        },
        (error) => {
          waiting.leave()
          fail(error)
        },
      )
    })
  }

  return async (use, call) => {
    const client = await connect(call)
    let isSilent = false

    function send(query: PostgresQuery): Promise<unknown[]> {
      return new Promise((resolve, reject) => {
        const watch = watchIdle(statementTimeout, () => {
          isSilent = true
          fail(new Error(`The database did not answer within ${statementTimeout} ms.`))
        })

        function fail(error: unknown): void {
          stopWatch(watch)
          reject(error)
        }

        try {
          client.query(query).then((result) => {
            stopWatch(watch)
            resolve((result as { readonly rows?: unknown[] } | undefined)?.rows ?? [])
          }, fail)
        } catch (error) {
          fail(error)
        }
      })
    }

    try {
      const result = await use(send, client)
      client.release()
      return result
    } catch (error) {
      client.release(isSilent || !isConnectionIntact(error))
      // A graceful end would wait for an answer to its goodbye, and with it the next caller for its place in the pool.
      if (isSilent) client.connection?.stream?.destroy()
      throw error
    }
  }
}

const guarded = new WeakSet<object>()
/** The limits that stores have set on pools that had none. */
const limited = new WeakMap<PostgresPool, number>()

/** An `error` event without a listener would end the process. */
function guardAgainstErrorEvents(emitter: PostgresPool | PostgresClient, listener: (error: Error) => void): void {
  if (guarded.has(emitter)) return
  guarded.add(emitter)
  emitter.on('error', listener)
}

/** The query that fails reports the loss. */
function guardClient(client: PostgresClient): void {
  guardAgainstErrorEvents(client, () => {})
}

function guardPool(pool: PostgresPool): void {
  if (guarded.has(pool)) return
  guardAgainstErrorEvents(pool, (error) => publishFailure({ error, stage: 'background' }))
  // The pool listens only to idle connections. It takes its listener off before the promise of `connect` is fulfilled,
  // and the server may end the connection in between: with the same packet that opened it, on a fast shutdown.
  pool.on('connect', guardClient)
  pool.on('acquire', guardClient)
}

/**
 * A pool without a limit waits forever for a host that accepts the connection and then says nothing; each such
 * connection keeps its place in the pool, and no other code can close it.
 */
function limitConnectionTime(pool: PostgresPool, connectTimeout: number): void {
  const { options } = pool
  if (options === undefined) return
  const current = options.connectionTimeoutMillis
  if (current && limited.get(pool) !== current) return
  const limit = Math.max(current ?? 0, connectTimeout)
  options.connectionTimeoutMillis = limit
  limited.set(pool, limit)
}

/** A pool of the program's own may throw instead of rejecting. */
async function connectTo(pool: PostgresPool): Promise<PostgresClient> {
  return pool.connect()
}
