import {
  type Condition,
  formatPosition,
  type IndexedValue,
  type ListOptions,
  type ListQuery,
  meetsCondition,
  type Page,
  parsePosition,
} from '../lists.ts'
import type { QueryLists } from './query-lists.ts'
import { collectMembers, countSelected, selectMembers } from './query-selection.ts'
import type { Filter, Source } from './query-walk.ts'

/** Callers whose scope has more combinations of values than this are read from the lists of all scopes. */
const MOST_SCOPES = 64
/**
 * A page of the members of some lists.
 * @param lists those of the visible members, and those of the hidden ones where they are asked for
 * @throws HttpError 400 for a cursor that is none of the order
 */
export function queryPage(lists: readonly QueryLists[], query: ListQuery, { after, limit }: ListOptions): Page {
  const start = after === undefined ? undefined : parsePosition(after, query)
  const keys = query.orderBy.map(({ property, direction }) => ({ position: positionIn(query, property), direction }))
  const filters = query.where.map((condition) => ({ condition, position: positionIn(query, condition.property) }))
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

function positionIn({ index }: ListQuery, property: string): number {
  const position = index.properties.indexOf(property)
  if (position < 0) throw new TypeError(`The index has no property ${JSON.stringify(property)}.`)
  return position
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
