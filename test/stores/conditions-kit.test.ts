import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { runKit } from './kit-runner.ts'
import * as conditions from './mutants/conditions.ts'
import { naive } from './mutants/naive-queries.ts'
import { testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and the sentence of the contract that it names. */
const MUTANTS = [
  [
    'notInWithoutNull',
    conditions.notInWithoutNull,
    'selects by `notIn` the members that are equal to none of the values, those without a value included',
    '`notIn` selects what is equal to none of the values, and `null`.',
  ],
  [
    'looseEquality',
    conditions.looseEquality,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    '`in` selects what is equal to any of the values.',
  ],
  [
    'inMatchesNull',
    conditions.inMatchesNull,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    '`in` selects what is equal to any of the values.',
  ],
  [
    'falsyIsAbsent',
    conditions.falsyIsAbsent,
    'selects by `exists` the members that have a value, or those that have none',
    '`exists` with true: `null` and a value that is left out are alike, and nothing else is.',
  ],
  [
    'existsAlwaysTrue',
    conditions.existsAlwaysTrue,
    'selects by `exists` the members that have a value, or those that have none',
    '`exists` with false: `null` and a value that is left out are alike, and nothing else is.',
  ],
  [
    'greaterOrEqual',
    conditions.greaterOrEqual,
    'compares numbers as IEEE 754 doubles',
    'Numbers compare as IEEE 754 doubles.',
  ],
  [
    'onlyGreater',
    conditions.onlyGreater,
    'compares numbers as IEEE 754 doubles',
    'Numbers compare as IEEE 754 doubles.',
  ],
  [
    'lessOrEqual',
    conditions.lessOrEqual,
    'compares numbers as IEEE 754 doubles',
    'Numbers compare as IEEE 754 doubles.',
  ],
  ['onlyLess', conditions.onlyLess, 'compares numbers as IEEE 754 doubles', 'Numbers compare as IEEE 754 doubles.'],
  ['nullIsLess', conditions.nullIsLess, 'compares numbers as IEEE 754 doubles', 'Numbers compare as IEEE 754 doubles.'],
  [
    'acrossTypes',
    conditions.acrossTypes,
    'compares values of one type only, and never `null`',
    'Only values of the type of the condition are compared with it.',
  ],
  [
    'numbersAsText',
    conditions.numbersAsText,
    'compares numbers as IEEE 754 doubles',
    'Numbers compare as IEEE 754 doubles.',
  ],
  [
    'shortFloats',
    conditions.shortFloats,
    'compares numbers as IEEE 754 doubles',
    'Numbers compare as IEEE 754 doubles.',
  ],
  ['negativeZero', conditions.negativeZero, 'takes -0 for 0', '`-0` is `0`.'],
  [
    'byCodeUnit',
    conditions.byCodeUnit,
    'compares strings by code point, without a collation',
    'Strings compare by code point.',
  ],
  [
    'caseInsensitive',
    conditions.caseInsensitive,
    'compares strings by code point, without a collation',
    'Strings compare by code point.',
  ],
  [
    'padded',
    conditions.padded,
    'compares strings by code point, without a collation',
    'Strings compare by code point.',
  ],
  [
    'hyphenless',
    conditions.hyphenless,
    'compares strings by code point, without a collation',
    'Strings compare by code point.',
  ],
  [
    'normalized',
    conditions.normalized,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    '`in` selects what is equal to any of the values.',
  ],
  [
    'truncated',
    conditions.truncated,
    'tells the longest strings apart by their last character',
    'A string has at most 256 bytes of UTF-8, and all of them count.',
  ],
  [
    'likePattern',
    conditions.likePattern,
    'selects by `prefix` the strings that begin with it, taken literally',
    '`prefix` selects the strings that begin with these code points.',
  ],
  [
    'anythingHasTheEmptyPrefix',
    conditions.anythingHasTheEmptyPrefix,
    'selects by `prefix` the strings that begin with it, taken literally',
    '`prefix` selects the strings that begin with these code points.',
  ],
  [
    'numbersHavePrefixes',
    conditions.numbersHavePrefixes,
    'selects by `prefix` the strings that begin with it, taken literally',
    '`prefix` selects the strings that begin with these code points.',
  ],
  [
    'fewValues',
    conditions.fewValues,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    '`in` selects what is equal to any of the values.',
  ],
  [
    'firstConditionOnly',
    conditions.firstConditionOnly,
    'selects the members that meet all conditions, several on one property included',
    'All conditions must match.',
  ],
  [
    'anyCondition',
    conditions.anyCondition,
    'selects the members that meet all conditions, several on one property included',
    'All conditions must match.',
  ],
  [
    'lastOfProperty',
    conditions.lastOfProperty,
    'selects the members that meet all conditions, several on one property included',
    'All conditions must match.',
  ],
  [
    'inheritedNames',
    conditions.inheritedNames,
    'takes any text for the name of a property and for a value',
    'The property "__proto__" is a name like any other.',
  ],
  [
    'fifteenProperties',
    conditions.fifteenProperties,
    'selects and orders by each of sixteen properties',
    'An index has up to 16 properties, each of which selects and orders.',
  ],
  [
    'oneScopeProperty',
    conditions.oneScopeProperty,
    'selects by the properties of the scope as by others, alone, together and beside other conditions',
    'Properties of the scope are compared by equality, all together.',
  ],
] as const

describe('the kit, queries: conditions', () => {
  it('finds no fault with a store that answers by looking at every member', async () => {
    const { failures } = await runKit(naive(() => ({})))
    expect(failures).toEqual(new Map())
  })

  it('leaves queries out for a store that does not support them', async () => {
    const { skipped, failures } = await runKit(() => ({ ...memoryStore(), supports: { parents: true } }))
    expect(failures).toEqual(new Map())
    expect(skipped).toContain('orders by two keys, each in its own direction')
    expect(skipped).not.toContain('writes and creates where the path that is required is present')
  })

  testMutants(MUTANTS)
})
