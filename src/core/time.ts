/** A clock that never goes back, waiting for what may never end, and timers that many share. */

/** One thing that is being watched. All of them share a timer: one each would cost more than a small request. */
interface IdleWatch {
  /** Whether something moved since the last sweep: to be set by the code that sees it move. */
  moved: boolean
  quiet: number
  onIdle: () => void
  /** Neighbours in the ring of all that is watched for the same time. */
  before: IdleWatch | undefined
  after: IdleWatch | undefined
}

interface IdleRing {
  /** The ring's one fixed place; watches nothing. */
  readonly ring: IdleWatch
  readonly start: () => void
}

const SWEEPS = 4
const rings = new Map<number, IdleRing>()

function createWatch(onIdle: () => void): IdleWatch {
  return { moved: true, quiet: 0, onIdle, before: undefined, after: undefined }
}

/**
 * Calls `onIdle` whenever nothing has moved for about `timeout` milliseconds (up to a quarter longer), until stopped.
 * @param timeout milliseconds; `Infinity` watches nothing
 */
export function watchIdle(timeout: number, onIdle: () => void): IdleWatch {
  const watch = createWatch(onIdle)
  if (timeout === Number.POSITIVE_INFINITY) return watch
  let found = rings.get(timeout)
  if (found === undefined) rings.set(timeout, (found = createRing(timeout)))
  const { ring } = found
  const last = ring.before!
  watch.before = last
  watch.after = ring
  last.after = watch
  ring.before = watch
  found.start()
  return watch
}

/**
 * Unlinks the watch completely, as the tables of a `Set` may not: a dead object that still points at newer ones promotes
 * them to the old generation.
 */
export function stopWatch(watch: IdleWatch): void {
  const { before, after } = watch
  if (before === undefined || after === undefined) return
  before.after = after
  after.before = before
  watch.before = undefined
  watch.after = undefined
}

function createRing(timeout: number): IdleRing {
  const ring = createWatch(() => {})
  ring.before = ring
  ring.after = ring
  let timer: NodeJS.Timeout | undefined
  let empty = 0
  const sweep = (): void => {
    empty = ring.after === ring ? empty + 1 : 0
    if (empty > SWEEPS) {
      clearInterval(timer)
      timer = undefined
    }
    // Called afterwards: a callback may stop any of the others.
    const idle: IdleWatch[] = []
    for (let watch = ring.after!; watch !== ring; watch = watch.after!) {
      watch.quiet = watch.moved ? 0 : watch.quiet + 1
      watch.moved = false
      if (watch.quiet < SWEEPS) continue
      watch.quiet = 0
      idle.push(watch)
    }
    for (const watch of idle) if (watch.after !== undefined) watch.onIdle()
  }
  return {
    ring,
    start() {
      if (timer !== undefined) return
      timer = setInterval(sweep, Math.min(LONGEST_TIMER, Math.max(1, timeout / SWEEPS))).unref()
    },
  }
}

/** Something that is looked at from time to time until it is over. */
interface Watched {
  /** @returns whether it has to be looked at again */
  check(now: number): boolean
}

const LONGEST = 1000
/** By period; periods come from options, never from clients. */
const swept = new Map<number, Set<Watched>>()

/**
 * Checks something a few times within `timeout`, once a second at most, with one timer for all of it.
 * @param timeout milliseconds; `Infinity` watches nothing
 */
export function sweep(timeout: number, one: Watched): void {
  if (timeout === Number.POSITIVE_INFINITY) return
  const period = Math.min(LONGEST, Math.max(1, timeout / 4))
  const others = swept.get(period)
  if (others !== undefined) return void others.add(one)
  const watched = new Set([one])
  swept.set(period, watched)
  const timer = setInterval(() => {
    const now = performance.now()
    for (const one of watched) if (!one.check(now)) watched.delete(one)
    if (watched.size > 0) return
    clearInterval(timer)
    swept.delete(period)
  }, period).unref()
}

/** Milliseconds of the longest timer: timers take 32 bits, and a longer one fires at once. */
export const LONGEST_TIMER: number = 2 ** 31 - 1

/** The local clock, in milliseconds since the epoch. It asks `Date` at each call, so that a test may replace it. */
export function localTime(): number {
  return Date.now()
}

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

/** Waits a random moment, longer after more attempts, so that rivals of other processes do not meet again at once. */
export function pause(attempts: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * Math.min(50, attempts * 2)))
}

/** Waits until work has ended, or a time in milliseconds is over. @returns whether it has ended */
export async function waitAtMost(time: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const isLate = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, time, false)
  })
  try {
    return await Promise.race([work.then(() => true), isLate])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Milliseconds for which further callers join a call that has not ended. It may never end, where its connection was lost
 * silently: callers that come later must not wait with it.
 */
const PATIENCE = 5000

/** Lets callers of the same time share one call. The first caller after its end makes a new one. */
export function shareCall<Result>(call: () => Promise<Result>): () => Promise<Result> {
  let current: { readonly since: number; readonly result: Promise<Result> } | undefined
  return () => {
    if (current !== undefined && performance.now() - current.since < PATIENCE) return current.result
    const result = call().finally(() => {
      if (current === own) current = undefined
    })
    const own = { since: performance.now(), result }
    current = own
    return result
  }
}
