import { HttpError } from '../../core/errors.ts'
import { hasProperties } from '../../core/option-values.ts'
import { createUnavailableError } from '../../core/unavailable.ts'
import { createReserve, createSpace, type Space } from './space.ts'

export type SqliteValue = string | number | Uint8Array | null

/** A prepared statement with a place for each value. */
export interface SqliteStatement {
  get(...values: SqliteValue[]): unknown
  all(...values: SqliteValue[]): unknown
  run(...values: SqliteValue[]): unknown
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
  /** Statements of libsql and better-sqlite3 can give rows as lists. */
  prepare(sql: string): SqliteStatement & { raw?(isOn: boolean): unknown }
}

/** SQLite sleeps this many milliseconds for a lock before it reports that it is busy; the process stands still meanwhile. */
const BLOCKING_WAIT = 5

interface SqliteHandleOptions {
  /** Milliseconds after which a call gives up with 503 while other processes hold the lock. */
  readonly busyTimeout: number
  /** Bytes to keep allocated for a full disk. */
  readonly reserve: number
  /** Notified when the disk was full. */
  readonly onShortage: () => void
  readonly migrate: (handle: SqliteDatabase) => void
}

/**
 * Prepares a handle for durable commits that several processes share, and the room that they take.
 * @throws Error when the database cannot keep a write-ahead log
 */
export function openSqliteHandle(
  opened: SqliteHandle,
  { busyTimeout, reserve: reserveSize, onShortage, migrate }: SqliteHandleOptions,
): { readonly database: SqliteDatabase; readonly space: Space; readonly file: string } {
  const database = opened as SqliteDatabase
  if (typeof (database.prepare('SELECT 1 AS one').get() as { one: unknown }).one !== 'number') {
    throw new TypeError(
      'sqliteStore takes a database that gives integers as numbers and rows as objects, without defaultSafeIntegers(), ' +
        'readBigInts or returnArrays.',
    )
  }
  const databases = database.prepare('PRAGMA database_list').all() as { name: string; file: string | null }[]
  // None for a database in memory.
  const file = databases.find(({ name }) => name === 'main')?.file ?? ''
  const reserve = createReserve(file, reserveSize)

  function open(): void {
    blockWhileBusy(busyTimeout, () => enterWriteAheadLog(database))
    blockWhileBusy(busyTimeout, () => migrate(database))
  }

  database.exec(`PRAGMA busy_timeout = ${BLOCKING_WAIT}`)
  try {
    open()
  } catch (error) {
    // On a full disk SQLite cannot even make the files beside the database.
    if (!reserve.release()) throw error
    open()
  }
  // A commit is on the disk before it is acknowledged; NORMAL would lose the last ones in a power failure.
  database.exec('PRAGMA synchronous = FULL')
  // No mapped pages: whatever is read would count as memory of this process, a gigabyte for a gigabyte.
  database.exec('PRAGMA mmap_size = 0')
  const space = createSpace(database, reserve, onShortage)
  space.tend()
  return { database, space, file }
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

function enterWriteAheadLog(handle: SqliteDatabase): void {
  const { journal_mode: mode } = handle.prepare('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
  if (mode === 'wal' || mode === 'memory') return
  throw new Error(`sqliteStore needs a write-ahead log, but the journal mode of this database stays "${mode}".`)
}

const BUSY = 5
const LOCKED = 6
const FULL = 13
const CODES: Readonly<Record<string, number>> = { SQLITE_BUSY: BUSY, SQLITE_LOCKED: LOCKED, SQLITE_FULL: FULL }
/** `SQLITE_IOERR_WRITE` and `SQLITE_IOERR_SHMSIZE`, as numbers and as names. */
const IO_ERRORS: ReadonlySet<unknown> = new Set([778, 4874, 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE'])

/** Whether the disk is full, or a write failed with one of the errors that a quota or the largest size of a file causes. */
export function isOutOfSpace(error: unknown): boolean {
  if (codeOf(error) === FULL) return true
  if (!hasProperties(error)) return false
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  return IO_ERRORS.has(code) || IO_ERRORS.has(rawCode) || IO_ERRORS.has(errcode)
}

/** The primary result code of an error, which each library tells in its own way. */
function codeOf(error: unknown): number | undefined {
  if (!hasProperties(error)) return undefined
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof rawCode === 'number') return rawCode & 0xff
  if (typeof code !== 'string') return undefined
  return CODES[code.split('_', 2).join('_')]
}

export function isBusy(error: unknown): boolean {
  const code = codeOf(error)
  return code === BUSY || code === LOCKED
}

/** Whether a rollback found no transaction: SQLite has ended it by itself. Its code is that of many errors. */
export function isNoTransaction(error: unknown): boolean {
  return hasProperties(error) && String((error as { message?: unknown }).message).includes('no transaction is active')
}

/** What the libraries say of a handle that the program has closed, and of its statements. None has a code of its own for it. */
const CLOSED: readonly unknown[] = [
  'The database connection is not open', // libsql, better-sqlite3
  'database is not open', // node:sqlite
  'statement has been finalized', // node:sqlite
]

function isClosed(error: unknown): boolean {
  return hasProperties(error) && CLOSED.includes((error as { message?: unknown }).message)
}

/** 503 while another process holds the lock, or once the handle is closed, 507 when the disk takes no more; any other error as it is. */
export function toHttpError(error: unknown): unknown {
  if (isBusy(error) || isClosed(error)) return createUnavailableError(error)
  if (isOutOfSpace(error)) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  return error
}
