import { setTimeout as sleep } from 'node:timers/promises'
import type { CollectionIndex, Condition } from '../../stores/lists.ts'
import { nameOf } from '../../stores/types.ts'
import { claim, claimEqual, claimResource } from '../claims.ts'
import {
  ask,
  claimFound,
  createIndex,
  createMembers,
  fill,
  indexed,
  namesWith,
  plain,
  slowDown,
  tryAsk,
  walkNames,
} from '../query-samples.ts'
import { listAll, put, stream } from '../samples.ts'
import type { Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const PROPERTIES = ['a', 'b']

const is = (property: string, value: string | number): Condition => ({ property, operator: 'in', values: [value] })
const from = (value: number): Condition => ({ property: 'a', operator: 'gte', value })

export const indexing: readonly Case[] = [
  {
    title: 'indexes members that exist already, and answers no query before all of them are, while all else works',
    needs: NEEDS,
    async run({ store, collection, path, content }) {
      await fill(store, collection, undefined, createMembers(40))
      const index = slowDown(createIndex('first', PROPERTIES))
      for (const end = Date.now() + 20_000; ; await sleep(2)) {
        const page = await tryAsk(store, collection, index, { where: [from(0)], count: true })
        if (page !== undefined) {
          claimEqual([page.items.length, page.total], [40, 40], 'A query was answered before all members were indexed.')
          break
        }
        claim(Date.now() < end, 'Members that exist already are not indexed in time.')
        claimEqual((await listAll(store, collection, 25)).length, 40, 'While members are indexed, other lists work.')
        claimResource(await store.read(path(7)), 'While members are indexed, reads work.')
        await put(store, '/others/1', content(1, '/others/1'))
      }
      const sentence = 'Members that existed already are found by the values of their content.'
      await claimFound(store, collection, index, { where: [is('a', 3)] }, namesWith(40, 3), sentence)
    },
  },
  {
    title: 'indexes hidden members that exist already, and content that can be read only in pieces',
    needs: [...NEEDS, 'hiding'],
    async run({ store, collection, path }) {
      await fill(store, collection, undefined, createMembers(3))
      await store.remove(path(2), { expect: 'any', mode: 'hide' })
      const large = Buffer.from(JSON.stringify({ a: 9, filling: 'x'.repeat(1_200_000) }))
      await put(store, path(4), { contentType: 'application/json', body: stream(large, 65_536) })
      const index = createIndex('first', PROPERTIES)
      const names = (hidden: boolean) => walkNames(store, collection, index, { order: ['-a'], hidden })
      claimEqual(await names(false), ['4', '3', '1'], 'Large content is indexed like any other.')
      claimEqual(await names(true), ['4', '3', '2', '1'], 'Hidden members are indexed like others.')
    },
  },
  {
    title: 'indexes a member that is written without values, by its content, before a query is answered',
    needs: NEEDS,
    async run({ store, collection, path }) {
      const index = createIndex('first', PROPERTIES)
      await fill(store, collection, index, createMembers(5))
      await ask(store, collection, index, {})
      await put(store, path(2), plain({ a: 70 }))
      const created = await store.create(collection, plain({ a: 80 }))
      claim(created.outcome === 'created', 'A creation without a condition creates.')
      const added = Number(nameOf(created.resource.path))
      await store.write(path(4), plain({ a: 90 }), { expect: 'any', related: [{ path: path(3), content: plain({}) }] })
      const sentence = 'Content without values is indexed by `valuesOf`, and no value of an earlier state is left.'
      await claimFound(store, collection, index, { where: [from(0)], order: ['a'] }, [1, 5, 2, added, 4], sentence)
      await claimFound(store, collection, index, { where: [is('b', 'b1')] }, [], sentence)
    },
  },
  {
    title: 'indexes again under other rules, and keeps answering by the old ones',
    needs: NEEDS,
    async run({ store, collection, path }) {
      const first = createIndex('first', PROPERTIES)
      const second: CollectionIndex = {
        ...createIndex('second', ['a', 'c']),
        async valuesOf(item) {
          const { a, b } = await first.valuesOf(item)
          // Another type of a property that stays, and a property that is new.
          return { a: `text ${a}`, c: b ?? null }
        },
      }
      await fill(store, collection, first, createMembers(20))
      await claimFound(
        store,
        collection,
        first,
        { where: [is('a', 2)] },
        namesWith(20, 2),
        'The first rules are right.',
      )
      const sentence = 'Under other rules members are found by the values of these.'
      await claimFound(store, collection, second, { where: [is('a', 'text 2')] }, namesWith(20, 2), sentence)
      await claimFound(store, collection, second, { where: [is('a', 2)] }, [], sentence)
      await claimFound(store, collection, second, { where: [is('c', 'b7')] }, [8], sentence)
      // A process that has the old definition goes on.
      await put(store, path(8), indexed(first, { a: 2, b: 'late' }))
      await claimFound(store, collection, second, { where: [is('c', 'late')] }, [8], 'A write by other rules is found.')
      await put(store, path(9), {
        ...plain({ a: 1, b: 'own' }),
        indexed: { index: second, values: { a: 'text 1', c: 'own' } },
      })
      await claimFound(store, collection, first, { where: [is('b', 'own')] }, [9], 'A write by other rules is found.')
      await claimFound(store, collection, first, { where: [is('a', 2)] }, [3, 8, 13, 18], 'The first rules are right.')
    },
  },
  {
    title: 'misses nothing that is written while members are indexed',
    needs: NEEDS,
    async run({ store, collection, path }) {
      await fill(store, collection, undefined, createMembers(30))
      const quick = createIndex('first', PROPERTIES)
      const index = slowDown(quick)
      await tryAsk(store, collection, index, {})
      for (let round = 0; round < 10; round++) {
        await sleep(3)
        const write = (name: number, a: number) =>
          put(store, path(name), round % 2 === 0 ? plain({ a }) : indexed(index, { a }))
        await Promise.all([
          ...[write(1 + round, 50), write(30 - round, 50), write(100 + round, 50)],
          store.remove(path(11 + round), { expect: 'any', mode: 'erase' }),
        ])
      }
      const expected = [...times10(1), ...times10(21), ...times10(100)]
      const sentence = 'A write while members are indexed is found afterwards, by its own values and no others.'
      await claimFound(store, collection, index, { where: [is('a', 50)] }, expected, sentence)
      await claimFound(store, collection, index, {}, expected, sentence)
    },
  },
  {
    title: 'reports how many members it has indexed, and when that was all',
    needs: NEEDS,
    async run({ store, collection }) {
      await fill(store, collection, undefined, createMembers(25))
      const reports: { readonly indexed: number; readonly isDone: boolean }[] = []
      const index = {
        ...createIndex('first', PROPERTIES),
        report: (progress: (typeof reports)[number]) => void reports.push(progress),
      }
      claimEqual((await ask(store, collection, index, {})).items.length, 25, 'All members are indexed.')
      const last = reports.at(-1)
      claim(last?.isDone === true, 'The last report says that all members are indexed.')
      claim(last.indexed >= 25, `25 members were indexed, and ${last.indexed} are reported.`)
      claim(
        !reports.slice(0, -1).some(({ isDone }) => isDone),
        'Only the last report says that all members are indexed.',
      )
      const counts = reports.map(({ indexed }) => indexed)
      claimEqual(
        counts,
        counts.toSorted((x, y) => x - y),
        'The number of members that are indexed never falls.',
      )
    },
  },
  {
    title: 'keeps the indexes of collections apart',
    needs: NEEDS,
    async run({ store, collection, path }) {
      const index = createIndex('first', PROPERTIES)
      const other = createIndex('other', ['b'])
      await fill(store, collection, index, createMembers(5))
      await fill(store, '/others', undefined, createMembers(5))
      await claimFound(store, '/others', index, { where: [is('a', 2)] }, [3], 'Each collection is indexed by itself.')
      await claimFound(
        store,
        '/others',
        other,
        { where: [is('b', 'b2')] },
        [3],
        'Each collection is indexed by itself.',
      )
      await put(store, '/others/3', indexed(other, { b: 'moved' }))
      await claimFound(
        store,
        collection,
        index,
        { where: [is('b', 'b2')] },
        [3],
        'Each collection is indexed by itself.',
      )
      await store.remove(path(3), { expect: 'any', mode: 'erase' })
      await claimFound(
        store,
        '/others',
        other,
        { where: [is('b', 'moved')] },
        [3],
        'Each collection is indexed by itself.',
      )
    },
  },
]

/** Ten names in a row. */
function times10(first: number): number[] {
  return Array.from({ length: 10 }, (_, i) => first + i)
}
