import { describe, expect, it } from 'vitest'
import { formatContentRange, type RangeSelection, selectRanges } from '../../src/protocol/byte-range.ts'

const WHOLE = 'whole'
const NONE = 'unsatisfiable'

function show(selection: RangeSelection): string {
  return typeof selection === 'string' ? selection : selection.map(({ first, last }) => `${first}-${last}`).join(',')
}

function repeat(spec: string, times: number): string {
  return Array.from({ length: times }, () => spec).join(',')
}

/** `0-0,2-2,4-4,…`: ranges that neither overlap nor touch. */
function scattered(count: number): string {
  return Array.from({ length: count }, (_, i) => `${2 * i}-${2 * i}`).join(',')
}

// A range set, and what it selects of 26 bytes, of 1 byte and of 10 000 bytes.
type Row = readonly [source: string, set: string, of26: string, of1: string, of10000: string]

const SINGLE: readonly Row[] = [
  ['§14.1.2, row H143', '0-0', '0-0', '0-0', '0-0'],
  ['§14.1.2, row H139', '0-4', '0-4', '0-0', '0-4'],
  ['§14.1.2', '3-7', '3-7', NONE, '3-7'],
  ['§14.1.2', '0-25', '0-25', '0-0', '0-25'],
  ['§14.1.2: clipped, row H141', '0-26', '0-25', '0-0', '0-26'],
  ['§14.1.2: clipped, row H141', '0-999', '0-25', '0-0', '0-999'],
  ['§14.1.2: clipped', '25-26', '25-25', NONE, '25-26'],
  ['§14.1.2: the last byte, row H143', '25-25', '25-25', NONE, '25-25'],
  ['§14.1.2: behind the end, row H144', '26-26', NONE, NONE, '26-26'],
  ['§14.1.2: behind the end, row H144', '26-30', NONE, NONE, '26-30'],
  ['§14.1.2: behind the end, row H144', '99-', NONE, NONE, '99-9999'],
  ['§14.1.2: open, row H140', '0-', '0-25', '0-0', '0-9999'],
  ['§14.1.2: open', '1-', '1-25', NONE, '1-9999'],
  ['§14.1.2: open, row H140', '20-', '20-25', NONE, '20-9999'],
  ['§14.1.2: open', '25-', '25-25', NONE, '25-9999'],
  ['§14.1.2: open behind the end, row H144', '26-', NONE, NONE, '26-9999'],
  ['§14.1.2: open, threat 54', '9999-', NONE, NONE, '9999-9999'],
  ['§14.1.2: open behind the end, threat 54', '10000-', NONE, NONE, NONE],
  ['§14.1.2: suffix', '-1', '25-25', '0-0', '9999-9999'],
  ['§14.1.2: suffix, row H140', '-3', '23-25', '0-0', '9997-9999'],
  ['§14.1.2: suffix', '-25', '1-25', '0-0', '9975-9999'],
  ['§14.1.2: suffix of all', '-26', '0-25', '0-0', '9974-9999'],
  ['§14.1.2: suffix longer than the data, row H142', '-27', '0-25', '0-0', '9973-9999'],
  ['§14.1.2: suffix longer than the data, row H142', '-999', '0-25', '0-0', '9001-9999'],
  ['§14.1.2: suffix longer than the data, threat 53', '-20000', '0-25', '0-0', '0-9999'],
  ['§14.1.2: empty suffix, row H144', '-0', NONE, NONE, NONE],
  ['§14.1.2: empty suffix', '-000', NONE, NONE, NONE],
  ['row H141: 20 digits', '10-99999999999999999999', '10-25', NONE, '10-9999'],
  ['threat 53: 30 digits', `${'9'.repeat(30)}-`, NONE, NONE, NONE],
  ['threat 53: 30 digits', `-${'9'.repeat(30)}`, '0-25', '0-0', '0-9999'],
  ['400 digits, beyond any number', `0-${'9'.repeat(400)}`, '0-25', '0-0', '0-9999'],
  ['400 digits, beyond any number', `${'9'.repeat(400)}-`, NONE, NONE, NONE],
  ['400 digits, beyond any number', `-${'9'.repeat(400)}`, '0-25', '0-0', '0-9999'],
  ['§14.1.1: leading zeros are digits', '00-04', '0-4', '0-0', '0-4'],
  ['§14.1.1: leading zeros are digits', '0000000000000000000005-', '5-25', NONE, '5-9999'],
  ['§5.6.1.2: blanks around a member', ' 0-4', '0-4', '0-0', '0-4'],
  ['§5.6.1.2: blanks around a member', '\t0-4 ', '0-4', '0-0', '0-4'],
  ['§5.6.1.2: empty members', '0-4,', '0-4', '0-0', '0-4'],
  ['§5.6.1.2: empty members', ', ,0-4', '0-4', '0-0', '0-4'],
]

