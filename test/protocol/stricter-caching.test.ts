import { describe, expect, it } from 'vitest'
import { mergeCaching } from '../../src/protocol/cache-control.ts'

describe('mergeCaching', () => {
  it.each([
    ['no-cache', 'no-cache', 'no-cache'],
    ['public, max-age=60', 'no-cache', 'no-cache'],
    ['public, max-age=60', 'public, max-age=5, immutable', 'public, max-age=5'],
    ['public, max-age=60', 'max-age=600', 'max-age=60'],
    ['public, max-age=60', 'private', 'private, max-age=60'],
    ['private, max-age=5', 's-maxage=9', 'private, max-age=5'],
    ['private="x", max-age=5', 'public', 'private, max-age=5'],
    ['private, s-maxage=60', 's-maxage=30', 'private, max-age=30'],
    ['max-age=60', 'no-store, private', 'no-store'],
    ['max-age=60', 's-maxage=10, max-age=100', 'max-age=10'],
    ['max-age=60, s-maxage=30', 's-maxage=10, max-age=100', 'max-age=60, s-maxage=10'],
    ['max-age=60', 'max-age=x', 'max-age=0'],
    ['max-age="60"', 'max-age=70, MUST-REVALIDATE', 'must-revalidate, max-age=60'],
    ['public, immutable, max-age=9', 'immutable, public, max-age=8', 'public, immutable, max-age=8'],
    ['public, immutable, max-age=9', 'no-cache, public, immutable', 'no-cache, public'],
    ['x="no-store"', 'public', ''],
  ])('of %j and %j is %j, in either order (RFC 9111 §5.2.2)', (a, b, expected) => {
    expect([mergeCaching(a, b), mergeCaching(b, a)]).toEqual([expected, expected])
  })
})
