import { describe, expect, it } from 'vitest'
import { compareValues, encodePrefix, encodeValue, type IndexedValue, meetsCondition } from '../../src/stores/lists.ts'

const ORDERED: readonly IndexedValue[] = [
  ...[null, false, true],
  ...[-Number.MAX_VALUE, -1e10, -2.5, -2, -1, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 0.5, 1, 2, 10, 2 ** 53],
  ...['', ' ', '0', 'A', 'a', 'a ', 'aa', 'b', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'],
]

describe('indexed values', () => {
  it('compare as their keys do', () => {
    for (const a of ORDERED)
      for (const b of ORDERED) {
        const order = Math.sign(ORDERED.indexOf(a) - ORDERED.indexOf(b))
        const pair = `${JSON.stringify(a)} and ${JSON.stringify(b)}`
        expect(Math.sign(compareValues(a, b)), pair).toBe(order)
        expect(Math.sign(Buffer.compare(encodeValue(a), encodeValue(b))), pair).toBe(Math.sign(compareValues(a, b)))
      }
  })

  it('meet a bound of their own type only', () => {
    for (const value of ORDERED)
      for (const bound of ORDERED) {
        const order = Math.sign(ORDERED.indexOf(value) - ORDERED.indexOf(bound))
        const isOfType = value !== null && typeof value === typeof bound
        const meets = (operator: 'gt' | 'gte' | 'lt' | 'lte') =>
          meetsCondition(value, { property: 'p', operator, value: bound })
        expect([meets('gt'), meets('gte'), meets('lt'), meets('lte')]).toEqual(
          [order > 0, order >= 0, order < 0, order <= 0].map((isMet) => isMet && isOfType),
        )
      }
  })

  it('take -0 for 0', () => expect(encodeValue(-0)).toEqual(encodeValue(0)))

  it('compare alike when further keys follow', () => {
    const last = Buffer.from([0xff])
    const keys = ORDERED.map((value) => Buffer.concat([encodeValue(value), last]))
    for (const [at, key] of keys.entries())
      for (const [other, second] of keys.entries()) {
        expect(Math.sign(Buffer.compare(key, second))).toBe(
          Math.sign(Buffer.compare(encodeValue(ORDERED[at]!), encodeValue(ORDERED[other]!))),
        )
      }
  })

  it('begin with the key of their prefix', () => {
    const prefix = Buffer.from(encodePrefix('a'))
    const found = ORDERED.filter((value) => prefix.equals(encodeValue(value).subarray(0, prefix.length)))
    expect(found).toEqual(['a', 'a ', 'aa'])
  })
})
