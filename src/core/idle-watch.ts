/** Notices what has not moved for too long, with one timer for all of it: a timer each would cost more than a small request. */

/** One thing that is being watched. */
export interface IdleWatch {
  /** Whether something moved since the last sweep: to be set by whoever sees it move. */
  moved: boolean
  quiet: number
  readonly onIdle: () => void
  /** Everything that is watched beside it. */
  entries: Set<IdleWatch> | undefined
}

const SWEEPS = 4
const watches = new Map<number, (entry: IdleWatch) => Set<IdleWatch>>()

/**
 * Calls `onIdle` whenever nothing has moved for about `timeout` milliseconds (up to a quarter longer), until stopped.
 * @param timeout milliseconds; `Infinity` watches nothing
 */
export function watchIdle(timeout: number, onIdle: () => void): IdleWatch {
  const entry: IdleWatch = { moved: true, quiet: 0, onIdle, entries: undefined }
  if (timeout === Number.POSITIVE_INFINITY) return entry
  let add = watches.get(timeout)
  if (add === undefined) watches.set(timeout, (add = createSweeper(timeout)))
  entry.entries = add(entry)
  return entry
}

export function stopWatch(watch: IdleWatch): void {
  watch.entries?.delete(watch)
}

function createSweeper(timeout: number): (entry: IdleWatch) => Set<IdleWatch> {
  const entries = new Set<IdleWatch>()
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
