import { statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { createUnavailableError } from '../../core/unavailable.ts'
import { isBusy, isNoTransaction, isOutOfSpace, type SqliteDatabase, toHttpError } from './handle.ts'
import type { Space } from './space.ts'

/** Runs work on a handle and waits, without blocking the process, while another process writes. */
export interface SqliteConnection {
  readonly handle: SqliteDatabase
  readonly space: Space
  /** How many transactions have begun: what one has read holds until the next one begins. */
  readonly transactions: number
  /** Runs a read. A promise is returned only when the database is busy. */
  attempt<Result>(action: () => MaybePromise<Result>): MaybePromise<Result>
  /**
   * Runs work in a transaction; fulfilled once it is durable. The writes of a few turns of the event loop share one
   * transaction, and so one wait for the disk. The work must not wait for anything, and may run again. Work that throws
   * changes nothing and spoils no other.
   * @throws HttpError 503 when too many writes wait already
   */
  transact<Result>(work: () => Result): Promise<Result>
  /** The same for work whose loss in a power failure does no harm before a later durable commit: no wait for the disk. */
  transactLazily<Result>(work: () => Result): MaybePromise<Result>
}

/** A write that waits for its transaction. */
interface Entry {
  readonly work: () => unknown
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  /** On the clock of `performance.now`. */
  readonly since: number
}

/** Other processes wait for the lock meanwhile. */
const LARGEST_BATCH = 64
/**
 * Turns of the event loop that a transaction waits for, as long as each brings a further write. One turn gathered 8 of 16
 * PUTs at a time and 25 of 32 POSTs, four gather all of them: a PUT takes three quarters of the processor time.
 */
const MOST_TURNS = 4
/** Writes that may wait while another process holds the lock. */
const MAX_WAITING = 10_000

/** Milliseconds between two attempts while another process holds the lock. */
const LONGEST_PAUSE = 25

/**
 * @param file the path of the database; empty for one in memory
 * @param busyTimeout milliseconds after which a call gives up with 503 while other processes hold the lock
 */
export function createSqliteConnection(
  handle: SqliteDatabase,
  space: Space,
  file: string,
  busyTimeout: number,
): SqliteConnection {
  const requireFile = createFileCheck(file)
  let queue: Entry[] = []
  let isScheduled = false
  let isDurable = true
  /** Whether a transaction could not be rolled back: reads would see its writes, which were not committed. */
  let isLeftOpen = false

  function rollBack(): void {
    try {
      handle.exec('ROLLBACK')
      isLeftOpen = false
    } catch (error) {
      // SQLite may have rolled back by itself, as it does when the disk is full.
      isLeftOpen = !isNoTransaction(error)
    }
  }

  /** @throws HttpError 503 while a transaction that was left open cannot be rolled back */
  function runOutside<Result>(action: () => MaybePromise<Result>): MaybePromise<Result> {
    if (isLeftOpen) rollBack()
    if (isLeftOpen) throw createUnavailableError(new Error('A transaction cannot be rolled back.'))
    return action()
  }

  /** Commits wait for the disk from here on. */
  function makeDurable(): void {
    if (isDurable) return
    handle.exec('PRAGMA synchronous = FULL')
    isDurable = true
  }

  function runTransaction<Result>(work: () => Result): Result {
    try {
      return runOnce(work)
    } catch (error) {
      if (!isOutOfSpace(error)) throw error
      space.makeRoom()
      return runOnce(work)
    }
  }

  function runOnce<Result>(work: () => Result): Result {
    requireFile()
    own.transactions++
    space.isKnownWhole = !space.hasReserve
    // Not prepared: libsql does not reset a statement that found the database busy, and the read transaction that it
    // keeps open would show every later read the same old state.
    handle.exec('BEGIN IMMEDIATE')
    try {
      const result = work()
      handle.exec('COMMIT')
      return result
    } catch (error) {
      rollBack()
      throw error
    }
  }

  function runLazily<Result>(work: () => Result): Result {
    isDurable = false
    handle.exec('PRAGMA synchronous = NORMAL')
    try {
      return runTransaction(work)
    } finally {
      try {
        makeDurable()
      } catch {
        // The next durable transaction tries again before it begins.
      }
    }
  }

  function attempt<Result>(action: () => MaybePromise<Result>): MaybePromise<Result> {
    try {
      return runOutside(action)
    } catch (error) {
      if (!isBusy(error)) throw toHttpError(error)
      return attemptLater(action)
    }
  }

  async function attemptLater<Result>(action: () => MaybePromise<Result>): Promise<Result> {
    const deadline = performance.now() + busyTimeout
    for (let pause = 1; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
      await sleep(pause * (0.5 + Math.random()))
      try {
        return runOutside(action)
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw toHttpError(error)
      }
    }
  }

  /** @param count the number of writes before this turn */
  function gather(count: number, turn: number): void {
    const { length } = queue
    if (length > count && length < LARGEST_BATCH && turn < MOST_TURNS) setImmediate(gather, length, turn + 1)
    else void commitAll()
  }

  async function commitAll(): Promise<void> {
    while (queue.length > 0) {
      const batch = queue.slice(0, LARGEST_BATCH)
      queue = queue.slice(LARGEST_BATCH)
      await commit(batch)
    }
    isScheduled = false
  }

  async function commit(batch: readonly Entry[]): Promise<void> {
    const results: unknown[] = []
    let culprit: Entry | undefined
    try {
      await attempt(() => {
        makeDurable()
        runTransaction(() => {
          for (const [index, entry] of batch.entries()) {
            culprit = entry
            results[index] = entry.work()
          }
          culprit = undefined
        })
      })
    } catch (error) {
      if (culprit === undefined) {
        for (const entry of batch) entry.reject(error)
        rejectLate(error)
        return
      }
      culprit.reject(error)
      const others = batch.filter((entry) => entry !== culprit)
      if (others.length > 0) await commit(others)
      return
    }
    for (const [index, entry] of batch.entries()) entry.resolve(results[index])
  }

  /** What failed after it had waited for the lock has used up the time of those behind it as well. */
  function rejectLate(error: unknown): void {
    const now = performance.now()
    const isLate = (entry: Entry): boolean => now - entry.since >= busyTimeout
    const late = queue.filter(isLate)
    queue = queue.filter((entry) => !isLate(entry))
    for (const entry of late) entry.reject(error)
  }

  const own: { -readonly [Name in keyof SqliteConnection]: SqliteConnection[Name] } = {
    handle,
    space,
    transactions: 0,
    attempt,
    transactLazily: (work) => attempt(() => runLazily(work)),

    transact<Result>(work: () => Result): Promise<Result> {
      return new Promise<Result>((resolve, reject) => {
        if (queue.length >= MAX_WAITING) throw createUnavailableError()
        queue.push({ work, resolve: resolve as (result: unknown) => void, reject, since: performance.now() })
        if (isScheduled) return
        isScheduled = true
        setImmediate(gather, 0, 1)
      })
    },
  }
  return own
}

/**
 * Makes what refuses a write once another file, or none, is at the path of the database, of its log or of the index of the log:
 * SQLite goes on in those that it has opened, and what it acknowledges would be gone with the process. The locks are in the
 * index: processes that have different ones write over each other.
 */
function createFileCheck(file: string): () => void {
  const inodeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.ino
  const opened = file === '' ? [] : [file, `${file}-wal`, `${file}-shm`].map((path) => ({ path, inode: inodeOf(path) }))
  return () => {
    const lost = opened.find(({ path, inode }) => inode !== undefined && inodeOf(path) !== inode)
    if (lost === undefined) return
    throw createUnavailableError(
      new Error(`${lost.path} was removed or replaced while it was in use. Start the program again.`),
    )
  }
}
