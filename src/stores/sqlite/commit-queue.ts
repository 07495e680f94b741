import { HttpError } from '../../core/errors.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'

/** Gathers the writes of a few turns of the event loop into one transaction: they share one wait for the disk. */
export interface CommitQueue {
  /**
   * Runs work in a transaction; fulfilled once it is durable. Work that throws changes nothing and spoils no other, but
   * may make the others of its transaction run again.
   * @throws HttpError 503 when too many writes wait already
   */
  add<Result>(work: () => Result): Promise<Result>
}

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

/**
 * @param transact runs work in one transaction; undoes all of it when it throws
 * @param patience milliseconds after which a write that waits fails together with the one that could not begin
 */
export function createCommitQueue(transact: (work: () => void) => MaybePromise<void>, patience: number): CommitQueue {
  let queue: Entry[] = []
  let isScheduled = false

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
      await transact(() => {
        for (const [index, entry] of batch.entries()) {
          culprit = entry
          results[index] = entry.work()
        }
        culprit = undefined
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
    const isLate = (entry: Entry): boolean => now - entry.since >= patience
    const late = queue.filter(isLate)
    queue = queue.filter((entry) => !isLate(entry))
    for (const entry of late) entry.reject(error)
  }

  return {
    add<Result>(work: () => Result): Promise<Result> {
      return new Promise<Result>((resolve, reject) => {
        if (queue.length >= MAX_WAITING)
          throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' } })
        const since = performance.now()
        queue.push({ work, resolve: resolve as (result: unknown) => void, reject, since })
        if (isScheduled) return
        isScheduled = true
        setImmediate(gather, 0, 1)
      })
    },
  }
}
