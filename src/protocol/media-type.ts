import { isToken, parseParameters, skipToken, skipWhitespace } from './field-value.ts'

/** A media type (RFC 9110 §8.3.1). */
export interface MediaType {
  /** `type/subtype` in lower case. */
  readonly essence: string
  /** Parameter values by lower-case name. */
  readonly parameters: ReadonlyMap<string, string>
}

const MAX_LENGTH = 255
/** The parameters of a media type that has none. */
export const NO_PARAMETERS: ReadonlyMap<string, string> = new Map()

/**
 * Reads a media type.
 * @returns `undefined` when it is malformed, a list, has a parameter twice, or is longer than 255 characters
 */
export function parseMediaType(text: string): MediaType | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const start = skipWhitespace(text, 0)
  const slash = skipToken(text, start)
  if (slash === start || text.charCodeAt(slash) !== 0x2f) return undefined
  const end = skipToken(text, slash + 1)
  if (end === slash + 1) return undefined
  const essence = text.slice(start, end).toLowerCase()
  if (end === text.length) return { essence, parameters: NO_PARAMETERS }
  const parsed = parseParameters(text, end)
  if (parsed === undefined || skipWhitespace(text, parsed.end) !== text.length) return undefined
  return { essence, parameters: parsed.parameters }
}

/** Whether a media type is JSON: `application/json`, `text/json` or a `+json` suffix (RFC 8259, RFC 6839). */
export function isJsonType(essence: string): boolean {
  return essence === 'application/json' || essence.endsWith('+json') || essence === 'text/json'
}

/** Whether a Content-Type says JSON, whatever parameters it has. */
export function isJsonContentType(field: string): boolean {
  return field === 'application/json' || isJsonType(parseMediaType(field)?.essence ?? '')
}

/**
 * Whether a media type lies in a range.
 * @param range `*&#47;*`, `type/*`, `type/subtype` or `*&#47;*+suffix`, in lower case
 * @param essence `type/subtype` in lower case
 */
export function isInMediaRange(range: string, essence: string): boolean {
  if (range === essence || range === '*/*') return true
  if (range.startsWith('*/*+')) return essence.endsWith(range.slice(3))
  return range.endsWith('/*') && essence.startsWith(range.slice(0, -1))
}

/** Whether `text` may stand where a media range is expected: two tokens around a slash, no parameters. */
export function isMediaRange(text: string): boolean {
  const slash = text.indexOf('/')
  return slash > 0 && isToken(text.slice(0, slash)) && isToken(text.slice(slash + 1))
}

/** Whether all content of a media range is JSON. */
export function isJsonRange(range: string): boolean {
  return isJsonType(range) || range === '*/*+json'
}

/** The type of text that is encoded as UTF-8. Only text has a charset by default; JSON has none (RFC 8259 §11). */
export function withUtf8(field: string): string {
  const type = parseMediaType(field)
  if (type === undefined) return field
  const { essence, parameters } = type
  const charset = parameters.get('charset')
  if (charset === undefined ? !essence.startsWith('text/') : /^utf-?8$/i.test(charset)) return field
  const others = [...parameters].filter(([name]) => name !== 'charset')
  const kept = others.map(([name, value]) => `; ${name}=${isToken(value) ? value : JSON.stringify(value)}`)
  return `${essence}${kept.join('')}; charset=utf-8`
}
