import { decodeUtf8 } from '../core/byte-blocks.ts'
import { type ContentError, HttpError } from '../core/errors.ts'
import type { JsonObject, JsonScan, JsonValue } from '../core/json.ts'
import {
  countNameColons,
  countOpenings,
  formatPointerStep,
  hasMoreEntries,
  isDeeperThan,
  scanJson,
} from '../core/json.ts'
import { type BodyLimits, DEFAULT_LIMITS, malformedBody, tooLarge, tooMany } from './limits.ts'

export type JsonLimits = Pick<BodyLimits, 'depth' | 'jsonMembers'>

/** A JSON document that was sent. */
export interface ParsedJson {
  readonly value: JsonValue
  readonly text: string
  /** Whether the UTF-8 bytes of `text` are the bytes that were sent; they are not when those began with a BOM. */
  readonly isVerbatim: boolean
}

/** Deeper than this, recursion would use up the stack: here, in `JSON.stringify`, and in the code that reads the value next. */
const MAX_DEPTH = 1000
/** Characters of text that is parsed without counting what it opens: `JSON.parse` takes 50 us where it only nests. */
const UNCOUNTED = 512
/** The first byte of a byte order mark, and of no JSON text. */
const MARK = 0xef
/** Escapes of what no text holds: U+0000 and surrogates. */
const SUSPICIOUS_ESCAPE = /\\u(?:0000|d[89a-f])/i

/**
 * Reads JSON strictly: what one reader accepts here, every later one understands in the same way.
 * @param bytes the content as received
 * @returns the value, in which every member is an own property, whatever its name
 * @throws HttpError 400 for invalid UTF-8 (RFC 8259 §8.1), malformed JSON, a member name that occurs twice in one object
 *   (§4), and nesting beyond the limit; 413 for more members and array items than the limit; 422 for numbers that are not finite, U+0000 and lone surrogates
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits = DEFAULT_LIMITS): ParsedJson {
  const text = readText(bytes)
  const isShort = text.length <= UNCOUNTED && text.length <= 2 * limits.jsonMembers
  const written = isShort ? undefined : boundParsing(text, limits)
  const value = parseText(text)
  // Of members with one name JSON.parse keeps the last, so an object has fewer than were written. Every member has a
  // colon: where nothing in a string looks like one of these, nothing was written twice.
  const members = countMembers(value, limits, maxDepth(limits))
  const isWhole =
    members === (written ?? countNameColons(members, text)) ||
    (written === undefined && members === scan(text, limits).members)
  const isSuspicious = text.includes('\\u') && SUSPICIOUS_ESCAPE.test(text)
  if (isSuspicious || !isWhole) checkStorable(value)
  if (!isWhole) throw malformedBody('A member name occurs twice in one object.')
  return { value, text, isVerbatim: bytes[0] !== MARK }
}

/**
 * Checks that content is JSON, for content that is kept as it was sent: numbers keep their digits and names may repeat.
 * @returns the content, without a byte order mark: it is tolerated and never sent (RFC 8259 §8.1)
 * @throws HttpError 400 for invalid UTF-8, malformed JSON, and nesting beyond the limit
 */
export function checkJson(bytes: Uint8Array, limits: Pick<JsonLimits, 'depth'> = DEFAULT_LIMITS): Uint8Array {
  const text = readText(bytes)
  const depth = maxDepth(limits)
  // Nothing is made of its members here, so that any number of them will do. One may hide what is nested in another of the
  // same name: the text tells.
  if (countOpenings(depth, text) > depth) scan(text, { ...limits, jsonMembers: Number.POSITIVE_INFINITY })
  parseText(text)
  return bytes[0] === MARK ? bytes.subarray(3) : bytes
}

/**
 * The JSON document in what a parser before us made of the content: its text or bytes, or a value already.
 * @throws HttpError 400, 413, 422 as for content that is read here, as far as it still can be checked
 */
export function readConsumedJson(consumed: unknown, limits: JsonLimits & Pick<BodyLimits, 'bodySize'>): ParsedJson {
  if (typeof consumed !== 'string' && !(consumed instanceof Uint8Array)) {
    // The bytes are gone, so it is written anew.
    const value = checkParsedJson(consumed, limits)
    return { value, text: JSON.stringify(value), isVerbatim: false }
  }
  const bytes = typeof consumed === 'string' ? Buffer.from(consumed) : consumed
  if (bytes.length > limits.bodySize) throw tooLarge(limits.bodySize)
  const parsed = parseJson(bytes, limits)
  return bytes === consumed ? parsed : { ...parsed, isVerbatim: false }
}

/**
 * Holds a value that another parser made of JSON content to the same rules, as far as they still can be checked.
 * @throws HttpError 400, 422 as {@link parseJson}; TypeError for what no JSON parser makes
 */
export function checkParsedJson(value: unknown, limits: JsonLimits = DEFAULT_LIMITS): JsonValue {
  if (countSound(value, maxDepth(limits)) <= limits.jsonMembers) return value as JsonValue
  // Which of the faults counts.
  if (isDeeperThan(value as JsonValue, maxDepth(limits))) throw tooDeep(limits)
  if (countEntries(value as JsonValue) > limits.jsonMembers) throw tooManyMembers(limits)
  checkStorable(value)
  return value as JsonValue
}

/** @throws HttpError 413 for JSON text with more members and array items than the limit */
export function requireFewMembers(text: string, limits: Pick<JsonLimits, 'jsonMembers'>, openings?: number): void {
  if (hasMoreEntries(text, limits.jsonMembers, openings)) throw tooManyMembers(limits)
}

