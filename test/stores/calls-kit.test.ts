import { describe } from 'vitest'
import * as calls from './mutants/wrong-calls.ts'
import { testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and the sentence of the contract that it names. */
const MUTANTS = [
  [
    'cursorAlways',
    calls.cursorAlways,
    'gives pages of at most the limit, and a cursor exactly while there is more',
    '12 members in pages of 1 make pages of these sizes, the last one not empty.',
  ],
  [
    'emptyVersionIsAny',
    calls.emptyVersionIsAny,
    'expecting a version, replaces that state and no other',
    'A write that expected the empty version happened.',
  ],
  [
    'failsForStrangeCursors',
    calls.failsForStrangeCursors,
    'answers any cursor, also one that it never gave, with a page or an HttpError below 500',
    'The cursor "\\u0000" makes the store fail with Error: invalid byte sequence.',
  ],
  [
    'keepsCallersBytes',
    calls.keepsCallersBytes,
    'has a copy of small content once the write is done, so that the caller may use its buffer again',
    'The store keeps the buffer of the caller. Expected 10 bytes and found 10',
  ],
  [
    'livingBody',
    calls.livingBody,
    'serves a state that was read before it was replaced, or fails',
    'The object of a state gave the bytes of the state that replaced it.',
  ],
  [
    'mixesNames',
    calls.mixesNames,
    'makes content with the name that the member then has',
    'The name that content was made with is not the name of the member.',
  ],
  [
    'namesDescendInCollections',
    calls.namesDescendInCollections,
    'lists integers by value',
    'Integers are listed by value.',
  ],
  [
    'presentIsAny',
    calls.presentIsAny,
    "expecting 'present', refuses to create and replaces what is there",
    'A write that expected a resource created one.',
  ],
  [
    'relatedExpectsAny',
    calls.relatedExpectsAny,
    'writes nothing at all while a path that is related to the new state must be absent and is there',
    'A write went on although a related path was not absent.',
  ],
  [
    'relatedWithoutFacts',
    calls.relatedWithoutFacts,
    'keeps of related content what describes it',
    'Related content has lost what describes it.',
  ],
  [
    'removesAnyVersion',
    calls.removesAnyVersion,
    'expecting a version of another path, refuses',
    'A version of another path was good for a removal.',
  ],
  [
    'retentionInSeconds',
    calls.retentionInSeconds,
    'keeps a tombstone for the whole of its retention, whatever becomes of others',
    'The tombstone outlived its retention of 1200 ms.',
  ],
  [
    'reusedChunk',
    calls.reusedChunk,
    'keeps every byte of a stream, whatever its length',
    'A stream of 1048577 bytes came back changed. Expected 1048577 bytes and found 1048572',
  ],
  [
    'staleMembers',
    calls.staleMembers,
    'lists the current state of each member, with its content',
    'A listing and a read tell different facts.',
  ],
  [
    'versionsOfOthers',
    calls.versionsOfOthers,
    'expecting a version of another path, refuses',
    'A version of another path was good for a write.',
  ],
  [
    'waitsForSilentSources',
    calls.waitsForSilentSources,
    'leaves nothing of a stream when the signal aborts between two chunks',
    'The write should have failed.',
  ],
  [
    'writesRelatedTwice',
    calls.writesRelatedTwice,
    'lists direct members only, each in its own collection',
    'Only direct members with a name are listed.',
  ],
] as const

describe('the kit, content and calls', () => {
  testMutants(MUTANTS, { digests: true })
})
