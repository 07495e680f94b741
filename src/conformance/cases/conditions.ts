import type { Condition, IndexedValue } from '../../stores/lists.ts'
import type { StoredResource } from '../../stores/types.ts'
import { create, nameOf, put, remove } from '../calls.ts'
import { claimEqual } from '../claims.ts'
import { createIndex, indexed, is, listUnder, walk } from '../lists.ts'
import { range } from '../samples.ts'
import { type Bench, type Case, it } from '../types.ts'

const INDEX = createIndex('conditions', ['a', 'b'])

/**
 * Writes one member for each value of `a`, under the names 1, 2, 3 and so on.
 * @returns what fails with a sentence unless a condition on `a` finds exactly the members whose value matches
 */
async function fillValues({ store, collection }: Bench, values: readonly IndexedValue[], sentence: string) {
  const list = listUnder(store, collection, INDEX)
  await list.fill(values.map((a) => ({ a })))
  return async (condition: Condition, isMatch: (value: never) => boolean): Promise<void> => {
    const expected = values.flatMap((value, at) => (isMatch(value as never) ? [at + 1] : []))
    const detail = `${sentence} The condition is ${JSON.stringify(condition)}.`
    await list.claimFound({ where: [condition] }, expected, detail)
  }
}

const MIXED: readonly IndexedValue[] = [null, false, true, -1.5, 0, 1, 10, '', '0', '1', 'true', 'null', 'é', 'e\u0301']
const NUMBERS: readonly IndexedValue[] = [
  ...[-Number.MAX_VALUE, -1e21, -2.5, -2, -1, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 0.1, 0.30000000000000004],
  ...[1, 1.5, 2, 9, 10, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e21, Number.MAX_VALUE],
]
const TEXTS: readonly IndexedValue[] = [
  ...['', ' ', '!', '10', '9', 'A', 'Z', '_', 'a', 'a ', 'a\u0001', 'aa', 'ab', 'b', 'z', '~'],
  ...['ä', 'é', 'e\u0301', 'ß', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f71a}', '\u{10ffff}'],
  // Collations pass over a soft hyphen.
  ...['\u{10ffff}\u{10ffff}', 'a\u00adb'],
]
const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

const RELATIONS = {
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
} as const
const OPERATORS = Object.keys(RELATIONS) as (keyof typeof RELATIONS)[]

