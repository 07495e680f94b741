import { publishFailure } from '../../core/diagnostics.ts'
import { LONGEST_TIMER } from '../../core/idle-watch.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'

/** Clears away what is not needed any more, from time to time, without keeping the process alive. */
export interface Sweeper {
  /** Begins to sweep. */
  start(): void
  /** Sweeps soon: something has just been given up. */
  hurry(): void
  /** Ends the sweeps; fulfilled once the step that is running is done, so that the database may be closed. */
  close(): MaybePromise<void>
}

/** Whether a step of the sweep found all that there was to do. */
export type Swept = 'all' | 'part'

/** Several steps a turn would keep requests waiting: each is bounded, and other work goes between them. */
const PAUSE = 5
const SOON = 200

/**
 * @param sweep one bounded step; several processes may run it at the same time
 * @param interval milliseconds between two sweeps; 0 for none
 */
export function createSweeper(sweep: () => MaybePromise<Swept>, interval: number): Sweeper {
  let timer: NodeJS.Timeout | undefined
  let due = Number.POSITIVE_INFINITY
  let isClosed = false
  let running: Promise<void> | undefined
  let isHurried = false

  function schedule(delay: number): void {
    const time = performance.now() + delay
    if (isClosed || interval === 0 || time >= due) return
    clearTimeout(timer)
    due = time
    timer = setTimeout(sweepNow, Math.min(delay, LONGEST_TIMER)).unref()
  }

  function sweepNow(): void {
    due = Number.POSITIVE_INFINITY
    if (running !== undefined) {
      isHurried = true
      return
    }
    running = run().finally(() => {
      running = undefined
    })
  }

  async function run(): Promise<void> {
    isHurried = false
    let swept: Swept = 'all'
    try {
      swept = await sweep()
    } catch (error) {
      publishFailure({ error, stage: 'background' })
    }
    // Processes that were started together should not sweep together.
    schedule(swept === 'part' ? PAUSE : isHurried ? SOON : interval * (0.75 + Math.random() / 2))
  }

  return {
    start: () => schedule(Math.min(interval, SOON)),
    hurry: () => schedule(SOON),
    close() {
      isClosed = true
      clearTimeout(timer)
      return running
    },
  }
}
