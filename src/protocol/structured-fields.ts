/** Structured field values (RFC 9651), as far as the fields of this library use them: items and dictionaries. */

/** A bare item (RFC 9651 §3.3), distinguished by its type: a Display String is a string, a Date an integer. */
export type BareItem =
  | { readonly type: 'integer' | 'decimal' | 'date'; readonly value: number }
  | { readonly type: 'string' | 'token'; readonly value: string }
  | { readonly type: 'bytes'; readonly value: Uint8Array }
  | { readonly type: 'boolean'; readonly value: boolean }

/** A member of a dictionary: an item, or an inner list, of which nothing here has any use. */
export type DictionaryMember = BareItem | { readonly type: 'list' }

interface Parsed<Value> {
  readonly value: Value
  /** Index after it. */
  readonly end: number
}

const KEY = /[a-z*][a-z0-9_\-.*]*/y
const NUMBER = /-?(\d+)(?:\.(\d*))?/y
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
    const key = match(KEY, field, at)
    if (key === undefined) return undefined
    const member = readMember(field, at + key[0].length)
    if (member === undefined) return undefined
    // The last one takes the place of the last one in the order as well.
    members.delete(key[0])
    members.set(key[0], member.value)
    at = skipWhitespace(field, member.end)
    if (at === field.length) return members
    if (field[at] !== ',') return undefined
    at = skipWhitespace(field, at + 1)
    if (at === field.length) return undefined // a comma that nothing follows
  }
  return members
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
    const start = skipSpaces(text, end + 1)
    const key = match(KEY, text, start)
    if (key === undefined) return undefined
    end = start + key[0].length
    if (text[end] !== '=') continue
    const item = readBareItem(text, end + 1)
    if (item === undefined) return undefined
    end = item.end
  }
  return end
}

function readBareItem(text: string, at: number): Parsed<BareItem> | undefined {
  const first = text[at]
  switch (first) {
    case undefined:
      return undefined
    case '"':
      return found(match(STRING, text, at), at, ([, escaped]) => ({
        type: 'string',
        value: escaped!.replace(/\\(.)/g, '$1'),
      }))
    case ':':
      return found(match(BYTES, text, at), at, ([, base64]) => decodeBytes(base64!))
    case '?':
      return found(match(BOOLEAN, text, at), at, ([, digit]) => ({ type: 'boolean', value: digit === '1' }))
    case '%':
      return found(match(DISPLAY_STRING, text, at), at, ([, coded]) => decodeDisplayString(coded!))
    case '@': {
      const number = readNumber(text, at + 1)
      return number?.value.type === 'integer'
        ? { value: { ...number.value, type: 'date' }, end: number.end }
        : undefined
    }
  }
  if (first === '-' || (first >= '0' && first <= '9')) return readNumber(text, at)
  return found(match(TOKEN, text, at), at, ([token]) => ({ type: 'token', value: token }))
}

interface NumberItem {
  readonly type: 'integer' | 'decimal' | 'date'
  readonly value: number
}

/** RFC 9651 §4.2.4: at most 15 digits, or 12 before the point and 1 to 3 behind it. */
function readNumber(text: string, at: number): Parsed<NumberItem> | undefined {
  return found(match(NUMBER, text, at), at, ([number, whole, fraction]): NumberItem | undefined => {
    if (fraction === undefined) return whole!.length > 15 ? undefined : { type: 'integer', value: Number(number) }
    if (whole!.length > 12 || fraction === '' || fraction.length > 3) return undefined
    return { type: 'decimal', value: Number(number) }
  })
}

function decodeBytes(base64: string): BareItem | undefined {
  // Padding may be left out (RFC 9651 §4.2.7); a single character left over is a quarter of nothing.
  const digits = base64.replace(/=+$/, '')
  if (digits.length % 4 === 1) return undefined
  const binary = atob(digits)
  return { type: 'bytes', value: Uint8Array.from(binary, (character) => character.charCodeAt(0)) }
}

function decodeDisplayString(coded: string): BareItem | undefined {
  try {
    return { type: 'string', value: decodeURIComponent(coded) }
  } catch {
    return undefined // not UTF-8
  }
}

function found<Value>(
  match: RegExpExecArray | undefined,
  at: number,
  read: (match: RegExpExecArray) => Value | undefined,
): Parsed<Value> | undefined {
  const value = match && read(match)
  return value === undefined ? undefined : { value, end: at + match![0].length }
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

function skipSpaces(text: string, at: number): number {
  while (text[at] === ' ') at++
  return at
}

function skipWhitespace(text: string, at: number): number {
  while (text[at] === ' ' || text[at] === '\t') at++
  return at
}
