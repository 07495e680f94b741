import { RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { isPromise, type MaybePromise } from './maybe-promise.ts'
import { createUnavailableError } from './unavailable.ts'

/** What requests wait for: their turn at a resource, and room in memory for large content. */

/** How often a compare-and-swap is tried before the request is refused. */
export const MAX_ATTEMPTS = 100
/** How many of the attempts follow each other without a pause. */
export const PATIENT_ATTEMPTS = 3

/** How a task came to its turn: what it knew may be out of date where it has waited. */
type Entry = 'at-once' | 'waited'
/** How waiting ends: with a turn, or with patience, while no task ended or while there were too many. */
type Outcome = 'turn' | 'silence' | 'crowd'
type Task<Result> = (entry: Entry) => MaybePromise<Result>

/**
 * Lets the requests that change one resource go one after the other within a process: side by side, each of them would
 * make the compare-and-swap of the others fail. What keeps a state whole is that comparison, never the turn: a task may
 * run without one.
 */
export interface Turns {
  /** Whether a task is under way at a key. */
  isTaken(key: string): boolean
  /**
   * Runs a task when those before it at its key are done, at once where there are none.
   * @param overflow what to do when too many wait, or others have had their turns for so long: go on without a turn, or refuse
   *   with 503
   * @param exchange whose client may leave while the task waits: its place is free then, and the call rejects
   */
  take<Result>(key: string, task: Task<Result>, overflow: 'go-on' | 'refuse', exchange?: Exchange): MaybePromise<Result>
}

interface TurnLimits {
  /** The most tasks that wait at one key. */
  readonly perKey: number
  /** The most tasks that wait at all keys together. */
  readonly total: number
  /** Milliseconds after which a task goes on without its turn: one that hangs must not stop all that follow it. */
  readonly patience: number
}

const LIMITS: TurnLimits = { perKey: 256, total: 4096, patience: 10_000 }

/** Those who wait at a key, the first of them first. Each is called when it is its turn. */
class Line extends Set<() => void> {
  /** How many have had their turn. */
  served = 0
  /** When one of those who wait first lost patience with the task whose turn it is. */
  silentSince: number | undefined = undefined
}

const EMPTY = new Line()

export function createTurns({ perKey, total, patience }: TurnLimits = LIMITS): Turns {
  // A key stands here while a task is under way; it has a line of its own once another task waits.
  const lines = new Map<string, Line>()
  // The key of a task that has not returned yet. Most tasks of a store in memory end so: a Map that is filled and emptied for
  // each of them shrinks each time, which cost 800 instructions of the 150,000 of a small PUT.
  let running: string | undefined
  let waiting = 0

  function lineOf(key: string): Line | undefined {
    const line = lines.size === 0 ? undefined : lines.get(key)
    return line === undefined && key === running ? EMPTY : line
  }

  function pass(key: string): void {
    const line = lines.size === 0 ? undefined : lines.get(key)
    if (line === undefined) return
    const [next] = line
    if (next === undefined) return void lines.delete(key)
    line.served++
    line.silentSince = undefined
    next()
  }

  function hold<Result>(key: string, task: Task<Result>, entry: Entry): MaybePromise<Result> {
    const outer = running
    // A task that this one interrupts is under way as well.
    if (outer !== undefined && !lines.has(outer)) lines.set(outer, EMPTY)
    running = key
    let result: MaybePromise<Result>
    try {
      result = task(entry)
    } catch (error) {
      running = outer
      pass(key)
      throw error
    }
    running = outer
    if (!isPromise(result)) {
      pass(key)
      return result
    }
    if (!lines.has(key)) lines.set(key, EMPTY)
    return Promise.resolve(result).finally(() => pass(key))
  }

  /** Rejects when the client leaves. */
  function wait(key: string, line: Line, exchange: Exchange | undefined): Promise<Outcome> {
    const { served } = line
    return new Promise((resolve, reject) => {
      const end = (how: Outcome): void => {
        clearTimeout(timer)
        stopListening?.()
        line.delete(call)
        waiting--
        resolve(how)
      }
      const call = (): void => end('turn')
      const timer = setTimeout(() => {
        if (line.served !== served) return end('crowd')
        line.silentSince ??= performance.now()
        // Two minutes: those that come from now on do not wait in vain.
        if (performance.now() - line.silentSince >= 12 * patience && lines.get(key) === line) lines.delete(key)
        end('silence')
      }, patience)
      const stopListening = exchange?.onClose(() => {
        reject(new RequestAborted())
        end('silence')
      })
      waiting++
      line.add(call)
      lines.set(key, line)
    })
  }

  return {
    isTaken: (key) => lineOf(key) !== undefined,

    take(key, task, overflow, exchange) {
      const line = lineOf(key)
      if (line === undefined) return hold(key, task, 'at-once')
      if (line.size >= perKey || waiting >= total) {
        if (overflow === 'go-on') return task('at-once')
        throw createUnavailableError()
      }
      return wait(key, line === EMPTY ? new Line() : line, exchange).then((how) => {
        if (how === 'turn') return hold(key, task, 'waited')
        // No task hangs, there are too many: all that came together would be under way at once, each with what it has read.
        if (overflow === 'refuse' && how === 'crowd') throw createUnavailableError()
        return task('waited')
      })
    },
  }
}

/** Fewer bytes are not counted. */
const SMALL = 256 * 1024

/** Bounds what large content takes in memory for all requests together. What does not fit waits, the first first. */
export interface ByteBudget {
  /**
   * Runs a task when its bytes fit beside those of the tasks that are under way. One that is too large for all waits to be alone.
   * @param exchange whose client may leave while the task waits: the call fails then
   * @throws HttpError 503 where too many tasks wait, or the task has waited for too long
   */
  hold<Result>(bytes: number, task: () => MaybePromise<Result>, exchange: Exchange): MaybePromise<Result>
}

export interface BudgetLimits {
  readonly bytes: number
  /** The most tasks that wait. */
  readonly waiting: number
  /** The most milliseconds that a task waits. */
  readonly patience: number
  /** The most milliseconds for which a task counts: a hook that falls silent must not keep its room for good. */
  readonly longest: number
}

const BUDGET: BudgetLimits = { bytes: 128 * 1024 * 1024, waiting: 1024, patience: 10_000, longest: 120_000 }

export function createByteBudget(limits: BudgetLimits = BUDGET): ByteBudget {
  const waiting = new Set<{ readonly bytes: number; start(): void }>()
  let used = 0

  const fits = (bytes: number): boolean => used === 0 || used + bytes <= limits.bytes

  function startNext(): void {
    for (const next of waiting) {
      if (!fits(next.bytes)) return
      used += next.bytes
      next.start()
    }
  }

  /** Runs a task whose bytes are counted. */
  function run<Result>(bytes: number, task: () => MaybePromise<Result>): MaybePromise<Result> {
    const timer = setTimeout(() => release(), limits.longest).unref()
    let counted = bytes
    const release = (): void => {
      clearTimeout(timer)
      used -= counted
      counted = 0
      startNext()
    }
    let result: MaybePromise<Result>
    try {
      result = task()
    } catch (error) {
      release()
      throw error
    }
    if (isPromise(result)) return Promise.resolve(result).finally(release)
    release()
    return result
  }

  function wait(bytes: number, exchange: Exchange): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        stopListening()
        waiting.delete(waiter)
      }
      const fail = (error: Error): void => {
        leave()
        // Those behind it may be smaller.
        startNext()
        reject(error)
      }
      const start = (): void => {
        leave()
        resolve()
      }
      const waiter = { bytes, start }
      const timer = setTimeout(() => fail(createUnavailableError()), limits.patience)
      const stopListening = exchange.onClose(() => fail(new RequestAborted()))
      waiting.add(waiter)
    })
  }

  return {
    hold(bytes, task, exchange) {
      if (bytes < SMALL) return task()
      if (waiting.size === 0 && fits(bytes)) {
        used += bytes
        return run(bytes, task)
      }
      if (waiting.size >= limits.waiting) throw createUnavailableError()
      // It has closed: nothing would call the listener.
      if (exchange.isClosed) throw new RequestAborted()
      return wait(bytes, exchange).then(() => run(bytes, task))
    },
  }
}
