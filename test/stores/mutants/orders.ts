import { HttpError } from '../../../src/core/errors.ts'
import { compareText, compareValues, type IndexedValue, parsePosition } from '../../../src/stores/lists.ts'
import { compareNames, naive } from './naive-queries.ts'

const ordering = (compareKeys: (a: IndexedValue, b: IndexedValue) => number) => naive(() => ({ compareKeys }))
const naming = (compare: (a: string, b: string) => number) => naive(() => ({ compareNames: compare }))

export const nullsLast = ordering((a, b) => {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1
  return compareValues(a, b)
})
export const trueFirst = ordering((a, b) =>
  typeof a === 'boolean' && typeof b === 'boolean' ? Number(b) - Number(a) : compareValues(a, b),
)
export const stringsFirst = ordering((a, b) => {
  if (a === null || b === null || typeof a === typeof b) return compareValues(a, b)
  return typeof a === 'string' ? -1 : typeof b === 'string' ? 1 : compareValues(a, b)
})
export const localeOrder = ordering((a, b) =>
  typeof a === 'string' && typeof b === 'string' ? a.localeCompare(b) || compareValues(a, b) : compareValues(a, b),
)
export const textOrderOfNumbers = ordering((a, b) =>
  typeof a === 'number' && typeof b === 'number' ? compareText(String(a), String(b)) : compareValues(a, b),
)
/** As `ORDER BY x DESC NULLS FIRST` does. */
export const nullsFirstAlways = naive(() => ({
  compareKeys: (a, b) => ((a === null) === (b === null) ? compareValues(a, b) : a === null ? -1e9 : 1e9),
  direct: (order, { direction }) => (direction === 'descending' && Math.abs(order) < 1e9 ? -order : order),
}))
export const namesDescend = naive(() => ({
  compareNames: (a, b, orderBy) => (orderBy[0]?.direction === 'descending' ? -1 : 1) * compareNames(a, b),
}))
export const oneKey = naive(() => ({
  direct: (order, key, orderBy) => (key !== orderBy[0] ? 0 : key.direction === 'descending' ? -order : order),
}))
export const oneDirection = naive(() => ({
  direct: (order, _, orderBy) => (orderBy[0]?.direction === 'descending' ? -order : order),
}))
export const ascendingOnly = naive(() => ({ direct: (order) => order }))
export const namesAsText = naming(compareText)
export const namesByCodeUnit = naming((a, b) => {
  const order = compareNames(a, b)
  return /^\d+$/.test(a) || /^\d+$/.test(b) ? order : a < b ? -1 : a > b ? 1 : 0
})

/** Counts members instead of naming a place. */
export const offsetOfQuery = naive(() => ({
  parse: () => ({ keys: [], name: '' }),
  page: (matching, _, { after, limit }) => {
    const from = Number(after ?? 0) || 0
    const items = matching.slice(from, from + limit).map(({ item }) => item)
    return from + limit < matching.length ? { items, next: String(from + limit) } : { items, next: undefined }
  },
}))
/** Names the member, and goes on behind the place where it is now. */
export const placeOfNow = naive(() => ({
  parse: () => ({ keys: [], name: '' }),
  format: ({ name }) => name,
  page: (matching, _, { after, limit }) => {
    const from = after === undefined ? 0 : matching.findIndex(({ name }) => name === after) + 1
    const items = matching.slice(from, from + limit)
    const next = from + limit < matching.length ? items.at(-1)?.name : undefined
    return { items: items.map(({ item }) => item), next }
  },
}))
/** Goes on behind all members that have the keys of the cursor. */
export const skipsTies = naive(() => ({
  parse: (cursor, query) => {
    const { keys } = parsePosition(cursor, query)
    return { keys, name: keys.length > 0 ? '\uffff\uffff' : parsePosition(cursor, query).name }
  },
}))
export const trustsCursors = naive(() => ({
  parse: (cursor) => {
    const parts = cursor.split('\0')
    const keys = parts.slice(0, -1).map((part) => (part.startsWith('"') ? part.slice(1) : JSON.parse(part)))
    return { keys, name: parts.at(-1)! }
  },
}))
export const refusesLongNames = naive(() => ({
  parse: (cursor, query) => {
    if (cursor.length > 280) throw new HttpError(400, 'ERR_MALFORMED_QUERY')
    return parsePosition(cursor, query)
  },
}))
/** Shows what a cursor points at, whether it matches or not. */
export const trustingPage = naive(() => ({
  meetsAll: (values, where, { meets, value }) =>
    values['b'] === 'secret' || where.every((condition) => meets(value(values, condition.property), condition)),
}))
export const alwaysMore = naive(({ format }) => ({
  page: (_, rest, { limit, query }) => {
    const own = rest.slice(0, limit)
    const last = own.at(-1)
    const items = own.map(({ item }) => item)
    if (last === undefined || own.length < limit) return { items }
    const keys = query!.orderBy.map(({ property }) => last.values[property] ?? null)
    return { items, next: format({ keys, name: last.name }, query!) }
  },
}))
export const oneTooMany = naive(() => ({
  page: (_, rest, { limit }) => ({ items: rest.slice(0, limit + 1).map(({ item }) => item) }),
}))
export const countsThePage = naive(() => ({
  total: (_, page, __, { count }) => (count ? page.items.length : undefined),
}))
export const countsTheRest = naive(() => ({ total: (_, __, rest, { count }) => (count ? rest.length : undefined) }))
export const alwaysCounts = naive(() => ({ total: (matching) => matching.length }))
export const neverCounts = naive(() => ({ total: () => undefined }))
export const countsAtMostTen = naive(() => ({
  total: (matching, _, __, { count }) => (count ? Math.min(10, matching.length) : undefined),
}))