const SETS: readonly Row[] = [
  ['row H153', '0-1,10-11', '0-1,10-11', '0-0', '0-1,10-11'],
  ['row H147', '0-1, 4-5', '0-1,4-5', '0-0', '0-1,4-5'],
  ['row H147', '0-1 ,\t4-5', '0-1,4-5', '0-0', '0-1,4-5'],
  ['§5.6.1.2: empty members', ',0-1,,4-5,', '0-1,4-5', '0-0', '0-1,4-5'],
  ['§15.3.7.2: request order, row H157', '10-11,0-1', '10-11,0-1', '0-0', '10-11,0-1'],
  ['§15.3.7.2: request order', '-1,0-0', '25-25,0-0', WHOLE, '9999-9999,0-0'],
  ['§15.3.7.2: request order', '20-21,10-11,0-1', '20-21,10-11,0-1', '0-0', '20-21,10-11,0-1'],
  ['row H156', '0-1,99-100', '0-1', '0-0', '0-1,99-100'],
  ['row H156', '99-100,0-1', '0-1', '0-0', '99-100,0-1'],
  ['row H156', '-0,0-1', '0-1', '0-0', '0-1'],
  ['row H144: none satisfiable', '99-100,200-', NONE, NONE, '99-100,200-9999'],
  ['row H144: none satisfiable', '-0,26-30', NONE, NONE, '26-30'],
  ['row H144: none satisfiable', '-0,-0', NONE, NONE, NONE],
  ['row H157: overlapping', '0-5,3-9', '0-9', '0-0', '0-9'],
  ['row H157: overlapping, the later first', '3-9,0-5', '0-9', '0-0', '0-9'],
  ['row H157: contained', '0-9,3-5', '0-9', '0-0', '0-9'],
  ['row H157: contained, the inner first', '3-5,0-9', '0-9', '0-0', '0-9'],
  ['row H157: adjacent', '0-4,5-9', '0-9', '0-0', '0-9'],
  ['row H157: adjacent, the later first', '5-9,0-4', '0-9', '0-0', '0-9'],
  ['row H157: one byte apart', '0-4,6-9', '0-4,6-9', '0-0', '0-4,6-9'],
  ['row H157: merged where its first member stood', '20-25,0-1,18-19', '18-25,0-1', '0-0', '18-25,0-1'],
  ['row H157: merged where its first member stood', '0-1,20-25,2-3', '0-3,20-25', '0-0', '0-3,20-25'],
  ['row H157: a bridge joins three', '0-1,4-5,2-3', '0-5', '0-0', '0-5'],
  ['row H157: open and suffix', '20-,-6', '20-25', '0-0', '20-9999'],
  ['row H157: the whole in two halves', '0-12,13-25', '0-25', '0-0', '0-25'],
  ['row H158: as much as there is', '-25,0-0', '0-25', WHOLE, '9975-9999,0-0'],
  ['row H158: more than there is', '-26,0-0', WHOLE, WHOLE, '9974-9999,0-0'],
  ['row H158: more than there is', '0-25,0-25', WHOLE, WHOLE, '0-25'],
  ['row H158: more than there is', '0-0,0-0', '0-0', WHOLE, '0-0'],
  ['row H158: more than there is', '0-,0-', WHOLE, WHOLE, WHOLE],
  ['row H158: more than there is, after clipping', '0-999,25-', WHOLE, '0-0', WHOLE],
  ['row H158: two overlaps', '0-1,1-2,2-3', '0-3', '0-0', '0-3'],
  ['row H158: three overlaps', '0-1,1-2,2-3,3-4', WHOLE, '0-0', WHOLE],
  ['row H157: ranges that touch, however many', '0-0,1-1,2-2,3-3,4-4', '0-4', '0-0', '0-4'],
  ['row H158: two overlaps, apart', '0-1,1-2,10-11,11-12', '0-2,10-12', '0-0', '0-2,10-12'],
  ['row H158: three overlaps, apart', '0-1,1-2,10-11,11-12,20-21,21-22', WHOLE, '0-0', WHOLE],
]

/** Sets too long to name a test after. */
const LONG: readonly Row[] = [
  ['threat 52: 1000 times the whole', repeat('0-', 1000), WHOLE, WHOLE, WHOLE],
  ['threat 52: 1500 times the same', repeat('5-6', 1500), WHOLE, WHOLE, WHOLE],
  [
    'row H158: 100 ranges',
    scattered(100),
    [...Array(13).keys()].map((i) => `${2 * i}-${2 * i}`).join(','),
    '0-0',
    scattered(100),
  ],
  ['row H158: 101 ranges', scattered(101), WHOLE, WHOLE, WHOLE],
  ['row H158: 101 ranges of which none can be had', repeat('99999-', 101), WHOLE, WHOLE, WHOLE],
  ['row H158: 100 ranges of which none can be had', repeat('99999-', 100), NONE, NONE, NONE],
]
const ROWS = [...SINGLE, ...SETS]

