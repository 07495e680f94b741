import { HttpError } from '../../core/errors.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { createCommitQueue } from './commit-queue.ts'
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
  prepare(sql: string): SqliteStatement
}

/** Runs work on a handle and waits, without blocking the process, while another process writes. */
export interface SqliteConnection {
  readonly handle: SqliteDatabase
  readonly space: Space
  /** How many transactions have begun: what one has read holds until the next one begins. */
  readonly transactions: number
  /** Runs a read. A promise is returned only when the database is busy. */
  attempt<Result>(action: () => Result): MaybePromise<Result>
  /** Runs work in a transaction; fulfilled once it is durable. The work must not wait for anything, and may run again. */
  transact<Result>(work: () => Result): Promise<Result>
  /** The same for work whose loss in a power failure does no harm before a later durable commit: no wait for the disk. */
  transactLazily<Result>(work: () => Result): MaybePromise<Result>
}

/** SQLite sleeps this many milliseconds for a lock before it reports that it is busy; the process stands still meanwhile. */
const BLOCKING_WAIT = 5
const LONGEST_PAUSE = 25

const BUSY = 5
const LOCKED = 6
const FULL = 13
const CODES: Readonly<Record<string, number>> = { SQLITE_BUSY: BUSY, SQLITE_LOCKED: LOCKED, SQLITE_FULL: FULL }
/** `SQLITE_IOERR_WRITE` and `SQLITE_IOERR_SHMSIZE`, as numbers and as names. */
const IO_ERRORS: ReadonlySet<unknown> = new Set([778, 4874, 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE'])

export interface SqliteConnectionOptions {
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
export function createSqliteConnection(
  opened: SqliteHandle,
  { busyTimeout, reserve: reserveSize, onShortage, migrate }: SqliteConnectionOptions,
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

  function runTransaction<Result>(work: () => Result): Result {
    try {
      return runOnce(work)
    } catch (error) {
      if (!isOutOfSpace(error)) throw error
      space.makeRoom()
      return runOnce(work)
    }
  }

  let transactions = 0

  function runOnce<Result>(work: () => Result): Result {
    transactions++
    // Not prepared: libsql does not reset a statement that found the database busy, and the read transaction that it
    // keeps open would show every later read the same old state.
    handle.exec('BEGIN IMMEDIATE')
    try {
      const result = work()
      handle.exec('COMMIT')
      return result
    } catch (error) {
      rollBack(handle)
      throw error
    }
  }

  function runLazily<Result>(work: () => Result): Result {
    handle.exec('PRAGMA synchronous = NORMAL')
    try {
      return runTransaction(work)
    } finally {
      handle.exec('PRAGMA synchronous = FULL')
    }
  }

  function attempt<Result>(action: () => Result): MaybePromise<Result> {
    try {
      return action()
    } catch (error) {
      if (!isBusy(error)) throw toHttpError(error)
      return attemptAgain(action)
    }
  }

  async function attemptAgain<Result>(action: () => Result): Promise<Result> {
    const deadline = performance.now() + busyTimeout
    for (let pause = 1; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      await sleep(pause * (0.5 + Math.random()))
      try {
        return action()
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw toHttpError(error)
      }
    }
  }

  const { add: transact } = createCommitQueue((work) => attempt(() => runTransaction(work)), busyTimeout)

  return {
    handle,
    space,
    get transactions() {
      return transactions
    },
    attempt,
    transact,
    transactLazily: (work) => attempt(() => runLazily(work)),
  }
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

function rollBack(handle: SqliteDatabase): void {
  try {
    handle.exec('ROLLBACK')
  } catch {
    // SQLite has rolled back by itself, as it does when the disk is full.
  }
}

/** Whether there is no room, or a write failed as it does for want of room under a quota. */
function isOutOfSpace(error: unknown): boolean {
  if (codeOf(error) === FULL) return true
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  return IO_ERRORS.has(code) || IO_ERRORS.has(rawCode) || IO_ERRORS.has(errcode)
}

/** The primary result code of an error, which each library tells in its own way. */
function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { errcode, rawCode, code } = error as { errcode?: unknown; rawCode?: unknown; code?: unknown }
  if (typeof errcode === 'number') return errcode & 0xff
  if (typeof rawCode === 'number') return rawCode & 0xff
  if (typeof code !== 'string') return undefined
  return CODES[code.split('_', 2).join('_')]
}

function isBusy(error: unknown): boolean {
  const code = codeOf(error)
  return code === BUSY || code === LOCKED
}

function toHttpError(error: unknown): unknown {
  if (isBusy(error)) {
    return new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause: error })
  }
  if (codeOf(error) === FULL) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  return error
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
