import type { Tombstone } from '../types.ts'
import { createBoundedMap } from './bounded-map.ts'

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
