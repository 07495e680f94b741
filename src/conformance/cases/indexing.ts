import { setTimeout as sleep } from 'node:timers/promises'
import type { CollectionIndex, Condition, IndexedValues } from '../../stores/lists.ts'
import type { ResourceStore } from '../../stores/types.ts'
import { nameOf, put, race, remove } from '../calls.ts'
import { claim, claimEqual, claimResource } from '../claims.ts'
import { createIndex, indexed, is, listAll, listUnder, plain } from '../lists.ts'
import { range, stream } from '../samples.ts'
import { type Case, it } from '../types.ts'

const FIRST = createIndex('first', ['a', 'b'])

const from = (value: number): Condition => ({ property: 'a', operator: 'gte', value })

/** The values of members of which every fifth has the same value of `a`. */
const createMembers = (count: number): IndexedValues[] =>
  Array.from({ length: count }, (_, i) => ({ a: i % 5, b: `b${i}` }))

/** The names of those whose value of `a` is one. */
const namesWith = (count: number, a: number): number[] => range(1, count).filter((name) => (name - 1) % 5 === a)

/** Writes such members without their values: a store finds these in the content. */
async function putPlain(store: ResourceStore, collection: string, count: number): Promise<void> {
  await Promise.all(createMembers(count).map((values, at) => put(store, `${collection}/${at + 1}`, plain(values))))
}

/** Rules that take their time over every item. */
function slowDown(index: CollectionIndex, milliseconds = 3): CollectionIndex {
  return {
    ...index,
    async valuesOf(item) {
      await sleep(milliseconds)
      return index.valuesOf(item)
    },
  }
}

export const indexing: readonly Case[] = [
  it('indexes members that exist already, and answers no query before all of them are, while all else works', async (bench) => {
    const { store, collection, path, content } = bench
    await putPlain(store, collection, 40)
    const list = listUnder(store, collection, slowDown(FIRST))
    for (const end = Date.now() + 20_000; ; await sleep(2)) {
      const page = await list.tryAsk({ where: [from(0)], count: true })
      if (page !== undefined) {
        claimEqual([page.items.length, page.total], [40, 40], 'A query was answered before all members were indexed.')
        break
      }
      claim(Date.now() < end, 'Members that exist already are not indexed in time.')
      claimEqual((await listAll(store, collection, 25)).length, 40, 'While members are indexed, other lists work.')
      claimResource(await store.read(path(7)), 'While members are indexed, reads work.')
      await put(store, '/others/1', content(1, 1))
    }
    const sentence = 'Members that existed already are found by the values of their content.'
    await list.claimFound({ where: [is('a', 3)] }, namesWith(40, 3), sentence)
  }),
  it('indexes hidden members that exist already, and content that can be read only in pieces', {
    needs: ['hiding'],
  }, async ({ store, collection, path }) => {
    await putPlain(store, collection, 3)
    await remove(store, path(2), 'hide')
    const large = Buffer.from(JSON.stringify({ a: 9, filling: 'x'.repeat(1_200_000) }))
    await put(store, path(4), { contentType: 'application/json', body: stream(large, 65_536) })
    const list = listUnder(store, collection, FIRST)
    const names = (hidden: boolean) => list.walkNames({ order: ['-a'], hidden })
    claimEqual(await names(false), ['4', '3', '1'], 'Large content is indexed like any other.')
    claimEqual(await names(true), ['4', '3', '2', '1'], 'Hidden members are indexed like others.')
  }),
  it('indexes a member that is written without values, by its content, before a query is answered', async (bench) => {
    const { store, collection, path } = bench
    const list = listUnder(store, collection, FIRST)
    await list.fill(createMembers(5))
    await list.ask()
    await put(store, path(2), plain({ a: 70 }))
    const created = await store.create(collection, plain({ a: 80 }))
    claim(created.outcome === 'created', 'A creation without a condition creates.')
    const added = nameOf(created.resource)
    await store.write(path(4), plain({ a: 90 }), { expect: 'any', related: [{ path: path(3), content: plain({}) }] })
    const sentence = 'Content without values is indexed by `valuesOf`, and no value of an earlier state is left.'
    await list.claimFound({ where: [from(0)], order: ['a'] }, [1, 5, 2, added, 4], sentence)
    await list.claimFound({ where: [is('b', 'b1')] }, [], sentence)
  }),
  it('indexes again under other rules, and keeps answering by the old ones', async ({ store, collection, path }) => {
    const second: CollectionIndex = {
      ...createIndex('second', ['a', 'c']),
      async valuesOf(item) {
        const { a, b } = await FIRST.valuesOf(item)
        // Another type of a property that stays, and a property that is new.
        return { a: `text ${a}`, c: b ?? null }
      },
    }
    const before = listUnder(store, collection, FIRST)
    const after = listUnder(store, collection, second)
    await before.fill(createMembers(20))
    await before.claimFound({ where: [is('a', 2)] }, namesWith(20, 2), 'The first rules are right.')
    const sentence = 'Under other rules members are found by the values of these.'
    await after.claimFound({ where: [is('a', 'text 2')] }, namesWith(20, 2), sentence)
    await after.claimFound({ where: [is('a', 2)] }, [], sentence)
    await after.claimFound({ where: [is('c', 'b7')] }, [8], sentence)
    // A process that has the old definition goes on.
    await put(store, path(8), indexed(FIRST, { a: 2, b: 'late' }))
    await after.claimFound({ where: [is('c', 'late')] }, [8], 'A write by other rules is found.')
    const values = { a: 'text 1', c: 'own' }
    await put(store, path(9), { ...plain({ a: 1, b: 'own' }), indexed: { index: second, values } })
    await before.claimFound({ where: [is('b', 'own')] }, [9], 'A write by other rules is found.')
    await before.claimFound({ where: [is('a', 2)] }, [3, 8, 13, 18], 'The first rules are right.')
  }),
  it('misses nothing that is written while members are indexed', async ({ store, collection, path }) => {
    await putPlain(store, collection, 30)
    const index = slowDown(FIRST)
    const list = listUnder(store, collection, index)
    await list.tryAsk()
    for (let round = 0; round < 10; round++) {
      await sleep(3)
      const values = { a: 50 }
      const write = (name: number) => put(store, path(name), round % 2 === 0 ? plain(values) : indexed(index, values))
      await Promise.all([...[1 + round, 30 - round, 100 + round].map(write), remove(store, path(11 + round))])
    }
    const expected = [...range(1, 10), ...range(21, 30), ...range(100, 109)]
    const sentence = 'A write while members are indexed is found afterwards, by its own values and no others.'
    await list.claimFound({ where: [is('a', 50)] }, expected, sentence)
    await list.claimFound({}, expected, sentence)
  }),
  it('reports how many members it has indexed, and when that was all', async ({ store, collection }) => {
    await putPlain(store, collection, 25)
    const reports: { readonly indexed: number; readonly isDone: boolean }[] = []
    const report = (progress: (typeof reports)[number]) => void reports.push(progress)
    const { items } = await listUnder(store, collection, { ...FIRST, report }).ask()
    claimEqual(items.length, 25, 'All members are indexed.')
    const last = reports.at(-1)
    claim(last?.isDone === true, 'The last report says that all members are indexed.')
    claim(last.indexed >= 25, `25 members were indexed, and ${last.indexed} are reported.`)
    const isEarly = reports.slice(0, -1).some(({ isDone }) => isDone)
    claim(!isEarly, 'Only the last report says that all members are indexed.')
    const counts = reports.map(({ indexed }) => indexed)
    const rising = counts.toSorted((x, y) => x - y)
    claimEqual(counts, rising, 'The number of members that are indexed never falls.')
  }),
  it('keeps the indexes of collections apart', async ({ store, collection, path }) => {
    const other = createIndex('other', ['b'])
    const list = listUnder(store, collection, FIRST)
    const others = listUnder(store, '/others', other)
    await list.fill(createMembers(5))
    await putPlain(store, '/others', 5)
    const sentence = 'Each collection is indexed by itself.'
    await listUnder(store, '/others', FIRST).claimFound({ where: [is('a', 2)] }, [3], sentence)
    await others.claimFound({ where: [is('b', 'b2')] }, [3], sentence)
    await put(store, '/others/3', indexed(other, { b: 'moved' }))
    await list.claimFound({ where: [is('b', 'b2')] }, [3], sentence)
    await remove(store, path(3))
    await others.claimFound({ where: [is('b', 'moved')] }, [3], sentence)
  }),
]

