import { formatQuotedString, isToken, parseParameters, skipToken, skipWhitespace, splitList } from './field-value.ts'

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
 * Reads a media type (RFC 9110 §8.3.1).
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

/** Whether some content of a media range is JSON. */
export function includesJson(range: string): boolean {
  return isJsonRange(range) || range === '*/*' || range === 'application/*'
}

/** The type of text that is encoded as UTF-8. Only text has a charset by default; JSON has none (RFC 8259 §11). */
export function withUtf8(field: string): string {
  const type = parseMediaType(field)
  if (type === undefined) return field
  const { essence, parameters } = type
  const charset = parameters.get('charset')
  if (charset === undefined ? !essence.startsWith('text/') : /^utf-?8$/i.test(charset)) return field
  return `${withoutCharset(type)}; charset=utf-8`
}

/** A media type as text, without its charset. */
export function withoutCharset({ essence, parameters }: MediaType): string {
  const others = [...parameters].filter(([name]) => name !== 'charset')
  return (
    essence + others.map(([name, value]) => `; ${name}=${isToken(value) ? value : formatQuotedString(value)}`).join('')
  )
}

/**
 * One member of Accept (RFC 9110 §12.5.1): `type/subtype`, `type/*` or all types, with every parameter but `q`, wherever
 * that stands.
 */
export interface AcceptRange extends MediaType {
  /** 0 to 1. */
  readonly quality: number
}

/** Also `.2`: Java has long sent `*; q=.2`, and without that member nothing would be acceptable to it. */
const QVALUE = /^(?:0(?:\.\d{0,3})?|\.\d{1,3}|1(?:\.0{0,3})?)$/

/** Reads Accept (RFC 9110 §12.5.1). Malformed members are ignored: for a fault there a client still gets a response. */
export function parseAccept(field: string): AcceptRange[] {
  const ranges: AcceptRange[] = []
  for (const member of splitList(field)) {
    const type = parseMediaType(/^\*(?!\/)/.test(member) ? '*/*' + member.slice(1) : member)
    if (type === undefined) continue
    const q = type.parameters.get('q')
    if (q !== undefined && !QVALUE.test(q)) continue
    const parameters = new Map(type.parameters)
    parameters.delete('q')
    ranges.push({ essence: type.essence, parameters, quality: q === undefined ? 1 : Number(q) })
  }
  return ranges
}

/**
 * Selects the representation that Accept prefers (RFC 9110 §12.5.1): the most specific range gives each offer its
 * quality, the highest quality wins, and among equals the earliest offer.
 * @param field the value of Accept, or `undefined` when the request has none
 * @param offers media types that can be had, in the server's order of preference
 * @returns the index of the offer; -1 when none is acceptable (406). Without a usable member anything is acceptable.
 */
export function selectMediaType(field: string | undefined, offers: readonly MediaType[]): number {
  if (field === undefined) return 0
  const ranges = parseAccept(field)
  if (ranges.length === 0) return 0
  let best = -1
  let bestQuality = 0
  for (const [index, offer] of offers.entries()) {
    const quality = qualityOf(offer, ranges)
    if (quality > bestQuality) {
      best = index
      bestQuality = quality
    }
  }
  return best
}

function qualityOf(offer: MediaType, ranges: readonly AcceptRange[]): number {
  let quality = 0
  let specificity = -1
  for (const range of ranges) {
    const rank = specificityOf(offer, range)
    if (rank > specificity) {
      specificity = rank
      quality = range.quality
    }
  }
  return quality
}

/** -1 when the range does not cover the offer; otherwise larger for more specific ranges. */
function specificityOf(offer: MediaType, range: AcceptRange): number {
  if (range.essence === '*/*') return 0
  if (range.essence.endsWith('/*')) return offer.essence.startsWith(range.essence.slice(0, -1)) ? 1 : -1
  if (range.essence !== offer.essence) return -1
  for (const [name, value] of range.parameters) {
    const offered = offer.parameters.get(name)
    // Many clients ask for "application/json; charset=utf-8": an offer that names no charset is not refused by that.
    if (offered === undefined && name === 'charset') continue
    if (offered?.toLowerCase() !== value.toLowerCase()) return -1
  }
  return 2 + range.parameters.size
}

/**
 * Whether Accept-Encoding refuses content that carries no coding: `identity;q=0`, or `*;q=0` without a word on
 * identity (RFC 9110 §12.5.3).
 */
export function refusesIdentity(field: string | undefined): boolean {
  if (field === undefined) return false
  let wildcardRefused = false
  for (const member of splitList(field)) {
    const end = skipToken(member, 0)
    const coding = member.slice(0, end).toLowerCase()
    const refused = /^;[ \t]*[qQ]=0(?:\.0{0,3})?$/.test(member.slice(skipWhitespace(member, end)))
    if (coding === 'identity') return refused
    if (coding === '*') wildcardRefused = refused
  }
  return wildcardRefused
}
