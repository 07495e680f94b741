/** Character classes and small grammars that every field value is made of (RFC 9110 §5.6). */

const TOKEN = new Uint8Array(128)
for (const char of "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") {
  TOKEN[char.charCodeAt(0)] = 1
}

/** Whether `code` is a `tchar` (RFC 9110 §5.6.2). */
export function isTokenCode(code: number): boolean {
  return code < 128 && TOKEN[code] === 1
}

/** Whether `text` is a `token`: at least one `tchar` and nothing else (RFC 9110 §5.6.2). */
export function isToken(text: string): boolean {
  return text !== '' && skipToken(text, 0) === text.length
}

/** Whether Node can send `text` as the value of a field: no control but the tab, and Latin-1 only (RFC 9110 §5.5). */
export function isFieldValue(text: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
}

/** Index of the first character at or after `at` that is neither a space nor a tab (`OWS`, RFC 9110 §5.6.3). */
export function skipWhitespace(text: string, at: number): number {
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x09) break
    at++
  }
  return at
}

/** Index after the token that starts at `at`; `at` itself when there is none. */
export function skipToken(text: string, at: number): number {
  while (at < text.length && isTokenCode(text.charCodeAt(at))) at++
  return at
}

/** `text` without spaces and tabs at either end. Linear, whatever the text. */
export function trimWhitespace(text: string): string {
  const start = skipWhitespace(text, 0)
  let end = text.length
  while (end > start) {
    const code = text.charCodeAt(end - 1)
    if (code !== 0x20 && code !== 0x09) break
    end--
  }
  return start === 0 && end === text.length ? text : text.slice(start, end)
}

/**
 * Reads the quoted-string that starts at `at` (RFC 9110 §5.6.4).
 * @returns its unescaped value and the index after it, or `undefined` when it is malformed or unterminated.
 */
export function parseQuotedString(text: string, at: number): { value: string; end: number } | undefined {
  if (text.charCodeAt(at) !== 0x22) return undefined
  let value = ''
  let from = at + 1
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) return { value: value + text.slice(from, i), end: i + 1 }
    if (code === 0x5c) {
      if (i + 1 >= text.length || !isQuotedCode(text.charCodeAt(i + 1))) return undefined
      value += text.slice(from, i)
      from = ++i
    } else if (!isQuotedCode(code)) return undefined
  }
  return undefined
}

function isQuotedCode(code: number): boolean {
  return code === 0x09 || (code >= 0x20 && code !== 0x7f)
}

/** `text` as a quoted-string; quotes and backslashes are escaped, characters that no field may hold are dropped. */
export function formatQuotedString(text: string): string {
  return `"${text.replace(/[^\t\x20-\x7e\x80-\xff]/g, '').replace(/["\\]/g, '\\$&')}"`
}

/** Reads the token or quoted-string that starts at `at`; `undefined` when there is neither. */
export function parseParameterValue(text: string, at: number): { value: string; end: number } | undefined {
  if (text.charCodeAt(at) === 0x22) return parseQuotedString(text, at)
  const end = skipToken(text, at)
  return end === at ? undefined : { value: text.slice(at, end), end }
}

/**
 * Reads `*( OWS ";" OWS [ name "=" value ] )` from `at` on (RFC 9110 §5.6.6).
 * Names are lower-cased; a quoted value equals the same value without quotes.
 * @returns values by name, and the index after the last; `undefined` when a parameter is malformed or a name occurs twice
 */
export function parseParameters(
  text: string,
  at: number,
): { parameters: ReadonlyMap<string, string>; end: number } | undefined {
  const parameters = new Map<string, string>()
  let end = at
  for (;;) {
    const semicolon = skipWhitespace(text, end)
    if (text.charCodeAt(semicolon) !== 0x3b) return { parameters, end }
    const start = skipWhitespace(text, semicolon + 1)
    const equals = skipToken(text, start)
    if (equals === start) {
      end = start // an empty parameter, as in "text/plain;"
      continue
    }
    const name = text.slice(start, equals).toLowerCase()
    const parsed = text.charCodeAt(equals) === 0x3d ? parseParameterValue(text, equals + 1) : undefined
    if (parsed === undefined || parameters.has(name)) return undefined
    parameters.set(name, parsed.value)
    end = parsed.end
  }
}

/**
 * Splits a comma-separated list at commas outside quoted strings; empty members are dropped (RFC 9110 §5.6.1.2).
 * Members keep their inner text and lose surrounding whitespace. An unterminated quote runs to the end.
 */
export function splitList(text: string): string[] {
  const members: string[] = []
  let from = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === 0x5c) i++
      else if (code === 0x22) quoted = false
    } else if (code === 0x22) quoted = true
    else if (code === 0x2c) {
      addMember(members, text.slice(from, i))
      from = i + 1
    }
  }
  addMember(members, text.slice(from))
  return members
}

function addMember(members: string[], text: string): void {
  const member = trimWhitespace(text)
  if (member !== '') members.push(member)
}

/**
 * Joins two Vary values: every field name once, in order, `*` alone when either says so (RFC 9110 §12.5.5).
 * A value beside an empty or equal one is returned as it is.
 * @param a a Vary value, possibly empty
 * @param b a Vary value, possibly empty
 */
export function mergeVary(a: string, b: string): string {
  if (a === '' || a === b) return b
  if (b === '') return a
  if (isFieldName(a) && isFieldName(b)) return a.toLowerCase() === b.toLowerCase() ? a : `${a}, ${b}`
  const names = splitList(a)
  const known = new Set(names.map((name) => name.toLowerCase()))
  for (const name of splitList(b)) {
    const key = name.toLowerCase()
    if (!known.has(key)) {
      known.add(key)
      names.push(name)
    }
  }
  return known.has('*') ? '*' : names.join(', ')
}

/** Whether a value is one field name: two of them, as almost always, cost a tenth of what lists do. */
function isFieldName(value: string): boolean {
  return value !== '*' && isToken(value)
}

/** The text that percent-encoded text stands for; `undefined` for a broken escape, or bytes that are not UTF-8. */
export function decodePercent(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
