import { decodePercent, skipWhitespace, trimWhitespace } from './field-value.ts'

/** Structured field values (RFC 9651), as far as the fields of this library use them: items and dictionaries. */

/** A bare item (RFC 9651 §3.3), distinguished by its type: a Display String is a string, a Date an integer. */
export type BareItem =
  | { readonly type: 'integer' | 'decimal' | 'date'; readonly value: number }
  | { readonly type: 'string' | 'token'; readonly value: string }
  | { readonly type: 'bytes'; readonly value: Uint8Array }
  | { readonly type: 'boolean'; readonly value: boolean }

/** A member of a dictionary: an item, or an inner list, of which nothing here has any use. */
type DictionaryMember = BareItem | { readonly type: 'list' }

interface Parsed<Value> {
  readonly value: Value
  /** Index after it. */
  readonly end: number
}

const KEY = /[a-z*][a-z0-9_\-.*]*/y
/** At most 15 digits, or 12 before the point and 1 to 3 behind it (RFC 9651 §4.2.4). */
const NUMBER = /-?(?:\d{1,15}(?![\d.])|\d{1,12}\.\d{1,3}(?!\d))/y
const DATE = /@(-?\d{1,15})(?![\d.])/y
const STRING = /"((?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/y
const TOKEN = /[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*/y
const BYTES = /:([A-Za-z0-9+/]*={0,2}):/y
const BOOLEAN = /\?([01])/y
const DISPLAY_STRING = /%"((?:[\x20-\x21\x23-\x24\x26-\x7e]|%[0-9a-f]{2})*)"/y

/**
 * Parses an Item (RFC 9651 §4.2.3). Parameters are checked and dropped.
 * @returns `undefined` when the field is malformed
 */
export function parseItem(field: string): BareItem | undefined {
  const item = readItem(field, skipSpaces(field, 0))
  return item !== undefined && skipSpaces(field, item.end) === field.length ? item.value : undefined
}

/**
 * Parses a Dictionary (RFC 9651 §4.2.2): the last of several members of one name counts. Parameters are checked and dropped.
 * @returns the members by name, none for an empty field, or `undefined` when the field is malformed
 */
export function parseDictionary(field: string): ReadonlyMap<string, DictionaryMember> | undefined {
  const members = new Map<string, DictionaryMember>()
  let at = skipSpaces(field, 0)
  while (at < field.length) {
    const key = readKey(field, at)
    const member = key && readMember(field, key.end)
    if (member === undefined) return undefined
    // The last one takes the place of the last one in the order as well.
    members.delete(key!.value)
    members.set(key!.value, member.value)
    at = skipWhitespace(field, member.end)
    if (at === field.length) return members
    if (field[at] !== ',') return undefined
    at = skipWhitespace(field, at + 1)
    if (at === field.length) return undefined // a comma that nothing follows
  }
  return members
}

/**
 * Visible ASCII but `"`, `,`, `;` and `\`: what a client may send without quotes and with them alike. `[` is escaped for Java
 * and .NET, which nest classes.
 */
export const KEY_CHARACTER: string = String.raw`[!#-+\--:<-\[\]-~]`
const IDEMPOTENCY_KEY = new RegExp(`^${KEY_CHARACTER}{1,255}$`)

/**
 * Parses an Idempotency-Key field (draft-ietf-httpapi-idempotency-key-header-07 §2.1): a String, or its bare text, which
 * many clients send. `"k"` and `k` are the same key.
 * @param field the field; several lines are a list, which is malformed
 * @returns the key, 1 to 255 visible characters of ASCII; `undefined` when the field is malformed
 */
export function parseIdempotencyKey(field: string): string | undefined {
  const text = trimWhitespace(field)
  if (!text.startsWith('"')) return IDEMPOTENCY_KEY.test(text) ? text : undefined
  const item = parseItem(text)
  return item?.type === 'string' && IDEMPOTENCY_KEY.test(item.value) ? item.value : undefined
}

function readMember(text: string, at: number): Parsed<DictionaryMember> | undefined {
  if (text[at] === '=') return text[at + 1] === '(' ? readInnerList(text, at + 1) : readItem(text, at + 1)
  const end = skipParameters(text, at)
  return end === undefined ? undefined : { value: { type: 'boolean', value: true }, end }
}

function readInnerList(text: string, open: number): Parsed<DictionaryMember> | undefined {
  let at = open + 1
  for (;;) {
    at = skipSpaces(text, at)
    if (text[at] === ')') break
    const item = readItem(text, at)
    if (item === undefined) return undefined
    at = item.end
    if (text[at] !== ' ' && text[at] !== ')') return undefined
  }
  const end = skipParameters(text, at + 1)
  return end === undefined ? undefined : { value: { type: 'list' }, end }
}

function readItem(text: string, at: number): Parsed<BareItem> | undefined {
  const item = readBareItem(text, at)
  const end = item && skipParameters(text, item.end)
  return end === undefined ? undefined : { value: item!.value, end }
}

/** Index after the parameters that begin at `at` (RFC 9651 §4.2.3.2). */
function skipParameters(text: string, at: number): number | undefined {
  let end = at
  while (text[end] === ';') {
    const key = readKey(text, skipSpaces(text, end + 1))
    const last = key && text[key.end] === '=' ? readBareItem(text, key.end + 1) : key
    if (last === undefined) return undefined
    end = last.end
  }
  return end
}

function readBareItem(text: string, at: number): Parsed<BareItem> | undefined {
  switch (text[at]) {
    case '"':
      return read(STRING, text, at, ([, text]) => ({ type: 'string', value: text!.replace(/\\(.)/g, '$1') }))
    case '%':
      return read(DISPLAY_STRING, text, at, ([, coded]) => {
        const value = decodePercent(coded!)
        return value === undefined ? undefined : { type: 'string', value }
      })
    case ':':
      return read(BYTES, text, at, ([, base64]) => decodeBytes(base64!))
    case '?':
      return read(BOOLEAN, text, at, ([, digit]) => ({ type: 'boolean', value: digit === '1' }))
    case '@':
      return read(DATE, text, at, ([, seconds]) => ({ type: 'date', value: Number(seconds) }))
  }
  return (
    read(TOKEN, text, at, ([value]) => ({ type: 'token', value })) ??
    read(NUMBER, text, at, ([number]) => ({
      type: number.includes('.') ? 'decimal' : 'integer',
      value: Number(number),
    }))
  )
}

function decodeBytes(base64: string): BareItem | undefined {
  // Padding may be left out (RFC 9651 §4.2.7); a single character left over is a quarter of nothing.
  const digits = base64.replace(/=+$/, '')
  if (digits.length % 4 === 1) return undefined
  return { type: 'bytes', value: Uint8Array.from(atob(digits), (character) => character.charCodeAt(0)) }
}

function readKey(text: string, at: number): Parsed<string> | undefined {
  return read(KEY, text, at, ([key]) => key)
}

/** What a pattern finds at `at`, made into a value; `undefined` where it finds nothing, or nothing can be made of it. */
function read<Value>(
  pattern: RegExp,
  text: string,
  at: number,
  toValue: (match: RegExpExecArray) => Value | undefined,
): Parsed<Value> | undefined {
  pattern.lastIndex = at
  const match = pattern.exec(text)
  const value = match === null ? undefined : toValue(match)
  return value === undefined ? undefined : { value, end: at + match![0].length }
}

function skipSpaces(text: string, at: number): number {
  while (text[at] === ' ') at++
  return at
}
