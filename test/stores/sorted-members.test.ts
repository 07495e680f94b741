import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../src/stores/memory/member-index.ts'
import {
  collectItems,
  compareNames,
  countMembers,
  createSortedList,
  createSortedMembers,
  deleteItem,
  deleteMember,
  pageOfMembers,
  setItem,
  setMember,
} from '../../src/stores/memory/sorted-members.ts'
import { parseIntegerName } from '../../src/stores/rules.ts'

const entryAt = (path: string) => ({ path, isListed: true }) as Entry

function pageThrough(members: ReturnType<typeof createSortedMembers>, limit: number): string[] {
  const paths: string[] = []
  for (let after: string | undefined; ; ) {
    const page = pageOfMembers(members, after, limit)
    paths.push(...page.map((member) => member.path))
    if (page.length < limit) return paths
    after = paths.at(-1)!.slice('/c/'.length)
  }
}

describe('createSortedMembers', () => {
  it('has its members in order, integers by value, through any changes', () => {
    const name = fc.oneof(fc.nat(40).map(String), fc.constantFrom('007', 'a', 'b', 'é', '-1', '9007199254740992', '🜚'))
    const change = fc.record({ name, isDeletion: fc.boolean() })
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 200, size: 'max' }),
        fc.integer({ min: 1, max: 9 }),
        (changes, limit) => {
          const members = createSortedMembers('/c/')
          const names = new Set<string>()
          for (const { name, isDeletion } of changes) {
            if (isDeletion) deleteMember(members, `/c/${name}`, parseIntegerName(name))
            else setMember(members, entryAt(`/c/${name}`), parseIntegerName(name))
            names[isDeletion ? 'delete' : 'add'](name)
          }
          expect(countMembers(members)).toBe(names.size)
          expect(pageThrough(members, limit)).toEqual([...names].sort(compareNames).map((name) => `/c/${name}`))
        },
      ),
    )
  })

  it('puts a member in the place of the one with the same path', () => {
    const members = createSortedMembers('/c/')
    const latest = [entryAt('/c/1'), entryAt('/c/x')] as const
    for (const [first, second] of [[entryAt('/c/1'), entryAt('/c/x')], latest] as const) {
      setMember(members, first, 1)
      setMember(members, second, undefined)
    }
    const page = pageOfMembers(members, undefined, 9)
    expect(page.map((entry) => latest.indexOf(entry))).toEqual([0, 1])
  })
})

describe('createSortedList', () => {
  const orders: readonly [string, (keys: number[]) => number[]][] = [
    ['ascending', (keys) => keys],
    ['descending', (keys) => keys.toReversed()],
    ['scattered', (keys) => keys.map((_, i) => keys[(i * 7919) % keys.length]!)],
  ]
  for (const [name, arrange] of orders) {
    it(`keeps thousands of keys in order that come ${name}, and gives any part of them`, () => {
      const keys = Array.from({ length: 5000 }, (_, i) => i * 2)
      const list = createSortedList<number, string>()
      for (const key of arrange(keys)) setItem(list, key, `item ${key}`)
      expect(list.size).toBe(5000)
      for (const after of [undefined, -1, 0, 1, 1022, 1023, 1024, 1025, 4999, 9996, 9997, 9998, 9999]) {
        const items: string[] = []
        collectItems(list, after, 600, items)
        const expected = keys.filter((key) => after === undefined || key > after).slice(0, 600)
        expect(items).toEqual(expected.map((key) => `item ${key}`))
      }
      for (const key of arrange(keys)) if (key % 6 !== 0) deleteItem(list, key)
      const rest: string[] = []
      collectItems(list, undefined, 9999, rest)
      expect(rest).toEqual(keys.filter((key) => key % 6 === 0).map((key) => `item ${key}`))
      for (const key of keys) deleteItem(list, key)
      expect(list.size).toBe(0)
    })
  }

  it('ignores the deletion of a key that it has not', () => {
    const list = createSortedList<string, number>()
    deleteItem(list, 'a')
    setItem(list, 'b', 1)
    deleteItem(list, 'a')
    deleteItem(list, 'c')
    expect(list.size).toBe(1)
  })
})
