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
  if (text.length === 0) return false
  for (let i = 0; i < text.length; i++) if (!isTokenCode(text.charCodeAt(i))) return false
  return true
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

/** How one parameter list may be written; see {@link parseParameters}. */
export interface ParsedParameters {
  /** Values by lower-case name. */
  readonly parameters: ReadonlyMap<string, string>
  /** Index after the last parameter. */
  readonly end: number
}

/**
 * Reads `*( OWS ";" OWS [ name "=" value ] )` from `at` on (RFC 9110 §5.6.6).
 * Names are lower-cased; a quoted value equals the same value without quotes.
 * @returns `undefined` when a parameter is malformed or a name occurs twice.
 */
export function parseParameters(text: string, at: number): ParsedParameters | undefined {
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
    if (text.charCodeAt(equals) !== 0x3d) return undefined
    const name = text.slice(start, equals).toLowerCase()
    if (parameters.has(name)) return undefined
    const from = equals + 1
    if (text.charCodeAt(from) === 0x22) {
      const quoted = parseQuotedString(text, from)
      if (quoted === undefined) return undefined
      parameters.set(name, quoted.value)
      end = quoted.end
    } else {
      end = skipToken(text, from)
      if (end === from) return undefined
      parameters.set(name, text.slice(from, end))
    }
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
