import { type Condition, compareValues, type IndexedValue, meetsCondition, type OrderKey } from '../lists.ts'
import { BY_NAME, compareMembers, findRanges, type IndexedMember, type QueryLists, type Range } from './query-lists.ts'
import type { RankedList } from './ranked-list.ts'

/** Groups of members with one first key up to this number are sorted; larger ones are read in the order of the second key. */
const SMALL_GROUP = 256

export interface Key {
  readonly position: number
  readonly direction: OrderKey['direction']
}

/** A condition, and where the value that it is about stands. */
export interface Filter {
  readonly position: number
  readonly condition: Condition
}

/** The members among which a query selects: all of some lists, or those of one scope. */
export interface Source {
  readonly lists: QueryLists
  /** The value of each property of the scope, in order and by position; `undefined` for members of every scope. */
  readonly scope: ReadonlyMap<number, IndexedValue> | undefined
  /** The conditions beside the scope. */
  readonly filters: readonly Filter[]
}

/** How many members a walk may still look at. */
export interface Budget {
  left: number
}

/** Members by the value of a property, and the part of them that belongs to the source. */
function openList({ lists, scope }: Source, position: number): { list: RankedList<IndexedMember>; whole: Range } {
  const list = lists.list(position, scope !== undefined)
  if (scope === undefined) return { list, whole: { from: 0, to: list.size } }
  const compareScope = (member: IndexedMember): number => {
    for (const [position, value] of scope) {
      const order = compareValues(member.values[position]!, value)
      if (order !== 0) return order
    }
    return 0
  }
  const from = list.search(0, list.size, (member) => compareScope(member) < 0)
  return { list, whole: { from, to: list.search(from, list.size, (member) => compareScope(member) <= 0) } }
}

/** The ranks at which members of a source meet the conditions on one property. */
export function openRanges(
  source: Source,
  position: number,
): { list: RankedList<IndexedMember>; ranges: readonly Range[] } {
  const { list, whole } = openList(source, position)
  const own = source.filters.filter((filter) => filter.position === position).map(({ condition }) => condition)
  return { list, ranges: findRanges(list, position, own, whole) }
}

export function compareInOrder(a: IndexedMember, b: IndexedMember, keys: readonly Key[]): number {
  for (const { position, direction } of keys) {
    const order = compareValues(a.values[position]!, b.values[position]!)
    if (order !== 0) return direction === 'ascending' ? order : -order
  }
  return compareMembers(a, b)
}

/** Whether a member of a source meets its conditions. */
export function isMet({ filters }: Source, { values }: IndexedMember): boolean {
  for (const { position, condition } of filters) if (!meetsCondition(values[position]!, condition)) return false
  return true
}

/**
 * The members of a source that meet its conditions, in an order.
 * @param keys at most two; where the source has a scope, none of its properties
 * @param start the place of a member behind which the walk begins
 * @param budget the walk ends, with less than nothing left, when it has looked at more members
 */
export function* walk(
  source: Source,
  keys: readonly Key[],
  start: IndexedMember | undefined,
  budget: Budget,
): Generator<IndexedMember, void, undefined> {
  const [key, second] = keys
  const { list, ranges } = openRanges(source, key?.position ?? BY_NAME)
  const first = (from: number, to: number): number =>
    start === undefined ? from : list.search(from, to, (member) => compareInOrder(member, start, keys) <= 0)

  function* take(from: number, to: number): Generator<IndexedMember, void, undefined> {
    for (const member of list.slice(from, to)) {
      if (--budget.left < 0) return
      if (isMet(source, member)) yield member
    }
  }

  if (key === undefined || (second === undefined && key.direction === 'ascending')) {
    // The list is in the order of the query.
    for (const { from, to } of ranges) yield* take(first(from, to), to)
    return
  }
  for (const { from, to } of walkGroups(list, ranges, key, start?.values[key.position])) {
    if (budget.left < 0) return
    if (second === undefined) yield* take(first(from, to), to)
    else if (to - from <= SMALL_GROUP) {
      const members = [...take(from, to)]
      const rest = start === undefined ? members : members.filter((member) => compareInOrder(member, start, keys) > 0)
      yield* rest.sort((a, b) => compareInOrder(a, b, keys))
    } else {
      const value = list.at(from).values[key.position]!
      const isFirst = start !== undefined && compareValues(value, start.values[key.position]!) === 0
      for (const member of walk(source, [second], isFirst ? start : undefined, budget)) {
        if (compareValues(member.values[key.position]!, value) === 0) yield member
      }
    }
  }
}

/**
 * Groups of members with one value, in the direction of a key.
 * @param start the value of the first group
 */
function* walkGroups(
  list: RankedList<IndexedMember>,
  ranges: readonly Range[],
  { position, direction }: Key,
  start: IndexedValue | undefined,
): Generator<Range, void, undefined> {
  const search = (from: number, to: number, value: IndexedValue, most: number): number =>
    list.search(from, to, (member) => Math.sign(compareValues(member.values[position]!, value)) <= most)
  if (direction === 'ascending') {
    for (const range of ranges) {
      let from = start === undefined ? range.from : search(range.from, range.to, start, -1)
      for (let to: number; from < range.to; from = to) {
        to = search(from, range.to, list.at(from).values[position]!, 0)
        yield { from, to }
      }
    }
    return
  }
  for (const range of ranges.toReversed()) {
    let to = start === undefined ? range.to : search(range.from, range.to, start, 0)
    for (let from: number; to > range.from; to = from) {
      from = search(range.from, to, list.at(to - 1).values[position]!, -1)
      yield { from, to }
    }
  }
}
