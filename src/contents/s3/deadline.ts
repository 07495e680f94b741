import type { MaybePromise } from '../../core/maybe-promise.ts'

export interface Deadline {
  readonly signal: AbortSignal
  begin(): void
  end(): void
}

/** Aborts a signal when something that has begun does not end in time. */
export function createDeadline(timeout: number, signal: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  return {
    signal: signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal]),
    begin(): void {
      timer = setTimeout(() => controller.abort(new Error(`No response within ${timeout} ms.`)), timeout)
    },
    end: (): void => clearTimeout(timer),
  }
}

/** The value of a promise that may never settle. @throws the reason of the signal */
export function beforeAbort<Value>(value: MaybePromise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const release = (): void => signal.removeEventListener('abort', onAbort)
    Promise.resolve(value).finally(release).then(resolve, reject)
  })
}
