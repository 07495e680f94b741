import { skipToken, skipWhitespace, splitList } from './field-value.ts'
import { type MediaType, parseMediaType } from './media-type.ts'

/** One member of Accept (RFC 9110 §12.5.1). */
export interface AcceptRange {
  /** `type/subtype`, `type/*` or `*&#47;*`, in lower case. */
  readonly essence: string
  /** Every parameter but `q`, wherever that stands (RFC 9110 §12.5.1). */
  readonly parameters: ReadonlyMap<string, string>
  /** 0 to 1. */
  readonly quality: number
}

/** Also `.2`: Java has long sent `*; q=.2`, and without that member nothing would be acceptable to it. */
const QVALUE = /^(?:0(?:\.\d{0,3})?|\.\d{1,3}|1(?:\.0{0,3})?)$/

/** Reads Accept; malformed members are dropped, because a client's mistake there must not cost it the answer. */
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
