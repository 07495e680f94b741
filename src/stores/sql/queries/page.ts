import { andThen, type MaybePromise } from '../../../core/maybe-promise.ts'
import { encodeValue, formatPosition, type ListOptions, type ListQuery, type Page, parsePosition } from '../../lists.ts'
import type { StoredResource } from '../../types.ts'
import { escapeText, formatSortKey, unescapeText } from '../rows.ts'
import { filtersBeside, findSelective, MOST_FETCHED, type Range, toFilters, toRange, windowsOf } from './filters.ts'
import { decodeKey, type Place, slotOf } from './index-tables.ts'
import { type Selected, select } from './selection.ts'
import {
  compareFound,
  countRows,
  type Found,
  type OrderSlot,
  readEdge,
  type Steps,
  type Target,
  type Window,
} from './window.ts'

/** Rows that a page may look at. It ends early after that, with a cursor, where everything it has seen is in scope. */
const PAGE_BUDGET = 100_000

/** The page that a query asks for, before the members are read. */
export interface SelectedPage {
  /** Where the members are in the database, and the conditions that they have met; `undefined` when nothing can. */
  readonly range: Range | undefined
  readonly found: readonly FoundMember[]
  readonly next: string | undefined
  readonly total: number | undefined
}

interface FoundMember extends Found {
  readonly place: number
}

/**
 * Reads what the client has sent, and prepares the steps of the page.
 * @throws HttpError 400 for a cursor that is none
 */
export function planPage(query: ListQuery, { after, limit, hidden }: ListOptions, countSteps: CountSteps) {
  const { index } = query
  const order = query.orderBy.map(
    ({ property, direction }): OrderSlot => ({ slot: slotOf(index, property), direction }),
  )
  const position = after === undefined ? undefined : parsePosition(after, query)
  const start: Found | undefined = position && {
    keys: position.keys.map(encodeValue),
    sortKey: escapeText(formatSortKey(position.name)),
  }
  const filters = toFilters(index, query.where)
  const range = filters && toRange(index, filters)

  return function* selectPage(place: number): Steps<SelectedPage> {
    if (range === undefined) return { range, found: [], next: undefined, total: query.count ? 0 : undefined }
    const places = hidden ? [place, -place] : [place]
    const budget = { left: PAGE_BUDGET }
    const parts: Selected[] = []
    for (const place of places) {
      parts.push(yield* select({ target: { ...range, place, budget }, order, after: start, need: limit + 1 }))
    }
    const { found, cut } = merge(parts, places, order)
    const isFull = found.length > limit || (found.length === limit && cut !== undefined)
    // Of a full page it names the last member: that of a cut may be one that the caller must not see.
    const last = isFull ? found[limit - 1] : cut
    let total: number | undefined
    if (query.count) {
      total = 0
      for (const place of places) total += yield* countMembers({ ...range, place, budget }, countSteps)
    }
    return { range, found: found.slice(0, limit), next: last && formatFound(last), total }
  }
}

/** One list of live and of hidden members. Beyond the place where one of them ended early, the other does not count. */
function merge(
  parts: readonly Selected[],
  places: readonly number[],
  order: readonly OrderSlot[],
): { readonly found: readonly FoundMember[]; readonly cut: Found | undefined } {
  const all = parts.flatMap(({ found }, i) => found.map((one): FoundMember => ({ ...one, place: places[i]! })))
  if (parts.length > 1) all.sort((a, b) => compareFound(a, b, order))
  const [cut] = parts.flatMap((part) => part.cut ?? []).sort((a, b) => compareFound(a, b, order))
  return { found: cut === undefined ? all : all.filter((one) => compareFound(one, cut, order) <= 0), cut }
}

function formatFound({ keys, sortKey }: Found): string {
  return formatPosition({ keys: keys.map(decodeKey), name: unescapeText(sortKey).slice(1) })
}

/** Rows that one statement counts, in the index alone and with a look at each entry. */
interface CountSteps {
  readonly inIndex: number
  readonly byEntry: number
}

/** Counts the members that meet the conditions: those that one of them selects, with the others beside it. */
function* countMembers(target: Target, steps: CountSteps): Steps<number> {
  const { filters } = target
  const all = [...filters.values()]
  const selects = all.filter(({ any, low, high }) => any !== undefined || low !== undefined || high !== undefined)
  const few = selects.length < 2 ? undefined : yield* findSelective(target, MOST_FETCHED)
  const chosen = few ?? selects.find(({ any }) => any !== undefined) ?? selects[0] ?? all[0] ?? { slot: 1 }
  const beside = filtersBeside(filters, chosen.slot)
  const most = beside.length === 0 ? steps.inIndex : steps.byEntry
  let total = 0
  for (const stretch of windowsOf(target, chosen, most)) {
    for (let window: Window = { ...stretch, filters: beside }; ; ) {
      const count = yield* countRows(window)
      total += count
      if (beside.length === 0 && count < most) break
      const edge = yield* readEdge(window)
      if (edge === undefined) break
      window = { ...window, after: { key: edge.keys[0], sortKey: edge.sortKey } }
    }
  }
  return total
}

/** A page; or `incomplete` while members of the collection have no entry. */
export type Listed = Page | 'incomplete'

/** What a database does for a list by a query. */
interface PageReader {
  /** The place of the index; `undefined` when it is not known and the collection has no members. */
  findPlace(): MaybePromise<Place | 'unknown' | undefined>
  run(steps: Steps<SelectedPage>): MaybePromise<SelectedPage>
  readMembers(page: SelectedPage): MaybePromise<readonly StoredResource[]>
}

/**
 * Makes what reads the page that a query asks for. To be called before a connection is taken: what is thrown while one is in
 * use gives it up.
 * @param countSteps rows that one statement counts
 * @throws HttpError 400 for a cursor that is none
 */
export function preparePage(
  query: ListQuery,
  options: ListOptions,
  countSteps: CountSteps,
): (reader: PageReader) => MaybePromise<Listed> {
  const plan = planPage(query, options, countSteps)
  return ({ findPlace, run, readMembers }) =>
    andThen(findPlace(), (place): MaybePromise<Listed> => {
      if (place === undefined) return { items: [], ...(query.count && { total: 0 }) }
      if (place === 'unknown' || !place.isComplete) return 'incomplete'
      return andThen(run(plan(place.id)), (page) =>
        andThen(readMembers(page), (items): Page => {
          const { next, total } = page
          return { items, ...(next !== undefined && { next }), ...(total !== undefined && { total }) }
        }),
      )
    })
}
