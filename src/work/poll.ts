import { AsyncResource } from 'node:async_hooks'
import { ERASE } from '../actions/delete.ts'
import { RECORDS, readExpiry } from '../actions/first-answer.ts'
import { reportFailure } from '../core/operator-log.ts'
import { LONGEST_TIMER } from '../core/time.ts'
import type { ResourceStore, StoredResource } from '../stores/types.ts'

/** Calls a function at intervals. */
export interface Poll {
  readonly isClosed: boolean
  /** Begins, where it has not begun yet. */
  start(): void
  close(): void
}

/** Milliseconds after which a look that has not ended holds up the next no more. */
const PATIENCE = 60_000

/**
 * @param look says after how many milliseconds it is due again, where that is sooner than the interval. It may never end, as
 *   one whose connection was lost without a word
 * @param patience milliseconds after which the next begins all the same; longer than any look takes
 */
export function createPoll(
  look: () => Promise<number | undefined>,
  interval: number,
  patience: number = PATIENCE,
): Poll {
  let timer: NodeJS.Timeout | undefined
  const schedule = (delay: number): void => {
    timer = setTimeout(turn, Math.min(delay, LONGEST_TIMER)).unref()
  }
  // A request may be what starts it, and is not what the later looks are for.
  const turn = AsyncResource.bind(async (): Promise<void> => {
    // Not in step with other processes that were started at the same time.
    const usual = interval * (0.75 + Math.random() / 2)
    schedule(patience)
    const own = timer
    let wait: number | undefined
    try {
      wait = await look()
    } catch (error) {
      reportFailure(error) // the store may be away for a while: the next look will tell
    }
    if (poll.isClosed || timer !== own) return
    clearTimeout(own)
    schedule(wait === undefined ? usual : Math.min(usual, wait + 1))
  })
  const poll = {
    isClosed: false,
    start(): void {
      if (timer === undefined && !poll.isClosed) schedule(0)
    },
    close(): void {
      poll.isClosed = true
      clearTimeout(timer)
    },
  }
  return poll
}

const HOUR = 3_600_000
/** Records on a page: each has 64 KiB of content at most. */
const PAGE = 50
/** Pages that one turn looks at. */
const PAGES = 10
/** Milliseconds between two turns of one walk. */
const PAUSE = 1000

/**
 * Removes records of first answers that have expired, in turns of bounded size: each goes on where the one before it has
 * stopped.
 * @param retention milliseconds, the shortest of all definitions
 */
export function createRecordSweeper(store: ResourceStore, now: () => number, retention: number): Poll {
  let after: string | undefined

  /** A record that cannot be read, since its content is lost for instance, is passed over: the others are removed all the same. */
  async function isExpired(record: StoredResource): Promise<boolean> {
    try {
      return (await readExpiry(record)) <= now()
    } catch (error) {
      reportFailure(error)
      return false
    }
  }

  async function sweep(): Promise<number | undefined> {
    if (retention === Number.POSITIVE_INFINITY) return undefined
    for (let pages = 0; pages < PAGES; pages++) {
      const page = await store.list(RECORDS, { limit: PAGE, after })
      for (const item of page.items) {
        if (!(await isExpired(item))) continue
        await store.remove(item.path, { ...ERASE, expect: { version: item.version } })
      }
      after = page.next
      if (after === undefined) return undefined
    }
    return PAUSE
  }

  return createPoll(sweep, Math.min(HOUR, Math.max(PAUSE, retention / 4)))
}
