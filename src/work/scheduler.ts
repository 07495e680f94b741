import { AsyncResource } from 'node:async_hooks'
import { createAvailability, isStoreFailure, type Log, reportFailure } from '../core/operator-log.ts'
import { isWithin } from '../core/time.ts'
import type { OperationsSettings } from './operations.ts'
import { createPoll } from './poll.ts'
import type { WorkQueue } from './queue.ts'

/** Has accepted work done: soon after it was recorded, and after a crash as well. */
interface WorkScheduler {
  /** Starts looking for work: what a crash left behind is found here. */
  start(): void
  /** Announces recorded work, due now or after a pause in milliseconds. Never throws. */
  announce(id: string, pause: number): void
  close(): void
}

interface SchedulerOptions extends Pick<OperationsSettings, 'concurrency' | 'pollInterval'> {
  readonly queue: WorkQueue
  /** Does one piece of work. */
  readonly run: (id: string) => Promise<unknown>
  readonly log: Log
}

/** A queue of the user's own, which has the work done wherever it likes. */
export type ExternalQueue = NonNullable<OperationsSettings['queue']>

/** How often a queue of the user's own gets work that is still there, in milliseconds. */
const REPEAT = 60_000
/** Milliseconds until the next look where there may be more work than the last one has found. */
const SOON = 100

/** Has the work done in this process. */
export function createLocalScheduler({ queue, run, concurrency, pollInterval, log }: SchedulerOptions): WorkScheduler {
  const waiting = new Set<string>()
  const running = new Set<string>()
  const due = watchDue(queue, log)
  const most = concurrency * 8
  const look = async (): Promise<number | undefined> => {
    // What has been found is begun first.
    if (waiting.size >= concurrency) return SOON
    const { ids, wait } = await due(most)
    for (const id of ids) notify(id)
    return ids.length < most ? wait : SOON
  }
  const poll = createPoll(look, pollInterval)
  // In the context of the request that announces it, work would see that of another user.
  const runOutside = AsyncResource.bind(run)

  function notify(id: string): void {
    if (poll.isClosed || running.has(id)) return
    waiting.add(id)
    setImmediate(pump)
  }

  function pump(): void {
    for (const id of waiting) {
      if (running.size >= concurrency || poll.isClosed) return
      waiting.delete(id)
      running.add(id)
      const goOn = (): void => {
        running.delete(id)
        pump()
      }
      runOutside(id).catch(reportFailure).then(goOn)
    }
  }

  return {
    start: poll.start,
    announce(id, pause) {
      if (pause === 0) notify(id)
      else setTimeout(notify, pause + 1, id).unref()
    },
    close: poll.close,
  }
}

/**
 * Notifies a queue of the user's own. It gets work once more that has not been done for a while: it may have been away when
 * it was notified first, or the process may have ended before that.
 */
export function createExternalScheduler(
  external: ExternalQueue,
  { queue, pollInterval, log }: Pick<SchedulerOptions, 'queue' | 'pollInterval' | 'log'>,
): WorkScheduler {
  const due = watchDue(queue, log)
  const availability = createAvailability('queue', 'The queue of operations.queue takes work again.')
  availability.watch(log)
  let notified = new Map<string, number>()
  const look = async (): Promise<undefined> => {
    const { ids } = await due(1000)
    notified = new Map([...notified].filter(([id]) => ids.includes(id)))
    for (const id of ids) if (!isWithin(notified.get(id) ?? Number.NEGATIVE_INFINITY, REPEAT)) await tell(id, 0)
  }
  const poll = createPoll(look, pollInterval)

  async function tell(id: string, delay: number): Promise<void> {
    notified.set(id, Date.now())
    try {
      await external.enqueue(id, { delay })
      availability.succeed()
    } catch (error) {
      notified.delete(id)
      reportFailure(error)
      availability.fail((reason) => `operations.queue.enqueue fails: ${reason}; accepted work waits.`, error)
    }
  }

  return { start: poll.start, announce: (id, pause) => void tell(id, pause), close: poll.close }
}

/** Looks for work, and reports when that fails for another reason than the store, which is reported by itself. */
function watchDue(queue: WorkQueue, log: Log): WorkQueue['due'] {
  const availability = createAvailability('queue', 'Accepted work is found again.')
  availability.watch(log)
  const fail = (error: unknown): void =>
    availability.fail((reason) => `Accepted work cannot be read: ${reason}; it waits.`, error)
  return async (limit) => {
    try {
      const found = await queue.due(limit)
      if (found.unreadable === undefined) availability.succeed()
      else fail(found.unreadable)
      return found
    } catch (error) {
      if (!isStoreFailure(error)) fail(error)
      throw error
    }
  }
}
