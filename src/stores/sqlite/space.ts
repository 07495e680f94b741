import { randomFillSync } from 'node:crypto'
import { closeSync, constants, ftruncateSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { publishFailure } from '../../core/diagnostics.ts'
import { HttpError } from '../../core/errors.ts'
import { isOverQuota } from '../../core/unavailable.ts'
import type { Swept } from '../sql/dialect.ts'
import type { SqliteDatabase } from './handle.ts'

/** Below this size it would not hold what lies in the log and has to go into the database. */
const SMALLEST = 2 * 1024 * 1024
const BLOCK = 64 * 1024

/**
 * A spare file beside the database. Its bytes are allocated, so other programs cannot take them, and they are given
 * back when the disk is full: a log that cannot grow takes neither a removal nor the sweep.
 * @param file the database; `''` for one in memory, which has no reserve
 * @param most the bytes to keep; fewer on a disk that has less than four times as many
 */
export function createReserve(file: string, most: number) {
  const path = `${file}-reserve`
  let isPossible = file !== '' && most !== 0
  let size = isPossible ? Math.max(most, SMALLEST) : 0

  function held(): number {
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0
  }

  function allocate(from: number, to: number): void {
    const descriptor = openSync(path, constants.O_CREAT | constants.O_WRONLY, 0o600)
    // Neither a hole nor anything that a file system compresses.
    const block = randomFillSync(Buffer.allocUnsafe(BLOCK))
    try {
      for (let at = from; at < to; ) at += writeSync(descriptor, block, 0, Math.min(BLOCK, to - at), at)
    } catch (error) {
      ftruncateSync(descriptor, from)
      throw error
    } finally {
      closeSync(descriptor)
    }
  }

  function take(): void {
    const before = held()
    const { bavail, bsize } = statfsSync(file)
    const room = bavail * bsize + before
    const wanted = Math.min(Math.max(Math.floor(room / 4 / BLOCK) * BLOCK, SMALLEST), Math.max(most, SMALLEST))
    size = Math.max(wanted, Math.min(before, most))
    // The log needs room as well.
    const target = Math.min(size, Math.floor((room - SMALLEST / 2) / BLOCK) * BLOCK)
    if (target > before) allocate(before, target)
  }

  return {
    /** The bytes that it should have, by the room that the disk had when `take` was last called; 0 for no reserve. */
    get size(): number {
      return size
    },
    /** Whether all of them are allocated. Other processes share the file, so this asks the file system. */
    isWhole: (): boolean => size === 0 || held() >= size,
    /** Gives its bytes back to the file system. @returns whether there were any */
    release(): boolean {
      if (!isPossible || held() === 0) return false
      try {
        rmSync(path, { force: true })
        return true
      } catch {
        // The folder is read-only by now.
        return false
      }
    },
    /** Allocates it as far as there is room. */
    take(): void {
      if (!isPossible) return
      try {
        take()
      } catch (error) {
        const { code } = error as { code?: string }
        if (code === 'ENOSPC' || isOverQuota(error)) return
        // A folder in which the program may not make this file: the store works without. Too many open files end by
        // themselves, and the next sweep tries again.
        isPossible = code === 'EMFILE' || code === 'ENFILE' || code === 'ENOMEM'
        size = 0
        publishFailure({ error, stage: 'background' })
      }
    },
  }
}

/** What the store may still allocate, and what it does when the disk is full. */
export interface Space {
  /** Whether there is a reserve; otherwise nothing is ever asked about it. */
  readonly hasReserve: boolean
  /**
   * Whether the reserve was found whole since the transaction began, or there is none: to look at the file takes a system
   * call. The connection sets it when a transaction begins.
   */
  isKnownWhole: boolean
  /** Whether the reserve is whole. `admit` then takes everything. */
  isWhole(): boolean
  /**
   * Within a transaction, before rows with content are added. While the reserve that a removal may need is not whole, content may
   * take the free pages of the database only; `reclaim` is run for more of them.
   * @throws HttpError 507 when there are too few
   */
  admit(bytes: number, rows: number, reclaim: () => Swept): void
  /** After an allocation has failed, outside of transactions: gives the reserve up, and empties the log. */
  makeRoom(): void
  /** Outside of transactions: takes the reserve again, as far as there is room. */
  tend(): void
}

/** Pages that a row takes besides those of its content, for the tables and indexes that it changes. */
const PAGES_BESIDE = 16
const MAX_STEPS = 16
/** SQLite's own default. */
const MOST_PAGES_IN_LOG = 1000
/** What one transaction adds before the log can be emptied, and as much again for the next one. */
const LOG_SLACK = 768 * 1024

export function createSpace(
  handle: SqliteDatabase,
  reserve: ReturnType<typeof createReserve>,
  onShortage: () => void,
): Space {
  const pageSize = (handle.prepare('PRAGMA page_size').get() as { page_size: number }).page_size
  const freePages = handle.prepare('PRAGMA freelist_count')
  let pagesInLog = MOST_PAGES_IN_LOG

  function takeReserve(): void {
    reserve.take()
    // The log is emptied into the database before it holds more than the reserve could take.
    const pages = Math.floor((reserve.size / 2 - LOG_SLACK) / pageSize)
    const limit = reserve.size === 0 ? MOST_PAGES_IN_LOG : Math.min(Math.max(pages, PAGES_BESIDE), MOST_PAGES_IN_LOG)
    if (limit === pagesInLog) return
    handle.exec(`PRAGMA wal_autocheckpoint = ${limit}`)
    pagesInLog = limit
  }

  /** A log that has grown while a backup read the database keeps its size, though all of it is in the database. */
  function emptyLog(): void {
    try {
      handle.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } catch {
      // What did not fit stays in the log.
    }
  }

  function isWhole(): boolean {
    own.isKnownWhole ||= reserve.isWhole()
    return own.isKnownWhole
  }

  const own: Space = {
    hasReserve: reserve.size > 0,
    isKnownWhole: false,
    isWhole,

    admit(bytes, rows, reclaim) {
      if (isWhole()) return
      takeReserve()
      if (isWhole()) return
      const needed = Math.ceil(bytes / (pageSize - PAGES_BESIDE)) + rows * PAGES_BESIDE
      for (let step = 0; (freePages.get() as { freelist_count: number }).freelist_count < needed; step++) {
        if (step < MAX_STEPS && reclaim() !== 'all') continue
        onShortage()
        throw new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: new Error('The disk is full.') })
      }
    },

    makeRoom() {
      reserve.release()
      emptyLog()
      onShortage()
    },

    tend() {
      if (!reserve.isWhole()) emptyLog()
      takeReserve()
    },
  }
  return own
}
