import { encodeValue } from '../../lists.ts'
import {
  countSelected,
  type Filter,
  fetchSelective,
  filtersBeside,
  includes,
  isWithin,
  MOST_FETCHED,
  narrower,
} from './filters.ts'
import {
  compareFound,
  createWindow,
  type Found,
  type OrderSlot,
  readEdge,
  readRows,
  type Steps,
  type Target,
  type Window,
} from './window.ts'

/** The first members of a target behind a place, in an order. */
interface Search {
  readonly target: Target
  readonly order: readonly OrderSlot[]
  readonly after: Found | undefined
  /** How many of them. */
  readonly need: number
}

export interface Selected {
  readonly found: readonly Found[]
  /** Where the search goes on, when it ended early: it has looked at too many members that do not match. */
  readonly cut?: Found | undefined
}

/** Rows that are looked at before another way is tried. */
const FIRST_WINDOW = 1000
/** Rows of each further statement: few enough that the process answers other requests in between. */
export const FURTHER_WINDOW = 10_000
/** Members of a group that are fetched without a look at another way. */
const SMALL_GROUP = 500
/** About what costs as much as the next statement: a search for one of two ways may count this many rows. */
const WORTH_COUNTING = 2000

/** A name and a text behind all that occur. */
const LAST_NAME = 'z\u{10ffff}\u{10ffff}'
const LAST_KEY = encodeValue('\u{10ffff}'.repeat(64))
const FIRST_KEY = encodeValue(null)

/**
 * Selects members in an order, by statements that each look at a bounded stretch of one index: the index of the order is
 * walked from the cursor on, with the other conditions beside it. Where that finds too few, the condition that selects
 * the fewest members is looked for, and when they are not many, they are all fetched and sorted. Members with equal keys
 * that must be in another order than the index has them are selected as a group, by one condition more.
 */
export function* select(search: Search): Steps<Selected> {
  const { target, order, after, need } = search
  const { filters } = target
  const [first, ...rest] = order
  if (first === undefined) return yield* selectByName(target, after, need)
  const any = filters.get(first.slot)?.any
  if (any !== undefined) return yield* selectValues(search, any)
  if (rest.length === 0 && first.direction === 'ascending') {
    const { low, high } = filters.get(first.slot) ?? {}
    return yield* walk(target, order, boundsFrom({ slot: first.slot, low, high }, after), need)
  }
  return yield* selectByGroups(search)
}

type Stretch = Pick<Window, 'slot' | 'equal' | 'low' | 'high' | 'after'>

/** A stretch of an ascending index from a position on, where that is behind its beginning. */
function boundsFrom(stretch: Stretch, after: Found | undefined): Stretch {
  if (after === undefined) return stretch
  const key = after.keys[0]!
  const { low } = stretch
  const order = low === undefined ? 1 : Buffer.compare(key, low.key)
  if (order < 0 || (order === 0 && low!.isOpen)) return stretch
  return { ...stretch, after: { key, sortKey: after.sortKey } }
}

function* selectByName(target: Target, after: Found | undefined, need: number): Steps<Selected> {
  const start = after === undefined ? undefined : { sortKey: after.sortKey }
  const single = [...target.filters.values()].filter(({ any }) => any?.length === 1)
  let chosen = single[0]
  let least = WORTH_COUNTING
  for (const filter of single.length === 1 ? [] : single) {
    const count = yield* countSelected(target, filter, least)
    if (count >= least) continue
    least = count
    chosen = filter
  }
  const anchor = chosen === undefined ? target.anchor : { slot: chosen.slot, key: chosen.any![0]! }
  const stretch = anchor === undefined ? { slot: undefined } : { slot: anchor.slot, equal: anchor.key }
  return yield* walk(target, [], { ...stretch, after: start }, need)
}

/** Walks a stretch of an index that has the order already. */
function* walk(target: Target, order: readonly OrderSlot[], stretch: Stretch, need: number): Steps<Selected> {
  const window = createWindow(target, {
    ...stretch,
    columns: order.map(({ slot }) => slot),
    filters: filtersBeside(target.filters, stretch.slot),
    most: FIRST_WINDOW,
    limit: need,
  })
  if (window.filters.length === 0) return { found: yield* readRows({ ...window, most: need }) }
  const found: Found[] = []
  let from = window
  for (;;) {
    found.push(...(yield* readRows({ ...from, limit: need - found.length })))
    if (found.length >= need) return { found }
    const edge = yield* readEdge(from)
    if (edge === undefined) return { found }
    if (from.most === FIRST_WINDOW) {
      const { after } = stretch
      const start = after && { keys: after.key === undefined ? [] : [after.key], sortKey: after.sortKey }
      const whole = yield* fetchSelective(target, order, start, MOST_FETCHED)
      if (whole !== undefined) return { found: whole.slice(0, need) }
    }
    target.budget.left -= from.most
    if (target.budget.left <= 0 && target.isWithinScope) return { found, cut: edge }
    const after = { key: edge.keys[0], sortKey: edge.sortKey }
    from = { ...from, after, most: FURTHER_WINDOW }
  }
}

