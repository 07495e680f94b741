import { isHttpError } from '../../core/errors.ts'
import type { IndexedValue } from '../../stores/lists.ts'
import { nameOf, put, remove } from '../calls.ts'
import { claim, claimEqual, claimResource } from '../claims.ts'
import { BEHIND, claimUntold, createIndex, createQuery, indexed, is, listUnder, walk } from '../lists.ts'
import { range } from '../samples.ts'
import { type Case, it } from '../types.ts'

const INDEX = createIndex('orders', ['a', 'b'])
const OPEN = is('b', 'open')

/** In ascending order. */
const ORDERED: readonly IndexedValue[] = [
  ...[null, false, true, -Number.MAX_VALUE, -10, -2.5, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 0.5, 2, 10, 2 ** 53],
  ...[1e300, '', ' ', '10', '2', 'A', 'Z', 'a', 'a ', 'a b', 'aa', 'b', 'z', 'é', '\ud7ff', '\ue000', '\uffff'],
  '\u{10000}',
]
/** Names in the order of a list: integers by value, then others by code point. */
const NAMES = ['0', '2', '10', '007', '1.0', 'A', 'a', 'a b', 'ab', 'é', '\uffee', '\u{1f71a}']

const scatter = <Item>(items: readonly Item[]): Item[] => items.map((_, at) => items[(at * 7 + 3) % items.length]!)

/** The names of members that were written without names of their own. */
const namesAt = (places: readonly number[]): number[] => places.map((at) => at + 1)

