/** Indexed values as keys that compare as bytes, and what a query means: one definition for every store. */

import { HttpError } from '../core/errors.ts'
import type { Condition, IndexedValue, IndexedValues, ListQuery } from './index-types.ts'
import { parseIntegerName } from './types.ts'

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

/** Compares names of one collection: integers by value, then others by code point. */
export function compareNames(a: string, b: string): number {
  const x = parseIntegerName(a)
  const y = parseIntegerName(b)
  if (x !== undefined && y !== undefined) return x - y
  if (x !== undefined) return -1
  return y !== undefined ? 1 : compareText(a, b)
}

/** The value of a property; `null` where an item has none. */
export function indexedValueOf(values: IndexedValues, property: string): IndexedValue {
  return Object.hasOwn(values, property) ? (values[property] ?? null) : null
}

/** Whether the value of its property meets a condition. */
export function meetsCondition(value: IndexedValue, condition: Condition): boolean {
  switch (condition.operator) {
    case 'in':
      return value !== null && condition.values.some((wanted) => compareValues(value, wanted) === 0)
    case 'notIn':
      return value === null || condition.values.every((wanted) => compareValues(value, wanted) !== 0)
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

/** The cursor that stands behind a position. */
export function formatPosition({ keys, name }: ListPosition): string {
  return JSON.stringify([...keys, name])
}

/**
 * Reads a cursor, which has been with the client.
 * @throws HttpError 400 for what is not a position in the order of the query
 */
export function parsePosition(cursor: string, { orderBy }: ListQuery): ListPosition {
  const parts = parseArray(cursor)
  const name = parts?.at(-1)
  const keys = parts?.slice(0, -1) ?? []
  if (typeof name !== 'string' || keys.length !== orderBy.length || !keys.every(isValue)) {
    throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail: 'after is a cursor taken from a Link field.' })
  }
  return { keys, name }
}

function parseArray(text: string): readonly IndexedValue[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
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
