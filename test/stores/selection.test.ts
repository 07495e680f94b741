import { describe, expect, it } from 'vitest'
import { type CollectionIndex, type Condition, formatPosition, type OrderKey } from '../../src/stores/lists.ts'
import { planPage } from '../../src/stores/sql/queries/page.ts'
import { createWindowRunner, type WindowItem } from '../support/window-runner.ts'

const INDEX: CollectionIndex = {
  version: 'selection',
  properties: ['at', 'group', 'kind', 'owner'],
  scope: ['owner'],
  valuesOf: () => ({}),
}
const COUNT_STEPS = { inIndex: 5000, byEntry: 1000 }
const LIMIT = 180_000

interface Question {
  readonly where: readonly Condition[]
  readonly orderBy: readonly OrderKey[]
  readonly hidden?: boolean
}

type Operator = 'gt' | 'gte' | 'lt' | 'lte'
const at = (operator: Operator, value: number): Condition => ({ property: 'at', operator, value })
const kind = (operator: Operator, value: number): Condition => ({ property: 'kind', operator, value })
const owner = (...values: string[]): Condition => ({ property: 'owner', operator: 'in', values })
const without = (property: string, ...values: number[]): Condition => ({ property, operator: 'notIn', values })
const by = (property: string, direction: OrderKey['direction']): OrderKey => ({ property, direction })

/** `at` has the order of the names, `kind` another one, and `group` few values. */
function createCollection(size: number, index = INDEX) {
  const items = Array.from({ length: size }, (_, i): WindowItem => {
    const values = {
      at: i,
      group: Math.floor(i / 1000) % 7,
      kind: (i * 7919) % size,
      owner: i % 3 === 0 ? 'ann' : 'bob',
    }
    return { name: String(i), values, hidden: i % 10 === 0 }
  })
  const runner = createWindowRunner(index, items)

  /** The names that an array gives. */
  function filterAndSort({ where, orderBy, hidden = false }: Question): string[] {
    const read = (item: WindowItem, property: string) => item.values[property] as number | string
    const isMatch = (item: WindowItem, condition: Condition): boolean => {
      const value = read(item, condition.property)
      if ('values' in condition) return condition.values.includes(value) === (condition.operator === 'in')
      if (condition.operator === 'gt') return value > condition.value!
      if (condition.operator === 'lte') return value <= condition.value!
      return condition.operator === 'gte' ? value >= condition.value! : value < condition.value!
    }
    return items
      .filter((item) => (hidden || !item.hidden) && where.every((condition) => isMatch(item, condition)))
      .sort((a, b) => {
        for (const { property, direction } of orderBy) {
          const [x, y] = [read(a, property), read(b, property)]
          if (x !== y) return x < y === (direction === 'ascending') ? -1 : 1
        }
        return Number(a.name) - Number(b.name)
      })
      .map(({ name }) => name)
  }

  /** Reads all pages, from a cursor on where there is one; the first one counts. */
  function readPages({ where, orderBy, hidden = false }: Question, limit: number, start?: string) {
    const pages: string[][] = []
    const cursors: string[] = []
    let total: number | undefined
    for (let after = start; ; ) {
      const query = { index, where, orderBy, count: pages.length === 0 }
      const page = runner.run(planPage(query, { after, limit, hidden }, COUNT_STEPS)(1))
      total ??= page.total
      pages.push(page.found.map(({ sortKey }) => sortKey.slice(1)))
      if (page.next === undefined) return { pages, total, cursors }
      cursors.push((after = page.next))
    }
  }

  return { filterAndSort, readPages }
}

const ORDERS: readonly (readonly OrderKey[])[] = [
  [],
  [by('at', 'ascending')],
  [by('at', 'descending')],
  [by('kind', 'descending')],
  [by('group', 'ascending'), by('kind', 'descending')],
  [by('group', 'descending'), by('at', 'ascending')],
]

