import { isUtf8 } from 'node:buffer'
import { type ContentError, HttpError } from '../core/errors.ts'
import { formatPointerStep, isDeeperThan, type JsonObject, type JsonValue } from '../core/json.ts'
import { malformedBody } from './body-errors.ts'
import { DEFAULT_LIMITS } from './types.ts'

export interface JsonLimits {
  /** How deep arrays and objects may be nested. Default 100, at most 1000. */
  readonly depth: number
}

/** A JSON document that was sent. */
export interface ParsedJson {
  readonly value: JsonValue
  /** The text that was parsed. */
  readonly text: string
  /** Whether the UTF-8 bytes of `text` are the bytes that were sent; they are not when those began with a BOM. */
  readonly isVerbatim: boolean
}

/** Deeper than this, recursion would use up the stack: here, in `JSON.stringify`, and in whoever reads the value next. */
const MAX_DEPTH = 1000
/** Characters of a string to look at one by one before it is worth a call to search for its end. */
const SHORT = 8
/** Escapes of what no text holds: U+0000 and surrogates. */
const SUSPICIOUS_ESCAPE = /\\u(?:0000|d[89a-f])/i
/** U+0000, which PostgreSQL refuses in text, and lone surrogates, which UTF-8 cannot carry. */
const UNSTORABLE = /[\0\p{Surrogate}]/u

/**
 * Reads JSON strictly: what one reader accepts here, every later one understands in the same way.
 * @param bytes the content as received
 * @returns the value, in which every member is an own property, whatever its name
 * @throws HttpError 400 for invalid UTF-8 (RFC 8259 §8.1), malformed JSON, a member name that occurs twice in one object
 *   (§4), and nesting beyond the limit; 422 for numbers that are not finite, U+0000 and lone surrogates
 */
export function parseJson(bytes: Uint8Array, limits: JsonLimits = DEFAULT_LIMITS): ParsedJson {
  const content = dropMark(bytes)
  if (!isUtf8(content)) throw malformedBody('The content is not valid UTF-8.')
  const text = decodeText(content)
  const written = mayNestDeep(text, limits) ? countWrittenMembers(text, limits) : undefined
  const value = parseText(text)
  // Of members with one name JSON.parse keeps the last, so an object has fewer than were written.
  const members = countMembers(value)
  const isWhole = written === undefined ? hasAllMembers(text, members, limits) : written === members
  const isSuspicious = text.includes('\\u') && SUSPICIOUS_ESCAPE.test(text)
  if (isSuspicious || !isWhole) checkStorable(value)
  if (!isWhole) throw malformedBody('A member name occurs twice in one object.')
  return { value, text, isVerbatim: content === bytes }
}

/**
 * Checks that content is JSON, for content that is kept as it was sent: numbers keep their digits and names may repeat.
 * @returns the content, without a byte order mark: it is tolerated and never sent (RFC 8259 §8.1)
 * @throws HttpError 400 for invalid UTF-8, malformed JSON, and nesting beyond the limit
 */
export function checkJson(bytes: Uint8Array, limits: JsonLimits = DEFAULT_LIMITS): Uint8Array {
  const content = dropMark(bytes)
  if (!isUtf8(content)) throw malformedBody('The content is not valid UTF-8.')
  const text = decodeText(content)
  if (mayNestDeep(text, limits)) countWrittenMembers(text, limits)
  parseText(text)
  return content
}

/**
 * Holds a value that another parser made of JSON content to the same rules, as far as they still can be checked.
 * @throws HttpError 400, 422 as {@link parseJson}; TypeError for what no JSON parser makes
 */
export function checkParsedJson(value: unknown, limits: JsonLimits = DEFAULT_LIMITS): JsonValue {
  if (isDeeperThan(value as JsonValue, maxDepth(limits))) throw tooDeep(limits)
  checkStorable(value)
  return value as JsonValue
}

/** RFC 8259 §8.1: a byte order mark may be ignored. */
function dropMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes
}

function decodeText(bytes: Uint8Array): string {
  return (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).toString()
}

/** The message of a SyntaxError quotes the content, so it goes nowhere. */
function parseText(text: string): JsonValue {
  try {
    return JSON.parse(text)
  } catch {
    throw malformedBody(text === '' ? 'The content is empty; JSON is expected.' : 'The content is not valid JSON.')
  }
}

function maxDepth(limits: JsonLimits): number {
  return Math.min(limits.depth, MAX_DEPTH)
}

