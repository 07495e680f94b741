import type { StoredResource } from '../types.ts'
import type { Entry } from './member-index.ts'

/** States that are removed by themselves after a time. There is no timer: each write removes some. */
export interface ExpiringStates {
  /** Removes some of the states with the same retention as well: more than are added. @param retention milliseconds */
  add(entry: Entry, retention: number, now: number): void
  sweep(now: number): void
}

interface Item {
  readonly entry: Entry
  readonly state: StoredResource
  readonly expires: number
}

/** States of one retention: they expire in the order in which they were added. */
interface Queue {
  items: Item[]
  head: number
}

/** States that one call removes at most. */
const STEP = 4
const SLACK = 1024

/** @param remove is called with an entry whose state is still the one that was added */
export function createExpiringStates(remove: (entry: Entry) => void): ExpiringStates {
  const queues = new Map<number, Queue>()
  /** Goes round the queues, so that each has its turn, also when nothing is added to it. */
  let turn = queues.entries()

  function sweepQueue(queue: Queue, now: number): void {
    for (let step = 0; step < STEP && queue.head < queue.items.length; step++) {
      const { entry, state, expires } = queue.items[queue.head]!
      if (expires > now) break
      queue.head++
      if (entry.state === state) remove(entry)
    }
    if (queue.head < SLACK || 2 * queue.head < queue.items.length) return
    queue.items = queue.items.slice(queue.head)
    queue.head = 0
  }

  return {
    add(entry, retention, now) {
      let queue = queues.get(retention)
      if (queue === undefined) queues.set(retention, (queue = { items: [], head: 0 }))
      else sweepQueue(queue, now)
      queue.items.push({ entry, state: entry.state, expires: now + retention })
    },

    sweep(now) {
      if (queues.size === 0) return
      let next = turn.next()
      if (next.done) {
        turn = queues.entries()
        next = turn.next()
      }
      const [retention, queue] = next.value!
      sweepQueue(queue, now)
      if (queue.head === queue.items.length) queues.delete(retention)
    },
  }
}
