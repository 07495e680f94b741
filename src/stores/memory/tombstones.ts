import type { Tombstone } from '../types.ts'

/** A map that lets its oldest entry go when there are too many. */
export interface BoundedMap<Value> {
  get(key: string): Value | undefined
  /** Adds an entry, as the newest one. */
  set(key: string, value: Value): void
  delete(key: string): void
}

interface Kept<Value> {
  readonly key: string
  readonly value: Value
}

const SLACK = 1024

/**
 * Finding the oldest entry in a plain Map passes over every one that was deleted before it; so they stand in a queue.
 * @param most the most entries kept
 * @param onDrop called with an entry that had to go
 */
export function createBoundedMap<Value>(most: number, onDrop: (key: string, value: Value) => void): BoundedMap<Value> {
  const entries = new Map<string, Kept<Value>>()
  /** From the oldest on, among others that have been deleted or replaced. */
  let queue: Kept<Value>[] = []
  let head = 0

  const isCurrent = (entry: Kept<Value>): boolean => entries.get(entry.key) === entry

  return {
    get(key) {
      return entries.get(key)?.value
    },

    set(key, value) {
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

    delete(key) {
      entries.delete(key)
    },
  }
}

interface Grave {
  readonly tombstone: Tombstone
  readonly expires: number
}

/** What is known of resources that are gone. */
export interface Tombstones {
  /** The tombstone of a path, unless it has expired. */
  find(path: string, now: number): Tombstone | undefined
  /** Leaves a tombstone. Of too many the oldest goes. */
  bury(tombstone: Tombstone, expires: number): void
  /** Remembers, for the rest of the second, that a path was removed without a trace. */
  forget(path: string, removedAt: number): void
  /**
   * The path is written again.
   * @returns when it was removed, as far as a new state in the same second must know of it
   */
  unbury(path: string): number | undefined
}

/** @param most the most tombstones kept */
export function createTombstones(most: number): Tombstones {
  const graves = createBoundedMap<Grave>(most, (path, { tombstone }) => forget(path, tombstone.removedAt))
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
      if (grave === undefined || grave.expires > now) return grave?.tombstone
      forget(path, grave.tombstone.removedAt)
      return undefined
    },

    bury(tombstone, expires) {
      graves.set(tombstone.path, { tombstone, expires })
    },

    unbury(path) {
      const grave = graves.get(path)
      if (grave === undefined) return forgotten.get(path)
      graves.delete(path)
      return grave.tombstone.removedAt
    },
  }
}
