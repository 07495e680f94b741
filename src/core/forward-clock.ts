/** The local clock, but never back. */
export interface ForwardClock {
  /** Milliseconds since the epoch, never less than before. */
  now(): number
  /** Takes over a time that another process has given. */
  raise(time: number): void
}

/**
 * A clock that was set back, or that is behind the clock of another process, would give a state the date of an earlier
 * one, and a date that names two states proves nothing (RFC 9110 §8.8.2.2). It would also take what is new for old. Until
 * the local clock has caught up, time goes on from where it was, in whole seconds: what is kept for a time still expires.
 * @param now the local clock, in milliseconds since the epoch
 */
export function createForwardClock(now: () => number): ForwardClock {
  let latest = Number.NEGATIVE_INFINITY
  /** When `latest` was reached, on a monotonic clock; `undefined` while the local clock leads. */
  let since: number | undefined

  return {
    now() {
      // `performance.timeOrigin + performance.now()` has fractions, and dates of states have none.
      const local = Math.floor(now())
      if (local >= latest) {
        since = undefined
        latest = local
        return local
      }
      const moment = performance.now()
      since ??= moment
      const seconds = Math.floor((moment - since) / 1000)
      since += seconds * 1000
      latest += seconds * 1000
      return latest
    },

    raise(time) {
      if (time <= latest) return
      latest = time
      since = undefined
    },
  }
}

/**
 * Whether less than a time has passed since a moment. A moment that lies ahead comes from a clock that was put back: by
 * the difference alone, what was kept then would count until the clock is there again.
 * @param since milliseconds since the epoch; `-Infinity` for never
 * @param span milliseconds
 */
export function isWithin(since: number, span: number, now: number = Date.now()): boolean {
  return now >= since && now - since < span
}
