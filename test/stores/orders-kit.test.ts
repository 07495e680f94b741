import { describe } from 'vitest'
import * as orders from './mutants/orders.ts'
import { testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and the sentence of the contract that it names. */
const MUTANTS = [
  [
    'nullsLast',
    orders.nullsLast,
    'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    'Values of all types are in one order.',
  ],
  [
    'trueFirst',
    orders.trueFirst,
    'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    'Values of all types are in one order.',
  ],
  [
    'stringsFirst',
    orders.stringsFirst,
    'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    'Values of all types are in one order.',
  ],
  [
    'localeOrder',
    orders.localeOrder,
    'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    'Values of all types are in one order.',
  ],
  [
    'textOrderOfNumbers',
    orders.textOrderOfNumbers,
    'selects and orders by each of sixteen properties',
    'An index has up to 16 properties, each of which selects and orders.',
  ],
  [
    'nullsFirstAlways',
    orders.nullsFirstAlways,
    'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    '`descending` reverses the order, the place of `null` too.',
  ],
  [
    'namesDescend',
    orders.namesDescend,
    'orders members with equal keys by name, ascending also where the keys descend',
    'Equal keys are followed by the name: integers by value, then others by code point, ascending.',
  ],
  [
    'oneKey',
    orders.oneKey,
    'orders members with equal keys by name, ascending also where the keys descend',
    'Equal keys are followed by the name: integers by value, then others by code point, ascending.',
  ],
  [
    'oneDirection',
    orders.oneDirection,
    'orders by two keys, each in its own direction',
    'The order by a,-b is another.',
  ],
  [
    'ascendingOnly',
    orders.ascendingOnly,
    'selects and orders by each of sixteen properties',
    'An index has up to 16 properties, each of which selects and orders.',
  ],
  [
    'namesAsText',
    orders.namesAsText,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    '`in` selects what is equal to any of the values.',
  ],
  [
    'namesByCodeUnit',
    orders.namesByCodeUnit,
    'orders by name where no key is given: integers by value, then others by code point',
    'Without a key, a query is in the order of the names.',
  ],
  [
    'offsetOfQuery',
    orders.offsetOfQuery,
    'goes on behind the place of a cursor, also when its member has moved or is gone',
    'The next page begins behind the place of the cursor.',
  ],
  [
    'placeOfNow',
    orders.placeOfNow,
    'goes on behind the place of a cursor, also when its member has moved or is gone',
    'The next page begins behind the place of the cursor.',
  ],
  [
    'skipsTies',
    orders.skipsTies,
    'orders members with equal keys by name, ascending also where the keys descend',
    'Equal keys are followed by the name: integers by value, then others by code point, ascending.',
  ],
  [
    'trustsCursors',
    orders.trustsCursors,
    'answers any cursor of a query, also a tampered one, with members that match or an HttpError below 500',
    'The cursor "\\u0000" makes a query fail with SyntaxError: Unexpected end of JSON input.',
  ],
  ['refusesLongNames', orders.refusesLongNames, 'goes on behind a member with any name and any value', 'Bad Request'],
  [
    'trustingPage',
    orders.trustingPage,
    'answers any cursor of a query, also a tampered one, with members that match or an HttpError below 500',
    'shows a member that does not match.',
  ],
  [
    'alwaysMore',
    orders.alwaysMore,
    'gives pages of a query of at most the limit, and a cursor exactly while more members match',
    '12 members that match make pages of 1 of these sizes, the last not empty.',
  ],
  [
    'oneTooMany',
    orders.oneTooMany,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    'A page of at most 1 items has 2.',
  ],
  [
    'countsThePage',
    orders.countsThePage,
    'counts the members that match, on whichever page, and only when asked',
    '`total` is the number of members that match, on whichever page.',
  ],
  [
    'countsTheRest',
    orders.countsTheRest,
    'counts the members that match, on whichever page, and only when asked',
    '`total` is the number of members that match, on whichever page.',
  ],
  [
    'alwaysCounts',
    orders.alwaysCounts,
    'counts the members that match, on whichever page, and only when asked',
    '`total` is given only where it is asked for.',
  ],
  [
    'neverCounts',
    orders.neverCounts,
    'counts the members that match, on whichever page, and only when asked',
    '`total` is the number of members that match, on whichever page.',
  ],
  [
    'countsAtMostTen',
    orders.countsAtMostTen,
    'counts the members that match, on whichever page, and only when asked',
    '`total` is the number of members that match, on whichever page.',
  ],
] as const

describe('the kit, queries: order, pages and counts', () => {
  testMutants(MUTANTS)
})
