import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatQueryText, parseQueryText } from '../../src/protocol/query-text.ts'

describe('parseQueryText', () => {
  it.each([
    ['', []],
    ['&&', []],
    ['a=b', [['a', 'b']]],
    ['a', [['a', '']]],
    ['=b', [['', 'b']]],
    [
      'a=b=c&a=d',
      [
        ['a', 'b=c'],
        ['a', 'd'],
      ],
    ],
    ['a+b=c%20d+e', [['a b', 'c d e']]],
    ['a%5Bne%5D=%2B', [['a[ne]', '+']]],
    ['%C3%BC=%f0%9f%98%80', [['ü', '😀']]],
  ])('reads %j', (text, pairs) => {
    expect(parseQueryText(text)).toEqual(pairs.map(([name, value]) => ({ name, value, isMalformed: false })))
  })

  it.each(['a=%', 'a=%4', 'a=%zz', '%ff=1', 'a=%C3', 'a=%ED%A0%80', 'a=%C0%80'])('marks %j as malformed', (text) => {
    expect(parseQueryText(`x=1&${text}`)).toMatchObject([{ isMalformed: false }, { isMalformed: true }])
  })

  it('reads what formatQueryText writes, which stands in a URI', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 })
    fc.assert(
      fc.property(fc.array(fc.record({ name: text, value: text }), { minLength: 1 }), (pairs) => {
        const written = formatQueryText(pairs)
        expect(written).toMatch(/^[\w!'()*.~:,%&=-]*$/)
        expect(parseQueryText(written).map(({ name, value }) => ({ name, value }))).toEqual(pairs)
      }),
    )
  })
})
