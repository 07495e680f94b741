import type pg from 'pg'
import type { PostgresClient, PostgresPool } from '../../src/stores/postgres.ts'

/** A query of the store, as it is sent. */
export interface SentQuery {
  readonly text: string
  readonly values?: unknown[]
}

/** A pool whose queries pass through a function. @param intercept sends a query, and returns its result */
export function interceptQueries(
  pool: pg.Pool,
  intercept: (query: SentQuery, send: () => Promise<unknown>, client: pg.PoolClient) => Promise<unknown>,
): PostgresPool {
  const clients = new WeakMap<pg.PoolClient, PostgresClient>()

  function wrap(client: pg.PoolClient): PostgresClient {
    const wrapped = new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name) as unknown
        if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value
        return (query: SentQuery) => intercept(query, () => target.query(query as pg.QueryConfig), target)
      },
    }) as unknown as PostgresClient
    clients.set(client, wrapped)
    return wrapped
  }

  return {
    on: (event: never, listener: never) => pool.on(event, listener),
    async connect() {
      const client = await pool.connect()
      // The same object for the same client: the store listens to each object once.
      return clients.get(client) ?? wrap(client)
    },
  }
}
