// Compiled, not run: what the SQL stores return can be closed and moved without a check.

import { type PostgresPool, postgresStore } from '../../src/stores/postgres.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore, WriteConflict } from '../../src/stores/types.ts'

const sqlite = sqliteStore({} as SqliteHandle)
await sqlite.close()
await sqlite.moveContents()
const postgres = postgresStore({ pool: {} as PostgresPool })
await postgres.close()
await postgres.moveContents()
const stores: readonly ResourceStore[] = [sqlite, postgres]
// @ts-expect-error a store of a program's own need not have it
await stores[0]!.close()

// A wrapper supports what the store in it supports, and what a store leaves out may be undefined.
export class Wrapper implements Pick<ResourceStore, 'supports'> {
  get supports() {
    return stores[0]!.supports
  }
}
declare const [parent, winner]: [WriteConflict['missing'], WriteConflict['related']]
export const conflict: WriteConflict = { outcome: 'conflict', current: undefined, missing: parent, related: winner }
