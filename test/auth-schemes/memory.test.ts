import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMemory } from '../../src/auth-schemes/scheme.ts'

describe('createMemory', () => {
  it('keeps no credentials, only their hash', () => {
    const memory = createMemory<number>(10)
    expect(memory.keyOf('token')).toBe(createHash('sha256').update('token').digest('base64'))
    expect(memory.keyOf('token')).not.toBe(memory.keyOf('token='))
  })

  it('forgets what has long not been asked for', () => {
    const memory = createMemory<number>(4)
    for (const key of ['a', 'b', 'c']) memory.set(key, 1)
    expect(memory.get('a')).toBe(1)
    for (const key of ['d', 'e']) memory.set(key, 1)
    expect([memory.get('b'), memory.get('a'), memory.get('e')]).toEqual([undefined, 1, 1])
  })

  it('takes no room for a key that it has', () => {
    const memory = createMemory<number>(2)
    for (const key of ['a', 'b', 'b']) memory.set(key, 1)
    expect(memory.get('a')).toBe(1)
  })

  it('keeps the last one with the size 1', () => {
    const memory = createMemory<number>(1)
    for (const key of ['a', 'b']) memory.set(key, 1)
    expect(memory.get('b')).toBe(1)
  })

  it('keeps nothing with the size 0', () => {
    const memory = createMemory<number>(0)
    memory.set('a', 1)
    expect(memory.get('a')).toBeUndefined()
  })

  it('holds at least half of its limit, and no more than all of it', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(30), { maxLength: 200 }), fc.integer({ min: 2, max: 10 }), (keys, limit) => {
        const memory = createMemory<number>(limit)
        for (const key of keys) memory.set(String(key), key)
        const recent = [...new Set(keys.toReversed())].slice(0, Math.floor(limit / 2))
        if (!recent.every((key) => memory.get(String(key)) === key)) return false
        return (
          Array.from({ length: 31 }, (_, key) => memory.get(String(key))).filter((value) => value !== undefined)
            .length <= limit
        )
      }),
    )
  })
})
