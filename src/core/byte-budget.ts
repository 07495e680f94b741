import { RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { isPromise, type MaybePromise } from './maybe-promise.ts'
import { createUnavailableError } from './unavailable.ts'

/** Fewer bytes are not counted. */
const SMALL = 256 * 1024

/** Bounds what large content takes in memory for all requests together. What does not fit waits, the first first. */
export interface ByteBudget {
  /**
   * Runs a task when its bytes fit beside those of the tasks that are under way. One that is too large for all waits to be alone.
   * @param exchange whose client may leave while the task waits: the call fails then
   * @throws HttpError 503 where too many tasks wait, or the task has waited for too long
   */
  hold<Result>(bytes: number, task: () => MaybePromise<Result>, exchange: Exchange): MaybePromise<Result>
}

export interface BudgetLimits {
  readonly bytes: number
  /** The most tasks that wait. */
  readonly waiting: number
  /** The most milliseconds that a task waits. */
  readonly patience: number
  /** The most milliseconds for which a task counts: a hook that falls silent must not keep its room for good. */
  readonly longest: number
}

const LIMITS: BudgetLimits = { bytes: 128 * 1024 * 1024, waiting: 1024, patience: 10_000, longest: 120_000 }

export function createByteBudget(limits: BudgetLimits = LIMITS): ByteBudget {
  const waiting = new Set<{ readonly bytes: number; start(): void }>()
  let used = 0

  const fits = (bytes: number): boolean => used === 0 || used + bytes <= limits.bytes

  function startNext(): void {
    for (const next of waiting) {
      if (!fits(next.bytes)) return
      used += next.bytes
      next.start()
    }
  }

  /** Runs a task whose bytes are counted. */
  function run<Result>(bytes: number, task: () => MaybePromise<Result>): MaybePromise<Result> {
    const timer = setTimeout(() => release(), limits.longest).unref()
    let counted = bytes
    const release = (): void => {
      clearTimeout(timer)
      used -= counted
      counted = 0
      startNext()
    }
    let result: MaybePromise<Result>
    try {
      result = task()
    } catch (error) {
      release()
      throw error
    }
    if (isPromise(result)) return Promise.resolve(result).finally(release)
    release()
    return result
  }

  function wait(bytes: number, exchange: Exchange): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        stopListening()
        waiting.delete(waiter)
      }
      const fail = (error: Error): void => {
        leave()
        // Those behind it may be smaller.
        startNext()
        reject(error)
      }
      const start = (): void => {
        leave()
        resolve()
      }
      const waiter = { bytes, start }
      const timer = setTimeout(() => fail(createUnavailableError()), limits.patience)
      const stopListening = exchange.onClose(() => fail(new RequestAborted()))
      waiting.add(waiter)
    })
  }

  return {
    hold(bytes, task, exchange) {
      if (bytes < SMALL) return task()
      if (waiting.size === 0 && fits(bytes)) {
        used += bytes
        return run(bytes, task)
      }
      if (waiting.size >= limits.waiting) throw createUnavailableError()
      // It has closed: nothing would call the listener.
      if (exchange.isClosed) throw new RequestAborted()
      return wait(bytes, exchange).then(() => run(bytes, task))
    },
  }
}
