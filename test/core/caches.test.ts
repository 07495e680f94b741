import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRecentCache } from '../../src/core/caches.ts'

describe('createRecentCache', () => {
  it('wants what is asked for a second time', () => {
    const cache = createRecentCache<string, number>(100)
    expect(cache.isWanted('a', 10)).toBe(false)
    expect(cache.isWanted('b', 10)).toBe(false)
    expect(cache.isWanted('a', 10)).toBe(true)
  })

  it('forgets what was asked for once, when as much as it may hold has been asked for since', () => {
    const cache = createRecentCache<number, number>(100)
    cache.isWanted(0, 10)
    for (let key = 1; key <= 10; key++) cache.isWanted(key, 10)
    expect(cache.isWanted(0, 10)).toBe(false)
  })

  it('keeps what is used, however much else comes', () => {
    const cache = createRecentCache<string, number>(100)
    cache.set('used', 1, 10)
    for (let i = 0; i < 1000; i++) {
      cache.set(`other ${i}`, i, 10)
      expect(cache.get('used')).toBe(1)
    }
  })

  it('holds half of its limit, however much has come before', () => {
    const cache = createRecentCache<number, number>(100)
    for (let key = 0; key < 50; key++) cache.set(key, key, 10)
    const last = [45, 46, 47, 48, 49]
    expect(last.map((key) => cache.get(key))).toEqual(last)
  })

  it('counts a key that is set again once', () => {
    const cache = createRecentCache<string, number>(100)
    cache.set('other', 1, 10)
    for (let i = 0; i < 50; i++) cache.set('same', i, 10)
    expect(cache.get('other')).toBe(1)
  })

  it('gives the last value or none, and never holds more than its limit', () => {
    const change = fc.record({ key: fc.nat(20), size: fc.integer({ min: 1, max: 60 }), isUse: fc.boolean() })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 200, size: 'max' }), (changes) => {
        const limit = 100
        const cache = createRecentCache<number, number>(limit)
        const sizes = new Map<number, number>()
        const values = new Map<number, number>()
        for (const [at, { key, size, isUse }] of changes.entries()) {
          if (isUse) {
            const value = cache.get(key)
            if (value !== undefined) expect(value).toBe(values.get(key))
          } else if (2 * size <= limit) {
            cache.set(key, at, size)
            values.set(key, at)
            sizes.set(key, size)
            expect(cache.get(key)).toBe(at)
          }
        }
        // Looking moves what is old to the young, and drops some of it: the sum is of those that are seen at one pass.
        const seen = [...sizes.keys()].filter((key) => cache.get(key) !== undefined)
        const young = seen.filter((key) => cache.get(key) !== undefined)
        expect(young.reduce((sum, key) => sum + sizes.get(key)!, 0)).toBeLessThanOrEqual(limit)
      }),
    )
  })

  it('keeps nothing when it may hold nothing, nor what would take most of the room', () => {
    const none = createRecentCache<string, number>(0)
    none.set('a', 1, 1)
    expect(none.get('a')).toBeUndefined()
    const small = createRecentCache<string, number>(100)
    small.set('a', 1, 51)
    expect(small.get('a')).toBeUndefined()
  })
})
