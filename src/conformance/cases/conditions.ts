import type { Condition, IndexedValue } from '../../stores/lists.ts'
import { claimFound, createIndex, fill } from '../query-samples.ts'
import type { Bench, Case } from '../types.ts'

const NEEDS = ['queries', 'contents'] as const
const INDEX = createIndex('conditions', ['a', 'b'])

/** One member for each value of `a`, the names of which are 1, 2, 3 and so on. */
async function fillValues({ store, collection }: Bench, values: readonly IndexedValue[]): Promise<void> {
  await fill(
    store,
    collection,
    INDEX,
    values.map((a) => ({ a })),
  )
}

/** Fails unless a condition on `a` finds exactly some of the values. */
async function claimMatches(
  { store, collection }: Bench,
  all: readonly IndexedValue[],
  condition: Condition,
  isMatch: (value: never) => boolean,
  sentence: string,
): Promise<void> {
  const expected = all.flatMap((value, at) => (isMatch(value as never) ? [at + 1] : []))
  const detail = `${sentence} The condition is ${JSON.stringify(condition)}.`
  await claimFound(store, collection, INDEX, { where: [condition] }, expected, detail)
}

const MIXED: readonly IndexedValue[] = [null, false, true, -1.5, 0, 1, 10, '', '0', '1', 'true', 'null', 'é', 'e\u0301']
const NUMBERS: readonly IndexedValue[] = [
  ...[-Number.MAX_VALUE, -1e21, -2.5, -2, -1, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 0.1, 0.30000000000000004],
  ...[1, 1.5, 2, 9, 10, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e21, Number.MAX_VALUE],
]
const TEXTS: readonly IndexedValue[] = [
  ...[
    '',
    ' ',
    '!',
    '10',
    '9',
    'A',
    'Z',
    '_',
    'a',
    'a ',
    'a\u0001',
    'aa',
    'ab',
    'b',
    'z',
    '~',
    'ä',
    'é',
    'e\u0301',
    'ß',
  ],
  ...['\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f71a}', '\u{10ffff}', '\u{10ffff}\u{10ffff}'],
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
  {
    title: 'selects by `in` the members that are equal to any of the values, of the same type and no other',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, MIXED)
      const choices = [...MIXED.slice(1).map((value) => [value]), [1, '1'], [true, 'é', -1.5], MIXED.slice(1, 9), [7]]
      for (const values of choices) {
        const isMatch = (value: IndexedValue) => values.includes(value)
        const sentence = '`in` selects what is equal to any of the values.'
        await claimMatches(bench, MIXED, { property: 'a', operator: 'in', values }, isMatch, sentence)
      }
    },
  },
  {
    title: 'selects a member once although a value is repeated',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, MIXED)
      const condition: Condition = { property: 'a', operator: 'in', values: [1, 'é', 1, 'é'] }
      const isMatch = (value: IndexedValue) => value === 1 || value === 'é'
      await claimMatches(bench, MIXED, condition, isMatch, 'A value that is repeated selects a member once.')
    },
  },
  {
    title: 'selects by `notIn` the members that are equal to none of the values, those without a value included',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, MIXED)
      for (const values of [[1], ['1', 'true'], [false, true], MIXED.slice(1, 9), MIXED.slice(-5), ['x', 'x']]) {
        const isMatch = (value: IndexedValue) => !values.includes(value)
        const sentence = '`notIn` selects what is equal to none of the values, and `null`.'
        await claimMatches(bench, MIXED, { property: 'a', operator: 'notIn', values }, isMatch, sentence)
      }
    },
  },
  {
    title: 'selects by `exists` the members that have a value, or those that have none',
    needs: NEEDS,
    async run(bench) {
      const { store, collection } = bench
      await fill(store, collection, INDEX, [{ a: null }, {}, { a: false }, { a: 0 }, { a: '' }, { b: 1 }])
      const claimExists = (value: boolean, expected: readonly number[]) => {
        const where: readonly Condition[] = [{ property: 'a', operator: 'exists', value }]
        const sentence = `\`exists\` with ${value}: \`null\` and a value that is left out are alike, and nothing else is.`
        return claimFound(store, collection, INDEX, { where }, expected, sentence)
      }
      await claimExists(true, [3, 4, 5])
      await claimExists(false, [1, 2, 6])
    },
  },
  {
    title: 'compares numbers as IEEE 754 doubles',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, [...NUMBERS, null])
      const limits = [...NUMBERS, -3, 0.2, 1.25, 1e300] as number[]
      for (const [at, limit] of limits.entries()) {
        const operator = OPERATORS[at % 4]!
        const isMatch = (value: number | null) => value !== null && RELATIONS[operator](value - limit)
        const sentence = 'Numbers compare as IEEE 754 doubles.'
        await claimMatches(bench, [...NUMBERS, null], { property: 'a', operator, value: limit }, isMatch, sentence)
      }
    },
  },
  {
    title: 'takes -0 for 0',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, [-0, 0, 1])
      const isMatch = (value: number) => value === 0
      const sentence = '`-0` is `0`.'
      for (const value of [0, -0]) {
        await claimMatches(bench, [-0, 0, 1], { property: 'a', operator: 'in', values: [value] }, isMatch, sentence)
        await claimMatches(bench, [-0, 0, 1], { property: 'a', operator: 'lte', value }, isMatch, sentence)
      }
    },
  },
  {
    title: 'compares strings by code point, without a collation',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, [...TEXTS, null])
      for (const [at, limit] of (TEXTS as readonly string[]).entries()) {
        const operator = OPERATORS[at % 4]!
        const isMatch = (value: string | null) => value !== null && RELATIONS[operator](compareBytes(value, limit))
        const sentence = 'Strings compare by code point.'
        await claimMatches(bench, [...TEXTS, null], { property: 'a', operator, value: limit }, isMatch, sentence)
      }
    },
  },
  {
    title: 'tells the longest strings apart by their last character',
    needs: NEEDS,
    async run(bench) {
      const longest = [
        'x'.repeat(255) + 'a',
        'x'.repeat(255) + 'b',
        '\u{1f71a}'.repeat(64),
        '\u{1f71a}'.repeat(63) + 'a',
      ]
      await fillValues(bench, longest)
      for (const text of longest) {
        const isMatch = (value: string) => value === text
        const sentence = 'A string has at most 256 bytes of UTF-8, and all of them count.'
        await claimMatches(bench, longest, { property: 'a', operator: 'in', values: [text] }, isMatch, sentence)
        const isLess = (value: string) => compareBytes(value, text) < 0
        await claimMatches(bench, longest, { property: 'a', operator: 'lt', value: text }, isLess, sentence)
      }
    },
  },
  {
    title: 'compares values of one type only, and never `null`',
    needs: NEEDS,
    async run(bench) {
      await fillValues(bench, MIXED)
      for (const limit of [false, true, 0, 1, '', '0', 'n'] as const) {
        for (const operator of OPERATORS) {
          const isMatch = (value: IndexedValue) => {
            if (value === null || typeof value !== typeof limit) return false
            const order =
              typeof limit === 'string' ? compareBytes(value as string, limit) : Number(value) - Number(limit)
            return RELATIONS[operator](order)
          }
          const sentence = 'Only values of the type of the condition are compared with it.'
          await claimMatches(bench, MIXED, { property: 'a', operator, value: limit }, isMatch, sentence)
        }
      }
    },
  },
  {
    title: 'selects by `prefix` the strings that begin with it, taken literally',
    needs: NEEDS,
    async run(bench) {
      const texts = [
        ...TEXTS,
        ...['%', '%a', 'a%', 'a_b', 'axb', '*', 'a*', '\\', '\\%', "'", "a'--", '[a', '1'],
        null,
        1,
        true,
      ]
      await fillValues(bench, texts)
      for (const prefix of [
        '',
        'a',
        'A',
        'aa',
        '%',
        'a%',
        'a_',
        '*',
        '\\',
        "a'",
        '[',
        '\uffff',
        '\u{10ffff}',
        '1',
        'e',
        'zz',
      ]) {
        const isMatch = (value: IndexedValue) => typeof value === 'string' && value.startsWith(prefix)
        const sentence = '`prefix` selects the strings that begin with these code points.'
        await claimMatches(bench, texts, { property: 'a', operator: 'prefix', value: prefix }, isMatch, sentence)
      }
    },
  },
]
