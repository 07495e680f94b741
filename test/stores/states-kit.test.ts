import { describe } from 'vitest'
import * as pages from './mutants/reused-page.ts'
import * as removals from './mutants/wrong-removals.ts'
import * as states from './mutants/wrong-states.ts'
import { testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and the sentence of the contract that it names. */
const MUTANTS = [
  [
    'barelyHidden',
    states.barelyHidden,
    'shows a hidden resource, with its content, only to reads that ask for it',
    'The hidden resource has lost its content. The media type is another.',
  ],
  [
    'dateGoesBack',
    states.dateGoesBack,
    'never lets the date of a resource go back',
    'A later state has an earlier date.',
  ],
  [
    'emptyMetadata',
    states.emptyMetadata,
    'tells the same state, with all its facts, whether content is asked for or not',
    'A read without content tells another state than one with it (undefined, hidden: false).',
  ],
  [
    'forgetsCoding',
    states.forgetsCoding,
    'keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write',
    'contentEncoding was not kept.',
  ],
  [
    'forgetsFilename',
    states.forgetsFilename,
    'keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write',
    'filename was not kept.',
  ],
  [
    'forgetsLanguage',
    states.forgetsLanguage,
    'keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write',
    'contentLanguage was not kept.',
  ],
  [
    'hidesWithoutFilename',
    states.hidesWithoutFilename,
    'keeps large content of a hidden resource, and what describes it',
    'The hidden resource has lost what describes its content.',
  ],
  [
    'hidesRelatedWithoutVersion',
    states.hidesRelatedWithoutVersion,
    'removes related paths with the removal, in the same mode, and only with it',
    'A hidden related path has the version from before.',
  ],
  [
    'hidesWithoutVersion',
    states.hidesWithoutVersion,
    'treats a hidden resource as absent, whose state has a version of its own',
    'The hidden state has the version of the visible one.',
  ],
  [
    'longVersions',
    states.longVersions,
    'names every state with a version of 1 to 200 characters',
    'is too short or long.',
  ],
  [
    'metadataShowsHidden',
    states.metadataShowsHidden,
    'tells the same state, with all its facts, whether content is asked for or not',
    'A read without content tells another state than one with it (hide, hidden: false).',
  ],
  [
    'sizeInCharacters',
    states.sizeInCharacters,
    'keeps every byte: all 256 values, U+0000, a byte order mark, text beyond ASCII, nothing at all',
    'Sample 2 came back changed. The size is wrong.',
  ],
  [
    'tagsBesideVersions',
    states.tagsBesideVersions,
    'gives no entity tags where it says that they are its versions',
    'The tags are the versions, by what the store says, and a state has another tag.',
  ],
  [
    'unmarkedHidden',
    states.unmarkedHidden,
    'shows a hidden resource, with its content, only to reads that ask for it',
    'A hidden resource is marked.',
  ],
  [
    'absentForConflict',
    removals.absentForConflict,
    "expecting 'present' or a version, refuses where nothing is",
    'The expected resource was not there.',
  ],
  [
    'erasesRelated',
    removals.erasesRelated,
    'removes related paths with the removal, in the same mode, and only with it',
    'A related path was removed in another mode (hide).',
  ],
  [
    'forgetsTombstoneInConflict',
    removals.forgetsTombstoneInConflict,
    'leaves a tombstone that says when, and that counts as absent',
    'A tombstone counts as absent.',
  ],
  [
    'forgetsTombstoneInRefusal',
    removals.forgetsTombstoneInRefusal,
    'leaves a tombstone that says when, and that counts as absent',
    'A removal that was refused tells of the tombstone.',
  ],
  [
    'forgetsRecords',
    removals.forgetsRecords,
    'keeps a related path for its retention, and for good once it is written without one',
    'A related path was absent although its retention was not over.',
  ],
  [
    'hidesAsTombstone',
    removals.hidesAsTombstone,
    'shows a hidden resource, with its content, only to reads that ask for it',
    'The hidden resource was not found.',
  ],
  [
    'keepsTombstone',
    removals.keepsTombstone,
    'keeps a tombstone for the whole of its retention, whatever becomes of others',
    'The tombstone outlived its retention of 1200 ms.',
  ],
  [
    'leavesRelated',
    removals.leavesRelated,
    'removes related paths with the removal, in the same mode, and only with it',
    'A related path was not removed (erase).',
  ],
  [
    'removesRelatedAlways',
    removals.removesRelatedAlways,
    'removes related paths with the removal, in the same mode, and only with it',
    'A refused removal has removed a related path.',
  ],
  [
    'replacesHidden',
    removals.replacesHidden,
    'makes the path visible again with the next write',
    'A hidden resource counts as absent, so the write creates.',
  ],
  [
    'returnsNewState',
    removals.returnsNewState,
    'removes what is there, returns what it was, and shows it no more',
    'The removal returns other content. The size is wrong.',
  ],
  [
    'staysHidden',
    removals.staysHidden,
    'makes the path visible again with the next write',
    'The new resource is still marked as hidden.',
  ],
  [
    'tellsHidden',
    removals.tellsHidden,
    'treats a hidden resource as absent, whose state has a version of its own',
    'A conflict tells of a state that is hidden.',
  ],
  [
    'tombstonesForAll',
    removals.tombstonesForAll,
    'finds nothing to remove where nothing is',
    'Erasing must leave nothing.',
  ],
  [
    'listsNoDescription',
    states.listsNoDescription,
    'keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write',
    'contentEncoding was not kept.',
  ],
  [
    'createsWithoutDescription',
    states.createsWithoutDescription,
    'keeps Content-Encoding, Content-Language and the file name, and forgets them with the next write',
    'contentEncoding was not kept.',
  ],
  [
    'lowerTypes',
    states.lowerTypes,
    'keeps every byte: all 256 values, U+0000, a byte order mark, text beyond ASCII, nothing at all',
    'came back changed. The media type is another.',
  ],
  [
    'withoutMark',
    states.withoutMark,
    'keeps every byte: all 256 values, U+0000, a byte order mark, text beyond ASCII, nothing at all',
    'came back changed. The size is wrong.',
  ],
  [
    'hiddenDateGoesBack',
    states.hiddenDateGoesBack,
    'never lets the date of a resource go back',
    'A later state has an earlier date.',
  ],
  [
    'relatedAlwaysStrong',
    states.relatedAlwaysStrong,
    'does not call the date of a related path strong that changed twice in that second',
    'Two states of a related path have this date, and yet it is called strong.',
  ],
  [
    'countsNoReferences',
    states.countsNoReferences,
    'keeps one value at several paths, for each of them',
    'A value went from one path with its removal from another. The size is wrong.',
  ],
  [
    'timedTombstone',
    removals.timedTombstone,
    'forgets a tombstone after its retention',
    'What was written at the path of a tombstone went with it.',
  ],
  [
    'timedRecords',
    removals.timedRecords,
    'keeps a related path for its retention, and for good once it is written without one',
    'A path went after a retention that it had before.',
  ],
  [
    'removesByPrefix',
    removals.removesByPrefix,
    'expecting a version, removes that state and no other',
    'A removal that expected a version of the past happened.',
  ],
  [
    'noTombstoneWithHidden',
    removals.noTombstoneWithHidden,
    'leaves a tombstone that says when, and that counts as absent',
    'A read that asks for hidden resources as well finds the same tombstone.',
  ],
  [
    'hiddenSinceEver',
    removals.hiddenSinceEver,
    'shows a hidden resource, with its content, only to reads that ask for it',
    'A tombstone says when the resource was removed, in milliseconds; 0 is not that time.',
  ],
  [
    'hidesAfterLimit',
    removals.hidesAfterLimit,
    'lists hidden resources, marked and in their place, only when asked',
    'A page has a next one although every further resource is hidden.',
  ],
  [
    'stagesAfterAbort',
    removals.stagesAfterAbort,
    'leaves nothing of staged content whose stream breaks off or whose signal aborts',
    'Content was staged although its signal had been aborted before.',
  ],
  [
    'pagesWithoutHidden',
    pages.pagesWithoutHidden,
    'lists hidden resources, marked and in their place, only when asked',
    'A listing with hidden resources has all of them, marked, in order.',
  ],
  [
    'pagesAfterCreation',
    pages.pagesAfterCreation,
    'gives another page object once anything on the page has changed',
    'A page has changed, and is still the same object',
  ],
  [
    'pagesAfterHiding',
    pages.pagesAfterHiding,
    'gives another page object once anything on the page has changed',
    'A page has changed, and is still the same object',
  ],
  [
    'pagesAfterRelated',
    pages.pagesAfterRelated,
    'writes related paths with the write, whatever their state',
    'Related members are listed like any other.',
  ],
  [
    'statesBelow',
    pages.statesBelow,
    'removes with a path everything below it, at any depth, without a trace',
    'Something below a removed path has left a trace.',
  ],
  [
    'removesVersionsOnly',
    removals.removesVersionsOnly,
    'removes what is there, returns what it was, and shows it no more',
    "A resource was there to be removed (erase, expecting 'present').",
  ],
  [
    'replacesTombstone',
    removals.replacesTombstone,
    'creates, then replaces, and says which',
    'A write of a path that was removed creates (tombstone).',
  ],
  [
    'listsTombstones',
    removals.listsTombstones,
    'removes what is there, returns what it was, and shows it no more',
    'A removed resource is still listed.',
  ],
  [
    'tellsHiddenWhereNothingIs',
    removals.tellsHiddenWhereNothingIs,
    'treats a hidden resource as absent, whose state has a version of its own',
    'A removal that found nothing to remove tells of a state that is hidden.',
  ],
  [
    'createsBesideNoRow',
    removals.createsBesideNoRow,
    'writes a related path that must be absent where it never was, was removed or is hidden',
    'The related path was absent (tombstone), and the creation was refused.',
  ],
  [
    'reusedState',
    states.reusedState,
    'gives another object for another state',
    'A state has changed, and is still the same object',
  ],
  [
    'keepsMetadata',
    states.keepsMetadata,
    'tells the same state, with all its facts, whether content is asked for or not',
    'A read has lost the content after one without it.',
  ],
  [
    'keepsHidden',
    states.keepsHidden,
    'tells the same state, with all its facts, whether content is asked for or not',
    'Other reads change what a read finds (hide, hidden: false).',
  ],
  [
    'hidesValues',
    states.hidesValues,
    'keeps the values that content was written with, and gives them back in all that it returns',
    'A state has the version of the index of its values.',
  ],
] as const

describe('the kit, states and removals', () => {
  testMutants(MUTANTS, { digests: true })
})
