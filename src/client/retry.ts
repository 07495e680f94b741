import type { Answer } from './answer.ts'

/** Statuses after which a request may be sent again. */
const TEMPORARY: readonly number[] = [429, 502, 503, 504]
/** A server that asks for a longer pause gets no other attempt. */
const MAX_PAUSE = 60_000
/** Milliseconds; a longer timer ends at once. */
export const LONGEST_TIMER: number = 2 ** 31 - 1

export function isTemporary(status: number): boolean {
  return TEMPORARY.includes(status)
}

/** Milliseconds of Retry-After (RFC 9110 §10.2.3), which is seconds or a date; `undefined` without one. */
export function readRetryAfter({ headers }: Pick<Answer, 'headers'>): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const time = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(time) ? undefined : Math.max(0, time)
}

/**
 * The pause before the next attempt, with a random part, so that clients do not come back together.
 * @param attempts those that failed
 * @returns `undefined` where the server asks for a pause of more than a minute
 */
export function choosePause(attempts: number, retryAfter = 0): number | undefined {
  if (retryAfter > MAX_PAUSE) return undefined
  return retryAfter + Math.random() * Math.min(10_000, 100 * 2 ** attempts)
}

/** Waits, for 24 days at the longest. @throws the reason of the signal when it aborts */
export function pause(time: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const end = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(time, LONGEST_TIMER))
  })
  return untilAborted(end, signal).finally(() => clearTimeout(timer))
}

/** @throws the reason of the signal when it aborts first */
export function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal!.reason)
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal?.removeEventListener('abort', stop))
  })
}
