import Libsql from 'libsql'
import pg from 'pg'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'

/** Where a store keeps its data, in a form that can be sent to another process. */
export type StorePlace =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly connectionString: string; readonly tablePrefix: string }

export interface OpenedStore {
  readonly store: ResourceStore
  close(): Promise<void>
}

/** Opens a store as a process of a deployment would. */
export function openStore(place: StorePlace): OpenedStore {
  if (place.kind === 'sqlite') {
    const database = new Libsql(place.file)
    const store = sqliteStore(database)
    return {
      store,
      async close() {
        await store.close?.()
        database.close()
      },
    }
  }
  const pool = new pg.Pool({ connectionString: place.connectionString, max: 4 })
  const store = postgresStore({ pool, tablePrefix: place.tablePrefix })
  return {
    store,
    async close() {
      await store.close?.()
      await pool.end()
    },
  }
}
