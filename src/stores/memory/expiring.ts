/** What stays in memory for a time: states with a retention, and what is known of resources that are gone. */

import type { StoredResource, Tombstone } from '../types.ts'
import type { Entry } from './member-index.ts'

/** States of one retention: they expire in the order in which they were added. */
interface Queue {
  items: { readonly entry: Entry; readonly state: StoredResource; readonly expires: number }[]
  head: number
}

/** States that one call removes at most. */
const STEP = 4
const SLACK = 1024

/**
 * States that expire. There is no timer: each write removes some whose time is over.
 * @param remove is called with an entry whose state is still the one that was added
 */
export function createExpiringStates(remove: (entry: Entry) => void) {
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
    /** Removes some of the states with the same retention as well: more than are added. @param retention milliseconds */
    add(entry: Entry, retention: number, now: number): void {
      let queue = queues.get(retention)
      if (queue === undefined) queues.set(retention, (queue = { items: [], head: 0 }))
      else sweepQueue(queue, now)
      queue.items.push({ entry, state: entry.state, expires: now + retention })
    },

    sweep(now: number): void {
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

interface Kept<Value> {
  readonly key: string
  readonly value: Value
}

/**
 * A map that lets its oldest entry go when there are too many. Finding that in a plain Map passes over every one that was
 * deleted before it; so they stand in a queue.
 * @param most the most entries kept
 * @param onDrop called with an entry that had to go
 */
export function createBoundedMap<Value>(most: number, onDrop: (key: string, value: Value) => void) {
  const entries = new Map<string, Kept<Value>>()
  /** From the oldest on, among others that have been deleted or replaced. */
  let queue: Kept<Value>[] = []
  let head = 0

  const isCurrent = (entry: Kept<Value>): boolean => entries.get(entry.key) === entry

  return {
    get: (key: string): Value | undefined => entries.get(key)?.value,

    /** Adds an entry, as the newest one. */
    set(key: string, value: Value): void {
      const entry = { key, value }
      entries.set(key, entry)
      queue.push(entry)
      if (entries.size > most) {
        while (!isCurrent(queue[head]!)) head++
        const oldest = queue[head++]!
        entries.delete(oldest.key)
        onDrop(oldest.key, oldest.value)
      }
      if (queue.length > 2 * entries.size + SLACK) {
        queue = queue.slice(head).filter(isCurrent)
        head = 0
      }
    },

    delete: (key: string): boolean => entries.delete(key),

    keys: (): Iterable<string> => entries.keys(),
  }
}

/** What is known of resources that are gone. */
interface Tombstones {
  /** The tombstone of a path, unless it has expired. */
  find(path: string, now: number): Tombstone | undefined
  /** Leaves a tombstone. Of too many the oldest goes. */
  bury(tombstone: Tombstone, expires: number): void
  /** Remembers, for the rest of the second, that a path was removed without a trace. */
  forget(path: string, removedAt: number): void
  /** Forgets the tombstones of all paths that begin with a prefix. */
  forgetBelow(prefix: string): void
  /**
   * The path is written again.
   * @returns when it was removed, as far as a new state in the same second must know of it
   */
  unbury(path: string): number | undefined
}

/** @param most the most tombstones kept */
export function createTombstones(most: number): Tombstones {
  const graves = createBoundedMap<{ readonly tombstone: Tombstone; readonly expires: number }>(
    most,
    (path, { tombstone }) => forget(path, tombstone.removedAt),
  )
  // Without these a date could name two states: one before the removal and one after it, in the same second.
  let second = 0
  const forgotten = new Map<string, number>()

  function forget(path: string, removedAt: number): void {
    graves.delete(path)
    const secondOfRemoval = Math.floor(removedAt / 1000)
    if (secondOfRemoval > second) {
      second = secondOfRemoval
      forgotten.clear()
    }
    if (secondOfRemoval === second) forgotten.set(path, removedAt)
  }

  return {
    forget,

    find(path, now) {
      const grave = graves.get(path)
      return grave !== undefined && grave.expires > now ? grave.tombstone : undefined
    },

    bury(tombstone, expires) {
      graves.set(tombstone.path, { tombstone, expires })
    },

    forgetBelow(prefix) {
      for (const path of graves.keys()) {
        if (path.startsWith(prefix)) forget(path, graves.get(path)!.tombstone.removedAt)
      }
    },

    unbury(path) {
      const grave = graves.get(path)
      if (grave === undefined) return forgotten.get(path)
      graves.delete(path)
      return grave.tombstone.removedAt
    },
  }
}