export const sharedIndexing: readonly Case[] = [
  it('finds in every process what another one has written, with its values or without', async (bench) => {
    const { store, collection, path, reopen } = bench
    const other = await reopen()
    const list = listUnder(store, collection, FIRST)
    const otherList = listUnder(other, collection, FIRST)
    await list.fill(createMembers(10))
    const claimBoth = async (value: number, expected: readonly number[], sentence: string) => {
      for (const one of [list, otherList, list]) await one.claimFound({ where: [is('a', value)] }, expected, sentence)
    }
    await claimBoth(2, [3, 8], 'A query finds what another process has written.')
    await put(other, path(3), indexed(FIRST, { a: 4 }))
    await claimBoth(2, [8], 'A query finds what another process has written.')
    await put(other, path(4), plain({ a: 2 }))
    await claimBoth(2, [4, 8], 'A query finds what another process has written without values.')
    await put(await reopen(), path(8), plain({ a: 60 }))
    await claimBoth(2, [4], 'A query finds what another process has written without values.')
    await remove(store, path(4))
    await claimBoth(2, [], 'A query finds nothing that another process has removed.')
  }),
  it('goes on with the indexing of members after a sudden end, and among several processes', async (bench) => {
    const { store, collection, path, crash, reopen } = bench
    await putPlain(store, collection, 60)
    await listUnder(store, collection, slowDown(FIRST, 5)).tryAsk()
    await put(store, path(3), plain({ a: 77 }))
    await sleep(40)
    const stores = [await crash(), await reopen()]
    const pages = await race(stores, 4, (own, i) => listUnder(own, collection, slowDown(FIRST, i)).ask({ count: true }))
    for (const { total } of pages) claimEqual(total, 60, 'A query was answered before all members were indexed.')
    const sentence = 'After a sudden end in its midst, indexing leaves out no member.'
    for (const one of stores) {
      const list = listUnder(one, collection, FIRST)
      await list.claimFound({ where: [is('a', 2)] }, namesWith(60, 2).slice(1), sentence)
      await list.claimFound({ where: [is('a', 77)] }, [3], sentence)
    }
  }),
]
