import { RECORDS, readExpiry } from '../actions/first-answer.ts'
import type { ResourceStore } from '../stores/types.ts'
import { createPoll, type Poll } from '../work/scheduler.ts'

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

  async function sweep(): Promise<number | undefined> {
    if (retention === Number.POSITIVE_INFINITY) return undefined
    for (let pages = 0; pages < PAGES; pages++) {
      const page = await store.list(RECORDS, { limit: PAGE, after })
      for (const item of page.items) {
        if ((await readExpiry(item)) > now()) continue
        await store.remove(item.path, { expect: { version: item.version }, mode: 'erase' })
      }
      after = page.next
      if (after === undefined) return undefined
    }
    return PAUSE
  }

  return createPoll(sweep, Math.min(HOUR, Math.max(PAUSE, retention / 4)))
}
