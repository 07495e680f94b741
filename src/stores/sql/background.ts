/** Work beside the requests: the sweep and the indexing of members. Each step is bounded, and ends with the store. */

import { AsyncResource } from 'node:async_hooks'
import { publishFailure } from '../../core/diagnostics.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { LONGEST_TIMER, waitAtMost } from '../../core/time.ts'
import type { CollectionIndex } from '../lists.ts'
import type { IndexSteps, NewEntry, Swept } from './dialect.ts'
import { encodeEntry } from './queries/index-tables.ts'

/** Other work goes between two steps: each is bounded. */
const PAUSE_OF_SWEEP = 5
/** Milliseconds in which further steps may begin at once, where requests have kept the sweep waiting for twice as long. */
const LONGEST_RUN = 50
const SOON = 200

/** Milliseconds of all sweeps of this process: a sweep must not take longer because that of another store was long. */
let spent = 0

/**
 * Clears away what is not needed any more, from time to time, without keeping the process alive.
 * @param sweep one bounded step; several processes may run it at the same time
 * @param interval milliseconds between two sweeps; 0 for none
 */
export function createSweeper(sweep: () => MaybePromise<Swept>, interval: number) {
  let timer: NodeJS.Timeout | undefined
  let due = Number.POSITIVE_INFINITY
  let spentBefore = 0
  let isClosed = false
  let running: Promise<void> | undefined
  let isHurried = false

  function schedule(delay: number): void {
    const time = performance.now() + delay
    if (isClosed || interval === 0 || time >= due) return
    clearTimeout(timer)
    due = time
    spentBefore = spent
    timer = setTimeout(sweepNow, Math.min(delay, LONGEST_TIMER)).unref()
  }

  // A request may be what starts it, and is not what the later sweeps are for.
  const sweepNow = AsyncResource.bind((): void => {
    const delay = performance.now() - due - (spent - spentBefore)
    due = Number.POSITIVE_INFINITY
    if (running !== undefined) {
      isHurried = true
      return
    }
    running = run(Math.min(delay / 2, LONGEST_RUN)).finally(() => {
      running = undefined
    })
  })

  /** @param time for further steps: one step a turn removes less than many uploads at once replace in a turn */
  async function run(time: number): Promise<void> {
    isHurried = false
    let swept: Swept = 'all'
    const start = performance.now()
    try {
      do swept = await sweep()
      while (swept === 'part' && !isClosed && performance.now() - start < time)
    } catch (error) {
      // Also where the step before has left something to do.
      swept = 'all'
      publishFailure({ error, stage: 'background' })
    }
    spent += performance.now() - start
    // In the next turn: Node runs timers for as long as one is due, and those of several stores would keep requests out.
    if (swept === 'part') setImmediate(schedule, PAUSE_OF_SWEEP)
    // Processes that were started together should not sweep together.
    else schedule(isHurried ? SOON : interval * (0.75 + Math.random() / 2))
  }

  return {
    start: (): void => schedule(Math.min(interval, SOON)),
    /** Sweeps soon: something has just been given up. */
    hurry: (): void => schedule(SOON),
    /** Ends the sweeps; fulfilled once the step that is running is done, so that the database may be closed. */
    close(): MaybePromise<void> {
      isClosed = true
      clearTimeout(timer)
      return running
    },
  }
}

/** How long a list waits for the work: most collections are indexed by then. */
const PATIENCE = 250
/** Between two steps: requests come first. */
const PAUSE_OF_INDEXER = 2
/** After another process has done a step: it works, and the same work twice gains nothing. */
const PAUSE_FOR_OTHERS = 100
/** After a failure a list begins the work anew, but not at once. */
const REST = 1000

/** Makes the entries of members that were written before their collection had its index, or by other rules. */
export function createIndexer<Position>(steps: IndexSteps<Position>) {
  const running = new Map<string, Promise<void>>()
  const failed = new Map<string, number>()
  let isClosed = false

  async function work(collection: string, index: CollectionIndex): Promise<void> {
    let indexed = 0
    for (;;) {
      const batch = await steps.read(collection, index)
      if (isClosed) return
      if (batch === undefined) break
      const entries: NewEntry[] = []
      for (const item of batch.items) {
        const isWritten = item.indexed?.index.version === index.version
        const values = isWritten ? item.indexed!.values : await index.valuesOf(item)
        entries.push({ item, keys: encodeEntry(index, values) })
      }
      if (isClosed) return
      const count = await steps.commit(batch.position, entries)
      if (count !== undefined) index.report?.({ indexed: (indexed = count), isDone: false })
      await pause(count === undefined ? PAUSE_FOR_OTHERS * (0.5 + Math.random()) : PAUSE_OF_INDEXER)
      if (isClosed) return
    }
    index.report?.({ indexed, isDone: true })
  }

  return {
    /** Begins, unless it has begun; fulfilled once all members are indexed, or after a failure, or when time is over. */
    async run(collection: string, index: CollectionIndex): Promise<void> {
      const key = `${index.version} ${collection}`
      if (isClosed || performance.now() < (failed.get(key) ?? Number.NEGATIVE_INFINITY) + REST) return
      let current = running.get(key)
      if (current === undefined) {
        current = work(collection, index)
          .catch((error) => {
            failed.set(key, performance.now())
            if (failed.size > 1000) failed.delete(failed.keys().next().value!)
            publishFailure({ error, stage: 'background' })
          })
          .finally(() => running.delete(key))
        running.set(key, current)
      }
      await waitAtMost(PATIENCE, current)
    },

    /** Ends the work; fulfilled once the step that is running is done. */
    close(): MaybePromise<unknown> {
      isClosed = true
      if (running.size === 0) return
      // Its timer keeps the process alive, as that of a pause does not: the program that closes the store goes on.
      return waitAtMost(LONGEST_TIMER, Promise.all(running.values()))
    },
  }
}

/** Does not keep the process alive: the work goes on when it is needed. */
function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds).unref())
}

/** Does work in the background. Where it fails, a sweep or the next call does it again. */
export async function tryTo(action: () => MaybePromise<unknown>): Promise<void> {
  try {
    await action()
  } catch {}
}
