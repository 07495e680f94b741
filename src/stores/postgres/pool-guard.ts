import { publishFailure } from '../../core/diagnostics.ts'
import type { PostgresClient, PostgresPool } from './connection.ts'

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
export function guardClient(client: PostgresClient): void {
  guardAgainstErrorEvents(client, () => {})
}

export function guardPool(pool: PostgresPool): void {
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
export function limitConnectionTime(pool: PostgresPool, connectTimeout: number): void {
  const { options } = pool
  if (options === undefined) return
  const current = options.connectionTimeoutMillis
  if (current && limited.get(pool) !== current) return
  const limit = Math.max(current ?? 0, connectTimeout)
  options.connectionTimeoutMillis = limit
  limited.set(pool, limit)
}

/** A pool of the program's own may throw instead of rejecting. */
export async function connectTo(pool: PostgresPool): Promise<PostgresClient> {
  return pool.connect()
}
