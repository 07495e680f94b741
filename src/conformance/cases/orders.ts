import type { IndexedValue, IndexedValues } from '../../stores/lists.ts'
import { claimFound, createIndex, fill } from '../query-samples.ts'
import type { Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const INDEX = createIndex('orders', ['a', 'b'])

/** In ascending order. */
const ORDERED: readonly IndexedValue[] = [
  ...[
    null,
    false,
    true,
    -Number.MAX_VALUE,
    -10,
    -2.5,
    -Number.MIN_VALUE,
    0,
    Number.MIN_VALUE,
    0.5,
    2,
    10,
    2 ** 53,
    1e300,
  ],
  ...['', ' ', '10', '2', 'A', 'Z', 'a', 'a ', 'a b', 'aa', 'b', 'z', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}'],
]
/** Names in the order of a list: integers by value, then others by code point. */
const NAMES = ['0', '2', '10', '007', '1.0', 'A', 'a', 'a b', 'ab', 'é', '\uffee', '\u{1f71a}']

/** Places a list of members scattered. */
const scatter = <Item>(items: readonly Item[]): Item[] => items.map((_, at) => items[(at * 7 + 3) % items.length]!)

export const orders: readonly Case[] = [
  {
    title: 'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    needs: NEEDS,
    async run({ store, collection }) {
      const scattered = scatter(ORDERED)
      await fill(
        store,
        collection,
        INDEX,
        scattered.map((a) => ({ a })),
      )
      const names = ORDERED.map((value) => scattered.indexOf(value) + 1)
      const sentence = 'Values of all types are in one order.'
      await claimFound(store, collection, INDEX, { order: ['a'] }, names, sentence)
      const reversed = '`descending` reverses the order, the place of `null` too.'
      await claimFound(store, collection, INDEX, { order: ['-a'] }, names.toReversed(), reversed)
    },
  },
  {
    title: 'orders members with equal keys by name, ascending also where the keys descend',
    needs: [...NEEDS, 'paths'],
    async run({ store, collection }) {
      const values = { x: { a: 1, b: 'x' }, y: { a: 2, b: 'x' }, none: {} }
      await fill(
        store,
        collection,
        INDEX,
        Object.fromEntries(scatter(NAMES).map((name, at) => [name, Object.values(values)[at % 3]!])),
      )
      const groups = Object.keys(values).map((_, group) =>
        NAMES.filter((name) => scatter(NAMES).indexOf(name) % 3 === group),
      )
      const [ones, twos, nones] = groups as [string[], string[], string[]]
      const sentence = 'Equal keys are followed by the name: integers by value, then others by code point, ascending.'
      await claimFound(store, collection, INDEX, { order: ['a'] }, [...nones, ...ones, ...twos], sentence)
      await claimFound(store, collection, INDEX, { order: ['-a'] }, [...twos, ...ones, ...nones], sentence)
      const both = NAMES.filter((name) => !nones.includes(name))
      await claimFound(store, collection, INDEX, { order: ['b'] }, [...nones, ...both], sentence)
      await claimFound(store, collection, INDEX, { order: ['-b'] }, [...both, ...nones], sentence)
      await claimFound(store, collection, INDEX, { order: ['-b', '-a'] }, [...twos, ...ones, ...nones], sentence)
    },
  },
  {
    title: 'orders by name where no key is given: integers by value, then others by code point',
    needs: [...NEEDS, 'paths'],
    async run({ store, collection }) {
      await fill(store, collection, INDEX, Object.fromEntries(scatter(NAMES).map((name) => [name, { a: name.length }])))
      const sentence = 'Without a key, a query is in the order of the names.'
      await claimFound(store, collection, INDEX, {}, NAMES, sentence)
      const where = [{ property: 'a', operator: 'lte', value: 2 } as const]
      await claimFound(
        store,
        collection,
        INDEX,
        { where },
        NAMES.filter((name) => name.length <= 2),
        sentence,
      )
    },
  },
  {
    title: 'orders by two keys, each in its own direction',
    needs: NEEDS,
    async run({ store, collection }) {
      const firsts = [null, 1, 2, 'x']
      const seconds = [null, false, 3, 'y', 'z']
      const members = scatter(
        firsts.flatMap((a) =>
          seconds.flatMap((b) => [
            { a, b },
            { a, b },
          ]),
        ),
      )
      await fill(store, collection, INDEX, members)
      const place = ({ a, b }: (typeof members)[number], x: number, y: number) =>
        x * 10 * firsts.indexOf(a) + y * seconds.indexOf(b)
      for (const [x, y] of [
        [1, 1],
        [1, -1],
        [-1, 1],
        [-1, -1],
      ] as const) {
        const ordered = [...members.keys()].sort((i, j) => place(members[i]!, x, y) - place(members[j]!, x, y) || i - j)
        const order = [x > 0 ? 'a' : '-a', y > 0 ? 'b' : '-b']
        const names = ordered.map((at) => at + 1)
        await claimFound(store, collection, INDEX, { order }, names, `The order by ${order} is another.`)
        const rest = ordered.filter((at) => members[at]!.b !== 3).map((at) => at + 1)
        const where = [{ property: 'b', operator: 'notIn', values: [3] } as const]
        await claimFound(store, collection, INDEX, { order, where }, rest, `The order by ${order} is another.`)
      }
    },
  },
  {
    title: 'orders what conditions select, on the same property and on others',
    needs: NEEDS,
    async run({ store, collection }) {
      const members: IndexedValues[] = Array.from({ length: 40 }, (_, i) => ({ a: (i * 7) % 10, b: (i * 3) % 8 }))
      await fill(store, collection, INDEX, members)
      const claimOrder = async (property: 'a' | 'b', descending: boolean) => {
        const sign = descending ? -1 : 1
        const expected = [...members.keys()]
          .filter((at) => (members[at]!['a'] as number) >= 4 && [1, 2, 5].includes(members[at]!['b'] as number))
          .sort((i, j) => sign * ((members[i]![property] as number) - (members[j]![property] as number)) || i - j)
          .map((at) => at + 1)
        const where = [
          { property: 'a', operator: 'gte', value: 4 } as const,
          { property: 'b', operator: 'in', values: [5, 1, 2] } as const,
        ]
        const order = [descending ? `-${property}` : property]
        await claimFound(store, collection, INDEX, { where, order }, expected, `The order by ${order} is another.`)
      }
      for (const property of ['a', 'b'] as const)
        for (const descending of [false, true]) await claimOrder(property, descending)
    },
  },
  {
    title: 'orders within one scope, and among several',
    needs: NEEDS,
    async run({ store, collection }) {
      const index = createIndex('scoped orders', ['owner', 'rank'], ['owner'])
      const members = Array.from({ length: 36 }, (_, i) => ({ owner: ['ann', 'bob', 'cy'][i % 3]!, rank: (i * 5) % 9 }))
      await fill(store, collection, index, members)
      const claimScope = async (owners: readonly string[], order: readonly string[]) => {
        const key = (at: number) => order.map((name) => members[at]![name.replace('-', '') as 'owner'])
        const compare = (i: number, j: number) => {
          for (const [k, name] of order.entries()) {
            const [x, y] = [key(i)[k]!, key(j)[k]!]
            if (x !== y) return (x < y ? -1 : 1) * (name.startsWith('-') ? -1 : 1)
          }
          return i - j
        }
        const expected = [...members.keys()].filter((at) => owners.includes(members[at]!.owner)).sort(compare)
        const where = [{ property: 'owner', operator: 'in', values: owners } as const]
        const question = { where, order }
        const sentence = `The order by ${order} of the members of ${owners} is another.`
        await claimFound(
          store,
          collection,
          index,
          question,
          expected.map((at) => at + 1),
          sentence,
        )
      }
      for (const owners of [['ann'], ['bob', 'cy'], ['none']])
        for (const order of [['rank'], ['-rank'], ['owner', '-rank'], ['-owner'], ['rank', '-owner'], []])
          await claimScope(owners, order)
    },
  },
]
