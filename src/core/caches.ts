interface Held<Value> {
  readonly value: Value
  readonly size: number
}

/** A map that forgets what has not been used for long. */
interface Generations<Key, Value> {
  get(key: Key): Value | undefined
  /** @param size what the value takes, in the measure of the limit */
  set(key: Key, value: Value, size: number): void
}

/**
 * Makes a map of two generations. What is used moves from the old one to the young one. When the young one has half of the
 * limit, it becomes the old one, and the old one is forgotten.
 * @param limit for the sizes of all values together; 0 keeps nothing
 */
export function createGenerations<Key, Value>(limit: number): Generations<Key, Value> {
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

/**
 * Keeps what is asked for again, up to a number of bytes. What is asked for only once, as by a crawler or a long
 * download, drives nothing out.
 */
export interface RecentCache<Key, Value> extends Generations<Key, Value> {
  /** Whether this was called for the key before, not long ago: the value is worth keeping then. */
  isWanted(key: Key, size: number): boolean
}

/** @param limit bytes for all values together; 0 keeps nothing */
export function createRecentCache<Key, Value>(limit: number): RecentCache<Key, Value> {
  const asked = createGenerations<Key, true>(limit)
  return {
    ...createGenerations<Key, Value>(limit),
    isWanted(key, size) {
      if (asked.get(key) !== undefined) return true
      asked.set(key, true, size)
      return false
    },
  }
}

/**
 * A function that makes a value once for each object: what is not `undefined` is kept as long as the object.
 * @param make makes it when it is first asked for
 */
export function onceFor<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const made = new WeakMap<Key, Value>()
  return (key) => {
    let value = made.get(key)
    if (value === undefined) made.set(key, (value = make(key)))
    return value
  }
}
