import { parseIntegerName } from './types.ts'

/** Something that stands under a name in a collection. */
export interface Member {
  readonly path: string
}

const CHUNK = 512

/**
 * The members of one collection in listing order: integer names by value, then all others by code unit.
 * Chunks of at most 512 keep inserting and seeking cheap, however many members there are.
 */
export interface SortedMembers<M extends Member> {
  readonly size: number
  /** Adds a member, or puts it in the place of the one with the same path. */
  set(member: M): void
  delete(path: string): void
  /** Members after a name, in order; all of them when it is left out. */
  after(name: string | undefined): Iterable<M>
}

/** @param prefix what every path begins with before the name: the path of the collection and a slash */
export function createSortedMembers<M extends Member>(prefix: string): SortedMembers<M> {
  const chunks: M[][] = []
  let size = 0

  const nameOf = (member: Member): string => member.path.slice(prefix.length)

  /** Index of the chunk in which a name stands or would stand. */
  function findChunk(name: string): number {
    const last = chunks.length - 1
    if (last <= 0 || compareNames(name, nameOf(chunks[last]![0]!)) >= 0) return last
    return Math.max(0, lowerBound(chunks, name, (chunk) => nameOf(chunk[0]!), 'after') - 1)
  }

  return {
    get size() {
      return size
    },

    set(member) {
      const name = nameOf(member)
      const index = findChunk(name)
      const chunk = chunks[index]
      if (chunk === undefined) {
        chunks.push([member])
        size = 1
        return
      }
      const at = positionIn(chunk, name)
      if (chunk[at]?.path === member.path) {
        chunk[at] = member
        return
      }
      size++
      if (at === chunk.length && chunk.length >= CHUNK && index === chunks.length - 1) {
        chunks.push([member]) // ascending names fill whole chunks
        return
      }
      chunk.splice(at, 0, member)
      if (chunk.length > CHUNK) chunks.splice(index + 1, 0, chunk.splice(chunk.length >> 1))
    },

    delete(path) {
      const name = path.slice(prefix.length)
      const index = findChunk(name)
      const chunk = chunks[index]
      if (chunk === undefined) return
      const at = positionIn(chunk, name)
      if (chunk[at]?.path !== path) return
      chunk.splice(at, 1)
      if (chunk.length === 0) chunks.splice(index, 1)
      size--
    },

    *after(name) {
      let index = name === undefined ? 0 : Math.max(0, findChunk(name))
      let at = name === undefined || chunks.length === 0 ? 0 : lowerBound(chunks[index]!, name, nameOf, 'after')
      for (; index < chunks.length; index++, at = 0) {
        const chunk = chunks[index]!
        for (; at < chunk.length; at++) yield chunk[at]!
      }
    },
  }

  function positionIn(chunk: M[], name: string): number {
    const last = chunk[chunk.length - 1]!
    if (compareNames(name, nameOf(last)) > 0) return chunk.length
    return lowerBound(chunk, name, nameOf, 'at')
  }
}

/** Index of the first entry whose name is at (`at`) or after (`after`) a name. */
function lowerBound<Entry>(
  entries: readonly Entry[],
  name: string,
  nameOf: (entry: Entry) => string,
  side: 'at' | 'after',
): number {
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const order = compareNames(nameOf(entries[middle]!), name)
    if (order < 0 || (order === 0 && side === 'after')) low = middle + 1
    else high = middle
  }
  return low
}

/** Integer names by value, then all others by code unit. */
export function compareNames(a: string, b: string): number {
  const [x, y] = [parseIntegerName(a), parseIntegerName(b)]
  if (x !== undefined && y !== undefined) return x - y
  if (x !== undefined) return -1
  if (y !== undefined) return 1
  return a < b ? -1 : a > b ? 1 : 0
}
