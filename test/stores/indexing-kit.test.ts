import { describe } from 'vitest'
import * as indexedContent from './mutants/indexed-content.ts'
import { testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and the sentence of the contract that it names. */
const MUTANTS = [
  [
    'onlyWrittenValues',
    indexedContent.onlyWrittenValues,
    'indexes members that exist already, and answers no query before all of them are, while all else works',
    'A query was answered before all members were indexed.',
  ],
  [
    'leavesOut',
    indexedContent.leavesOut,
    'indexes members that exist already, and answers no query before all of them are, while all else works',
    'A query was answered before all members were indexed.',
  ],
  [
    'anyRules',
    indexedContent.anyRules,
    'indexes again under other rules, and keeps answering by the old ones',
    'Under other rules members are found by the values of these.',
  ],
  [
    'smallContentOnly',
    indexedContent.smallContentOnly,
    'indexes hidden members that exist already, and content that can be read only in pieces',
    'Large content is indexed like any other.',
  ],
  [
    'hiddenUnindexed',
    indexedContent.hiddenUnindexed,
    'lists and counts by a query hidden members only when asked, marked and in their place',
    'Hidden members belong to a list only when asked for (true).',
  ],
  [
    'firstValues',
    indexedContent.firstValues,
    'indexes a member that is written without values, by its content, before a query is answered',
    'Content without values is indexed by `valuesOf`, and no value of an earlier state is left.',
  ],
  [
    'sharedAmongCollections',
    indexedContent.sharedAmongCollections,
    'goes on behind the place of a cursor, also when its member has moved or is gone',
    'The next page begins behind the place of the cursor.',
  ],
  [
    'forgetsRelatedValues',
    indexedContent.forgetsRelatedValues,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A related state has the values that it was written with.',
  ],
  [
    'forgetsValues',
    indexedContent.forgetsValues,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A state has the version of the index of its values.',
  ],
  [
    'forgetsCreatedValues',
    indexedContent.forgetsCreatedValues,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A state has the version of the index of its values.',
  ],
  [
    'valuelessListing',
    indexedContent.valuelessListing,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A state has the version of the index of its values.',
  ],
  [
    'keptValues',
    indexedContent.keptValues,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A state has the values that it was written with.',
  ],
  [
    'lastingValues',
    indexedContent.lastingValues,
    'has no value of an earlier state',
    'A state has the values of the state before.',
  ],
  [
    'staleQueries',
    indexedContent.staleQueries,
    'counts the members that match, on whichever page, and only when asked',
    '`total` is the number of members that match, on whichever page.',
  ],
  [
    'indexesForever',
    indexedContent.indexesForever,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A list with a query is still refused with 503: existing members are not indexed in time.',
  ],
  [
    'refusesWithoutTime',
    indexedContent.refusesWithoutTime,
    'selects by `in` the members that are equal to any of the values, of the same type and no other',
    'A list is refused with 503 and without Retry-After.',
  ],
  [
    'standsStill',
    indexedContent.standsStill,
    'indexes members that exist already, and answers no query before all of them are, while all else works',
    'Service Unavailable',
  ],
  [
    'silentProgress',
    indexedContent.silentProgress,
    'reports how many members it has indexed, and when that was all',
    'The last report says that all members are indexed.',
  ],
  [
    'reportsTooEarly',
    indexedContent.reportsTooEarly,
    'reports how many members it has indexed, and when that was all',
    'Only the last report says that all members are indexed.',
  ],
  [
    'processLocal',
    indexedContent.processLocal,
    'orders `null` before booleans, these before numbers, numbers before strings, and each by value',
    '`descending` reverses the order, the place of `null` too.',
  ],
  [
    'forgetsProgress',
    indexedContent.forgetsProgress,
    'goes on with the indexing of members after a sudden end, and among several processes',
    'A query was answered before all members were indexed.',
  ],
] as const

describe('the kit, queries: values and indexing', () => {
  testMutants(MUTANTS)
})
