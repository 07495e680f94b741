import { BOOLEAN, CHECKED_LATER, COUNT, describeValue, MILLISECONDS, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createPostgresChanges } from './postgres/changes.ts'
import {
  connectWhenMigrated,
  createPostgresConnection,
  type PostgresClient,
  type PostgresPool,
} from './postgres/connection.ts'
import { createPostgresContents } from './postgres/contents.ts'
import { createPostgresIndexes } from './postgres/indexes.ts'
import { createNameSource } from './postgres/names.ts'
import { createPglitePool, isPglite, type PgliteDatabase } from './postgres/pglite.ts'
import { createPostgresQueries } from './postgres/queries.ts'
import { migratePostgres } from './postgres/schema.ts'
import { encodeKey, nameStatements } from './postgres/statements.ts'
import { createPostgresStates } from './postgres/states.ts'
import { createSqlStore } from './sql/create-store.ts'
import { SQL_OPTIONS, type SqlSettings, type SqlStore, type SqlStoreOptions } from './sql/options.ts'
import { formatSortKey, type StateRow, toPage, toResource } from './sql/rows.ts'

export type { PostgresClient, PostgresPool, PostgresQuery } from './postgres/connection.ts'
export type { PgliteDatabase, PgliteRunner } from './postgres/pglite.ts'
export type { MovableContents, MoveOptions, SqlStore } from './sql/options.ts'

/** Options of `postgresStore`. It needs `pool`. */
export interface PostgresStoreOptions extends SqlStoreOptions {
  /**
   * A `Pool` of `pg` without `pg-native`, or an instance of PGlite. The store holds a connection only while the database works
   * for it, and closes neither.
   */
  readonly pool: PostgresPool | PgliteDatabase
  /**
   * Milliseconds that one statement may take, 1 or more. Then the response is 503 and the connection is destroyed. Default
   * 10 000.
   */
  readonly statementTimeout?: number
  /**
   * Milliseconds to wait for a connection, 1 or more. Then the response is 503. Becomes the `connectionTimeoutMillis` of a
   * pool that has none, so that the pool gives up a host that accepts connections and says nothing. Default 5000.
   */
  readonly connectTimeout?: number
  /** Calls that may wait for a connection at the same time, 1 or more; a further one fails with 503 at once. Default 1000. */
  readonly maxWaiting?: number
  /** Whether connections keep statements prepared; not through every pooler. Default true. */
  readonly preparedStatements?: boolean
}

const OPTIONS: OptionTable<PostgresStoreOptions> = {
  pool: CHECKED_LATER,
  statementTimeout: withDefault(MILLISECONDS, 10_000),
  connectTimeout: withDefault(MILLISECONDS, 5000),
  maxWaiting: withDefault(COUNT, 1000),
  preparedStatements: withDefault(BOOLEAN, true),
  ...SQL_OPTIONS,
}

/**
 * Keeps resources in a Postgres database, shared by any number of processes and machines.
 * The tables are made at the first use. While the database is away every call fails with `HttpError` 503 and
 * Retry-After; once it is back the store works again.
 * @throws TypeError for an unknown option, a missing pool, an unfit prefix or limit
 * @example postgresStore({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) })
 */
export function postgresStore(options: PostgresStoreOptions): SqlStore {
  if (typeof (options as { connect?: unknown } | undefined)?.connect === 'function') {
    throw new TypeError('postgresStore takes the pool as an option: postgresStore({ pool }).')
  }
  const settings = resolveOptions('postgresStore', options, OPTIONS) as SqlSettings<PostgresStoreOptions>
  const { pool, tablePrefix: prefix, maxWaiting } = settings
  if (!isPool(pool) && !isPglite(pool)) {
    throw new TypeError(
      `postgresStore needs as pool: an instance of PGlite, or new Pool() of pg; it is ${describeValue(pool)}.`,
    )
  }
  if (isNative(pool)) {
    throw new TypeError('postgresStore needs a Pool of pg without pg-native, which garbles bytes: not pg.native.Pool.')
  }

  return createSqlStore('postgresStore', settings, (shared) => {
    const client = createPostgresConnection(isPglite(pool) ? createPglitePool(pool) : pool, settings)
    const connection = connectWhenMigrated(client, maxWaiting, async () => {
      await migratePostgres(client, prefix)
      shared.startSweep()
    })
    const statements = nameStatements(prefix)
    const contents = createPostgresContents(connection, statements, shared)
    const { open } = contents
    const names = createNameSource(connection, statements, maxWaiting)
    const states = createPostgresStates(connection, statements, contents, names, shared)
    const indexes = createPostgresIndexes(connection, prefix, open, shared)

    return {
      read: states.read,
      select: createPostgresQueries(connection, prefix, indexes, open),
      changes: createPostgresChanges(connection, states, names, indexes, open),
      contents,
      indexes,

      async list(collection, options) {
        const { after, limit, hidden = false } = options
        const start = after === undefined ? '' : encodeKey(formatSortKey(after))
        const values = [encodeKey(collection), start, limit + 1]
        const rows = await connection.read<StateRow>(hidden ? statements.listAll : statements.listLive, values, options)
        return toPage(rows, limit, (row) => toResource(row, open))
      },

      async sweep() {
        const { length } = await connection.run(statements.sweepStates, [])
        if ((await contents.sweep()) === 'part' || length > 0) return 'part'
        return indexes.sweep()
      },
    }
  })
}

function isPool(value: unknown): value is PostgresPool {
  const { connect, on, connection } = (value ?? {}) as Partial<PostgresPool & PostgresClient>
  // A client of pg has a `connect` too: it gives nothing, and may be called once.
  return typeof connect === 'function' && typeof on === 'function' && connection === undefined
}

/** Whether queries go through `pg-native`: it sends bytes as text, and takes no parsers with a query. */
function isNative(pool: object): boolean {
  const { Query } = (pool as { Client?: { Query?: { prototype: object } } }).Client ?? {}
  return Query !== undefined && !('handleDataRow' in Query.prototype)
}
