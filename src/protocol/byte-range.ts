import { trimWhitespace } from './field-value.ts'

/** Range requests (RFC 9110 §14): which bytes are selected. */

/** Inclusive positions of the first and the last byte. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/**
 * `whole`: the field is ignored, 200. `unsatisfiable`: 416.
 * Otherwise the ranges to send, merged where they overlap or touch, in the order they were asked for: 206.
 */
export type RangeSelection = 'whole' | 'unsatisfiable' | readonly ByteRange[]

const MAX_RANGES = 100
const MAX_OVERLAPS = 2
const RANGE_SPEC = /^(\d*)-(\d*)$/

/**
 * Selects the bytes that a Range field asks for.
 *
 * Ignored (RFC 9110 §14.2 lets a server do so): another unit, a malformed set, an empty representation, a set of more
 * than 100 ranges, more than two overlaps, or one that asks for more bytes than there are.
 * @param field the value of Range
 * @param size the length of the representation in bytes
 */
export function selectRanges(field: string, size: number): RangeSelection {
  if (size === 0 || field.slice(0, 6).toLowerCase() !== 'bytes=') return 'whole'
  const ranges: ByteRange[] = []
  let members = 0
  let bytes = 0
  for (const member of field.slice(6).split(',')) {
    const text = trimWhitespace(member)
    if (text === '') continue
    const range = parseRangeSpec(text, size)
    if (range === 'malformed' || ++members > MAX_RANGES) return 'whole'
    if (range === 'unsatisfiable') continue
    bytes += range.last - range.first + 1
    if (bytes > size) return 'whole'
    ranges.push(range)
  }
  if (members === 0) return 'whole'
  if (ranges.length === 0) return 'unsatisfiable'
  return mergeRanges(ranges)
}

/** One `first-last`, `first-` or `-suffix` (RFC 9110 §14.1.2), clipped to the representation. */
function parseRangeSpec(text: string, size: number): ByteRange | 'unsatisfiable' | 'malformed' {
  const match = RANGE_SPEC.exec(text)
  if (match === null) return 'malformed'
  const [, from = '', to = ''] = match
  if (from === '') {
    if (to === '') return 'malformed'
    const length = Number(to)
    return length === 0 ? 'unsatisfiable' : { first: Math.max(0, size - length), last: size - 1 }
  }
  const first = Number(from)
  const last = to === '' ? size - 1 : Number(to)
  if (to !== '' && last < first) return 'malformed'
  return first >= size ? 'unsatisfiable' : { first, last: Math.min(last, size - 1) }
}

/** Merged where ranges overlap or touch (RFC 9110 §15.3.7.2); a merged range stands where its first member stood. */
function mergeRanges(ranges: readonly ByteRange[]): RangeSelection {
  const ordered = ranges.map((range, place) => ({ ...range, place })).sort((a, b) => a.first - b.first)
  const merged: { first: number; last: number; place: number }[] = []
  let overlaps = 0
  for (const range of ordered) {
    const previous = merged[merged.length - 1]
    if (previous === undefined || range.first > previous.last + 1) {
      merged.push(range)
      continue
    }
    if (range.first <= previous.last && ++overlaps > MAX_OVERLAPS) return 'whole'
    previous.last = Math.max(previous.last, range.last)
    previous.place = Math.min(previous.place, range.place)
  }
  merged.sort((a, b) => a.place - b.place)
  return merged.map(({ first, last }) => ({ first, last }))
}

/** Writes Content-Range: `bytes 0-4/26` (RFC 9110 §14.4). @param size the length of the representation in bytes */
export function formatContentRange(range: ByteRange, size: number): string {
  return `bytes ${range.first}-${range.last}/${size}`
}
