import type { Condition } from '../../stores/lists.ts'
import type { StoredResource } from '../../stores/types.ts'
import { create, nameOf, put, remove } from '../calls.ts'
import { claimEqual } from '../claims.ts'
import { createIndex, indexed, is, listUnder, walk } from '../lists.ts'
import { range } from '../samples.ts'
import { type Case, it } from '../types.ts'

const INDEX = createIndex('selection', ['a', 'b'])
const OPEN = is('b', 'open')

export const queryCounts: readonly Case[] = [
  it('counts the members that match, on whichever page, and only when asked', async ({ store, collection, path }) => {
    const list = listUnder(store, collection, INDEX)
    await list.fill(range(0, 14).map((i) => ({ a: i % 5, b: i % 3 === 0 ? 'open' : 'done' })))
    const above: Condition = { property: 'a', operator: 'gte', value: 2 }
    const claimTotal = async (where: readonly Condition[], expected: number) => {
      for (const limit of [1, 4, 100]) {
        const question = { where, order: ['-a'], limit }
        for await (const { total } of walk((after) => list.ask({ ...question, after, count: true })))
          claimEqual(total, expected, '`total` is the number of members that match, on whichever page.')
        for await (const { total } of walk((after) => list.ask({ ...question, after })))
          claimEqual(total, undefined, '`total` is given only where it is asked for.')
      }
    }
    await claimTotal([], 15)
    await claimTotal([OPEN], 5)
    await claimTotal([above], 9)
    await claimTotal([OPEN, above], 3)
    await claimTotal([is('a', 7)], 0)
    await claimTotal([is('a', 1), is('a', 2)], 0)
    await claimTotal([above, { property: 'a', operator: 'lt', value: 2 }], 0)
    await remove(store, path(1))
    await put(store, path(4), indexed(INDEX, { a: 3, b: 'done' }))
    await claimTotal([OPEN], 3)
    for (const properties of [['a'], []]) {
      const few = listUnder(store, collection, { ...INDEX, version: `of ${properties.length}`, properties })
      const { total } = await few.ask({ count: true })
      claimEqual(total, 14, `An index of ${properties.length || 'no'} property counts all members.`)
    }
    const none = listUnder(store, '/none', INDEX)
    await none.claimFound({ count: true }, [], 'A collection without members has none.')
    claimEqual((await none.ask({ count: true })).total, 0, 'The total of no members is 0.')
  }),
  it('lists and counts by a query hidden members only when asked, marked and in their place', {
    needs: ['hiding'],
  }, async ({ store, collection, path }) => {
    const list = listUnder(store, collection, INDEX)
    await list.fill(range(0, 11).map((i) => ({ a: 12 - i, b: i % 2 === 0 ? 'open' : 'done' })))
    for (const name of [1, 4, 7, 12]) await remove(store, path(name), 'hide')
    const isHidden = (item: StoredResource) => ['1', '7'].includes(nameOf(item))
    const claimPage = async (hidden: boolean, expected: readonly number[]) => {
      const question = { where: [OPEN], order: ['a'], hidden, count: true }
      for (const limit of [1, 2, 50]) {
        const names = await list.walkNames({ ...question, limit })
        claimEqual(names, expected.map(String), `Hidden members belong to a list only when asked for (${hidden}).`)
      }
      const { items, total } = await list.ask(question)
      claimEqual(total, expected.length, `Hidden members are counted only when asked for (${hidden}).`)
      for (const item of items)
        claimEqual(item.hidden === true, isHidden(item), 'Hidden members are marked, and no others.')
    }
    await claimPage(false, [11, 9, 5, 3])
    await claimPage(true, [11, 9, 7, 5, 3, 1])
    await put(store, path(7), indexed(INDEX, { a: 0, b: 'open' }))
    const sentence = 'A hidden member that is written again is listed by its new values.'
    const names = await list.walkNames({ where: [OPEN], order: ['a'] })
    claimEqual(names, ['7', '11', '9', '5', '3'], sentence)
  }),
  it('answers a query anew after every change', async ({ store, collection, path, modes }) => {
    const list = listUnder(store, collection, INDEX)
    const open = indexed(INDEX, { a: 1, b: 'open' })
    const names = new Set(range(1, 4).map(String))
    await list.fill(range(1, 4).map(() => ({ a: 1, b: 'open' })))
    const changes: readonly (() => Promise<unknown>)[] = [
      async () => names.add(nameOf(await create(store, collection, open))),
      async () => names.add(nameOf(await put(store, path(90), open))),
      ...modes.map((mode, at) => async () => {
        await remove(store, path(at + 1), mode)
        names.delete(String(at + 1))
      }),
      async () => names.add(nameOf(await put(store, path(1), open))),
    ]
    for (const change of changes) {
      // Asked repeatedly: answers may be kept.
      for (let i = 0; i < 3; i++) await list.ask({ where: [OPEN], count: true })
      await change()
      const { items, total } = await list.ask({ where: [OPEN], count: true })
      const found = [items.map(nameOf).sort(), total]
      claimEqual(found, [[...names].sort(), names.size], 'The answer to a query is that of before a change.')
    }
  }),
  it('lists and counts no member that was removed', async ({ store, collection, path, modes }) => {
    const list = listUnder(store, collection, INDEX)
    await list.fill(modes.map(() => ({ a: 1, b: 'open' })))
    for (const [at, mode] of modes.entries()) {
      await list.ask({ where: [OPEN] })
      await remove(store, path(at + 1), mode)
      const { items, total } = await list.ask({ where: [OPEN], count: true })
      const left = modes.length - at - 1
      claimEqual([items.length, total], [left, left], `A removed member (${mode}) is still listed or counted.`)
    }
  }),
]
