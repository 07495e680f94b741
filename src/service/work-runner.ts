import { publishFailure } from '../core/diagnostics.ts'
import { isHttpError } from '../core/errors.ts'
import { type ClaimedWork, LEASE, type WorkQueue } from './work-queue.ts'

/** How work ends: `done` for good or ill, `again` after a failure that may pass. */
export interface WorkHandler {
  /** Does the work. Throws to be tried again, an HttpError below 500 to fail for good. */
  perform(work: ClaimedWork, signal: AbortSignal): Promise<void>
  /** Records that the work has failed for good. */
  fail(work: ClaimedWork, error: unknown): Promise<void>
}

export interface RunnerOptions {
  readonly queue: WorkQueue
  readonly handler: WorkHandler
  /** How many pieces of work this process does at a time. */
  readonly concurrency: number
  /** How often work is tried before it has failed. */
  readonly maxAttempts: number
  /** Milliseconds between looks for work that nobody here was told of: left by a crash, or due again. */
  readonly pollInterval: number
}

/** Runs accepted work in this process, beside other processes that do the same. */
export interface WorkRunner {
  /** Starts looking for work: what a crash left behind is found here. */
  start(): void
  /** Tells of new work, so that it need not be looked for. */
  notify(id: string): void
  /** Does one piece of work now, for a queue of the user's own. @returns whether it was there to be done */
  run(id: string): Promise<boolean>
  /** Takes no more work and waits for what is running; work that does not heed the signal is left to its lease. */
  close(): Promise<void>
}

const FIRST_PAUSE = 500
const LONGEST_PAUSE = 60_000
const CLOSE_TIMEOUT = 5_000

export function createWorkRunner(options: RunnerOptions): WorkRunner {
  const { queue, handler, concurrency, maxAttempts, pollInterval } = options
  const waiting = new Set<string>()
  const running = new Map<string, Promise<unknown>>()
  const closing = new AbortController()
  let timer: NodeJS.Timeout | undefined

  async function run(id: string): Promise<boolean> {
    const work = await queue.claim(id)
    if (work === undefined) return false
    const renewal = setInterval(() => queue.renew(work).catch(report), LEASE / 3)
    renewal.unref()
    try {
      await handler.perform(work, closing.signal)
      await queue.finish(id)
    } catch (error) {
      await settleFailure(work, error)
    } finally {
      clearInterval(renewal)
    }
    return true
  }

  async function settleFailure(work: ClaimedWork, error: unknown): Promise<void> {
    const isFinal = isHttpError(error) && error.status < 500
    if (!isFinal) report(error)
    if (closing.signal.aborted && !isFinal) return queue.postpone(work, 0)
    if (!isFinal && work.record.attempts < maxAttempts) {
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (work.record.attempts - 1))
      await queue.postpone(work, pause)
      if (pause < pollInterval) setTimeout(() => notify(work.id), pause + 1).unref()
      return
    }
    await handler.fail(work, error)
    await queue.finish(work.id)
  }

  function notify(id: string): void {
    if (closing.signal.aborted || running.has(id)) return
    waiting.add(id)
    setImmediate(pump)
  }

  function pump(): void {
    for (const id of waiting) {
      if (running.size >= concurrency || closing.signal.aborted) return
      waiting.delete(id)
      const done = run(id)
        .catch(report)
        .finally(() => {
          running.delete(id)
          pump()
        })
      running.set(id, done)
    }
  }

  async function poll(): Promise<void> {
    try {
      for (const id of await queue.due(concurrency * 8)) notify(id)
    } catch (error) {
      report(error) // the store may be away for a while: the next look will tell
    }
    if (closing.signal.aborted) return
    timer = setTimeout(poll, pollInterval * (0.75 + Math.random() / 2))
    timer.unref()
  }

  return {
    start() {
      timer = setTimeout(poll, 0)
      timer.unref()
    },
    notify,
    run,
    async close() {
      closing.abort(new Error('The service is closing.'))
      clearTimeout(timer)
      waiting.clear()
      let late: NodeJS.Timeout | undefined
      const tooLong = new Promise((resolve) => {
        late = setTimeout(resolve, CLOSE_TIMEOUT)
      })
      await Promise.race([Promise.all(running.values()), tooLong])
      clearTimeout(late)
    },
  }
}

function report(error: unknown): void {
  publishFailure({ error, stage: 'background' })
}
