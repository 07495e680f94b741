import type { Condition, IndexedValue } from '../../stores/lists.ts'
import { createIndex, is, listUnder } from '../lists.ts'
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
