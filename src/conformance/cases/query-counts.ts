import type { Condition } from '../../stores/lists.ts'
import type { Page } from '../../stores/types.ts'
import { claimEqual } from '../claims.ts'
import { ask, claimFound, createIndex, fill, indexed, walkNames } from '../query-samples.ts'
import { nameOf, put } from '../samples.ts'
import type { Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const INDEX = createIndex('counts', ['a', 'b'])
const OPEN: Condition = { property: 'b', operator: 'in', values: ['open'] }

export const queryCounts: readonly Case[] = [
  {
    title: 'counts the members that match, on whichever page, and only when asked',
    needs: NEEDS,
    async run({ store, collection, path }) {
      await fill(
        store,
        collection,
        INDEX,
        Array.from({ length: 15 }, (_, i) => ({ a: i % 5, b: i % 3 === 0 ? 'open' : 'done' })),
      )
      const above: Condition = { property: 'a', operator: 'gte', value: 2 }
      const claimTotal = async (where: readonly Condition[], expected: number) => {
        for (const limit of [1, 4, 100]) {
          for (let after: string | undefined; ; ) {
            const question = { where, order: ['-a'], limit, after }
            const page: Page = await ask(store, collection, INDEX, { ...question, count: true })
            claimEqual(page.total, expected, '`total` is the number of members that match, on whichever page.')
            const uncounted = await ask(store, collection, INDEX, question)
            claimEqual(uncounted.total, undefined, '`total` is given only where it is asked for.')
            if (page.next === undefined) break
            after = page.next
          }
        }
      }
      await claimTotal([], 15)
      await claimTotal([OPEN], 5)
      await claimTotal([above], 9)
      await claimTotal([OPEN, above], 3)
      await claimTotal([{ property: 'a', operator: 'in', values: [7] }], 0)
      await store.remove(path(1), { expect: 'any', mode: 'erase' })
      await put(store, path(4), indexed(INDEX, { a: 3, b: 'done' }))
      await claimTotal([OPEN], 3)
      await claimFound(store, '/none', INDEX, { count: true }, [], 'A collection without members has none.')
      claimEqual((await ask(store, '/none', INDEX, { count: true })).total, 0, 'The total of no members is 0.')
    },
  },
  {
    title: 'lists and counts by a query hidden members only when asked, marked and in their place',
    needs: [...NEEDS, 'hiding'],
    async run({ store, collection, path }) {
      await fill(
        store,
        collection,
        INDEX,
        Array.from({ length: 12 }, (_, i) => ({ a: 12 - i, b: i % 2 === 0 ? 'open' : 'done' })),
      )
      for (const name of [1, 4, 7, 12]) await store.remove(path(name), { expect: 'any', mode: 'hide' })
      const claimPage = async (hidden: boolean, expected: readonly number[]) => {
        const question = { where: [OPEN], order: ['a'], hidden, count: true }
        for (const limit of [1, 2, 50]) {
          const names = await walkNames(store, collection, INDEX, { ...question, limit })
          claimEqual(names, expected.map(String), `Hidden members belong to a list only when asked for (${hidden}).`)
        }
        const { items, total } = await ask(store, collection, INDEX, question)
        claimEqual(total, expected.length, `Hidden members are counted only when asked for (${hidden}).`)
        for (const item of items)
          claimEqual(
            item.hidden === true,
            ['1', '7'].includes(nameOf(item)),
            'Hidden members are marked, and no others.',
          )
      }
      await claimPage(false, [11, 9, 5, 3])
      await claimPage(true, [11, 9, 7, 5, 3, 1])
      await put(store, path(7), indexed(INDEX, { a: 0, b: 'open' }))
      claimEqual(
        await walkNames(store, collection, INDEX, { where: [OPEN], order: ['a'] }),
        ['7', '11', '9', '5', '3'],
        'A hidden member that is written again is listed by its new values.',
      )
    },
  },
  {
    title: 'lists and counts no member that was removed',
    needs: NEEDS,
    async run({ store, collection, path, modes }) {
      await fill(
        store,
        collection,
        INDEX,
        modes.map(() => ({ a: 1, b: 'open' })),
      )
      for (const [at, mode] of modes.entries()) {
        await ask(store, collection, INDEX, { where: [OPEN] })
        await store.remove(path(at + 1), { expect: 'any', mode })
        const { items, total } = await ask(store, collection, INDEX, { where: [OPEN], count: true })
        const left = modes.length - at - 1
        claimEqual([items.length, total], [left, left], `A removed member (${mode}) is still listed or counted.`)
      }
    },
  },
]
