import { HttpError } from '../../core/errors.ts'
import { createUnavailableError } from '../../core/unavailable.ts'
import { KEPT_AFTER_EXPIRY } from '../sql/rows.ts'
import type { PostgresConnection } from './connection.ts'
import { encodeKey, type PostgresStatements } from './statements.ts'

export type NameSource = ReturnType<typeof createNameSource>

interface Counter {
  /** The names left of the block: `next` to `end` - 1. */
  next: number
  end: number
  /** When the block lapses, on the clock of `performance.now`. */
  lapses: number
  /** The counter is known to be at least here. */
  reached: number
  leasing: Promise<void> | undefined
  waiting: number
  leases: Pace
  raises: Pace
}

/** How large a step is taken at once: it grows while steps come quickly, and falls back to 1. */
interface Pace {
  size: number
  last: number
}

const LARGEST_BLOCK = 1024
const GROWTH = 4
const QUICK = 1000
const MAX_COUNTERS = 10_000
const END = Number.MAX_SAFE_INTEGER + 1

/** A name of the block that a client has written and erased must still be remembered when its turn comes. */
const LEASE: number = KEPT_AFTER_EXPIRY / 3

/**
 * Assigns the names of new members. Each process leases blocks of them from the counter of the collection: one name at a
 * time while creations are rare, more at once under load. Names ascend within a process; the blocks of several processes
 * lie between each other, and what a process has not used when it ends is never used.
 * @param maxWaiting calls that may wait for a name of one collection at the same time
 */
export function createNameSource(connection: PostgresConnection, statements: PostgresStatements, maxWaiting: number) {
  const counters = new Map<string, Counter>()

  function counterOf(collection: string): Counter {
    let counter = counters.get(collection)
    if (counter !== undefined) return counter
    counter = {
      next: 0,
      end: 0,
      lapses: 0,
      reached: 0,
      leasing: undefined,
      waiting: 0,
      leases: { size: 1, last: Number.NEGATIVE_INFINITY },
      raises: { size: 1, last: Number.NEGATIVE_INFINITY },
    }
    counters.set(collection, counter)
    // What is forgotten here costs a gap and a query, nothing else.
    if (counters.size > MAX_COUNTERS) counters.delete(counters.keys().next().value!)
    return counter
  }

  async function lease(collection: string, counter: Counter): Promise<void> {
    const wanted = Math.max(step(counter.leases), counter.waiting)
    const start = performance.now()
    for (const count of wanted === 1 ? [1] : [wanted, 1]) {
      const [row] = await connection.run<{ next: number }>(statements.leaseNames, [encodeKey(collection), count])
      if (row === undefined) continue
      counter.next = row.next - count
      counter.end = row.next
      counter.lapses = start + LEASE
      counter.reached = Math.max(counter.reached, row.next)
      return
    }
    throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
  }

  function hasName(counter: Counter): boolean {
    return counter.next < counter.end && performance.now() < counter.lapses
  }

  return {
    /** @throws HttpError 507 when the collection has no names left, 503 when too many calls wait for one */
    async take(collection: string): Promise<string> {
      const counter = counterOf(collection)
      if (counter.waiting >= maxWaiting) {
        throw createUnavailableError(new Error(`${maxWaiting} calls wait for a name already.`))
      }
      counter.waiting++
      try {
        while (!hasName(counter)) {
          counter.leasing ??= lease(collection, counter).finally(() => {
            counter.leasing = undefined
          })
          await counter.leasing
        }
        return String(counter.next++)
      } finally {
        counter.waiting--
      }
    },

    /** The value to which the counter must be raised when a client writes a name; `undefined` when it is above already. */
    raiseFor(collection: string, id: number): number | undefined {
      const counter = counterOf(collection)
      if (id < counter.reached) return undefined
      return Math.min(id + step(counter.raises), END)
    },

    /** Tells a value that the counter has reached, and will never go below. */
    learn(collection: string, next: number): void {
      const counter = counterOf(collection)
      counter.reached = Math.max(counter.reached, next)
    },
  }
}

function step(pace: Pace): number {
  const time = performance.now()
  pace.size = time - pace.last < QUICK ? Math.min(pace.size * GROWTH, LARGEST_BLOCK) : 1
  pace.last = time
  return pace.size
}
