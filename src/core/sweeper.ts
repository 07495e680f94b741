/** Something that is looked at from time to time until it is over. */
export interface Watched {
  /** @returns whether it has to be looked at again */
  check(now: number): boolean
}

interface Sweeper {
  readonly watched: Set<Watched>
  timer: NodeJS.Timeout | undefined
}

const LONGEST = 1000
/** By period; periods come from options, never from clients. */
const sweepers = new Map<number, Sweeper>()

/**
 * Checks something a few times within `timeout`, once a second at most, with one timer for all of it.
 * @param timeout milliseconds; `Infinity` watches nothing
 */
export function sweep(timeout: number, watched: Watched): void {
  if (timeout === Number.POSITIVE_INFINITY) return
  const period = Math.min(LONGEST, Math.max(1, timeout / 4))
  let sweeper = sweepers.get(period)
  if (sweeper === undefined) sweepers.set(period, (sweeper = { watched: new Set(), timer: undefined }))
  sweeper.watched.add(watched)
  start(sweeper, period)
}

function start(sweeper: Sweeper, period: number): void {
  if (sweeper.timer !== undefined) return
  const { watched } = sweeper
  sweeper.timer = setInterval(() => {
    const now = performance.now()
    for (const one of watched) if (!one.check(now)) watched.delete(one)
    if (watched.size > 0) return
    clearInterval(sweeper.timer)
    sweeper.timer = undefined
  }, period)
  sweeper.timer.unref()
}
