import { createSqliteConnection, type SqliteConnection } from './connection.ts'
import { isBusy } from './errors.ts'
import { createReserve, createSpace } from './space.ts'

export type SqliteValue = string | number | Uint8Array | null

/** A prepared statement with a place for each value. */
export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown
  run(...values: SqliteValue[]): unknown
}

/** A statement of a driver that can give rows as lists, as libsql and better-sqlite3 can. */
interface ListingStatement extends SqliteStatement {
  raw?(isOn: boolean): unknown
}

/**
 * Prepares a statement that reads one column of one row. The row comes as a list where the driver can give one: to make an
 * object for it takes an eighth of the time.
 * @returns a function. It gives the value, or `undefined` where no row matches.
 */
export function prepareValue(handle: SqliteDatabase, sql: string): (...values: SqliteValue[]) => unknown {
  const statement: ListingStatement = handle.prepare(sql)
  statement.raw?.(true)
  return (...values) => {
    const row = statement.get(...values)
    if (row === undefined || row === null) return undefined
    return Array.isArray(row) ? row[0] : Object.values(row)[0]
  }
}

/**
 * An open database: `DatabaseSync` of `node:sqlite`, or `Database` of `libsql` or `better-sqlite3`.
 *
 * Their own declarations disagree about what statements take (those of libsql and better-sqlite3 exclude null, which
 * they bind), so nothing is asked of it here; what is bound is a {@link SqliteValue}.
 */
export interface SqliteHandle {
  exec(sql: string): unknown
  prepare(sql: string): Record<keyof SqliteStatement, (...values: never[]) => unknown>
}

/** The handle, as the store uses it. */
export interface SqliteDatabase {
  exec(sql: string): unknown
  prepare(sql: string): SqliteStatement
}

/** SQLite sleeps this many milliseconds for a lock before it reports that it is busy; the process stands still meanwhile. */
const BLOCKING_WAIT = 5

export interface SqliteHandleOptions {
  /** Milliseconds after which a call gives up with 503 while other processes hold the lock. */
  readonly busyTimeout: number
  /** Bytes to keep allocated for a full disk. */
  readonly reserve: number
  /** Notified when the disk was full. */
  readonly onShortage: () => void
  /** Makes the tables. */
  readonly migrate: (handle: SqliteDatabase) => void
}

/**
 * Prepares a handle for durable commits that several processes share.
 * @throws Error when the database cannot keep a write-ahead log
 */
export function openSqliteHandle(
  opened: SqliteHandle,
  { busyTimeout, reserve: reserveSize, onShortage, migrate }: SqliteHandleOptions,
): SqliteConnection {
  const handle = opened as SqliteDatabase
  const reserve = createReserve(findFile(handle), reserveSize)

  function open(): void {
    blockWhileBusy(busyTimeout, () => enterWriteAheadLog(handle))
    blockWhileBusy(busyTimeout, () => migrate(handle))
  }

  handle.exec(`PRAGMA busy_timeout = ${BLOCKING_WAIT}`)
  try {
    open()
  } catch (error) {
    // On a full disk SQLite cannot even make the files beside the database.
    if (!reserve.release()) throw error
    open()
  }
  // A commit is on the disk before it is acknowledged; NORMAL would lose the last ones in a power failure.
  handle.exec('PRAGMA synchronous = FULL')
  // No mapped pages: whatever is read would count as memory of this process, a gigabyte for a gigabyte.
  handle.exec('PRAGMA mmap_size = 0')
  const space = createSpace(handle, reserve, onShortage)
  space.tend()
  return createSqliteConnection(handle, space, busyTimeout)
}

/** Runs an action at start, when nothing else waits for this process yet. */
export function blockWhileBusy<Result>(timeout: number, action: () => Result): Result {
  const deadline = performance.now() + timeout
  const cell = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error
    }
    Atomics.wait(cell, 0, 0, 5 + Math.random() * 20)
  }
}

/** The file of the database; `''` for one in memory. */
function findFile(handle: SqliteDatabase): string {
  const databases = handle.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[]
  return databases.find(({ name }) => name === 'main')?.file ?? ''
}

function enterWriteAheadLog(handle: SqliteDatabase): void {
  const { journal_mode: mode } = handle.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
  if (mode === 'wal' || mode === 'memory') return
  throw new Error(`sqliteStore needs a write-ahead log, but the journal mode of this database stays "${mode}".`)
}
