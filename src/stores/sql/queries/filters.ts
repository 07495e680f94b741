import { type CollectionIndex, type Condition, encodePrefix, encodeValue } from '../../lists.ts'
import { joinKeys, slotOf } from './index-tables.ts'
import {
  compareFound,
  countRows,
  createWindow,
  type Found,
  type OrderSlot,
  readRows,
  type Steps,
  type Target,
  type Window,
} from './window.ts'

/** An end of a range of keys. */
export interface Bound {
  readonly key: Uint8Array
  /** Whether the key itself is outside. */
  readonly isOpen: boolean
}

/** All conditions on one slot. */
export interface Filter {
  readonly slot: number
  /** The key is one of these, ascending and different; they lie within the bounds and outside of `none`. */
  readonly any?: readonly Uint8Array[] | undefined
  readonly none?: readonly Uint8Array[] | undefined
  readonly low?: Bound | undefined
  readonly high?: Bound | undefined
}

type Filters = ReadonlyMap<number, Filter>

const ABSENT = encodeValue(null)
/** Before all keys but that of an absent value. */
const PRESENT: Bound = { key: Uint8Array.of(1), isOpen: false }

/** The conditions of a query; `undefined` when no item can meet all of them. */
export function toFilters(index: CollectionIndex, where: readonly Condition[]): Filters | undefined {
  const filters = new Map<number, Filter>()
  for (const condition of where) {
    const slot = slotOf(index, condition.property)
    const filter = intersect(filters.get(slot) ?? { slot }, toFilter(slot, condition))
    if (filter.any?.length === 0) return undefined
    filters.set(slot, filter)
  }
  return filters
}

function toFilter(slot: number, condition: Condition): Filter {
  switch (condition.operator) {
    case 'in':
      return { slot, any: distinct(condition.values.map(encodeValue)) }
    case 'notIn':
      return { slot, none: distinct(condition.values.map(encodeValue)) }
    case 'exists':
      return condition.value ? { slot, low: PRESENT } : { slot, any: [ABSENT] }
    case 'prefix': {
      const key = encodePrefix(condition.value)
      // No byte of UTF-8 is 0xff.
      return { slot, low: { key, isOpen: false }, high: { key: joinKeys([key, Uint8Array.of(0xff)]), isOpen: true } }
    }
  }
  const key = encodeValue(condition.value)
  // Only values of one type are in an order that a client can ask about; the first byte of a key is the type.
  const low = { key: key.subarray(0, 1), isOpen: false }
  const high = { key: Uint8Array.of(key[0]! + 1), isOpen: true }
  if (condition.operator === 'gt') return { slot, low: { key, isOpen: true }, high }
  if (condition.operator === 'gte') return { slot, low: { key, isOpen: false }, high }
  if (condition.operator === 'lt') return { slot, low, high: { key, isOpen: true } }
  return { slot, low, high: { key, isOpen: false } }
}

function intersect(a: Filter, b: Filter): Filter {
  const low = narrower('low', a.low, b.low)
  const high = narrower('high', a.high, b.high)
  const none = a.none && b.none ? distinct([...a.none, ...b.none]) : (a.none ?? b.none)
  const keys = a.any ?? b.any
  if (keys === undefined) return { slot: a.slot, none, low, high }
  const others = a.any && b.any
  const any = keys.filter(
    (key) =>
      (others === undefined || includes(others, key)) &&
      !(none !== undefined && includes(none, key)) &&
      isWithin(key, low, high),
  )
  return { slot: a.slot, any }
}

/** The bound that leaves fewer keys. @param end which end of a range both of them are */
export function narrower(end: 'low' | 'high', a: Bound | undefined, b: Bound | undefined): Bound | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const order = Buffer.compare(a.key, b.key)
  if (order === 0) return a.isOpen ? a : b
  return order > 0 === (end === 'low') ? a : b
}

export function isWithin(key: Uint8Array, low: Bound | undefined, high: Bound | undefined): boolean {
  const fromLow = low === undefined ? 1 : Buffer.compare(key, low.key)
  const fromHigh = high === undefined ? -1 : Buffer.compare(key, high.key)
  return (fromLow > 0 || (fromLow === 0 && !low!.isOpen)) && (fromHigh < 0 || (fromHigh === 0 && !high!.isOpen))
}

export function includes(keys: readonly Uint8Array[], key: Uint8Array): boolean {
  return keys.some((other) => Buffer.compare(other, key) === 0)
}

function distinct(keys: readonly Uint8Array[]): readonly Uint8Array[] {
  return [...keys].sort(Buffer.compare).filter((key, i, all) => i === 0 || Buffer.compare(key, all[i - 1]!) !== 0)
}

/** The members of one place that a query looks at: all of them, or those of one scope. */
export interface Range {
  readonly scope: Uint8Array | undefined
  /** The conditions beside the scope. */
  readonly filters: Filters
  /** The slot and key of a property of the scope: within the scope all members have it. */
  readonly anchor: { readonly slot: number; readonly key: Uint8Array } | undefined
  /** Whether everything in this range belongs to the scope of the caller. */
  readonly isWithinScope: boolean
}

/** Splits the scope off the conditions, where each of its properties has one value. */
export function toRange(index: CollectionIndex, filters: Filters): Range {
  const slots = index.scope.map((property) => slotOf(index, property))
  const keys = slots.flatMap((slot) => {
    const any = filters.get(slot)?.any
    return any?.length === 1 ? [any[0]!] : []
  })
  if (slots.length === 0 || keys.length < slots.length) {
    const isWithinScope = slots.every((slot) => !filters.has(slot))
    return { scope: undefined, filters, anchor: undefined, isWithinScope }
  }
  const others = new Map([...filters].filter(([slot]) => !slots.includes(slot)))
  return {
    scope: joinKeys(keys),
    filters: others,
    anchor: { slot: slots[0]!, key: keys[0]! },
    isWithinScope: true,
  }
}

/** Members that one condition selects, when they are fetched whole and sorted. */
export const MOST_FETCHED = 5000

/** A condition that an index settles, as the windows that it takes. */
export function windowsOf(target: Target, filter: Filter, most: number): readonly Window[] {
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
export function* findSelective(target: Target, most: number): Steps<Filter | undefined> {
  let least = most
  let selective: Filter | undefined
  for (const filter of target.filters.values()) {
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
  order: readonly OrderSlot[],
  after: Found | undefined,
  most: number,
): Steps<readonly Found[] | undefined> {
  const selective = yield* findSelective(target, most + 1)
  if (selective === undefined) return undefined
  const columns = [...new Set(order.map(({ slot }) => slot))]
  const found: Found[] = []
  // Twice as many, since members are added meanwhile.
  for (const window of windowsOf(target, selective, 2 * most)) {
    const rows = yield* readRows({ ...window, filters: filtersBeside(target.filters, selective.slot), columns })
    found.push(
      ...rows.map(({ keys, sortKey }) => ({ keys: order.map(({ slot }) => keys[columns.indexOf(slot)]!), sortKey })),
    )
  }
  target.budget.left -= found.length
  found.sort((a, b) => compareFound(a, b, order))
  return after === undefined ? found : found.filter((one) => compareFound(one, after, order) > 0)
}

/** The conditions that the index of a slot does not settle: those on other slots, and the keys of its own that are left out. */
export function filtersBeside(filters: Filters, slot: number | undefined): readonly Filter[] {
  return [...filters.values()].flatMap((filter) => {
    if (filter.slot !== slot) return [filter]
    return filter.none === undefined ? [] : [{ slot, none: filter.none }]
  })
}
