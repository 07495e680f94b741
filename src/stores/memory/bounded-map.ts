/** A map that lets its oldest entry go when there are too many. */
export interface BoundedMap<Value> {
  get(key: string): Value | undefined
  /** Adds an entry, as the newest one. */
  set(key: string, value: Value): void
  delete(key: string): void
}

interface Entry<Value> {
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
  const entries = new Map<string, Entry<Value>>()
  /** From the oldest on, among others that have been deleted or replaced. */
  let queue: Entry<Value>[] = []
  let head = 0

  const isCurrent = (entry: Entry<Value>): boolean => entries.get(entry.key) === entry

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
