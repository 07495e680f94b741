import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createRankedList } from '../../src/stores/memory/ranked-list.ts'

const compare = (a: number, b: number): number => a - b

describe('createRankedList', () => {
  it('has its items in order, and finds them by rank, through any changes', () => {
    const change = fc.record({ item: fc.nat(3000), isRemoval: fc.boolean(), isRead: fc.nat(50).map((n) => n === 0) })
    fc.assert(
      fc.property(fc.array(change, { minLength: 500, maxLength: 4000, size: 'max' }), (changes) => {
        const list = createRankedList(compare)
        const items = new Set<number>()
        for (const { item, isRemoval, isRead } of changes) {
          if (isRemoval) list.remove(item)
          else if (!items.has(item)) list.add(item)
          items[isRemoval ? 'delete' : 'add'](item)
          if (!isRead) continue
          const rank = list.search(0, list.size, (other) => other < item)
          const found = rank < list.size ? list.at(rank) : undefined
          expect(found === item).toBe(!isRemoval)
        }
        const sorted = [...items].sort(compare)
        expect(list.size).toBe(sorted.length)
        expect([...list.slice(0, list.size)]).toEqual(sorted)
        for (const rank of [0, sorted.length >> 1, sorted.length - 1])
          if (rank in sorted) expect(list.at(rank)).toBe(sorted[rank])
        for (const limit of [-1, 0, 700, 1501, 4000]) {
          const expected = sorted.filter((item) => item < limit).length
          expect(list.search(0, list.size, (item) => item < limit)).toBe(expected)
          expect([...list.slice(expected, list.size)]).toEqual(sorted.slice(expected))
        }
      }),
      { numRuns: 30 },
    )
  })

  for (const [name, order] of [
    ['ascending', (i: number) => i],
    ['descending', (i: number) => 5000 - i],
    ['scattered', (i: number) => (i * 7919) % 5003],
  ] as const) {
    it(`takes thousands of items that come ${name}, and gives them up again`, () => {
      const list = createRankedList(compare)
      const items = Array.from({ length: 5000 }, (_, i) => order(i))
      for (const item of items) list.add(item)
      expect([...list.slice(0, list.size)]).toEqual(items.toSorted(compare))
      for (const item of items) if (item % 50 !== 0) list.remove(item)
      expect([...list.slice(0, list.size)]).toEqual(items.filter((item) => item % 50 === 0).sort(compare))
      for (const item of items) list.remove(item)
      expect([list.size, ...list.slice(0, 0)]).toEqual([0])
    })
  }
})
