import { HttpError } from '../../core/errors.ts'
import type { Swept } from '../sql/sweeper.ts'
import type { SqliteDatabase } from './handle.ts'
import type { Reserve } from './reserve.ts'

/** What the store may still allocate, and what it does when the disk is full. */
export interface Space {
  /**
   * Within a transaction, before rows with content are added. While the reserve that a removal may need is not whole, content may
   * take the free pages of the database only; `reclaim` is run for more of them.
   * @throws HttpError 507 when there are too few
   */
  admit(bytes: number, rows: number, reclaim: () => Swept): void
  /** After an allocation has failed, outside of transactions: gives the reserve up, and empties the log. */
  makeRoom(): void
  /** Takes the reserve again, as far as there is room. */
  tend(): void
}

/** Pages that a row takes besides those of its content, for the tables and indexes that it changes. */
const PAGES_BESIDE = 16
const MAX_STEPS = 16
/** SQLite's own default. */
const MOST_PAGES_IN_LOG = 1000
/** What one transaction adds before the log can be emptied, and as much again for the next one. */
const LOG_SLACK = 768 * 1024

export function createSpace(handle: SqliteDatabase, reserve: Reserve, onShortage: () => void): Space {
  const pageSize = (handle.prepare('PRAGMA page_size').get() as { page_size: number }).page_size
  const freePages = handle.prepare('PRAGMA freelist_count')
  let pagesInLog = MOST_PAGES_IN_LOG

  /** The log is emptied into the database before it holds more than the reserve could take. */
  function limitLog(): void {
    const pages = Math.floor((reserve.size / 2 - LOG_SLACK) / pageSize)
    const limit = reserve.size === 0 ? MOST_PAGES_IN_LOG : Math.min(Math.max(pages, PAGES_BESIDE), MOST_PAGES_IN_LOG)
    if (limit === pagesInLog) return
    handle.exec(`PRAGMA wal_autocheckpoint = ${limit}`)
    pagesInLog = limit
  }

  function tend(): void {
    reserve.take()
    limitLog()
  }

  return {
    admit(bytes, rows, reclaim) {
      if (reserve.isWhole()) return
      tend()
      if (reserve.isWhole()) return
      const needed = Math.ceil(bytes / (pageSize - PAGES_BESIDE)) + rows * PAGES_BESIDE
      for (let step = 0; (freePages.get() as { freelist_count: number }).freelist_count < needed; step++) {
        if (step === MAX_STEPS || reclaim() === 'all') throw new HttpError(507, 'ERR_OUT_OF_SPACE')
      }
    },

    makeRoom() {
      reserve.release()
      try {
        handle.exec('PRAGMA wal_checkpoint(TRUNCATE)')
      } catch {
        // What did not fit stays in the log.
      }
      onShortage()
    },

    tend,
  }
}
