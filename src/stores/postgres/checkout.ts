/** Connections of the pool: each is taken for one use, and what an error says of it. */

import { publishFailure } from '../../core/diagnostics.ts'
import { HttpError, isHttpError } from '../../core/errors.ts'
import { hasProperties } from '../../core/option-values.ts'
import { stopWatch, watchIdle } from '../../core/time.ts'
import { createUnavailableError } from '../../core/unavailable.ts'
import type { PostgresStoreOptions } from '../postgres.ts'
import { isAborted, throwIfAborted } from '../rules.ts'
import type { Abortable } from '../types.ts'
import type { PostgresClient, PostgresPool, PostgresQuery } from './connection.ts'

export type CheckoutLimits = Required<Pick<PostgresStoreOptions, 'statementTimeout' | 'connectTimeout'>>

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

/** A call that is never given up. */
export const UNENDING: Abortable = {}

/** A wait looks this often whether its caller has left, in milliseconds: an AbortSignal each would cost 4 us. */
export const LOOK_PERIOD = 50

export type WaitingCalls = ReturnType<typeof createWaitingCalls>

/** Counts the calls that wait for a connection, or for something else. @param limit those that may wait at the same time */
export function createWaitingCalls(limit: number, awaited = 'a connection') {
  let count = 0
  return {
    /** @throws HttpError 503 when too many wait already */
    enter(): void {
      if (count >= limit) throw createUnavailableError(new Error(`${limit} calls wait for ${awaited} already.`))
      count++
    },
    leave(): void {
      count--
    },
  }
}

export function createCheckout(
  pool: PostgresPool,
  { statementTimeout, connectTimeout }: CheckoutLimits,
  waiting: WaitingCalls,
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

      // A pool of the program's own may throw instead of rejecting, or give something else.
      const connecting = (async () => guardClient(await pool.connect()))()
      connecting.then(
        (client) => {
          waiting.leave()
          if (isOver) return client.release()
          settle()
          resolve(client)
        },
        (error) => {
          waiting.leave()
          fail(isHttpError(error) ? error : new NoConnection('The pool gave no connection.', { cause: error }))
        },
      )
    })
  }

  return async (use, call) => {
    const client = await connect(call)
    // What is written in the transaction of other code may never be committed. Not every version of `pg` tells.
    const status = client.getTransactionStatus?.()
    if (status === 'T' || status === 'E') {
      client.release(true)
      throw new Error('Other code has given back a connection of the pool in the midst of a transaction.')
    }
    let isSilent = false

    function send(query: PostgresQuery): Promise<unknown[]> {
      unconfirmed.delete(client)
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
            if (unconfirmed.has(client)) return fail(new Error('The wait for the standby was canceled.'))
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
      client.release(isSilent || !(isConnectionIntact(error) || isReasonOf(call, error)))
      // A graceful end would wait for an answer to its goodbye, and with it the next caller for its place in the pool.
      if (isSilent) client.connection?.stream?.destroy()
      throw error
    }
  }
}

const guarded = new WeakSet<object>()
/** Connections with a commit that no standby has confirmed. */
const unconfirmed = new WeakSet<object>()
/** The limits that stores have set on pools that had none. */
const limited = new WeakMap<PostgresPool, number>()

/**
 * An `error` event without a listener would end the process; the query that fails reports the loss. Where an administrator
 * cancels the wait for a synchronous standby (`pg_cancel_backend`), the commit succeeds with a warning.
 */
function guardClient(client: PostgresClient): PostgresClient {
  if (guarded.has(client)) return client
  guarded.add(client)
  client.on('error', () => {})
  client.on('notice', ({ routine }) => {
    if (routine === 'SyncRepWaitForLSN') unconfirmed.add(client)
  })
  return client
}

function guardPool(pool: PostgresPool): void {
  if (guarded.has(pool)) return
  guarded.add(pool)
  pool.on('error', (error) => publishFailure({ error, stage: 'background' }))
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

/** The pool gave no connection: the code of the cause, as of a wrong password, is not that of a statement. */
class NoConnection extends Error {}

/** Rolled back for the sake of another transaction: doing the same again may succeed. */
const REPEATABLE: readonly string[] = ['40001', '40P01']

/** The server cannot serve now: it stops, starts, is overloaded, read-only after a failover, or took too long. */
const UNAVAILABLE = /^(?:08...|57P..|57014|55P03|53[0234]00|0A000|25006|25P0[234]|26000|40...)$/

/**
 * The server ends the connection with these (a lost one, a shutdown, the limits of a transaction), or no further statement
 * does better on it: it leads to a standby (0A000: SERIALIZABLE), or other code has left a failed transaction, no statements.
 */
const ENDED = /^(?:08...|57P..|0A000|25006|25P0[234]|26000)$/

const DISK_FULL = '53100'
/** A path that is too long for an index. */
const LIMIT_EXCEEDED = '54000'

/** The code by which the server names an error; `undefined` for errors that did not come from it. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!hasProperties(error)) return undefined
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') ? code : undefined
}

/** Whether a call has ended because it was given up: its connection answers. */
export function isReasonOf(call: Abortable, error: unknown): boolean {
  return isAborted(call) && error === call.signal!.reason
}

export function isRepeatable(error: unknown): boolean {
  return REPEATABLE.includes(sqlStateOf(error) ?? '')
}

/** Whether the connection can serve further statements after an error. */
export function isConnectionIntact(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== undefined && !ENDED.test(state)
}

/** Whether there was no connection, or it broke: nothing is known about the statement. */
export function isConnectionLost(given: unknown): boolean {
  // A refusal, as of a wrong password or of one connection too many, is the same a moment later.
  const error = given instanceof NoConnection ? given.cause : given
  if (isHttpError(error) || error instanceof TypeError || error instanceof RangeError) return false
  return !isConnectionIntact(error)
}

/** What the answer to a request is when the database has refused. */
export function toHttpError(error: unknown): unknown {
  if (error instanceof NoConnection) return createUnavailableError(error.cause)
  const state = sqlStateOf(error)
  if (state === undefined) return isConnectionLost(error) ? createUnavailableError(error) : error
  if (UNAVAILABLE.test(state)) return createUnavailableError(error)
  if (state === DISK_FULL) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  if (state === LIMIT_EXCEEDED) return new HttpError(414, 'ERR_TARGET_TOO_LONG', { cause: error })
  return error
}