function tooDeep(limits: JsonLimits): HttpError {
  return malformedBody(`The content is nested more than ${maxDepth(limits)} levels deep.`)
}

/** Whether text has more opening brackets, strings included, than may be nested in one another. */
function mayNestDeep(text: string, limits: JsonLimits): boolean {
  const limit = maxDepth(limits)
  const objects = countUpTo(limit, text, '{')
  return objects + countUpTo(limit - objects, text, '[') > limit
}

/** Whether an object in JSON text has as many members as were written; `members` are those that are left. */
function hasAllMembers(text: string, members: number, limits: JsonLimits): boolean {
  // Every member has a colon. Where there are no others, in strings, nothing was written twice.
  return countUpTo(members, text, ':') === members || countWrittenMembers(text, limits) === members
}

/** How often a character occurs; `most + 1` where it is more often than that. */
function countUpTo(most: number, text: string, character: string): number {
  let count = 0
  for (let at = text.indexOf(character); at >= 0 && count <= most; at = text.indexOf(character, at + 1)) count++
  return count
}

/**
 * Counts the members of all objects in JSON text: its colons outside strings. Malformed text gives any number.
 * Comes before `JSON.parse`, which is 30 times as slow on text that does nothing but nest.
 * @throws HttpError 400 for nesting beyond the limit
 */
function countWrittenMembers(text: string, limits: JsonLimits): number {
  const limit = maxDepth(limits)
  const { length } = text
  let depth = 0
  let members = 0
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i)
    // "| 0" keeps the index an integer for the compiler: this loop is most of the cost of a large body.
    if (code === 0x22) i = findQuote(text, i + 1) | 0
    else if (code === 0x3a) members++
    else if (code >= 0x5b) {
      const bracket = code | 0x20 // "[" and "{" differ in this bit, and so do "]" and "}"
      if (bracket === 0x7b) {
        if (++depth > limit) throw tooDeep(limits)
      } else if (bracket === 0x7d) depth--
    }
  }
  return members
}

/** Index of the quote that ends the string whose first character is at `at`; the length when there is none. */
function findQuote(text: string, at: number): number {
  const { length } = text
  for (;;) {
    const near = Math.min(at + SHORT, length)
    while (at < near) {
      const code = text.charCodeAt(at)
      if (code === 0x22) return at
      at += code === 0x5c ? 2 : 1
    }
    const quote = at < length ? text.indexOf('"', at) : -1
    if (quote < 0) return length
    let start = quote
    while (start > at && text.charCodeAt(start - 1) === 0x5c) start--
    if ((quote - start) % 2 === 0) return quote
    at = quote + 1
  }
}

/** Counts the members of all objects in a value; not a number when the value holds a number that is not finite. */
function countMembers(value: JsonValue): number {
  if (typeof value === 'number') return Number.isFinite(value) ? 0 : Number.NaN
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item = value[i]
      if (typeof item === 'object') count += countMembers(item)
      else if (typeof item === 'number' && !Number.isFinite(item)) return Number.NaN
    }
    return count
  }
  for (const name in value) {
    // biome-ignore lint/suspicious/noPrototypeBuiltins: the compiler knows this call in for-in; Object.hasOwn costs twice.
    if (!Object.prototype.hasOwnProperty.call(value, name)) continue
    const member = (value as JsonObject)[name]!
    count++
    if (typeof member === 'object') count += countMembers(member)
    else if (typeof member === 'number' && !Number.isFinite(member)) return Number.NaN
  }
  return count
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
    return UNSTORABLE.test(value) ? { pointer: '', detail: 'U+0000 or a lone surrogate in a string.' } : undefined
  }
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : { pointer: '', detail: 'A number that is too large.' }
  }
  if (typeof value === 'boolean' || value === null) return undefined
  if (typeof value !== 'object')
    throw new TypeError(`req.body holds a value of type ${typeof value}, which is no JSON.`)
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = findUnstorable(value[i])
      if (fault !== undefined) return { ...fault, pointer: formatPointerStep(i) + fault.pointer }
    }
    return undefined
  }
  for (const name of Object.keys(value)) {
    if (UNSTORABLE.test(name)) {
      return { pointer: formatPointerStep(name), detail: 'U+0000 or a lone surrogate in a name.' }
    }
    const fault = findUnstorable((value as Readonly<Record<string, unknown>>)[name])
    if (fault !== undefined) return { ...fault, pointer: formatPointerStep(name) + fault.pointer }
  }
  return undefined
}
