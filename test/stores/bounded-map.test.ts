import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBoundedMap } from '../../src/stores/memory/expiring.ts'

describe('createBoundedMap', () => {
  it('keeps the newest entries, through any changes, and tells of each that had to go', () => {
    const change = fc.record({ key: fc.nat(12).map(String), isDeletion: fc.boolean() })
    fc.assert(
      fc.property(fc.array(change, { maxLength: 100, size: 'max' }), fc.nat(8), (changes, most) => {
        const dropped: string[] = []
        const map = createBoundedMap<number>(most, (key, value) => dropped.push(`${key}=${value}`))
        const model = new Map<string, number>()
        const expected: string[] = []
        for (const [at, { key, isDeletion }] of changes.entries()) {
          map.delete(key)
          model.delete(key)
          if (isDeletion) continue
          map.set(key, at)
          model.set(key, at)
          if (model.size <= most) continue
          const [oldest, value] = model.entries().next().value!
          model.delete(oldest)
          expected.push(`${oldest}=${value}`)
        }
        expect(dropped).toEqual(expected)
        for (let key = 0; key <= 12; key++) expect(map.get(String(key))).toBe(model.get(String(key)))
      }),
    )
  })

  it('replaces an entry, which is then the newest', () => {
    const dropped: string[] = []
    const map = createBoundedMap<number>(2, (key) => dropped.push(key))
    for (const [value, key] of ['a', 'b', 'a', 'c'].entries()) map.set(key, value)
    expect(dropped).toEqual(['b'])
    expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual([2, undefined, 3])
  })

  it('stays right over many thousands of entries that come and go', () => {
    let drops = 0
    const map = createBoundedMap<number>(10, () => drops++)
    for (let i = 0; i < 50_000; i++) {
      map.set(String(i), i)
      if (i % 2 === 0) map.delete(String(i))
    }
    expect(drops).toBe(24_990)
    expect(map.get('49999')).toBe(49_999)
    expect(map.get('49979')).toBeUndefined()
    expect(map.get('49981')).toBe(49_981)
  })
})
