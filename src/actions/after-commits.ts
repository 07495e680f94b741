import { publishFailure } from '../core/diagnostics.ts'
import type { Exchange } from '../core/exchange.ts'
import { logFailure, type ReportFailure } from '../core/failures.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

/** Runs the `afterCommit` hooks of a service. */
export interface AfterCommits {
  /**
   * Calls a hook once the response is decided, in the asynchronous context of the caller. Hooks are called in the order in
   * which they are announced; the next one does not wait for the promise of the one before.
   * @param exchange the request that is the cause; `undefined` for accepted work
   */
  announce(call: () => MaybePromise<unknown>, exchange: Exchange | undefined): void
  /** Fulfilled when the hooks that were announced have ended, or after 5 seconds. */
  drain(): Promise<void>
}

/** Milliseconds. A hook that hangs must not keep the process from ending. */
const PATIENCE = 5_000

/** @param report receives the failures of hooks that a request is the cause of */
export function createAfterCommits(report: ReportFailure): AfterCommits {
  const running = new Set<Promise<void>>()

  function fail(error: unknown, exchange: Exchange | undefined): void {
    if (exchange !== undefined) return report(error, exchange, 'committed')
    publishFailure({ error, stage: 'background' })
    logFailure('afterCommit of accepted work', error)
  }

  async function run(call: () => MaybePromise<unknown>, exchange: Exchange | undefined): Promise<void> {
    try {
      await call()
    } catch (error) {
      fail(error, exchange)
    }
  }

  return {
    announce(call, exchange) {
      const done = new Promise<void>((resolve) => {
        setImmediate(() => resolve(run(call, exchange)))
      }).finally(() => running.delete(done))
      running.add(done)
    },

    async drain() {
      const end = Date.now() + PATIENCE
      // A hook may cause further changes.
      while (running.size > 0) {
        const rest = end - Date.now()
        if (rest <= 0) return
        let timer: NodeJS.Timeout | undefined
        const tooLate = new Promise((resolve) => {
          timer = setTimeout(resolve, rest)
        })
        await Promise.race([Promise.all(running), tooLate])
        clearTimeout(timer)
      }
    },
  }
}
