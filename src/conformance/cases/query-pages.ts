import { isHttpError } from '../../core/errors.ts'
import type { Condition } from '../../stores/lists.ts'
import type { Page } from '../../stores/types.ts'
import { claim, claimEqual, claimResource } from '../claims.ts'
import { ask, createIndex, createQuery, fill, indexed, walkNames } from '../query-samples.ts'
import { nameOf, put } from '../samples.ts'
import type { Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const INDEX = createIndex('pages', ['a', 'b'])
const OPEN: Condition = { property: 'b', operator: 'in', values: ['open'] }

export const queryPages: readonly Case[] = [
  {
    title: 'gives pages of a query of at most the limit, and a cursor exactly while more members match',
    needs: NEEDS,
    async run({ store, collection }) {
      await fill(
        store,
        collection,
        INDEX,
        Array.from({ length: 24 }, (_, i) => ({ a: i % 4 === 3 ? null : i % 4, b: i % 2 === 0 ? 'open' : 'done' })),
      )
      for (const order of [['a'], ['-a'], ['a', '-b'], []]) {
        for (const limit of [1, 5, 6, 11, 12, 13, 100]) {
          const sizes: number[] = []
          for (let after: string | undefined; ; ) {
            const page: Page = await ask(store, collection, INDEX, { where: [OPEN], order, limit, after })
            sizes.push(page.items.length)
            if (page.next === undefined) break
            after = page.next
            claim(sizes.length < 20, 'The walk through the pages never ends.')
          }
          const rest = 12 % limit
          const expected = [...Array<number>(Math.floor(12 / limit)).fill(limit), ...(rest > 0 ? [rest] : [])]
          claimEqual(
            sizes,
            expected,
            `12 members that match make pages of ${limit} of these sizes, the last not empty.`,
          )
        }
      }
    },
  },
  {
    title: 'goes on behind the place of a cursor, also when its member has moved or is gone',
    needs: NEEDS,
    async run({ store, collection, path }) {
      for (const [order, next] of [
        [['a'], ['4', '6', '1']],
        [['-a'], ['2', '1', '6']],
      ] as const) {
        await fill(store, collection, INDEX, [{ a: 10 }, { a: 20 }, { a: 30 }, { a: 40 }, { a: 50 }, { a: 45 }])
        const first = await ask(store, collection, INDEX, { order, limit: 3 })
        const members = first.items.map(nameOf)
        // The member of the cursor goes, the one before it moves behind the cursor, and another before the cursor.
        await store.remove(path(members[2]!), { expect: 'any', mode: 'erase' })
        const isAscending = order[0] === 'a'
        await put(store, path(isAscending ? 1 : 6), indexed(INDEX, { a: isAscending ? 60 : 5 }))
        await put(store, path(isAscending ? 5 : 3), indexed(INDEX, { a: isAscending ? 1 : 70 }))
        const second = await ask(store, collection, INDEX, { order, limit: 9, after: first.next })
        claimEqual(second.items.map(nameOf), next, 'The next page begins behind the place of the cursor.')
        for (const name of [1, 2, 3, 4, 5, 6]) await store.remove(path(name), { expect: 'any', mode: 'erase' })
      }
    },
  },
  {
    title: 'answers any cursor of a query, also a tampered one, with members that match or an HttpError below 500',
    needs: NEEDS,
    async run({ store, collection, path }) {
      await fill(
        store,
        collection,
        INDEX,
        Array.from({ length: 12 }, (_, i) => ({ a: i, b: i % 2 === 0 ? 'open' : 'secret' })),
      )
      const orders = [['a'], ['-a'], ['a', 'b'], []]
      const given = await Promise.all(
        orders.map((order) => ask(store, collection, INDEX, { order, where: [OPEN], limit: 2 })),
      )
      const texts = ["'", '"', '\u0000', '\ud800', 'x'.repeat(5000), '🜚', '%', "' OR 1=1 --"]
      const parts = [
        ...texts.map((text) => JSON.stringify(text)),
        '1e999',
        '-0',
        '{}',
        '[]',
        'null',
        'true',
        '9'.repeat(400),
      ]
      const cursors = [
        ...[
          '',
          '0',
          '[',
          '[]',
          '{}',
          'null',
          '[[]]',
          '["1"]',
          '[1]',
          '[1,"1"]',
          '[1,2,"3"]',
          '[1,2,3,"4"]',
          '"1"',
          ...texts,
        ],
        ...parts.flatMap((part) => [`[${part}]`, `[${part},"1"]`, `[1,${part}]`, `[${part},${part},"1"]`]),
        ...['[1,"1",'.repeat(2000), `${'['.repeat(5000)}1${']'.repeat(5000)}`],
        ...given.flatMap(({ next = '' }) => [
          next,
          next.slice(1),
          `${next} `,
          next.toUpperCase(),
          next.replace(/\d/, '1e9'),
        ]),
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
    needs: [...NEEDS, 'paths'],
    async run({ store, collection }) {
      const names = ["'", '"', '\\', '%', '\u0000', ' ', '🜚', '[1]', 'null', 'x'.repeat(300), '9007199254740993', '1']
      const values = [null, false, 0.1, -1e300, '', '"', '\\', '\u0001', '\u{10ffff}', 'y'.repeat(256), ',', ']']
      await fill(
        store,
        collection,
        INDEX,
        Object.fromEntries(names.map((name, at) => [name, { a: values[at]!, b: 1 }])),
      )
      for (const order of [['a'], ['-a'], ['b'], ['b', 'a'], ['b', '-a'], []]) {
        const whole = await walkNames(store, collection, INDEX, { order })
        claimEqual(whole.toSorted(), names.toSorted(), 'A member is missing or repeated on one page.')
        for (const limit of [1, 5])
          claimEqual(await walkNames(store, collection, INDEX, { order, limit }), whole, 'A cursor leads elsewhere.')
      }
    },
  },
]