/** Malformed sets, and units we do not know: the field is ignored. */
const IGNORED = [
  'bytes',
  'bytes=',
  'bytes= ',
  'bytes=,',
  'bytes=, ,',
  'bytes=-',
  'bytes=--1',
  'bytes=-1-',
  'bytes=--',
  'bytes=5-2',
  'bytes=1-0',
  'bytes=27-26',
  'bytes=a-b',
  'bytes=0-a',
  'bytes=a-',
  'bytes=0',
  'bytes=0-4-5',
  'bytes=0--4',
  'bytes=0x0-1',
  'bytes=0-0x1',
  'bytes=+0-4',
  'bytes=0-+4',
  'bytes=0.0-4',
  'bytes=0-4.5',
  'bytes=0-1e1',
  'bytes=1_0-20',
  'bytes=0 -4',
  'bytes=0- 4',
  'bytes=- 4',
  'bytes=0-4;q=1',
  'bytes="0-4"',
  'bytes=(0-4)',
  'bytes=*',
  'bytes=*/26',
  'bytes=0-4/26',
  'bytes=0-4 6-7',
  'bytes=0-4;6-7',
  'bytes=0-4,a',
  'bytes=a,0-4',
  'bytes=0-4,5-2',
  'bytes=0-4,-',
  'bytes=0-4,bytes=6-7',
  'bytes=0-4, bytes=6-7',
  'bytes=٠-٤',
  'bytes=\u00a00-4',
  'bytes=0-4\u00a0',
  'bytes=\n0-4',
  'bytes=\u30000-4',
  'bytes==0-4',
  'bytes:0-4',
  'bytes 0-4',
  'bytes 0-4/26',
  'bytes =0-4',
  ' bytes=0-4',
  'byte=0-4',
  'bytess=0-4',
  'items=0-4',
  'seconds=0-4',
  'none=0-4',
  'none',
  'lines=1-2,bytes=0-4',
  '=0-4',
  '0-4',
  '-',
  '=',
  '',
]

describe('selectRanges', () => {
  const selectOfAll = (set: string) => [26, 1, 10_000].map((size) => show(selectRanges(`bytes=${set}`, size)))

  it.each(ROWS)('(RFC 9110 %s) %j of 26 bytes: %s; of 1: %s; of 10 000: %s', (_source, set, of26, of1, of10000) => {
    expect(selectOfAll(set)).toEqual([of26, of1, of10000])
  })

  for (const [source, set, ...expected] of LONG) {
    it(`(RFC 9110 §14.2, ${source}) answers a set of ${set.length} characters`, () => {
      expect(selectOfAll(set)).toEqual(expected)
    })
  }

  it.each(ROWS)('(DESIGN §3, row H149) an empty representation ignores it: %s %j', (_source, set) => {
    expect(selectRanges(`bytes=${set}`, 0)).toBe(WHOLE)
  })

  it.each(IGNORED)('ignores %j (RFC 9110 §14.2, rows H145 and H146, threat 53)', (field) => {
    for (const size of [0, 1, 26, 10_000]) expect(selectRanges(field, size)).toBe(WHOLE)
  })

  it.each(['bytes', 'Bytes', 'BYTES', 'bYtEs'])(
    'compares units case-insensitively: %s (RFC 9110 §14.1, row H147)',
    (unit) => {
      expect(show(selectRanges(`${unit}=0-1, 4-5`, 26))).toBe('0-1,4-5')
    },
  )

  it('counts to the last byte of very large content', () => {
    const size = Number.MAX_SAFE_INTEGER
    expect(show(selectRanges('bytes=-1', size))).toBe(`${size - 1}-${size - 1}`)
    expect(show(selectRanges(`bytes=${size - 1}-`, size))).toBe(`${size - 1}-${size - 1}`)
    expect(selectRanges(`bytes=${size}-`, size)).toBe(NONE)
  })
})

describe('formatContentRange', () => {
  it.each([
    [0, 4, 26, 'bytes 0-4/26'],
    [25, 25, 26, 'bytes 25-25/26'],
    [0, 0, 1, 'bytes 0-0/1'],
  ])('writes %i-%i of %i (RFC 9110 §14.4, row H139)', (first, last, size, expected) => {
    expect(formatContentRange({ first, last }, size)).toBe(expected)
  })
})