export const conditions: readonly Case[] = [
  it('selects by `in` the members that are equal to any of the values, of the same type and no other', async (bench) => {
    const claimMatches = await fillValues(bench, MIXED, '`in` selects what is equal to any of the values.')
    const choices = [...MIXED.slice(1).map((value) => [value]), [1, '1'], [true, 'é', -1.5], MIXED.slice(1, 9), [7]]
    for (const values of choices) {
      const isMatch = (value: IndexedValue) => values.includes(value)
      await claimMatches(is('a', ...values), isMatch)
    }
  }),
  it('selects a member once although a value is repeated', async (bench) => {
    const claimMatches = await fillValues(bench, MIXED, 'A value that is repeated selects a member once.')
    const isMatch = (value: IndexedValue) => value === 1 || value === 'é'
    await claimMatches(is('a', 1, 'é', 1, 'é'), isMatch)
  }),
  it('selects by `notIn` the members that are equal to none of the values, those without a value included', async (bench) => {
    const sentence = '`notIn` selects what is equal to none of the values, and `null`.'
    const claimMatches = await fillValues(bench, MIXED, sentence)
    for (const values of [[1], ['1', 'true'], [false, true], MIXED.slice(1, 9), MIXED.slice(-5), ['x', 'x']]) {
      const isMatch = (value: IndexedValue) => !values.includes(value)
      await claimMatches({ property: 'a', operator: 'notIn', values }, isMatch)
    }
  }),
  it('selects by `exists` the members that have a value, or those that have none', async ({ store, collection }) => {
    const list = listUnder(store, collection, INDEX)
    await list.fill([{ a: null }, {}, { a: false }, { a: 0 }, { a: '' }, { b: 1 }])
    const claimExists = (value: boolean, expected: readonly number[]) => {
      const where: readonly Condition[] = [{ property: 'a', operator: 'exists', value }]
      const sentence = `\`exists\` with ${value}: \`null\` and a value that is left out are alike, and nothing else is.`
      return list.claimFound({ where }, expected, sentence)
    }
    await claimExists(true, [3, 4, 5])
    await claimExists(false, [1, 2, 6])
  }),
  it('compares numbers as IEEE 754 doubles', async (bench) => {
    const claimMatches = await fillValues(bench, [...NUMBERS, null], 'Numbers compare as IEEE 754 doubles.')
    const limits = [...NUMBERS, -3, 0.2, 1.25, 1e300] as number[]
    for (const [at, limit] of limits.entries()) {
      const operator = OPERATORS[at % 4]!
      const isMatch = (value: number | null) => value !== null && RELATIONS[operator](value - limit)
      await claimMatches({ property: 'a', operator, value: limit }, isMatch)
    }
  }),
  it('takes -0 for 0', async (bench) => {
    const claimMatches = await fillValues(bench, [-0, 0, 1], '`-0` is `0`.')
    const isMatch = (value: number) => value === 0
    for (const value of [0, -0]) {
      await claimMatches(is('a', value), isMatch)
      await claimMatches({ property: 'a', operator: 'lte', value }, isMatch)
    }
  }),
  it('compares strings by code point, without a collation', async (bench) => {
    const claimMatches = await fillValues(bench, [...TEXTS, null], 'Strings compare by code point.')
    for (const [at, limit] of (TEXTS as readonly string[]).entries()) {
      const operator = OPERATORS[at % 4]!
      const isMatch = (value: string | null) => value !== null && RELATIONS[operator](compareBytes(value, limit))
      await claimMatches({ property: 'a', operator, value: limit }, isMatch)
    }
  }),
  it('tells the longest strings apart by their last character', async (bench) => {
    const [narrow, wide] = ['x'.repeat(255), '\u{1f71a}'.repeat(63)]
    const longest = [`${narrow}a`, `${narrow}b`, `${wide}\u{1f71a}`, `${wide}a`]
    const sentence = 'A string has at most 256 bytes of UTF-8, and all of them count.'
    const claimMatches = await fillValues(bench, longest, sentence)
    for (const text of longest) {
      const isMatch = (value: string) => value === text
      await claimMatches(is('a', text), isMatch)
      const isLess = (value: string) => compareBytes(value, text) < 0
      await claimMatches({ property: 'a', operator: 'lt', value: text }, isLess)
    }
  }),
  it('compares values of one type only, and never `null`', async (bench) => {
    const sentence = 'Only values of the type of the condition are compared with it.'
    const claimMatches = await fillValues(bench, MIXED, sentence)
    for (const limit of [false, true, 0, 1, '', '0', 'n'] as const) {
      for (const operator of OPERATORS) {
        const isMatch = (value: IndexedValue) => {
          if (value === null || typeof value !== typeof limit) return false
          const order = typeof limit === 'string' ? compareBytes(value as string, limit) : Number(value) - Number(limit)
          return RELATIONS[operator](order)
        }
        await claimMatches({ property: 'a', operator, value: limit }, isMatch)
      }
    }
  }),
  it('selects by `prefix` the strings that begin with it, taken literally', async (bench) => {
    const literals = ['%', '%a', 'a%', 'a_b', 'axb', '*', 'a*', '\\', '\\%', "'", "a'--", '[a', '1']
    const sentence = '`prefix` selects the strings that begin with these code points.'
    const claimMatches = await fillValues(bench, [...TEXTS, ...literals, null, 1, true], sentence)
    const prefixes = [
      ...['', 'a', 'A', 'aa', '%', 'a%', 'a_', '*', '\\', "a'", '['],
      ...['\uffff', '\u{10ffff}', '1', 'e', 'zz'],
    ]
    for (const prefix of prefixes) {
      const isMatch = (value: IndexedValue) => typeof value === 'string' && value.startsWith(prefix)
      await claimMatches({ property: 'a', operator: 'prefix', value: prefix }, isMatch)
    }
  }),
]

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
