import { type Condition, compareValues, type IndexedValue } from '../lists.ts'
import type { IndexedMember } from './query-lists.ts'
import type { RankedList } from './ranked-list.ts'

/** Ranks from `from` to before `to`. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Whether a value comes before a bound. */
type Bound = (value: IndexedValue) => boolean

const before =
  (limit: IndexedValue): Bound =>
  (value) =>
    compareValues(value, limit) < 0
const upTo =
  (limit: IndexedValue): Bound =>
  (value) =>
    compareValues(value, limit) <= 0
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

/** How many ranks there are. */
export function countRanks(ranges: readonly Range[]): number {
  return ranges.reduce((sum, { from, to }) => sum + to - from, 0)
}

/** The parts of the order of values that meet a condition: from the first bound to before the second. */
function boundsOf(condition: Condition): readonly (readonly [Bound, Bound])[] {
  switch (condition.operator) {
    case 'in':
      return condition.values.filter((value) => value !== null).map((value) => [before(value), upTo(value)])
    case 'notIn': {
      const values = condition.values.filter((value) => value !== null).sort(compareValues)
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
