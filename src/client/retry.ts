/** Statuses after which a request may be sent again. */
const TEMPORARY: readonly number[] = [429, 502, 503, 504]
/** A server that asks for a longer pause gets no other attempt. */
const MAX_PAUSE = 60_000

export function isTemporary(status: number): boolean {
  return TEMPORARY.includes(status)
}

/** Milliseconds of a Retry-After (RFC 9110 §10.2.3): seconds, or a date. */
export function parseRetryAfter(text: string | null, now: number): number | undefined {
  if (text === null) return undefined
  const time = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(time) ? undefined : Math.max(0, time)
}

/**
 * The pause before the next attempt, with a random part, so that clients do not come back together.
 * @param attempts those that failed
 * @returns `undefined` where the server asks for a pause of more than a minute
 */
export function choosePause(attempts: number, retryAfter: number | undefined): number | undefined {
  const random = Math.random() * Math.min(10_000, 100 * 2 ** attempts)
  if (retryAfter === undefined) return random
  return retryAfter > MAX_PAUSE ? undefined : retryAfter + random
}

/** Waits. @throws the reason of the signal when it aborts */
export function pause(time: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason)
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, time)
    signal?.addEventListener('abort', stop, { once: true })
  })
}
