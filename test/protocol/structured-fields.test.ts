import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BareItem, parseDictionary, parseItem } from '../../src/protocol/structured-fields.ts'

const bytes = (text: string): BareItem => ({ type: 'bytes', value: new TextEncoder().encode(text) })

describe('parseItem', () => {
  it.each<[string, BareItem | undefined, string]>([
    ['42', { type: 'integer', value: 42 }, '§3.3.1'],
    ['-0', { type: 'integer', value: -0 }, '§3.3.1'],
    ['999999999999999', { type: 'integer', value: 999_999_999_999_999 }, '§3.3.1: 15 digits'],
    ['1000000000000000', undefined, '§3.3.1: 16 digits'],
    ['+1', undefined, '§3.3.1'],
    ['4.5', { type: 'decimal', value: 4.5 }, '§3.3.2'],
    ['123456789012.123', { type: 'decimal', value: 123_456_789_012.123 }, '§3.3.2: 12 digits and 3'],
    ['1234567890123.1', undefined, '§3.3.2: 13 digits'],
    ['1.1234', undefined, '§3.3.2: 4 digits behind the point'],
    ['1.', undefined, '§3.3.2'],
    ['.5', undefined, '§3.3.2'],
    ['"hello \\"world\\" \\\\"', { type: 'string', value: 'hello "world" \\' }, '§3.3.3'],
    ['""', { type: 'string', value: '' }, '§3.3.3'],
    ['"a', undefined, '§3.3.3: unterminated'],
    ['"a\\b"', undefined, '§3.3.3: a backslash escapes quotes and backslashes only'],
    ['"ü"', undefined, '§3.3.3: ASCII'],
    ['"\t"', undefined, '§3.3.3: no controls'],
    ['foo123/456', { type: 'token', value: 'foo123/456' }, '§3.3.4'],
    ['*a', { type: 'token', value: '*a' }, '§3.3.4'],
    [':aGVsbG8=:', bytes('hello'), '§3.3.5'],
    [':aGVsbG8:', bytes('hello'), '§4.2.7: padding may be missing'],
    ['::', bytes(''), '§3.3.5'],
    [':aGVsbG8=', undefined, '§3.3.5: unterminated'],
    [':aGVs bG8=:', undefined, '§3.3.5'],
    [':a:', undefined, '§3.3.5: a single character'],
    ['?1', { type: 'boolean', value: true }, '§3.3.6'],
    ['?0', { type: 'boolean', value: false }, '§3.3.6'],
    ['?2', undefined, '§3.3.6'],
    ['@1659578233', { type: 'date', value: 1_659_578_233 }, '§3.3.7'],
    ['@1.5', undefined, '§3.3.7'],
    ['%"This is %c3%bc"', { type: 'string', value: 'This is ü' }, '§3.3.8'],
    ['%"%C3%BC"', undefined, '§3.3.8: lower case'],
    ['%"%ff"', undefined, '§3.3.8: no UTF-8'],
    ['  1  ', { type: 'integer', value: 1 }, '§4.2'],
    ['1;a;b=?0; c="x"', { type: 'integer', value: 1 }, '§3.1.2: parameters'],
    ['1; A', undefined, '§3.1.2: lower case'],
    ['1 ;a', undefined, '§4.2.3.2: no space before a semicolon'],
    ['1;a=', undefined, '§3.1.2'],
    ['1, 2', undefined, '§4.2: one item'],
    ['', undefined, '§4.2'],
    ['(1 2)', undefined, '§3.3: a list is not an item'],
  ])('reads %j as %j (RFC 9651 %s)', (field, item) => {
    expect(parseItem(field)).toEqual(item)
  })
})

describe('parseDictionary', () => {
  it.each<[string, [string, unknown][] | undefined, string]>([
    ['', [], '§4.2'],
    [
      'a=1, b',
      [
        ['a', { type: 'integer', value: 1 }],
        ['b', { type: 'boolean', value: true }],
      ],
      '§3.2',
    ],
    [
      'a;x=1 , b;y',
      [
        ['a', { type: 'boolean', value: true }],
        ['b', { type: 'boolean', value: true }],
      ],
      '§3.2',
    ],
    [
      'a=1,\tb=2',
      [
        ['a', { type: 'integer', value: 1 }],
        ['b', { type: 'integer', value: 2 }],
      ],
      '§4.2.2',
    ],
    [
      'a=1, b=2, a=3',
      [
        ['b', { type: 'integer', value: 2 }],
        ['a', { type: 'integer', value: 3 }],
      ],
      '§4.2.2: the last counts',
    ],
    [
      'rating=1.5, feelings=(joy "sadness";q=1);p',
      [
        ['rating', { type: 'decimal', value: 1.5 }],
        ['feelings', { type: 'list' }],
      ],
      '§3.2',
    ],
    ['a=( )', [['a', { type: 'list' }]], '§3.1.1'],
    ['a=(1  2)', [['a', { type: 'list' }]], '§4.2.1.2'],
    ['a=(1"2")', undefined, '§4.2.1.2'],
    ['a=(1', undefined, '§4.2.1.2'],
    ['a=1,', undefined, '§4.2.2: a trailing comma'],
    ['a=1 b=2', undefined, '§4.2.2'],
    ['A=1', undefined, '§3.1.2'],
    ['1=a', undefined, '§3.1.2'],
    ['a=', undefined, '§3.2'],
    [',a', undefined, '§4.2.2'],
    ['__proto__=1', undefined, '§3.1.2'],
  ])('reads %j (RFC 9651 %s)', (field, members) => {
    const parsed = parseDictionary(field)
    expect(parsed && [...parsed]).toEqual(members)
  })

  it('never throws, and takes time in proportion to the field', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary-ascii', maxLength: 200 }), (field) => void parseDictionary(field)))
    fc.assert(
      fc.property(fc.constantFrom('a=(', '"', 'a=":', ';a', 'a,', '\\"', 'a=:AAAA', '%"%c3'), (piece) => {
        parseDictionary(piece.repeat(100_000))
        parseItem(piece.repeat(100_000))
      }),
    )
  })
})