describe('the selection of members of a large collection', () => {
  it(
    'finds what filter and sort over an array give, page by page, whichever way it takes',
    () => {
      const { filterAndSort, readPages } = createCollection(13_000)
      const conditions: readonly (readonly Condition[])[] = [
        [at('gte', 6000), at('lt', 6500)],
        [at('gte', 6000), at('lt', 6500), without('at', 6001, 6011, 6500)],
        [kind('gte', 11_500), without('kind', 11_500, 12_999), owner('ann')],
        [kind('gte', 6000), at('gte', 6500), without('group', 1, 2)],
        [kind('lt', 6000), at('lt', 6500), owner('ann', 'bob')],
      ]
      for (const where of conditions) {
        for (const orderBy of ORDERS) {
          for (const hidden of [false, true]) {
            const question = { where, orderBy, hidden }
            const expected = filterAndSort(question)
            const { pages, total } = readPages(question, 200)
            expect(pages.flat(), JSON.stringify(question)).toEqual(expected)
            expect(total).toBe(expected.length)
          }
        }
      }
    },
    LIMIT,
  )

  it('meets each of several conditions on one property, also where they meet in one value', () => {
    const { filterAndSort, readPages } = createCollection(30)
    const is = (...values: number[]): Condition => ({ property: 'at', operator: 'in', values })
    const pairs: readonly (readonly [Condition, Condition])[] = [
      [at('gte', 7), at('gt', 7)],
      [at('lte', 7), at('lt', 7)],
      [at('gt', 7), at('lte', 9)],
      [is(6, 7, 8), at('gt', 7)],
      [is(6, 7, 8), at('gte', 7)],
      [is(6, 7, 8), at('lt', 7)],
      [is(6, 7, 8), at('lte', 7)],
      [is(6, 7, 8), without('at', 7)],
      [is(6, 7, 8), is(7, 8, 9)],
      [without('at', 7), without('at', 8)],
      [at('gt', 7), at('lt', 7)],
    ]
    for (const [a, b] of pairs) {
      for (const where of [
        [a, b],
        [b, a],
      ]) {
        for (const orderBy of [[], [by('at', 'ascending')], [by('at', 'descending')], [by('kind', 'ascending')]]) {
          const question = { where, orderBy }
          const { pages, total } = readPages(question, 5)
          const expected = filterAndSort(question)
          expect([pages.flat(), total], JSON.stringify(question)).toEqual([expected, expected.length])
        }
      }
    }
  })

  it('takes a scope of two properties for none where a query has a condition on one of them alone', () => {
    const { filterAndSort, readPages } = createCollection(30, { ...INDEX, scope: ['group', 'owner'] })
    const group: Condition = { property: 'group', operator: 'in', values: [0] }
    for (const where of [[owner('ann')], [group], [group, owner('ann')], [group, owner('ann', 'bob')]]) {
      for (const orderBy of [[], [by('kind', 'descending')]]) {
        const question = { where, orderBy }
        expect(readPages(question, 5).pages.flat(), JSON.stringify(question)).toEqual(filterAndSort(question))
      }
    }
  })

  it('shows nothing but what meets the conditions behind a cursor that a client has made up', () => {
    const { filterAndSort, readPages } = createCollection(30)
    const conditions = [at('gt', 7), at('gte', 7), at('lt', 20), at('lte', 20), without('at', 7, 20)]
    for (const condition of conditions) {
      for (const direction of ['ascending', 'descending'] as const) {
        for (const orderBy of [[by('at', direction)], [by('at', direction), by('kind', 'descending')]]) {
          const where = [condition]
          const all = filterAndSort({ where, orderBy })
          for (const value of [3, 7, 12, 20, 25]) {
            // Of the members with this value none is before the cursor.
            const cursor = formatPosition({ keys: [value, ...orderBy.slice(1).map(() => 'z')], name: '0' })
            const sign = direction === 'ascending' ? 1 : -1
            const behind = all.filter((name) => sign * (Number(name) - value) >= 0)
            const { pages } = readPages({ where, orderBy }, 4, cursor)
            expect(pages.flat(), JSON.stringify([condition, orderBy, cursor])).toEqual(behind)
          }
        }
      }
    }
  })

  describe('where a page would look at more than 100 000 members', () => {
    const directions: readonly (readonly [string, readonly OrderKey[]])[] = [
      ['ascending', [by('kind', 'ascending')]],
      ['descending', [by('kind', 'descending')]],
    ]
    const { filterAndSort, readPages } = createCollection(130_000)
    /** Many members meet the first two conditions, and few of them the third. */
    const where = [at('gte', 60_000), at('lt', 66_000), without('group', 0, 1, 2, 3, 4, 5)]

    it.each(directions)('ends it early with a cursor, and loses nothing in the order %s', (_, orderBy) => {
      for (const hidden of [false, true]) {
        const question = { where, orderBy, hidden }
        const { pages, total } = readPages(question, 2000)
        const expected = filterAndSort(question)
        expect(pages.flat()).toEqual(expected)
        expect(total).toBe(expected.length)
        expect(pages.length).toBeGreaterThan(1)
      }
    })

    it('names the last member of a page that is full by then, and none that does not match', () => {
      const question = { where, orderBy: [by('kind', 'ascending')] }
      const early = readPages(question, 2000).pages[0]!
      const { pages, cursors } = readPages(question, early.length)
      const name = early.at(-1)!
      expect(pages[0]).toEqual(early)
      expect(cursors[0]).toBe(formatPosition({ keys: [(Number(name) * 7919) % 130_000], name }))
      expect(pages.flat()).toEqual(filterAndSort(question))
    })

    it.each([
      ['of those that are left', without('group', 0, 2, 3, 5, 6)],
      ['of those that are asked for', { property: 'group', operator: 'in', values: [1, 4] } as Condition],
    ])('goes on within the members with one value, %s', (_, groups) => {
      const where = [at('gte', 60_000), at('lt', 66_000), kind('lt', 120_000), groups]
      const question = { where, orderBy: [by('group', 'descending'), by('kind', 'descending')] }
      const { pages } = readPages(question, 5000)
      expect(pages.flat()).toEqual(filterAndSort(question))
      expect(pages.length).toBeGreaterThan(1)
    })

    it('goes on where the first of live and hidden members ended', () => {
      const many = [at('gte', 30_000), at('lt', 96_000), without('group', 0, 1, 2, 3, 4, 5)]
      const question = { where: many, orderBy: [by('kind', 'ascending')], hidden: true }
      const { pages } = readPages(question, 20_000)
      expect(pages.flat()).toEqual(filterAndSort(question))
      expect(pages.length).toBeGreaterThan(1)
    })

    it.each(directions)(
      'never does where the cursor would name a member of another scope, in the order %s',
      (_, orderBy) => {
        const question = { where: [...where, owner('ann', 'cy')], orderBy }
        const { pages } = readPages(question, 2000)
        expect(pages).toEqual([filterAndSort(question)])
      },
    )
  })
})
