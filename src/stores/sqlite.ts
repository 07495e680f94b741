import { CLOCK, describeValue, numberThat, SIZE, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createSqlStore } from './sql/create-store.ts'
import { SQL_OPTIONS, type SqlSettings, type SqlStore, type SqlStoreOptions } from './sql/options.ts'
import { createSqliteChanges, createSqliteClock, createSqliteNames } from './sqlite/changes.ts'
import { createSqliteConnection } from './sqlite/connection.ts'
import { createSqliteContents } from './sqlite/contents.ts'
import { blockWhileBusy, openSqliteHandle, type SqliteDatabase, type SqliteHandle } from './sqlite/handle.ts'
import { createSqliteIndexes } from './sqlite/indexes.ts'
import { createSqliteQueries, createSqliteStates } from './sqlite/reads.ts'
import { createKnownStates, createSqliteRows } from './sqlite/row-writes.ts'
import { migrateSqlite } from './sqlite/schema.ts'
import { prepareStatements } from './sqlite/statements.ts'

export type { MovableContents, MoveOptions, SqlStore } from './sql/options.ts'
export type { SqliteHandle, SqliteStatement, SqliteValue } from './sqlite/handle.ts'

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions extends SqlStoreOptions {
  /** Milliseconds to wait for other processes that write, before the response is 503. Default 5000. */
  readonly busyTimeout?: number
  /**
   * Bytes that are kept allocated beside the database, in a file whose name ends with `-reserve`: when the disk is full
   * they are given back, so that removal and small changes go on. Fewer, but at least 2 MiB, where less than four times
   * as much is free; 0 for none. Default 8 MiB.
   */
  readonly reserve?: number
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/** A reserve takes room, so it has an end. */
const FINITE_SIZE = numberThat((value) => Number.isSafeInteger(value) && value >= 0, 'a number of bytes, 0 or more')
const OPTIONS: OptionTable<SqliteStoreOptions> = {
  busyTimeout: withDefault(SIZE, 5000),
  reserve: withDefault(FINITE_SIZE, 8 * 1024 * 1024),
  now: CLOCK,
  ...SQL_OPTIONS,
}

/**
 * Keeps resources in a SQLite database: durable, one file, shared by several processes of one machine.
 * Reads, and writes of small content, are synchronous unless another process holds the lock.
 * @param handle an open database of `node:sqlite`, `libsql` or `better-sqlite3`, for this store alone; close it after
 *   `close()`
 * @returns the store; its tables exist
 * @throws TypeError for an unknown option or an unfit prefix
 * @throws Error when the tables were made by a newer release, or the database has another encoding than UTF-8 or cannot
 *   keep a write-ahead log
 * @example createResourceService(sqliteStore(new DatabaseSync('data.db')), { resources: { '/users': collection() } })
 */
export function sqliteStore(handle: SqliteHandle, options?: SqliteStoreOptions): SqlStore {
  if (typeof handle?.exec !== 'function' || typeof handle.prepare !== 'function') {
    const meant = typeof handle === 'string' ? 'sqliteStore(new Database(file))' : 'new Database(file)'
    throw new TypeError(
      `sqliteStore takes an open database of node:sqlite, libsql or better-sqlite3, as in ${meant}, not ${describeValue(handle)}.`,
    )
  }
  const settings = resolveOptions('sqliteStore', options, OPTIONS) as SqlSettings<SqliteStoreOptions>
  const { tablePrefix: prefix, busyTimeout, cacheSize, reserve, now } = settings

  return createSqlStore('sqliteStore', settings, (shared) => {
    const { nextVersion, startSweep, sweepSoon: onShortage } = shared
    const migrate = (database: SqliteDatabase) => migrateSqlite(database, prefix)
    const { database, space, file } = openSqliteHandle(handle, { busyTimeout, reserve, onShortage, migrate })
    const connection = createSqliteConnection(database, space, file, busyTimeout)
    const statements = prepareStatements(database, prefix)
    const clock = blockWhileBusy(busyTimeout, () => createSqliteClock(statements, now))
    const contents = createSqliteContents(connection, statements, clock, shared)
    const { open } = contents
    const indexes = createSqliteIndexes(connection, statements, clock, open, shared)
    const known = createKnownStates(cacheSize / 4)
    const names = createSqliteNames(connection, statements)
    const states = createSqliteStates(connection, statements, clock, open, known)
    const rows = createSqliteRows(statements, contents, indexes, known, names, nextVersion)
    const parts = { states, rows, known, names, contents, clock, nextVersion }
    startSweep()

    return {
      read: states.read,
      list: states.list,
      select: createSqliteQueries(connection, prefix, indexes, states.toMember),
      changes: createSqliteChanges(connection, statements, parts),
      contents,
      indexes,

      async sweep() {
        const swept = await connection.transactLazily(() => {
          const { length } = statements.sweepStates.all(clock.read()) as unknown[]
          if (contents.sweep() === 'all' && length === 0 && indexes.sweep() === 'all') return 'all'
          // What was forgotten by this clock must not be followed by states with dates of before.
          clock.tick()
          return 'part'
        })
        if (swept === 'all') space.tend()
        return swept
      },
    }
  })
}