export const orders: readonly Case[] = [
  it('orders `null` before booleans, these before numbers, numbers before strings, and each by value', async (bench) => {
    const { store, collection } = bench
    const list = listUnder(store, collection, INDEX)
    const scattered = scatter(ORDERED)
    await list.fill(scattered.map((a) => ({ a })))
    const names = ORDERED.map((value) => scattered.indexOf(value) + 1)
    await list.claimFound({ order: ['a'] }, names, 'Values of all types are in one order.')
    const reversed = '`descending` reverses the order, the place of `null` too.'
    await list.claimFound({ order: ['-a'] }, names.toReversed(), reversed)
  }),
  it('orders members with equal keys by name, ascending also where the keys descend', {
    needs: ['paths'],
  }, async ({ store, collection }) => {
    const list = listUnder(store, collection, INDEX)
    const values = [{ a: 1, b: 'x' }, { a: 2, b: 'x' }, {}]
    const scattered = scatter(NAMES)
    await list.fill(Object.fromEntries(scattered.map((name, at) => [name, values[at % 3]!])))
    const inGroup = (group: number) => NAMES.filter((name) => scattered.indexOf(name) % 3 === group)
    const [ones, twos, nones] = [inGroup(0), inGroup(1), inGroup(2)]
    const both = NAMES.filter((name) => !nones.includes(name))
    const sentence = 'Equal keys are followed by the name: integers by value, then others by code point, ascending.'
    await list.claimFound({ order: ['a'] }, [...nones, ...ones, ...twos], sentence)
    await list.claimFound({ order: ['-a'] }, [...twos, ...ones, ...nones], sentence)
    await list.claimFound({ order: ['b'] }, [...nones, ...both], sentence)
    await list.claimFound({ order: ['-b'] }, [...both, ...nones], sentence)
    await list.claimFound({ order: ['-b', '-a'] }, [...twos, ...ones, ...nones], sentence)
  }),
  it('orders by name where no key is given: integers by value, then others by code point', {
    needs: ['paths'],
  }, async ({ store, collection }) => {
    const list = listUnder(store, collection, INDEX)
    await list.fill(Object.fromEntries(scatter(NAMES).map((name) => [name, { a: name.length }])))
    const sentence = 'Without a key, a query is in the order of the names.'
    await list.claimFound({}, NAMES, sentence)
    const short = NAMES.filter((name) => name.length <= 2)
    await list.claimFound({ where: [{ property: 'a', operator: 'lte', value: 2 }] }, short, sentence)
  }),
  it('orders by two keys, each in its own direction', async ({ store, collection }) => {
    const list = listUnder(store, collection, INDEX)
    const firsts = [null, 1, 2, 'x']
    const seconds = [null, false, 3, 'y', 'z']
    const pairs = firsts.flatMap((a) => seconds.map((b) => ({ a, b })))
    const members = scatter(pairs.flatMap((pair) => [pair, pair]))
    await list.fill(members)
    const place = ({ a, b }: (typeof members)[number], x: number, y: number) =>
      x * 10 * firsts.indexOf(a) + y * seconds.indexOf(b)
    for (const x of [1, -1]) {
      for (const y of [1, -1]) {
        const compare = (i: number, j: number) => place(members[i]!, x, y) - place(members[j]!, x, y) || i - j
        const ordered = [...members.keys()].sort(compare)
        const order = [x > 0 ? 'a' : '-a', y > 0 ? 'b' : '-b']
        const sentence = `The order by ${order} is another.`
        await list.claimFound({ order }, namesAt(ordered), sentence)
        const rest = ordered.filter((at) => members[at]!.b !== 3)
        const where = [{ property: 'b', operator: 'notIn', values: [3] } as const]
        await list.claimFound({ order, where }, namesAt(rest), sentence)
      }
    }
  }),
  it('orders what conditions select, on the same property and on others', async ({ store, collection }) => {
    const list = listUnder(store, collection, INDEX)
    const members = range(0, 39).map((i) => ({ a: (i * 7) % 10, b: (i * 3) % 8 }))
    await list.fill(members)
    const where = [{ property: 'a', operator: 'gte', value: 4 } as const, is('b', 5, 1, 2)]
    const selected = [...members.keys()].filter((at) => members[at]!.a >= 4 && [1, 2, 5].includes(members[at]!.b))
    for (const property of ['a', 'b'] as const) {
      for (const sign of [1, -1]) {
        const compare = (i: number, j: number) => sign * (members[i]![property] - members[j]![property]) || i - j
        const order = [sign < 0 ? `-${property}` : property]
        const names = namesAt(selected.toSorted(compare))
        await list.claimFound({ where, order }, names, `The order by ${order} is another.`)
      }
    }
  }),
  it('orders within one scope, and among several', async ({ store, collection }) => {
    const list = listUnder(store, collection, createIndex('scoped orders', ['owner', 'rank'], ['owner']))
    const members = range(0, 35).map((i) => ({ owner: ['ann', 'bob', 'cy'][i % 3]!, rank: (i * 5) % 9 }))
    await list.fill(members)
    const claimScope = async (owners: readonly string[], order: readonly string[]) => {
      const compare = (i: number, j: number) => {
        for (const key of order) {
          const property = key.replace('-', '') as 'owner'
          const [x, y] = [members[i]![property], members[j]![property]]
          if (x !== y) return (x < y ? -1 : 1) * (key.startsWith('-') ? -1 : 1)
        }
        return i - j
      }
      const selected = [...members.keys()].filter((at) => owners.includes(members[at]!.owner))
      const sentence = `The order by ${order} of the members of ${owners} is another.`
      const names = namesAt(selected.sort(compare))
      await list.claimFound({ where: [is('owner', ...owners)], order }, names, sentence)
    }
    for (const owners of [['ann'], ['bob', 'cy'], ['none']])
      for (const order of [['rank'], ['-rank'], ['owner', '-rank'], ['-owner'], ['rank', '-owner'], []])
        await claimScope(owners, order)
  }),
]

