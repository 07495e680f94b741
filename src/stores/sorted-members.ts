import { createSortedList } from './sorted-list.ts'
import { parseIntegerName } from './types.ts'

/** Something that stands under a name in a collection. */
export interface Member {
  readonly path: string
}

/** The members of one collection in listing order: integer names by value, then all others by code unit. */
export interface SortedMembers<M extends Member> {
  readonly size: number
  /** Adds a member, or puts it in the place of the one with the same path. */
  set(member: M): void
  delete(path: string): void
  /** At most `limit` members after a name, in order; the first ones when it is left out. */
  page(after: string | undefined, limit: number): M[]
}

/** @param prefix what every path begins with before the name: the path of the collection and a slash */
export function createSortedMembers<M extends Member>(prefix: string): SortedMembers<M> {
  const integers = createSortedList<number, M>()
  // All paths share the prefix, so whole paths are in the order of the names.
  const others = createSortedList<string, M>()

  const integerOf = (path: string): number | undefined => parseIntegerName(path.slice(prefix.length))

  return {
    get size() {
      return integers.size + others.size
    },

    set(member) {
      const integer = integerOf(member.path)
      if (integer === undefined) others.set(member.path, member)
      else integers.set(integer, member)
    },

    delete(path) {
      const integer = integerOf(path)
      if (integer === undefined) others.delete(path)
      else integers.delete(integer)
    },

    page(after, limit) {
      const items: M[] = []
      const integer = after === undefined ? undefined : parseIntegerName(after)
      const isAmongOthers = after !== undefined && integer === undefined
      if (!isAmongOthers) integers.collect(integer, limit, items)
      others.collect(isAmongOthers ? prefix + after : undefined, limit, items)
      return items
    },
  }
}

/** Integer names by value, then all others by code unit. */
export function compareNames(a: string, b: string): number {
  const x = parseIntegerName(a)
  const y = parseIntegerName(b)
  if (x !== undefined && y !== undefined) return x - y
  if (x !== undefined) return -1
  if (y !== undefined) return 1
  return a < b ? -1 : a > b ? 1 : 0
}
