const CHUNK = 512
const SPARSE = CHUNK >> 2
/** Added items that wait. More cost no fewer comparisons, and a write that puts them in would take milliseconds. */
const MOST_WAITING = 256

export type RankedList<Item> = ReturnType<typeof createRankedList<Item>>

/**
 * Items in an order, each of which is found by its rank as well: the number of items before it.
 *
 * Chunks of at most 512 items keep a change cheap, however many items there are. What is added waits until the list is read
 * or many items wait: put in by order, most of them stand next to the one before, which spares the search.
 */
export function createRankedList<Item>(compare: (a: Item, b: Item) => number) {
  const chunks: Item[][] = []
  const waiting: Item[] = []
  /** Without those that wait. */
  let size = 0
  /** The rank of the first item of each chunk; made again at the first search after a change of size. */
  let ranks: number[] | undefined

  function ranksOfChunks(): number[] {
    if (ranks !== undefined) return ranks
    let rank = 0
    ranks = chunks.map((chunk) => {
      rank += chunk.length
      return rank - chunk.length
    })
    return ranks
  }

  /** The chunk in which an item stands or would stand, from one on. */
  function findChunk(item: Item, from: number): number {
    return findFirst(from + 1, chunks.length, (index) => compare(chunks[index]![0]!, item) <= 0) - 1
  }

  /** The first place in a chunk, from one on, whose item is not before a given one. */
  function placeIn(chunk: readonly Item[], item: Item, from: number): number {
    return findFirst(from, chunk.length, (place) => compare(chunk[place]!, item) < 0)
  }

  function chunkAt(rank: number): number {
    const starts = ranksOfChunks()
    return findFirst(1, starts.length, (index) => starts[index]! <= rank) - 1
  }

  /** Puts those in that wait: all that stand between the same two items at once. */
  function settle(): void {
    const { length } = waiting
    if (length === 0) return
    if (length > 1) waiting.sort(compare)
    let index = 0
    let place = 0
    for (let from = 0, to = 0; from < length; from = to) {
      const item = waiting[from]!
      // Mostly it follows the one before in the same chunk.
      if (index + 1 < chunks.length && compare(chunks[index + 1]![0]!, item) < 0) {
        index = findChunk(item, index + 1)
        place = 0
      }
      const chunk = (chunks[index] ??= [])
      if (place < chunk.length && compare(chunk[place]!, item) < 0) place = placeIn(chunk, item, place + 1)
      if (place === chunk.length && index + 1 >= chunks.length) {
        append(from)
        break
      }
      const follower = place < chunk.length ? chunk[place]! : chunks[index + 1]![0]!
      for (to = from + 1; to < length && compare(waiting[to]!, follower) < 0; ) to++
      if (to === from + 1) chunk.splice(place, 0, item)
      else chunk.splice(place, 0, ...waiting.slice(from, to))
      place += to - from
      if (chunk.length <= CHUNK) continue
      const half = chunk.length >> 1
      chunks.splice(index + 1, 0, chunk.splice(half))
      if (place > half) {
        index++
        place -= half
      }
    }
    size += length
    waiting.length = 0
    ranks = undefined
  }

  /** Puts those in that stand behind all others: ascending items fill whole chunks. */
  function append(from: number): void {
    for (let to = from; from < waiting.length; from = to) {
      let chunk = chunks.at(-1)!
      if (chunk.length >= CHUNK) chunks.push((chunk = []))
      to = Math.min(from + CHUNK - chunk.length, waiting.length)
      for (let i = from; i < to; i++) chunk.push(waiting[i]!)
    }
  }

  function mergeIfSparse(index: number): void {
    const chunk = chunks[index]!
    if (chunk.length >= SPARSE) return
    const next = chunks[index + 1]
    if (chunk.length === 0) chunks.splice(index, 1)
    else if (next !== undefined && next.length < SPARSE) chunks.splice(index, 2, [...chunk, ...next])
  }

  return {
    get size(): number {
      return size + waiting.length
    },

    /** Adds an item that compares equal to none of the list. */
    add(item: Item): void {
      if (waiting.push(item) === MOST_WAITING) settle()
    },

    /** Takes away the item that compares equal to one, if there is one. */
    remove(item: Item): void {
      settle()
      if (size === 0) return
      const index = findChunk(item, 0)
      const chunk = chunks[index]!
      const place = placeIn(chunk, item, 0)
      if (place === chunk.length || compare(chunk[place]!, item) !== 0) return
      chunk.splice(place, 1)
      mergeIfSparse(index)
      size--
      ranks = undefined
    },

    /** The item at a rank below the size. */
    at(rank: number): Item {
      settle()
      const index = chunkAt(rank)
      return chunks[index]![rank - ranksOfChunks()[index]!]!
    },

    /** The first rank of a range at which `isBefore` does not hold. It holds for the first part of the range and for no more. */
    search(from: number, to: number, isBefore: (item: Item) => boolean): number {
      return findFirst(from, to, (rank) => isBefore(this.at(rank)))
    },

    /** The items of a range of ranks. The list must not change meanwhile. */
    *slice(from: number, to: number): Generator<Item, void, undefined> {
      if (from >= to) return
      settle()
      let index = chunkAt(from)
      let place = from - ranksOfChunks()[index]!
      for (let left = to - from; left > 0; index++, place = 0) {
        const chunk = chunks[index]!
        for (; place < chunk.length && left > 0; place++, left--) yield chunk[place]!
      }
    },
  }
}

/** The first number of a range for which `isBefore` does not hold. It holds for the first part of the range and for no more. */
function findFirst(from: number, to: number, isBefore: (number: number) => boolean): number {
  while (from < to) {
    const middle = (from + to) >>> 1
    if (isBefore(middle)) from = middle + 1
    else to = middle
  }
  return from
}
