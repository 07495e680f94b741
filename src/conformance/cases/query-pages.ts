import { isHttpError } from '../../core/errors.ts'
import type { Condition } from '../../stores/index-types.ts'
import type { StoredResource } from '../../stores/types.ts'
import { claim, claimEqual, claimResource } from '../claims.ts'
import { createIndex, createQuery, indexed, is, listUnder } from '../query-samples.ts'
import { nameOf, put, remove, walk } from '../samples.ts'
import type { Case } from '../types.ts'

const INDEX = createIndex('pages', ['a', 'b'])
const OPEN = is('b', 'open')

export const queryPages: readonly Case[] = [
  {
    title: 'gives pages of a query of at most the limit, and a cursor exactly while more members match',
    async run({ store, collection }) {
      const list = listUnder(store, collection, INDEX)
      await list.fill(
        Array.from({ length: 24 }, (_, i) => ({ a: i % 4 === 3 ? null : i % 4, b: i % 2 === 0 ? 'open' : 'done' })),
      )
      for (const order of [['a'], ['-a'], ['a', '-b'], []]) {
        for (const limit of [1, 5, 6, 11, 12, 13, 100]) {
          const sizes: number[] = []
          for await (const { items } of walk((after) => list.ask({ where: [OPEN], order, limit, after })))
            sizes.push(items.length)
          const rest = 12 % limit
          const expected = [...Array<number>(Math.floor(12 / limit)).fill(limit), ...(rest > 0 ? [rest] : [])]
          const sentence = `12 members that match make pages of ${limit} of these sizes, the last not empty.`
          claimEqual(sizes, expected, sentence)
        }
      }
    },
  },
  {
    title: 'goes on behind the place of a cursor, also when its member has moved or is gone',
    async run({ store, collection, path }) {
      const list = listUnder(store, collection, INDEX)
      for (const isAscending of [true, false]) {
        const order = [isAscending ? 'a' : '-a']
        const next = isAscending ? ['4', '6', '1'] : ['2', '1', '6']
        await list.fill([{ a: 10 }, { a: 20 }, { a: 30 }, { a: 40 }, { a: 50 }, { a: 45 }])
        const first = await list.ask({ order, limit: 3 })
        const members = first.items.map(nameOf)
        // The member of the cursor goes, the one before it moves behind the cursor, and another before the cursor.
        await remove(store, path(members[2]!))
        await put(store, path(isAscending ? 1 : 6), indexed(INDEX, { a: isAscending ? 60 : 5 }))
        await put(store, path(isAscending ? 5 : 3), indexed(INDEX, { a: isAscending ? 1 : 70 }))
        const second = await list.ask({ order, limit: 9, after: first.next })
        claimEqual(second.items.map(nameOf), next, 'The next page begins behind the place of the cursor.')
        for (const name of [1, 2, 3, 4, 5, 6]) await remove(store, path(name))
      }
    },
  },
  {
    title: 'answers any cursor of a query, also a tampered one, with members that match or an HttpError below 500',
    async run({ store, collection, path }) {
      const list = listUnder(store, collection, INDEX)
      await list.fill(Array.from({ length: 12 }, (_, i) => ({ a: i, b: i % 2 === 0 ? 'open' : 'secret' })))
      const orders = [['a'], ['-a'], ['a', 'b'], []]
      const given = await Promise.all(orders.map((order) => list.ask({ order, where: [OPEN], limit: 2 })))
      const texts = ["'", '"', '\u0000', '\ud800', 'x'.repeat(5000), '🜚', '%', "' OR 1=1 --"]
      const quoted = texts.map((text) => JSON.stringify(text))
      const parts = [...quoted, '1e999', '-0', '{}', '[]', 'null', 'true', '9'.repeat(400)]
      const cursors = [
        ...['', '0', '[', '[]', '{}', 'null', '[[]]', '["1"]', '[1]', '[1,"1"]', '[1,2,"3"]', '[1,2,3,"4"]', '"1"'],
        ...texts,
        ...parts.flatMap((part) => [`[${part}]`, `[${part},"1"]`, `[1,${part}]`, `[${part},${part},"1"]`]),
        ...['[1,"1",'.repeat(2000), `${'['.repeat(5000)}1${']'.repeat(5000)}`],
        ...given.flatMap(({ next = '' }) => [next, next.slice(1), `${next} `, next.toUpperCase()]),
        ...given.map(({ next = '' }) => next.replace(/\d/, '1e9')),
      ]
      for (const order of orders) {
        for (const after of cursors) {
          const shown = JSON.stringify(after.slice(0, 60))
          try {
            const query = createQuery(INDEX, { order, where: [OPEN] })
            const { items } = await store.list(collection, { limit: 5, after, query })
            for (const item of items) {
              claim(Number(nameOf(item)) % 2 === 1, `The cursor ${shown} shows a member that does not match.`)
            }
          } catch (error) {
            const isRefused = isHttpError(error) && error.status < 500
            claim(isRefused, `The cursor ${shown} makes a query fail with ${String(error)}.`)
          }
        }
      }
      claimResource(await store.read(path(1)), 'A cursor has removed a member.')
    },
  },
  {
    title: 'goes on behind a member with any name and any value',
    needs: ['paths'],
    async run({ store, collection }) {
      const names = ["'", '"', '\\', '%', '\u0000', ' ', '🜚', '[1]', 'null', 'x'.repeat(300), '9007199254740993', '1']
      const values = [null, false, 0.1, -1e300, '', '"', '\\', '\u0001', '\u{10ffff}', 'y'.repeat(256), ',', ']']
      const list = listUnder(store, collection, INDEX)
      await list.fill(Object.fromEntries(names.map((name, at) => [name, { a: values[at]!, b: 1 }])))
      for (const order of [['a'], ['-a'], ['b'], ['b', 'a'], ['b', '-a'], []]) {
        const whole = await list.walkNames({ order })
        claimEqual(whole.toSorted(), names.toSorted(), 'A member is missing or repeated on one page.')
        for (const limit of [1, 5])
          claimEqual(await list.walkNames({ order, limit }), whole, 'A cursor leads elsewhere.')
      }
    },
  },
]

