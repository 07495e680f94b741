import {
  type CollectionIndex,
  type Condition,
  compareText,
  compareValues,
  type IndexedValue,
  type IndexedValues,
  indexedValueOf,
} from '../lists.ts'
import { nameOf, parseIntegerName } from '../rules.ts'
import type { Entry } from './member-index.ts'
import { createRankedList, type RankedList } from './ranked-list.ts'

/** A member of a collection with its values, in the order of the properties of an index. */
export interface IndexedMember {
  readonly entry: Entry
  readonly name: string
  /** The value of the name, where it is an integer. */
  readonly integer: number | undefined
  readonly values: readonly IndexedValue[]
}

/** Compares members by name: integers by value, then others by code point. */
export function compareMembers(a: IndexedMember, b: IndexedMember): number {
  if (a.integer !== undefined) return b.integer === undefined ? -1 : a.integer - b.integer
  return b.integer !== undefined ? 1 : compareText(a.name, b.name)
}

export function createMember(entry: Entry, index: CollectionIndex, values: IndexedValues): IndexedMember {
  const name = nameOf(entry.path)
  const own: IndexedValue[] = []
  for (const property of index.properties) own.push(indexedValueOf(values, property))
  return { entry, name, integer: parseIntegerName(name), values: own }
}

/** Stands for the order of names, in place of the position of a property. */
export const BY_NAME = -1

export type QueryLists = ReturnType<typeof createQueryLists>

/** The members of one collection in every order in which a query may read them. */
export function createQueryLists(index: CollectionIndex) {
  const scope = index.scope.map((property) => index.properties.indexOf(property))
  const positions = [BY_NAME, ...index.properties.keys()]
  const whole = new Map(positions.map((position) => [position, createRankedList(compareBy(position, []))]))
  const scoped = new Map(
    (scope.length === 0 ? [] : positions)
      .filter((position) => !scope.includes(position))
      .map((position) => [position, createRankedList(compareBy(position, scope))]),
  )
  const all = [...whole.values(), ...scoped.values()]
  const members = new Map<string, IndexedMember>()

  return {
    /** Positions of the properties of the scope. */
    scope: scope as readonly number[],
    add(member: IndexedMember): void {
      members.set(member.name, member)
      for (let i = 0; i < all.length; i++) all[i]!.add(member)
    },
    remove(member: IndexedMember): void {
      members.delete(member.name)
      for (const list of all) list.remove(member)
    },
    find: (name: string): IndexedMember | undefined => members.get(name),
    /**
     * Members by the value of a property, then by name.
     * @param position of the property, or `BY_NAME`
     * @param isScoped whether they stand in the order of the scope first; then not for a property of the scope
     */
    list(position: number, isScoped: boolean): RankedList<IndexedMember> {
      return (isScoped ? scoped : whole).get(position)!
    },
  }
}

function compareBy(position: number, scope: readonly number[]) {
  const keys = position === BY_NAME ? scope : [...scope, position]
  return (a: IndexedMember, b: IndexedMember): number => {
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!
      const order = compareValues(a.values[key]!, b.values[key]!)
      if (order !== 0) return order
    }
    return compareMembers(a, b)
  }
}

/** Ranks from `from` to before `to`. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Whether a value comes before a bound. */
type Bound = (value: IndexedValue) => boolean

function before(limit: IndexedValue): Bound {
  return (value) => compareValues(value, limit) < 0
}
function upTo(limit: IndexedValue): Bound {
  return (value) => compareValues(value, limit) <= 0
}
const BEFORE_ALL: Bound = () => false
const AFTER_ALL: Bound = () => true

/**
 * The ranks at which members meet all conditions on a property, ascending and apart from each other.
 * @param list members by the value of the property
 * @param whole the part of the list that counts
 */
export function findRanges(
  list: RankedList<IndexedMember>,
  position: number,
  conditions: readonly Condition[],
  whole: Range,
): readonly Range[] {
  const rankOf = (bound: Bound): number =>
    list.search(whole.from, whole.to, (member) => bound(member.values[position]!))
  let ranges: readonly Range[] = [whole]
  for (const condition of conditions) {
    const met = boundsOf(condition).map(([start, end]) => ({ from: rankOf(start), to: rankOf(end) }))
    ranges = intersect(ranges, joinRanges(met))
  }
  return ranges
}

export function countRanks(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { from, to }) => sum + to - from, 0)
}

/** The parts of the order of values that meet a condition: from the first bound to before the second. */
function boundsOf(condition: Condition): readonly (readonly [Bound, Bound])[] {
  switch (condition.operator) {
    case 'in':
      return condition.values.map((value) => [before(value), upTo(value)])
    case 'notIn': {
      const values = condition.values.toSorted(compareValues)
      const starts = [BEFORE_ALL, ...values.map(upTo)]
      const ends = [...values.map(before), AFTER_ALL]
      return starts.map((start, index) => [start, ends[index]!])
    }
    case 'exists':
      return condition.value ? [[upTo(null), AFTER_ALL]] : [[BEFORE_ALL, upTo(null)]]
    case 'prefix': {
      const { value: prefix } = condition
      const isPrefixed = (value: IndexedValue) => typeof value === 'string' && value.startsWith(prefix)
      return [[before(prefix), (value) => compareValues(value, prefix) < 0 || isPrefixed(value)]]
    }
  }
  const { operator, value } = condition
  if (value === null) return []
  // Only values of one type are in an order that a client can ask about.
  const [first, last] = boundsOfType(value)
  if (operator === 'gt') return [[upTo(value), last]]
  if (operator === 'gte') return [[before(value), last]]
  return [[first, operator === 'lt' ? before(value) : upTo(value)]]
}

function boundsOfType(value: string | number | boolean): readonly [Bound, Bound] {
  if (typeof value === 'boolean') return [before(false), upTo(true)]
  if (typeof value === 'number') return [upTo(true), before('')]
  return [before(''), AFTER_ALL]
}

/** Puts ranges in order, and those together that overlap. */
function joinRanges(ranges: readonly Range[]): readonly Range[] {
  const joined: Range[] = []
  for (const range of ranges.toSorted((a, b) => a.from - b.from)) {
    const last = joined.at(-1)
    if (range.from >= range.to) continue
    if (last === undefined || range.from > last.to) joined.push(range)
    else joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, range.to) }
  }
  return joined
}

function intersect(a: readonly Range[], b: readonly Range[]): readonly Range[] {
  const both = a.flatMap((x) => b.map((y) => ({ from: Math.max(x.from, y.from), to: Math.min(x.to, y.to) })))
  return both.filter(({ from, to }) => from < to)
}
