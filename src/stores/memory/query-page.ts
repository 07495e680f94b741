import {
  type Condition,
  formatPosition,
  type IndexedValue,
  type ListOptions,
  type ListPosition,
  type ListQuery,
  meetsCondition,
  type Page,
  parsePosition,
  positionOf,
} from '../lists.ts'
import { parseIntegerName } from '../rules.ts'
import { BY_NAME, countRanks, type IndexedMember, type QueryLists, type Range } from './query-lists.ts'
import {
  type Budget,
  compareInOrder,
  type Filter,
  isMet,
  type Key,
  openRanges,
  type Source,
  walk,
} from './query-walk.ts'
import type { RankedList } from './ranked-list.ts'

/** So many members are sorted without trying to read them in order. */
const FEW = 256

/**
 * A page of the members of some lists.
 * @param lists those of the visible members, and those of the hidden ones where they are asked for
 * @throws HttpError 400 for a cursor that is none of the order
 */
export function queryPage(lists: readonly QueryLists[], query: ListQuery, { after, limit }: ListOptions): Page {
  const { index } = query
  const order = query.orderBy.map(({ property, direction }) => ({ position: positionOf(index, property), direction }))
  const filters = query.where.map((condition) => ({ condition, position: positionOf(index, condition.property) }))
  const sources = lists.map((one) => openSource(one, filters))
  // Within a scope all members have the same value there.
  const keys = order.filter(({ position }) => sources[0]!.scope?.has(position) !== true)
  const start = after === undefined ? undefined : openStart(parsePosition(after, query), order)
  const selections = sources.map(selectMembers)
  const members = collectMembers({ selections, keys, start, limit: limit + 1 })
  const hasMore = members.length > limit
  if (hasMore) members.length = limit
  const last = members.at(-1)
  return {
    items: members.map(({ entry }) => entry.state),
    ...(hasMore && {
      next: formatPosition({ keys: order.map((key) => last!.values[key.position]!), name: last!.name }),
    }),
    ...(query.count && { total: selections.reduce((sum, selection) => sum + countSelected(selection), 0) }),
  }
}

/** The place that a cursor names, as that of a member with the values of the order alone. */
function openStart({ keys, name }: ListPosition, order: readonly Key[]): IndexedMember {
  const values: IndexedValue[] = []
  for (const [i, { position }] of order.entries()) values[position] = keys[i]!
  return { entry: undefined!, name, integer: parseIntegerName(name), values }
}

/** The members of one scope, where the conditions allow one value of each of its properties; else all members. */
function openSource(lists: QueryLists, filters: readonly Filter[]): Source {
  const scope = new Map<number, IndexedValue>()
  for (const position of lists.scope) {
    const values = valuesOf(filters, position)
    if (values?.length === 1) scope.set(position, values[0]!)
  }
  if (scope.size === 0 || scope.size < lists.scope.length) return { lists, scope: undefined, filters }
  return { lists, scope, filters: filters.filter(({ position }) => !scope.has(position)) }
}

/** The values that the conditions on a property allow, where they name any. */
function valuesOf(filters: readonly Filter[], position: number): readonly IndexedValue[] | undefined {
  const own = filters.filter((filter) => filter.position === position).map(({ condition }) => condition)
  const named = own.find((condition): condition is Condition & { operator: 'in' } => condition.operator === 'in')
  return named?.values.filter((value) => own.every((condition) => meetsCondition(value, condition)))
}

/** The members of a source that meet its conditions on one property: the one that leaves the fewest. */
interface Selection {
  readonly source: Source
  readonly list: RankedList<IndexedMember>
  readonly ranges: readonly Range[]
  readonly count: number
  /** Whether they meet all conditions. */
  readonly isExact: boolean
}

function selectMembers(source: Source): Selection {
  const positions = new Set(source.filters.map(({ position }) => position))
  const isExact = positions.size <= 1
  if (positions.size === 0) positions.add(BY_NAME)
  let best: Selection | undefined
  for (const position of positions) {
    const { list, ranges } = openRanges(source, position)
    const count = countRanks(ranges)
    if (best === undefined || count < best.count) best = { source, list, ranges, count, isExact }
  }
  return best!
}

function countSelected(selection: Selection): number {
  if (selection.isExact) return selection.count
  let total = 0
  for (const _ of membersOf(selection)) total++
  return total
}

/** The first members of some selections, in order. */
interface Wanted {
  readonly selections: readonly Selection[]
  readonly keys: readonly Key[]
  /** The place of a cursor: they come after it. */
  readonly start: IndexedMember | undefined
  readonly limit: number
}

/** Those that meet all conditions. */
function collectMembers(wanted: Wanted): IndexedMember[] {
  const fewest = wanted.selections.reduce((sum, { count }) => sum + count, 0)
  if (fewest <= FEW) return sortSelected(wanted)
  // Reading in order is given up once it costs more than sorting all that one condition leaves.
  const budget = { left: fewest }
  const found = readInOrder(wanted, budget)
  return budget.left < 0 ? sortSelected(wanted) : found
}

function* membersOf({ source, list, ranges }: Selection): Generator<IndexedMember, void, undefined> {
  for (const { from, to } of ranges) for (const member of list.slice(from, to)) if (isMet(source, member)) yield member
}

function sortSelected({ selections, keys, start, limit }: Wanted): IndexedMember[] {
  const found: IndexedMember[] = []
  const sort = (): void => {
    found.sort((a, b) => compareInOrder(a, b, keys))
    if (found.length > limit) found.length = limit
  }
  for (const selection of selections) {
    for (const member of membersOf(selection)) {
      if (start !== undefined && compareInOrder(member, start, keys) <= 0) continue
      // A page and a few thousand more are all that is held.
      if (found.push(member) >= limit + 4096) sort()
    }
  }
  sort()
  return found
}

/** Reads the sources side by side. */
function readInOrder({ selections, keys, start, limit }: Wanted, budget: Budget): IndexedMember[] {
  const walks = selections.map(({ source }) => walk(source, keys, start, budget))
  const heads = walks.map((walk) => walk.next().value)
  const found: IndexedMember[] = []
  while (found.length < limit) {
    let first = -1
    for (let i = 0; i < heads.length; i++) {
      const head = heads[i]
      if (head && (first < 0 || compareInOrder(head, heads[first] as IndexedMember, keys) < 0)) first = i
    }
    if (first < 0) break
    found.push(heads[first] as IndexedMember)
    heads[first] = walks[first]!.next().value
  }
  return found
}
