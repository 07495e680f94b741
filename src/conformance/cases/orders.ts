import type { IndexedValue } from '../../stores/index-types.ts'
import { createIndex, is, listUnder } from '../query-samples.ts'
import type { Case } from '../types.ts'

const INDEX = createIndex('orders', ['a', 'b'])

/** In ascending order. */
const ORDERED: readonly IndexedValue[] = [
  ...[null, false, true, -Number.MAX_VALUE, -10, -2.5, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 0.5, 2, 10, 2 ** 53],
  ...[1e300, '', ' ', '10', '2', 'A', 'Z', 'a', 'a ', 'a b', 'aa', 'b', 'z', 'é', '\ud7ff', '\ue000', '\uffff'],
  '\u{10000}',
]
/** Names in the order of a list: integers by value, then others by code point. */
const NAMES = ['0', '2', '10', '007', '1.0', 'A', 'a', 'a b', 'ab', 'é', '\uffee', '\u{1f71a}']

/** Places a list of members scattered. */
const scatter = <Item>(items: readonly Item[]): Item[] => items.map((_, at) => items[(at * 7 + 3) % items.length]!)

/** The names of members that were written without names of their own. */
const namesAt = (places: readonly number[]): number[] => places.map((at) => at + 1)

export const orders: readonly Case[] = [
  {
    title: 'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    async run({ store, collection }) {
      const list = listUnder(store, collection, INDEX)
      const scattered = scatter(ORDERED)
      await list.fill(scattered.map((a) => ({ a })))
      const names = ORDERED.map((value) => scattered.indexOf(value) + 1)
      await list.claimFound({ order: ['a'] }, names, 'Values of all types are in one order.')
      const reversed = '`descending` reverses the order, the place of `null` too.'
      await list.claimFound({ order: ['-a'] }, names.toReversed(), reversed)
    },
  },
  {
    title: 'orders members with equal keys by name, ascending also where the keys descend',
    needs: ['paths'],
    async run({ store, collection }) {
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
    },
  },
  {
    title: 'orders by name where no key is given: integers by value, then others by code point',
    needs: ['paths'],
    async run({ store, collection }) {
      const list = listUnder(store, collection, INDEX)
      await list.fill(Object.fromEntries(scatter(NAMES).map((name) => [name, { a: name.length }])))
      const sentence = 'Without a key, a query is in the order of the names.'
      await list.claimFound({}, NAMES, sentence)
      const short = NAMES.filter((name) => name.length <= 2)
      await list.claimFound({ where: [{ property: 'a', operator: 'lte', value: 2 }] }, short, sentence)
    },
  },
  {
    title: 'orders by two keys, each in its own direction',
    async run({ store, collection }) {
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
    },
  },
  {
    title: 'orders what conditions select, on the same property and on others',
    async run({ store, collection }) {
      const list = listUnder(store, collection, INDEX)
      const members = Array.from({ length: 40 }, (_, i) => ({ a: (i * 7) % 10, b: (i * 3) % 8 }))
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
    },
  },
  {
    title: 'orders within one scope, and among several',
    async run({ store, collection }) {
      const list = listUnder(store, collection, createIndex('scoped orders', ['owner', 'rank'], ['owner']))
      const members = Array.from({ length: 36 }, (_, i) => ({ owner: ['ann', 'bob', 'cy'][i % 3]!, rank: (i * 5) % 9 }))
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
    },
  },
]
