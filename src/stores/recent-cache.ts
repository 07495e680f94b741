/**
 * Keeps what is asked for again, up to a number of bytes. What is asked for only once, as by a crawler or a long
 * download, drives nothing out.
 */
export interface RecentCache<Key, Value> {
  get(key: Key): Value | undefined
  /** Whether this was called for the key before, not long ago: the value is worth keeping then. */
  isWanted(key: Key, size: number): boolean
  /** @param size bytes that the value takes */
  set(key: Key, value: Value, size: number): void
}

interface Held<Value> {
  readonly value: Value
  readonly size: number
}

/** @param limit bytes for all values together; 0 keeps nothing */
export function createRecentCache<Key, Value>(limit: number): RecentCache<Key, Value> {
  const kept = createGenerations<Key, Value>(limit)
  const asked = createGenerations<Key, true>(limit)
  return {
    get: kept.get,
    set: kept.set,
    isWanted(key, size) {
      if (asked.get(key) !== undefined) return true
      asked.set(key, true, size)
      return false
    },
  }
}

/**
 * A map of two generations. What is used moves to the young one; when that has half of the bytes it becomes the old one,
 * and what was old and has not been used since is forgotten. There is no order to keep up with every use.
 */
function createGenerations<Key, Value>(limit: number) {
  let young = new Map<Key, Held<Value>>()
  let old = new Map<Key, Held<Value>>()
  let used = 0

  function get(key: Key): Value | undefined {
    const held = young.get(key)
    if (held !== undefined) return held.value
    const older = old.get(key)
    if (older === undefined) return undefined
    set(key, older.value, older.size)
    return older.value
  }

  function set(key: Key, value: Value, size: number): void {
    if (2 * size > limit) return
    used += size - (young.get(key)?.size ?? 0)
    if (2 * used > limit) {
      old = young
      young = new Map()
      used = size
    }
    young.set(key, { value, size })
  }

  return { get, set }
}
