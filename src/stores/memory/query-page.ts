import {
  type Condition,
  compareValues,
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
import { parseIntegerName } from '../types.ts'
import { BY_NAME, countRanks, type IndexedMember, type QueryLists, type Range } from './query-lists.ts'
import {
  type Budget,
  compareInOrder,
  type Filter,
  isAfterStart,
  type Key,
  openRanges,
  type Source,
  type Start,
  walk,
} from './query-walk.ts'
import type { RankedList } from './ranked-list.ts'

/** Callers whose scope has more combinations of values than this are read from the lists of all scopes. */
const MOST_SCOPES = 64
/** So many members are sorted without trying to read them in order. */
const FEW = 256

/**
 * A page of the members of some lists.
 * @param lists those of the visible members, and those of the hidden ones where they are asked for
 * @throws HttpError 400 for a cursor that is none of the order
 */
export function queryPage(lists: readonly QueryLists[], query: ListQuery, { after, limit }: ListOptions): Page {
  const start = after === undefined ? undefined : parsePosition(after, query)
  const { index } = query
  const keys = query.orderBy.map(({ property, direction }) => ({ position: positionOf(index, property), direction }))
  const filters = query.where.map((condition) => ({ condition, position: positionOf(index, condition.property) }))
  const sources = lists.flatMap((one) => openSources(one, filters))
  const selections = sources.map(selectMembers)
  const members = collectMembers(selections, keys, start, limit + 1)
  const hasMore = members.length > limit
  if (hasMore) members.length = limit
  const last = members.at(-1)
  return {
    items: members.map(({ entry }) => entry.state),
    ...(hasMore && {
      next: formatPosition({ keys: keys.map((key) => last!.values[key.position]!), name: last!.name }),
    }),
    ...(query.count && { total: selections.reduce((sum, selection) => sum + countSelected(selection), 0) }),
  }
}

/** Where the conditions allow few scopes, each of these; else all members. */
function openSources(lists: QueryLists, filters: readonly Filter[]): readonly Source[] {
  const choices = lists.scope.map((position) => valuesOf(filters, position))
  const combinations = choices.reduce((product, values) => product * (values?.length ?? MOST_SCOPES + 1), 1)
  if (lists.scope.length === 0 || combinations > MOST_SCOPES) return [{ lists, scope: undefined, filters }]
  const others = filters.filter(({ position }) => !lists.scope.includes(position))
  return combine(choices as (readonly IndexedValue[])[]).map((scope) => ({ lists, scope, filters: others }))
}

/** The values that the conditions on a property allow, where they name any. */
function valuesOf(filters: readonly Filter[], position: number): readonly IndexedValue[] | undefined {
  const own = filters.filter((filter) => filter.position === position).map(({ condition }) => condition)
  const named = own.find((condition): condition is Condition & { operator: 'in' } => condition.operator === 'in')
  const values = named === undefined ? undefined : [...new Set(named.values)]
  return values?.filter((value) => own.every((condition) => meetsCondition(value, condition)))
}

function combine(choices: readonly (readonly IndexedValue[])[]): readonly (readonly IndexedValue[])[] {
  let combined: readonly (readonly IndexedValue[])[] = [[]]
  for (const values of choices) combined = combined.flatMap((start) => values.map((value) => [...start, value]))
  return combined
}

/** The members of a source that meet its conditions on one property: the one that leaves the fewest. */
interface Selection {
  readonly source: Source
  readonly list: RankedList<IndexedMember>
  readonly ranges: readonly Range[]
  /** How many members that is. */
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

/** The first members after a cursor that meet all conditions, in order. */
function collectMembers(
  selections: readonly Selection[],
  keys: readonly Key[],
  cursor: ListPosition | undefined,
  limit: number,
): IndexedMember[] {
  const fewest = selections.reduce((sum, { count }) => sum + count, 0)
  if (fewest <= FEW) return sortSelected(selections, keys, cursor, limit)
  // Reading in order is given up once it costs more than sorting all that one condition leaves.
  const budget = { left: fewest }
  const found = readInOrder(selections, keys, cursor, limit, budget)
  return budget.left < 0 ? sortSelected(selections, keys, cursor, limit) : found
}

function* membersOf({ source, list, ranges }: Selection): Generator<IndexedMember, void, undefined> {
  for (const { from, to } of ranges) for (const member of list.slice(from, to)) if (isMet(source, member)) yield member
}

function isMet({ filters }: Source, { values }: IndexedMember): boolean {
  for (const { position, condition } of filters) if (!meetsCondition(values[position]!, condition)) return false
  return true
}

function sortSelected(
  selections: readonly Selection[],
  keys: readonly Key[],
  cursor: ListPosition | undefined,
  limit: number,
): IndexedMember[] {
  const start = cursor === undefined ? undefined : { values: cursor.keys, place: placeOf(cursor) }
  const found: IndexedMember[] = []
  const sort = (): void => {
    found.sort((a, b) => compareInOrder(a, b, keys))
    if (found.length > limit) found.length = limit
  }
  for (const selection of selections) {
    for (const member of membersOf(selection)) {
      if (start !== undefined && !isAfterStart(member, start, keys)) continue
      // A page and a few thousand more are all that is held.
      if (found.push(member) >= limit + 4096) sort()
    }
  }
  sort()
  return found
}

function placeOf({ name }: ListPosition): IndexedMember {
  return { entry: undefined!, name, integer: parseIntegerName(name), values: [] }
}

/** Reads the sources side by side. */
function readInOrder(
  selections: readonly Selection[],
  keys: readonly Key[],
  cursor: ListPosition | undefined,
  limit: number,
  budget: Budget,
): IndexedMember[] {
  const walks = selections.map(({ source }) => walkSource(source, keys, cursor, budget))
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

function* walkSource(
  source: Source,
  keys: readonly Key[],
  cursor: ListPosition | undefined,
  budget: Budget,
): Generator<IndexedMember, void, undefined> {
  const own = keys.filter(({ position }) => scopeValue(source, position) === undefined)
  const start = cursor === undefined ? undefined : startOf(source, keys, cursor)
  if (start?.values.length === 0 && typeof start.place === 'string') {
    if (start.place === 'first') yield* walkSource(source, keys, undefined, budget)
    return
  }
  for (const member of walk(source, own, start, budget)) if (isMet(source, member)) yield member
}

function scopeValue({ lists, scope }: Source, position: number) {
  return scope?.[lists.scope.indexOf(position)]
}

/** The start of a walk that has no keys of the scope: these are the same for all members of a source. */
function startOf(source: Source, keys: readonly Key[], cursor: ListPosition): Start {
  const values = []
  for (const [index, { position, direction }] of keys.entries()) {
    const value = scopeValue(source, position)
    if (value === undefined) {
      values.push(cursor.keys[index]!)
      continue
    }
    const order = compareValues(value, cursor.keys[index]!)
    if (order !== 0) return { values, place: order > 0 === (direction === 'ascending') ? 'first' : 'last' }
  }
  return { values, place: placeOf(cursor) }
}
