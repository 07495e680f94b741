import { describe, expect, it } from 'vitest'
import { addNoTransform, formatCacheControl, formatCacheControls } from '../../src/protocol/cache-control.ts'

describe('formatCacheControl', () => {
  it.each<[configured: string | undefined, authorized: string, elsewhere: string]>([
    [undefined, 'private, no-cache', 'private, no-cache'],
    ['no-cache', 'no-cache', 'private, no-cache'],
    ['max-age=60', 'max-age=60', 'private, max-age=60'],
    ['max-age=60, must-revalidate', 'private, max-age=60, must-revalidate', 'private, max-age=60, must-revalidate'],
    ['Must-Revalidate', 'private, Must-Revalidate', 'private, Must-Revalidate'],
    ['public, must-revalidate', 'public, must-revalidate', 'private, must-revalidate'],
    ['private, must-revalidate', 'private, must-revalidate', 'private, must-revalidate'],
    ['PUBLIC, max-age=60', 'PUBLIC, max-age=60', 'private, max-age=60'],
    ['public', 'public', 'private'],
    ['s-maxage=60, max-age=5', 's-maxage=60, max-age=5', 'private, max-age=5'],
    ['private', 'private', 'private'],
    ['max-age=5, Private', 'max-age=5, Private', 'max-age=5, Private'],
    ['private, public', 'private, public', 'private'],
    ['no-store', 'no-store', 'no-store'],
    ['no-store, public', 'no-store, public', 'no-store'],
    // For fields that it names only (RFC 9111 §5.2.2.7).
    ['private="set-cookie"', 'private="set-cookie"', 'private, private="set-cookie"'],
    ['x="public, s-maxage=1"', 'x="public, s-maxage=1"', 'private, x="public, s-maxage=1"'],
    ['publication', 'publication', 'private, publication'],
    ['', '', 'private'],
  ])(
    'sends %j as %j where the principal came from Authorization, as %j where from elsewhere (RFC 9111 §3.5)',
    (configured, authorized, elsewhere) => {
      expect(formatCacheControl(configured, 'authorized')).toBe(authorized)
      expect(formatCacheControl(configured, 'private')).toBe(elsewhere)
      expect(formatCacheControl(configured, 'public')).toBe(configured ?? 'no-cache')
    },
  )
})

describe('formatCacheControls', () => {
  it('has each of them', () => {
    expect(formatCacheControls('public')).toEqual({ public: 'public', authorized: 'public', private: 'private' })
  })
})

describe('addNoTransform', () => {
  it.each([
    ['', 'no-transform'],
    ['no-cache', 'no-cache, no-transform'],
    ['NO-TRANSFORM, max-age=1', 'NO-TRANSFORM, max-age=1'],
    ['x="no-transform"', 'x="no-transform", no-transform'],
  ])('makes %j %j (RFC 9111 §5.2.2.6)', (value, expected) => {
    expect(addNoTransform(value)).toBe(expected)
  })
})
