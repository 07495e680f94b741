import { setTimeout as sleep } from 'node:timers/promises'
import { publishFailure } from '../core/diagnostics.ts'
import { isHttpError } from '../core/errors.ts'
import { logFailure, readThrown } from '../core/failures.ts'
import { reportFailure } from '../core/operator-log.ts'
import { waitAtMost } from '../core/time.ts'
import { type ClaimedWork, LEASE, type WorkQueue } from './queue.ts'
import { inTime, isOfStore } from './store-calls.ts'

/** Does accepted work, and records what has failed for good. */
export interface WorkHandler {
  /** Does the work. Throws to be tried again, an HttpError below 500 to fail for good. */
  perform(work: ClaimedWork, signal: AbortSignal): Promise<void>
  /** Records that the work has failed for good. */
  fail(work: ClaimedWork, error: unknown): Promise<void>
}

interface RunnerOptions {
  readonly queue: WorkQueue
  readonly handler: WorkHandler
  /** Called with the id of work that is to be done, now or after a pause in milliseconds. It must not throw. */
  readonly announce: (id: string, pause: number) => void
  /** How often work is tried before it has failed. */
  readonly maxAttempts: number
}

const FIRST_PAUSE = 500
const LONGEST_PAUSE = 60_000
/**
 * Attempts that the store may bring to nothing, once a minute. Content that it has lost would be asked for without end. A
 * removal needs the database alone, which is there when it is claimed: it may be larger than the database ever does at once.
 */
const MOST_SPARED = { process: 1440, remove: 60 }
/** How often a step is refused although the store is there, before the work is left to its lease. */
const MOST_REFUSALS = 2
const CLOSE_TIMEOUT = 5_000
/** How often a lease is renewed before it would run out. */
const RENEWALS = 3

/** Does pieces of accepted work, beside other processes that do the same. */
export function createWorkRunner(options: RunnerOptions) {
  const { queue, handler, announce, maxAttempts } = options
  const running = new Map<Promise<boolean>, AbortController>()
  let isClosing = false

  async function perform(id: string, controller: AbortController): Promise<boolean> {
    const work = await inTime(queue.find(id, maxAttempts, controller.signal))
    if (work === undefined) return false
    const isEnd = work.record.attempts > maxAttempts
    // A renewal is the same step: where that is taken, the claim is not refused for a reason of its own. But a claim that ends
    // the work begins anew: while the store was away, the process that has the work could not renew its own.
    const most = isEnd ? 0 : Number.POSITIVE_INFINITY
    const isClaimed = await insist(work, controller.signal, () => queue.claim(work), most)
    if (!isClaimed) return false
    let waited = 0
    const renew = async (): Promise<void> => {
      // The store may be slow to answer the one before. Once the lease has run out, that may never come.
      if (waited > 0 && ++waited <= RENEWALS) return
      waited = 1
      try {
        // The process that has it now may be doing it already.
        if (!(await queue.renew(work))) controller.abort(new Error('The lease of the work has been lost.'))
      } finally {
        waited = 0
      }
    }
    const renewal = setInterval(() => renew().catch(reportFailure), LEASE / RENEWALS).unref()
    try {
      // Work that ends the process whenever it is tried must not end it for ever.
      if (isEnd) throw new Error('The process ended whenever the work was tried.')
      await handler.perform(work, controller.signal)
      await inTime(queue.finish(id))
    } catch (error) {
      await settleFailure(work, readThrown(error), controller.signal)
    } finally {
      clearInterval(renewal)
    }
    return true
  }

  /**
   * Waits until the store is there again: a claim whose answer has got lost, or whose end is not recorded, would count as an
   * attempt that ended the process.
   */
  async function insist<Result>(
    work: ClaimedWork,
    signal: AbortSignal,
    step: () => Promise<Result>,
    most: number = MOST_REFUSALS,
  ): Promise<Result> {
    let refusals = 0
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LEASE / RENEWALS)) {
      try {
        return await inTime(step())
      } catch (error) {
        // Where the store is there and this alone fails, other work gets its place.
        if (!isOfStore(error) || refusals === most) throw error
        await sleep(pause, undefined, { signal, ref: false })
        if (await isStoreThere(work)) refusals++
      }
    }
  }

  function isStoreThere(work: ClaimedWork): Promise<boolean> {
    return inTime(queue.renew(work)).then(
      () => true,
      () => false,
    )
  }

  async function settleFailure(work: ClaimedWork, error: unknown, signal: AbortSignal): Promise<void> {
    const { attempts, kind, pattern, spared = 0 } = work.record
    const isFinal = isHttpError(error) && error.status < 500
    // What was broken off has not been tried.
    if (isClosing && !isFinal) return inTime(queue.postpone(work, 0, { attempts: attempts - 1 }))
    if (!isFinal) publishFailure({ error, stage: 'background', route: pattern })
    // As `onError` hears of what a request fails with: not of a store that is away.
    if (!isHttpError(error)) logFailure(`accepted work of ${pattern}`, error)
    const isSpared = isOfStore(error) && spared < MOST_SPARED[kind]
    if (isSpared || (!isFinal && attempts < maxAttempts)) {
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (isSpared ? spared : attempts - 1))
      const counts = isSpared ? { attempts: attempts - 1, spared: spared + 1 } : undefined
      await insist(work, signal, () => queue.postpone(work, pause, counts))
      return announce(work.id, pause)
    }
    await insist(work, signal, () => handler.fail(work, error))
    await inTime(queue.finish(work.id))
  }

  return {
    /** Does one piece of work now. @returns whether it was there to be done */
    run(id: string): Promise<boolean> {
      if (isClosing) return Promise.resolve(false)
      const controller = new AbortController()
      const done = perform(id, controller).finally(() => running.delete(done))
      running.set(done, controller)
      return done
    },

    /** Takes no more work and waits for what is running; work that does not heed the signal is left to its lease. */
    async close(): Promise<void> {
      isClosing = true
      for (const controller of running.values()) controller.abort(new Error('The service is closing.'))
      await waitAtMost(CLOSE_TIMEOUT, Promise.allSettled(running.keys()))
    },
  }
}