export const queryPages: readonly Case[] = [
  it('gives pages of a query of at most the limit, and a cursor exactly while more members match', async (bench) => {
    const { store, collection } = bench
    const list = listUnder(store, collection, INDEX)
    await list.fill(range(0, 23).map((i) => ({ a: i % 4 === 3 ? null : i % 4, b: i % 2 === 0 ? 'open' : 'done' })))
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
  }),
  it('goes on behind the place of a cursor, also when its member has moved or is gone', async (bench) => {
    const { store, collection, path } = bench
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
  }),
  it('names in the cursor of a query the place of the last item, and no member behind it', async (bench) => {
    const { store, collection, path } = bench
    const list = listUnder(store, collection, INDEX)
    for (const sign of [1, -1]) {
      const order = [sign > 0 ? 'a' : '-a']
      await list.fill({ 1: { a: sign }, 2: { a: sign * 2 }, [BEHIND]: { a: sign * BEHIND } })
      const { next } = await list.ask({ order, limit: 2 })
      claimUntold(next)
      await put(store, path(3), indexed(INDEX, { a: sign * 2 }))
      const { items } = await list.ask({ order, limit: 2, after: next })
      const sentence =
        'A cursor names the place of the last item: what is written right behind that begins the next page.'
      claimEqual(items.map(nameOf), ['3', String(BEHIND)], sentence)
      await remove(store, path(3))
    }
  }),
  it('answers any cursor of a query, also a tampered one, with members that match or an HttpError below 500', async (bench) => {
    const { store, collection, path } = bench
    const list = listUnder(store, collection, INDEX)
    await list.fill(range(0, 11).map((i) => ({ a: i, b: i % 2 === 0 ? 'open' : 'secret' })))
    const orders = [['a'], ['-a'], ['a', 'b'], []]
    const given = await Promise.all(orders.map((order) => list.ask({ order, where: [OPEN], limit: 2 })))
    const texts = ["'", '"', '\u0000', '\ud800', 'x'.repeat(5000), '🜚', '%', "' OR 1=1 --"]
    const quoted = texts.map((text) => JSON.stringify(text))
    const parts = [...quoted, '1e999', '-0', '{}', '[]', 'null', 'true', '9'.repeat(400)]
    const cursors = [
      ...['', '0', '[', '[]', '{}', 'null', '[[]]', '["1"]', '[1]', '[1,"1"]', '[1,2,"3"]', '[1,2,3,"4"]', '"1"'],
      ...texts,
      ...parts.flatMap((part) => [`[${part}]`, `[${part},"1"]`, `[1,${part}]`, `[${part},${part},"1"]`]),
      ...[...parts, ...texts.map((text) => `"${text}`)].flatMap((part) => [
        `${part}\0a`,
        `1\0${part}`,
        `${part}\0${part}\0a`,
      ]),
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
          for (const item of items)
            claim(Number(nameOf(item)) % 2 === 1, `The cursor ${shown} shows a member that does not match.`)
        } catch (error) {
          const isRefused = isHttpError(error) && error.status < 500
          claim(isRefused, `The cursor ${shown} makes a query fail with ${String(error)}.`)
        }
      }
    }
    claimResource(await store.read(path(1)), 'A cursor has removed a member.')
  }),
  it('goes on behind a member with any name and any value', { needs: ['paths'] }, async ({ store, collection }) => {
    const names = ["'", '"', '\\', '%', '\u0000', ' ', '🜚', '[1]', 'null', 'x'.repeat(300), '9007199254740993', '1']
    const values = [null, false, 0.1, -1e300, '', '"', '\\', '\u0001', '\u{10ffff}', 'y'.repeat(256), ',', ']']
    const list = listUnder(store, collection, INDEX)
    await list.fill(Object.fromEntries(names.map((name, at) => [name, { a: values[at]!, b: 1 }])))
    for (const order of [['a'], ['-a'], ['b'], ['b', 'a'], ['b', '-a'], []]) {
      const whole = await list.walkNames({ order })
      claimEqual(whole.toSorted(), names.toSorted(), 'A member is missing or repeated on one page.')
      for (const limit of [1, 5]) claimEqual(await list.walkNames({ order, limit }), whole, 'A cursor leads elsewhere.')
    }
  }),
]