/** The first key of the order has one of a few values: one after the other. */
function* selectValues({ target, order, after, need }: Search, any: readonly Uint8Array[]): Steps<Selected> {
  const [first, ...rest] = order as readonly [OrderSlot, ...OrderSlot[]]
  const found: Found[] = []
  for (const key of first.direction === 'ascending' ? any : [...any].reverse()) {
    const place = after === undefined ? 1 : compareFound({ ...after, keys: [key] }, after, [first])
    if (place < 0) continue
    const start = place === 0 ? tailOf(after!) : undefined
    const group = { target, order: rest, after: start, need: need - found.length }
    const part = yield* selectGroup(group, key, first)
    found.push(...part.found)
    if (part.cut !== undefined || found.length >= need) return { found, cut: part.cut }
  }
  return { found }
}

/** The members that have one key in a slot. */
function* selectGroup(search: Search, key: Uint8Array, { slot }: OrderSlot): Steps<Selected> {
  const { target, order, after, need } = search
  if (need <= 0) return { found: [] }
  const own: Filter = { slot, any: [key] }
  const group: Target = { ...target, filters: new Map([...target.filters, [slot, own]]) }
  const restore = (one: Found): Found => ({ keys: [key, ...one.keys], sortKey: one.sortKey })
  if (order.length > 0) {
    if ((yield* countSelected(target, own, SMALL_GROUP + 1)) <= SMALL_GROUP) {
      const whole = yield* fetchSelective(group, order, after, SMALL_GROUP)
      if (whole !== undefined) return { found: whole.slice(0, need).map(restore) }
    }
  }
  const { found, cut } = yield* select({ ...search, target: group })
  return { found: found.map(restore), cut: cut && restore(cut) }
}

/** Walks the index of the first key, group by group: within a group the order is not that of the index. */
function* selectByGroups({ target, order, after, need }: Search): Steps<Selected> {
  const [first, ...rest] = order as readonly [OrderSlot, ...OrderSlot[]]
  const { none, low, high } = target.filters.get(first.slot) ?? {}
  const isWanted = (key: Uint8Array): boolean => none === undefined || !includes(none, key)
  const filters = filtersBeside(target.filters, first.slot)
  const found: Found[] = []
  let beyond = after?.keys[0]
  if (after !== undefined && isWanted(beyond!) && isWithin(beyond!, low, high)) {
    const part = yield* selectGroup({ target, order: rest, after: tailOf(after), need }, beyond!, first)
    found.push(...part.found)
    if (part.cut !== undefined) return { found, cut: part.cut }
  }
  for (let most = FIRST_WINDOW; found.length < need; most = FURTHER_WINDOW) {
    const wanted = need - found.length
    const bound = beyond === undefined ? undefined : { key: beyond, isOpen: true }
    const window = createWindow(target, {
      slot: first.slot,
      direction: first.direction,
      columns: order.map(({ slot }) => slot),
      low: first.direction === 'ascending' ? narrower('low', low, bound) : low,
      high: first.direction === 'ascending' ? high : narrower('high', high, bound),
      filters,
      most,
      limit: wanted + 1,
    })
    const isPlain = window.filters.length === 0
    const rows = yield* readRows(isPlain ? { ...window, most: wanted + 1 } : window)
    const isFilled = rows.length > wanted
    const edge = isFilled ? rows.at(-1) : isPlain ? undefined : yield* readEdge(window)
    if (edge === undefined) {
      found.push(...[...rows].sort((a, b) => compareFound(a, b, order)))
      return { found }
    }
    if (!isFilled && most === FIRST_WINDOW) {
      const whole = yield* fetchSelective(target, order, after, MOST_FETCHED)
      if (whole !== undefined) return { found: whole.slice(0, need) }
    }
    if (!isFilled) target.budget.left -= most
    const last = edge.keys[0]!
    const complete = rows.filter(({ keys }) => Buffer.compare(keys[0]!, last) !== 0)
    found.push(...complete.sort((a, b) => compareFound(a, b, order)))
    const group = { target, order: rest, after: undefined, need: need - found.length }
    const part: Selected = isWanted(last) ? yield* selectGroup(group, last, first) : { found: [] }
    found.push(...part.found)
    if (part.cut !== undefined) return { found, cut: part.cut }
    beyond = last
    if (found.length < need && target.budget.left <= 0 && target.isWithinScope) {
      const keys = rest.map(({ direction }) => (direction === 'ascending' ? LAST_KEY : FIRST_KEY))
      return { found, cut: { keys: [last, ...keys], sortKey: LAST_NAME } }
    }
  }
  return { found }
}

function tailOf({ keys, sortKey }: Found): Found {
  return { keys: keys.slice(1), sortKey }
}
