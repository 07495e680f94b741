/** Notices what has not moved for too long, with one timer for all of it: a timer each would cost more than a small request. */

interface Watched {
  /** Whether something moved since the last sweep. */
  moved: boolean
  quiet: number
  readonly onIdle: () => void
}

/** One thing that is being watched. */
export interface IdleWatch {
  /** Something moved. */
  refresh(): void
  stop(): void
}

const SWEEPS = 4
const watches = new Map<number, (entry: Watched) => Set<Watched>>()

/**
 * Calls `onIdle` whenever nothing has moved for about `timeout` milliseconds (up to a quarter longer), until stopped.
 * @param timeout milliseconds; `Infinity` watches nothing
 */
export function watchIdle(timeout: number, onIdle: () => void): IdleWatch {
  if (timeout === Number.POSITIVE_INFINITY) return { refresh() {}, stop() {} }
  const entry: Watched = { moved: true, quiet: 0, onIdle }
  let add = watches.get(timeout)
  if (add === undefined) watches.set(timeout, (add = createSweeper(timeout)))
  const entries = add(entry)
  return {
    refresh() {
      entry.moved = true
    },
    stop() {
      entries.delete(entry)
    },
  }
}

function createSweeper(timeout: number): (entry: Watched) => Set<Watched> {
  const entries = new Set<Watched>()
  let timer: NodeJS.Timeout | undefined
  let empty = 0
  const sweep = (): void => {
    empty = entries.size === 0 ? empty + 1 : 0
    if (empty > SWEEPS) {
      clearInterval(timer)
      timer = undefined
    }
    for (const entry of entries) {
      entry.quiet = entry.moved ? 0 : entry.quiet + 1
      entry.moved = false
      if (entry.quiet < SWEEPS) continue
      entry.quiet = 0
      entry.onIdle()
    }
  }
  return (entry) => {
    if (timer === undefined) {
      empty = 0
      timer = setInterval(sweep, Math.max(1, timeout / SWEEPS))
      timer.unref()
    }
    return entries.add(entry)
  }
}