/** RFC 8259 §8.1: a byte order mark may be ignored. */
function readText(bytes: Uint8Array): string {
  const text = decodeUtf8(bytes)
  if (text === undefined) throw malformedBody('The content is not valid UTF-8.')
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
}

/** The message of a SyntaxError quotes the content, so it goes nowhere. */
function parseText(text: string): JsonValue {
  try {
    return JSON.parse(text)
  } catch {
    throw malformedBody(text === '' ? 'The content is empty; JSON is expected.' : 'The content is not valid JSON.')
  }
}

/**
 * Bounds what parsing costs. Text is parsed at once where it opens no more arrays and objects than may be nested, or one in
 * 16 characters: `JSON.parse` takes 100 ns for a level of nesting, and scanning each character of 300 KB of records as long
 * as parsing it.
 * @returns how many members are written, where they had to be counted
 * @throws HttpError as {@link scan}
 */
function boundParsing(text: string, limits: JsonLimits): number | undefined {
  const most = Math.max(maxDepth(limits), text.length >> 4)
  const openings = text.length <= UNCOUNTED ? undefined : countOpenings(most, text)
  if (openings !== undefined && openings > most) return scan(text, limits).members
  requireFewMembers(text, limits, openings)
  return undefined
}

/** @throws HttpError 400 for nesting beyond the limit, 413 for more members and array items than the limit */
function scan(text: string, limits: JsonLimits): JsonScan {
  const scanned = scanJson(text, { depth: maxDepth(limits), entries: limits.jsonMembers })
  if (scanned.depth > maxDepth(limits)) throw tooDeep(limits)
  if (scanned.entries > limits.jsonMembers) throw tooManyMembers(limits)
  return scanned
}

function maxDepth(limits: Pick<JsonLimits, 'depth'>): number {
  return Math.min(limits.depth, MAX_DEPTH)
}

function tooDeep(limits: Pick<JsonLimits, 'depth'>): HttpError {
  return malformedBody(`The content is nested more than ${maxDepth(limits)} levels deep.`)
}

function tooManyMembers({ jsonMembers }: Pick<JsonLimits, 'jsonMembers'>): HttpError {
  return tooMany('members and array items', jsonMembers)
}

/**
 * Counts the members of all objects in a value; not a number when the value holds a number that is not finite.
 * @param depth how deep arrays and objects may lie in one another here
 * @throws HttpError 400 where they lie deeper
 */
function countMembers(value: JsonValue, limits: JsonLimits, depth: number): number {
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN
  if (typeof value !== 'object' || value === null) return 0
  if (depth === 0) throw tooDeep(limits)
  let count = 0
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i]
      if (typeof item === 'object') count += countMembers(item, limits, depth - 1)
      else if (typeof item === 'number' && !Number.isFinite(item)) count = Number.NaN
    }
    return count
  }
  for (const name in value) {
    // biome-ignore lint/suspicious/noPrototypeBuiltins: the compiler knows this call in for-in; Object.hasOwn costs twice.
    if (!Object.prototype.hasOwnProperty.call(value, name)) continue
    const member = (value as JsonObject)[name]!
    count++
    if (typeof member === 'object') count += countMembers(member, limits, depth - 1)
    else if (typeof member === 'number' && !Number.isFinite(member)) count = Number.NaN
  }
  return count
}

/** Counts the members of all objects and the items of all arrays in a value. */
function countEntries(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0
  const children: readonly JsonValue[] = Array.isArray(value) ? value : Object.values(value)
  let count = children.length
  for (const child of children) if (typeof child === 'object') count += countEntries(child)
  return count
}

/**
 * The same in one walk with all checks; not a number for a value with a fault. A walk for each kind of fault costs 3,500
 * instructions more for a small form.
 * @param depth how deep arrays and objects may lie in one another here
 */
function countSound(value: unknown, depth: number): number {
  if (typeof value === 'string') return isStorable(value) ? 0 : Number.NaN
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN
  if (typeof value === 'boolean' || value === null) return 0
  if (typeof value !== 'object' || depth === 0) return Number.NaN
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += 1 + countSound(item, depth - 1)
    return count
  }
  // `Object.values` takes 900 instructions more for two members.
  for (const name of Object.keys(value)) {
    if (!isStorable(name)) return Number.NaN
    count += 1 + countSound((value as Readonly<Record<string, unknown>>)[name], depth - 1)
  }
  return count
}

/** Whether text has neither U+0000, which PostgreSQL refuses, nor lone surrogates, which UTF-8 cannot carry. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** @throws HttpError 422 where a value holds what not every store can keep: such content gets one answer everywhere */
function checkStorable(value: unknown): void {
  const fault = findUnstorable(value)
  if (fault === undefined) return
  throw new HttpError(422, 'ERR_INVALID_CONTENT', {
    detail: 'The content holds a value that cannot be stored.',
    errors: [fault],
  })
}

function findUnstorable(value: unknown): ContentError | undefined {
  if (typeof value === 'string') {
    return isStorable(value) ? undefined : { pointer: '', detail: 'U+0000 or a lone surrogate in a string.' }
  }
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : { pointer: '', detail: 'A number that is too large.' }
  }
  if (typeof value === 'boolean' || value === null) return undefined
  if (typeof value !== 'object')
    throw new TypeError(`req.body holds a value of type ${typeof value}, which is not JSON.`)
  const children: Iterable<[string | number, unknown]> = Array.isArray(value) ? value.entries() : Object.entries(value)
  for (const [step, child] of children) {
    const isNamed = typeof step === 'number' || isStorable(step)
    const fault = isNamed ? findUnstorable(child) : { pointer: '', detail: 'U+0000 or a lone surrogate in a name.' }
    if (fault !== undefined) return { ...fault, pointer: formatPointerStep(step) + fault.pointer }
  }
  return undefined
}
