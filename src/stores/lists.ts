// Lists and queries: the part of the store contract that selects, orders and counts the members of a collection. The
// functions below the types give values, conditions and cursors one meaning in every store.

import { HttpError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { StoredResource } from './types.ts'

/** Options of `list` of a store. */
export interface ListOptions {
  /**
   * The cursor of the page before; left out for the first page. It has been with the client: whatever it says, answer
   * with some page or throw an `HttpError` below 500.
   */
  readonly after?: string | undefined
  /** The most items to return, at least 1. A page has fewer only where no other follows. */
  readonly limit: number
  /** Whether hidden resources are listed as well. Default false. */
  readonly hidden?: boolean
  /**
   * Which members, and in which order; all of them where it is left out. Only with stores that support `queries`. While
   * items that exist already are being indexed by its rules, throw `HttpError` 503 `ERR_INDEXING` with Retry-After.
   */
  readonly query?: ListQuery | undefined
  /** As for `read`. */
  readonly signal?: AbortSignal
}

/** What `list` of a store returns: some members of a collection, and the cursor of the next page. */
export interface Page {
  /**
   * Direct members in a stable order: names that are integers by value, then all others in an order of the store's own; with
   * a query in its order. A member that exists during the whole of a walk through the pages is seen exactly once, unless
   * its own place in the order changes.
   */
  readonly items: readonly StoredResource[]
  /**
   * Cursor of the next page; left out on the last one. Clients can read it: on a page with `limit` items it names the last of
   * them, and no member behind it, which a client may not be allowed to see.
   */
  readonly next?: string | undefined
  /** How many members match the query, on whichever page; only where `query.count` asks for it. */
  readonly total?: number | undefined
}

/**
 * A value by which members are selected and ordered; `null` where an item has none. Values compare alike in every store:
 * `null` before `false`, `false` before `true`, these before numbers, numbers as IEEE 754 doubles, numbers before strings,
 * strings by code point. A string has at most 256 bytes of UTF-8, without U+0000 and lone surrogates; a number is finite,
 * and `-0` is `0`. The service checks all of this before it calls a store.
 */
export type IndexedValue = string | number | boolean | null

/** The values of one item, by the name of the indexed property; a name that is left out is `null`. */
export type IndexedValues = Readonly<Record<string, IndexedValue>>

/** How the members of one collection are indexed. The service makes it from the definition. */
export interface CollectionIndex {
  /** Names the rules by which values are taken from content; other rules have another name. At most 64 characters. */
  readonly version: string
  /** Names of the indexed properties, ascending; at most 16. */
  readonly properties: readonly string[]
  /** Those of them that lists of most callers compare by equality, all together: the properties of the scope. */
  readonly scope: readonly string[]
  /** Takes the values from a stored item: for items that were written without values, or under other rules. */
  readonly valuesOf: (item: StoredResource) => MaybePromise<IndexedValues>
  /** Called while items that exist already are indexed: how many have been so far, and whether that was all. */
  readonly report?: ((progress: { readonly indexed: number; readonly isDone: boolean }) => void) | undefined
}

/**
 * A condition on one indexed property. `null` matches `notIn`, and `exists` with `false`, and nothing else.
 * `values` are never `null`; at most 8 of them.
 */
export type Condition =
  /** `in`: equal to any of the values. `notIn`: equal to none of them. */
  | { readonly property: string; readonly operator: 'in' | 'notIn'; readonly values: readonly IndexedValue[] }
  | { readonly property: string; readonly operator: 'gt' | 'gte' | 'lt' | 'lte'; readonly value: IndexedValue }
  | { readonly property: string; readonly operator: 'prefix'; readonly value: string }
  | { readonly property: string; readonly operator: 'exists'; readonly value: boolean }

/** One key of an order. `descending` reverses the place of `null` too: last. */
export interface OrderKey {
  /** The name of an indexed property. */
  readonly property: string
  readonly direction: 'ascending' | 'descending'
}

/**
 * Which members a list shows, and in which order. All conditions must match. Members with equal keys follow each other in
 * the order of a list without a query (names that are integers by value, then others), ascending also where keys descend.
 */
export interface ListQuery {
  /** The rules of the indexed values that the conditions and keys are about. */
  readonly index: CollectionIndex
  /** All of them must match; without any, all members do. */
  readonly where: readonly Condition[]
  /** At most two keys; without any, the order is that of a list without a query. */
  readonly orderBy: readonly OrderKey[]
  /** Whether `Page.total` is wanted. */
  readonly count: boolean
}

const NULL = 0
const BOOLEAN = 1
const NUMBER = 2
const STRING = 3

const NULL_KEY = Uint8Array.of(NULL)
const FALSE_KEY = Uint8Array.of(BOOLEAN, 0)
const TRUE_KEY = Uint8Array.of(BOOLEAN, 1)

/** The key of a value: keys compare as bytes as the values do, also where further keys follow. At most 258 bytes. */
export function encodeValue(value: IndexedValue): Uint8Array {
  if (value === null) return NULL_KEY
  if (typeof value === 'boolean') return value ? TRUE_KEY : FALSE_KEY
  if (typeof value === 'number') return encodeNumber(value)
  const key = Buffer.allocUnsafe(Buffer.byteLength(value) + 2)
  key[0] = STRING
  key.write(value, 1)
  // Ends the value: no string holds U+0000, so a shorter one comes first, whatever follows it.
  key[key.length - 1] = 0
  return key
}

/** The key that all strings with a prefix begin with. */
export function encodePrefix(prefix: string): Uint8Array {
  return encodeValue(prefix).subarray(0, -1)
}

function encodeNumber(value: number): Uint8Array {
  const key = Buffer.allocUnsafe(9)
  key[0] = NUMBER
  key.writeDoubleBE(value === 0 ? 0 : value, 1)
  // Doubles compare as integers once the sign is turned round: all bits of negative ones, the first bit of others.
  if (key[1]! < 0x80) key[1]! ^= 0x80
  else for (let i = 1; i < 9; i++) key[i] = ~key[i]!
  return key
}

/** Compares two values: negative, 0 or positive. */
export function compareValues(a: IndexedValue, b: IndexedValue): number {
  if (typeof a === 'string' && typeof b === 'string') return a === b ? 0 : compareText(a, b)
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0
  return a === b ? 0 : rank(a) - rank(b) || Number(a) - Number(b)
}

function rank(value: IndexedValue): number {
  if (value === null) return NULL
  if (typeof value === 'boolean') return BOOLEAN
  return typeof value === 'number' ? NUMBER : STRING
}

/** Compares text by code point. A code unit of a surrogate pair stands for more than any other code unit. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i)
    const y = b.charCodeAt(i)
    if (x !== y) return placeOfUnit(x) - placeOfUnit(y)
  }
  return a.length - b.length
}

function placeOfUnit(unit: number): number {
  if (unit < 0xd800) return unit
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800
}

export function positionOf({ properties }: CollectionIndex, property: string): number {
  const position = properties.indexOf(property)
  if (position === -1) throw new TypeError(`The index has no property ${JSON.stringify(property)}.`)
  return position
}

/** The value of a property; `null` where an item has none. */
export function indexedValueOf(values: IndexedValues, property: string): IndexedValue {
  return Object.hasOwn(values, property) ? (values[property] ?? null) : null
}

export function meetsCondition(value: IndexedValue, condition: Condition): boolean {
  switch (condition.operator) {
    case 'in':
      return condition.values.some((wanted) => compareValues(value, wanted) === 0)
    case 'notIn':
      return condition.values.every((wanted) => compareValues(value, wanted) !== 0)
    case 'exists':
      return (value !== null) === condition.value
    case 'prefix':
      return typeof value === 'string' && value.startsWith(condition.value)
  }
  // Only values of one type are in an order that a client can ask about.
  if (value === null || typeof value !== typeof condition.value) return false
  const order = compareValues(value, condition.value)
  if (condition.operator === 'gt') return order > 0
  if (condition.operator === 'gte') return order >= 0
  return condition.operator === 'lt' ? order < 0 : order <= 0
}

/** Where an item stands in a list: the values of its order keys, and its name. */
export interface ListPosition {
  readonly keys: readonly IndexedValue[]
  readonly name: string
}

/** The cursor that stands behind a position: no longer than its values, since it is a part of a target. */
export function formatPosition({ keys, name }: ListPosition): string {
  return [...keys.map((key) => (typeof key === 'string' ? `"${key}` : String(key))), name].join('\0')
}

/**
 * Reads a cursor, which has been with the client.
 * @throws HttpError 400 for what is not a position in the order of the query
 */
export function parsePosition(cursor: string, { orderBy }: ListQuery): ListPosition {
  const parts = cursor.split('\0')
  const keys = parts.splice(0, orderBy.length).map(parseKey)
  if (parts.length === 0 || !keys.every(isValue)) {
    throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail: 'after is a cursor from a Link field.' })
  }
  return { keys, name: parts.join('\0') }
}

function parseKey(text: string): unknown {
  if (text.startsWith('"')) return text.slice(1)
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Whether a value is one that an index can hold. */
export function isValue(value: unknown): value is IndexedValue {
  if (value === null || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'string' && isIndexedText(value)
}

/** The most bytes of UTF-8 that an indexed string has. */
export const LONGEST_TEXT = 256

/** Whether an index can hold a string. */
export function isIndexedText(text: string): boolean {
  const { length } = text
  if (length > LONGEST_TEXT || /[\0\ud800-\udfff]/u.test(text)) return false
  // A code unit has at most three bytes.
  return 3 * length <= LONGEST_TEXT || Buffer.byteLength(text) <= LONGEST_TEXT
}
