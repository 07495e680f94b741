import type pg from 'pg'
import type { PostgresPool, PostgresQuery } from '../../src/stores/postgres/connection.ts'

/** A pool whose clients have what a store asks for and nothing else. @param before runs before each query */
export function createPlainPool(
  pool: pg.Pool,
  before: (query: PostgresQuery) => Promise<unknown> = async () => undefined,
): PostgresPool {
  return {
    on() {},
    async connect() {
      const client = await pool.connect()
      return {
        on() {},
        release: (destroy) => client.release(destroy),
        async query(query) {
          await before(query)
          return client.query(query as pg.QueryConfig)
        },
      }
    },
  }
}
