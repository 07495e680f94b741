import { LONGEST_TIMER } from './longest-timer.ts'

/** Notices what has not moved for too long, with one timer for all of it: a timer each would cost more than a small request. */

/** One thing that is being watched. */
export interface IdleWatch {
  /** Whether something moved since the last sweep: to be set by the code that sees it move. */
  moved: boolean
  quiet: number
  onIdle: () => void
  /** Neighbours in the ring of all that is watched for the same time. */
  before: IdleWatch | undefined
  after: IdleWatch | undefined
}

interface Sweeper {
  /** The ring's one fixed place; watches nothing. */
  readonly ring: IdleWatch
  readonly start: () => void
}

const SWEEPS = 4
const sweepers = new Map<number, Sweeper>()

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
  let sweeper = sweepers.get(timeout)
  if (sweeper === undefined) sweepers.set(timeout, (sweeper = createSweeper(timeout)))
  const { ring } = sweeper
  const last = ring.before!
  watch.before = last
  watch.after = ring
  last.after = watch
  ring.before = watch
  sweeper.start()
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

function createSweeper(timeout: number): Sweeper {
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
      empty = 0
      timer = setInterval(sweep, Math.min(LONGEST_TIMER, Math.max(1, timeout / SWEEPS)))
      timer.unref()
    },
  }
}
