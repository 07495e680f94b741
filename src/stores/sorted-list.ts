const CHUNK = 512

/**
 * Items in the order of their keys.
 * Chunks of at most 512 keep inserting and seeking cheap, however many items there are.
 */
export interface SortedList<Key extends number | string, Item> {
  readonly size: number
  /** Adds an item, or puts it in the place of the one with the same key. */
  set(key: Key, item: Item): void
  delete(key: Key): void
  /** Appends items whose keys come after one, from the first when it is left out, until `items` has `limit` of them. */
  collect(after: Key | undefined, limit: number, items: Item[]): void
}

/** Keys and items side by side: a search then touches keys only. */
interface Chunk<Key, Item> {
  readonly keys: Key[]
  readonly items: Item[]
}

export function createSortedList<Key extends number | string, Item>(): SortedList<Key, Item> {
  const chunks: Chunk<Key, Item>[] = []
  let size = 0

  /** Index of the chunk in which a key stands or would stand. */
  function findChunk(key: Key): number {
    let low = 0
    let high = chunks.length - 1
    // Mostly it is the last one: names are assigned in ascending order.
    if (high > 0 && key >= chunks[high]!.keys[0]!) return high
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (chunks[middle]!.keys[0]! <= key) low = middle
      else high = middle - 1
    }
    return low
  }

  function split(index: number): void {
    const { keys, items } = chunks[index]!
    const half = keys.length >> 1
    chunks.splice(index + 1, 0, { keys: keys.splice(half), items: items.splice(half) })
  }

  return {
    get size() {
      return size
    },

    set(key, item) {
      const index = findChunk(key)
      const chunk = chunks[index]
      if (chunk === undefined) {
        chunks.push({ keys: [key], items: [item] })
        size = 1
        return
      }
      const at = lowerBound(chunk.keys, key)
      if (chunk.keys[at] === key) {
        chunk.items[at] = item
        return
      }
      size++
      if (at >= CHUNK && index === chunks.length - 1) {
        chunks.push({ keys: [key], items: [item] }) // ascending keys fill whole chunks
        return
      }
      chunk.keys.splice(at, 0, key)
      chunk.items.splice(at, 0, item)
      if (chunk.keys.length > CHUNK) split(index)
    },

    delete(key) {
      const index = findChunk(key)
      const chunk = chunks[index]
      if (chunk === undefined) return
      const at = lowerBound(chunk.keys, key)
      if (chunk.keys[at] !== key) return
      chunk.keys.splice(at, 1)
      chunk.items.splice(at, 1)
      if (chunk.keys.length === 0) chunks.splice(index, 1)
      size--
    },

    collect(after, limit, items) {
      if (chunks.length === 0) return
      let index = after === undefined ? 0 : findChunk(after)
      let at = 0
      if (after !== undefined) {
        const { keys } = chunks[index]!
        at = lowerBound(keys, after)
        if (keys[at] === after) at++
      }
      for (; index < chunks.length && items.length < limit; index++, at = 0) {
        const chunk = chunks[index]!
        for (; at < chunk.items.length && items.length < limit; at++) items.push(chunk.items[at]!)
      }
    },
  }
}

/** Index of the first key that is not before a given one. */
function lowerBound<Key extends number | string>(keys: readonly Key[], key: Key): number {
  let low = 0
  let high = keys.length
  if (high > 0 && key > keys[high - 1]!) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}
