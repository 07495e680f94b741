import { createRequire } from 'node:module'
import { memoryStore } from '../../src/stores/memory.ts'
import { type PgliteDatabase, postgresStore } from '../../src/stores/postgres.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'

/** Takes seconds to start: one for all stores of a test file, each with tables of its own. */
let database: PgliteDatabase | undefined
let stores = 0

/** The three ready stores, each without data. */
export const STORES: Readonly<Record<string, () => ResourceStore>> = {
  memoryStore: () => memoryStore(),
  sqliteStore() {
    const Database = createRequire(import.meta.url)('libsql') as new (file: string) => SqliteHandle
    return sqliteStore(new Database(':memory:'), { sweepInterval: 0 })
  },
  postgresStore() {
    if (database === undefined) {
      const { PGlite } = createRequire(import.meta.url)('@electric-sql/pglite')
      database = new PGlite() as PgliteDatabase
    }
    return postgresStore({ pool: database, sweepInterval: 0, tablePrefix: `store_${++stores}_` })
  },
}
