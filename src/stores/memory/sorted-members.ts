import { parseIntegerName } from '../types.ts'
import { collectItems, createSortedList, deleteItem, type SortedList, setItem } from './sorted-list.ts'

/** Something that stands under a name in a collection. */
export interface Member {
  readonly path: string
}

/** The members of one collection in listing order: integer names by value, then all others by code unit. */
export interface SortedMembers<M extends Member> {
  /** What every path begins with before the name: the path of the collection and a slash. */
  readonly prefix: string
  readonly integers: SortedList<number, M>
  /** By path: all paths share the prefix, so whole paths are in the order of the names. */
  readonly others: SortedList<string, M>
}

export function createSortedMembers<M extends Member>(prefix: string): SortedMembers<M> {
  return { prefix, integers: createSortedList(), others: createSortedList() }
}

export function countMembers({ integers, others }: SortedMembers<Member>): number {
  return integers.size + others.size
}

/**
 * Adds a member, or puts it in the place of the one with the same path.
 * @param integer the value of its name, where that is an integer
 */
export function setMember<M extends Member>(
  { integers, others }: SortedMembers<M>,
  member: M,
  integer: number | undefined,
): void {
  if (integer === undefined) setItem(others, member.path, member)
  else setItem(integers, integer, member)
}

export function deleteMember(
  { integers, others }: SortedMembers<Member>,
  path: string,
  integer: number | undefined,
): void {
  if (integer === undefined) deleteItem(others, path)
  else deleteItem(integers, integer)
}

/** At most `limit` members after a name, in order; the first ones when it is left out. */
export function pageOfMembers<M extends Member>(
  { prefix, integers, others }: SortedMembers<M>,
  after: string | undefined,
  limit: number,
): M[] {
  const items: M[] = []
  const integer = after === undefined ? undefined : parseIntegerName(after)
  const isAmongOthers = after !== undefined && integer === undefined
  if (!isAmongOthers) collectItems(integers, integer, limit, items)
  collectItems(others, isAmongOthers ? prefix + after : undefined, limit, items)
  return items
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
