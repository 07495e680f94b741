import type { Filter, Filters } from './filters.ts'
import {
  compareFound,
  countRows,
  createWindow,
  type Found,
  filtersBeside,
  type OrderSlot,
  readRows,
  type Steps,
  type Target,
} from './steps.ts'
import type { Window } from './window.ts'

/** Members that one condition selects, when they are fetched whole and sorted. */
export const MOST_FETCHED = 5000

/** A condition that an index settles, as the windows that it takes. */
function windowsOf(target: Target, filter: Filter, most: number): readonly Window[] {
  const base = createWindow(target, { slot: filter.slot, filters: [], columns: [], most, limit: most })
  if (filter.any !== undefined) return filter.any.map((equal) => ({ ...base, equal }))
  return [{ ...base, low: filter.low, high: filter.high }]
}

/** How many members a condition selects, as far as `most`. */
export function* countSelected(target: Target, filter: Filter, most: number): Steps<number> {
  let count = 0
  for (const window of windowsOf(target, filter, most)) {
    count += yield* countRows({ ...window, most: most - count })
    if (count >= most) break
  }
  return count
}

/** The condition that selects the fewest members, where one selects fewer than `most`. */
export function* findSelective(target: Target, filters: Filters, most: number): Steps<Filter | undefined> {
  let least = most
  let selective: Filter | undefined
  for (const filter of filters.values()) {
    // What only leaves a few keys out selects nearly all.
    if (filter.any === undefined && filter.low === undefined && filter.high === undefined) continue
    const count = yield* countSelected(target, filter, least)
    if (count >= least) continue
    least = count
    selective = filter
  }
  return selective
}

/**
 * The next members in the order, by way of one condition that selects few: all of them are fetched and sorted.
 * `undefined` when each of the conditions selects too many.
 */
export function* fetchSelective(
  target: Target,
  filters: Filters,
  order: readonly OrderSlot[],
  after: Found | undefined,
  most: number,
): Steps<readonly Found[] | undefined> {
  const selective = yield* findSelective(target, filters, most + 1)
  if (selective === undefined) return undefined
  const columns = [...new Set(order.map(({ slot }) => slot))]
  const found: Found[] = []
  // Twice as many, since members are added meanwhile.
  for (const window of windowsOf(target, selective, 2 * most)) {
    // A condition on the slot that leaves keys out within the range is not settled by the index.
    const own = window.equal === undefined && selective.none !== undefined ? [selective] : []
    const rest = [...own, ...filtersBeside(filters, selective.slot)]
    const rows = yield* readRows({ ...window, filters: rest, columns })
    found.push(
      ...rows.map(({ keys, sortKey }) => ({ keys: order.map(({ slot }) => keys[columns.indexOf(slot)]!), sortKey })),
    )
  }
  target.budget.left -= found.length
  found.sort((a, b) => compareFound(a, b, order))
  return after === undefined ? found : found.filter((one) => compareFound(one, after, order) > 0)
}