export const queryCounts: readonly Case[] = [
  {
    title: 'counts the members that match, on whichever page, and only when asked',
    async run({ store, collection, path }) {
      const list = listUnder(store, collection, INDEX)
      await list.fill(Array.from({ length: 15 }, (_, i) => ({ a: i % 5, b: i % 3 === 0 ? 'open' : 'done' })))
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
      await remove(store, path(1))
      await put(store, path(4), indexed(INDEX, { a: 3, b: 'done' }))
      await claimTotal([OPEN], 3)
      const none = listUnder(store, '/none', INDEX)
      await none.claimFound({ count: true }, [], 'A collection without members has none.')
      claimEqual((await none.ask({ count: true })).total, 0, 'The total of no members is 0.')
    },
  },
  {
    title: 'lists and counts by a query hidden members only when asked, marked and in their place',
    needs: ['hiding'],
    async run({ store, collection, path }) {
      const list = listUnder(store, collection, INDEX)
      await list.fill(Array.from({ length: 12 }, (_, i) => ({ a: 12 - i, b: i % 2 === 0 ? 'open' : 'done' })))
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
    },
  },
  {
    title: 'lists and counts no member that was removed',
    async run({ store, collection, path, modes }) {
      const list = listUnder(store, collection, INDEX)
      await list.fill(modes.map(() => ({ a: 1, b: 'open' })))
      for (const [at, mode] of modes.entries()) {
        await list.ask({ where: [OPEN] })
        await remove(store, path(at + 1), mode)
        const { items, total } = await list.ask({ where: [OPEN], count: true })
        const left = modes.length - at - 1
        claimEqual([items.length, total], [left, left], `A removed member (${mode}) is still listed or counted.`)
      }
    },
  },
]
