import { describe } from 'vitest'
import * as careless from './mutants/careless.ts'
import { type Mutant, testMutants } from './test-mutants.ts'

/** The case that finds each of the stores out, and a part of the sentence that it names. */
const FINDINGS: { readonly [Name in keyof typeof careless]: readonly [title: string, sentence: string] } = {
  namesTheNext: ['names in a cursor the last item of its page, and no member behind it', 'names no member behind'],
  namesBoth: ['names in a cursor the last item of its page, and no member behind it', 'names no member behind'],
  hidesTheNext: ['names in a cursor the last item of its page, and no member behind it', 'begins the next page'],
  namesTheNextOfQuery: [
    'names in the cursor of a query the place of the last item, and no member behind it',
    'names no member behind',
  ],
  failsForLongPaths: [
    'keeps a path of 2048 bytes, or refuses it with an HttpError below 500',
    'makes the store fail with Error: Data too long',
  ],
  sharesItems: [
    'gives states and pages that stay as they are, whatever is read afterwards',
    'A page that was returned',
  ],
  sharesABuffer: [
    'gives states and pages that stay as they are, whatever is read afterwards',
    'What a read has returned',
  ],
  createsWithoutSize: ['returns from a creation the state that is read afterwards', 'tell different facts'],
  removesTheHidden: ['removes what is there, returns what it was, and shows it no more', 'not return the state'],
  refusesWithoutContent: ["expecting 'absent', creates once and refuses the second time", 'returns another state'],
  refusesWithTheStateBefore: [
    'judges what a write expects when its content is complete, not when it begins',
    'not the current one',
  ],
  keepsBuffersOfMembers: [
    'has a copy of small content once the write is done, so that the caller may use its buffer again',
    'keeps the buffer of the caller',
  ],
  keepsBuffersOfRelated: [
    'leaves related writes that it was given as they are, and keeps no buffer of them',
    'keeps the buffer',
  ],
  ordersTheGiven: [
    'leaves related writes that it was given as they are, and keeps no buffer of them',
    'has changed the list',
  ],
  createsToTheEnd: [
    'ends a write at once when the signal aborts while the source is silent, and with its reason',
    'silent source',
  ],
  stagesToTheEnd: [
    'ends a write at once when the signal aborts while the source is silent, and with its reason',
    'silent source',
  ],
  relatesToTheEnd: [
    'ends a write at once when the signal aborts while the source of a related path is silent',
    'silent source',
  ],
  listensWhereItStages: ['leaves no listener on a signal that did not abort', 'Listeners stay on the signal'],
  removesFirst: [
    'removes nothing when the content of what the removal writes breaks off, and passes the error on',
    'has removed its path',
  ],
  keepsVersionsOfRelated: [
    'writes related paths with the write, whatever their state',
    'the version of the state before',
  ],
  swallowsFaults: ['writes nothing when related writes cannot be made, and passes the error on', 'was swallowed'],
  erasesToTheTombstone: ['leaves a tombstone that says when, and that counts as absent', 'also of an earlier removal'],
  forgetsItsTombstone: [
    'keeps its own tombstone, and those beside it, where a path is removed with everything below it',
    'has forgotten another tombstone',
  ],
  keepsTheFirstRetention: ['forgets a tombstone after its retention', 'forgotten before its retention was over'],
  remembersNothingAtMembers: [
    'returns from a creation the state that is read afterwards',
    'A new member was not found',
  ],
  remembersNothingAtRelated: ['writes related paths with the write, whatever their state', 'has other content'],
  remembersNothingAtWritten: ['writes what a removal brings with it, whatever its mode', 'has not written a new path'],
  answersWithoutNewMembers: ['answers a query anew after every change', 'is that of before a change'],
  answersWithTheErased: ['answers a query anew after every change', 'is that of before a change'],
  answersWithWhatWasBelow: ['removes what is below a path from queries as well', 'still finds what is below'],
  listsWhatWasBelow: ['removes with a path everything below it, at any depth, without a trace', 'is still listed'],
  listsRemovedFiles: ['removes related paths with the removal, in the same mode, and only with it', 'is still listed'],
  comparesVersionsLoosely: [
    'expecting a version, replaces that state and no other',
    'expected another version happened',
  ],
  looksWhereItRelates: [
    'lets exactly one of many steps with related paths win that expect the same version',
    'exactly one may win',
  ],
  hidesAnyVersion: ['expecting a version, removes that state and no other', 'a version of the past happened'],
  removesAnyLarge: ['returns large content from a removal, readable for a while', 'a version of the past happened'],
  requiresOnly: ['writes and creates where the path that is required is present', 'expected another version happened'],
}

describe('the kit, careless stores', () => {
  const mutants = Object.entries(careless) as [keyof typeof careless, Mutant[1]][]
  testMutants(mutants.map(([name, create]): Mutant => [name, create, ...FINDINGS[name]]))
})
