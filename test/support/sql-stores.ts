import Libsql from 'libsql'
import pg from 'pg'
import { fileContents } from '../../src/contents/file.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { openS3Contents } from './contents.ts'

/** Where a store keeps its data, in a form that can be sent to another process. */
export type StorePlace = (
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly connectionString: string; readonly tablePrefix: string }
) & {
  /** The directory of large content; left out, it lies in the tables. */
  readonly directory?: string
  /** The service of large content. */
  readonly s3?: { readonly endpoint: string; readonly prefix: string }
}

/** How long content is left alone, and how often it is looked through. */
export interface SweepOptions {
  readonly grace?: number
  readonly sweepInterval?: number
}

export interface OpenedStore {
  readonly store: ResourceStore
  close(): Promise<void>
}

/** Where large content of a place lies; `undefined`: in the tables. */
export function openContents({ directory, s3 }: StorePlace): ContentStore | undefined {
  if (directory !== undefined) return fileContents({ directory })
  return s3 && openS3Contents(s3.endpoint, { prefix: s3.prefix })
}

/** Opens a store as a process of a deployment would. */
export function openStore(place: StorePlace, sweep: SweepOptions = {}): OpenedStore {
  // Short, so that the remains of a killed process are swept while the test waits.
  const beside = { grace: place.s3 === undefined ? 1000 : 10_000, sweepInterval: 100 }
  const contents = openContents(place)
  const options = contents === undefined ? sweep : { ...beside, ...sweep, contents }
  if (place.kind === 'sqlite') {
    const database = new Libsql(place.file)
    const store = sqliteStore(database, options)
    return {
      store,
      async close() {
        await store.close?.()
        database.close()
      },
    }
  }
  const pool = new pg.Pool({ connectionString: place.connectionString, max: 4 })
  const store = postgresStore({ ...options, pool, tablePrefix: place.tablePrefix })
  return {
    store,
    async close() {
      await store.close?.()
      await pool.end()
    },
  }
}
