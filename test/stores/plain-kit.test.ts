import { describe } from 'vitest'
import { alwaysStrong } from './mutants/always-strong.ts'
import { checkThenWrite } from './mutants/check-then-write.ts'
import { offsetCursor } from './mutants/offset-cursor.ts'
import * as plain from './mutants/plain.ts'
import { versionFromContent } from './mutants/version-from-content.ts'
import { type Mutant, testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and a part of the sentence that it names. */
const MUTANTS: readonly (readonly [Mutant[1], title: string, sentence: string])[] = [
  [plain.alwaysCreates, 'creates, then replaces, and says which', 'The second write of a path replaces.'],
  [plain.tellsLaterDate, 'returns from a write the state that is read afterwards', 'tell different facts'],
  [plain.overwrites, "expecting 'absent', creates once and refuses the second time", 'was overwritten by a write'],
  [plain.touchesNeighbours, 'leaves other paths alone', 'A write changed another resource.'],
  [plain.writesThenThrows, 'does nothing when the signal is aborted already', 'An aborted call changed the resource.'],
  [
    versionFromContent,
    'gives a new version to every write, also to one that changes nothing',
    'was used for two states',
  ],
  [versionFromContent, 'never uses a version again after removal and re-creation with the same bytes', 'A version'],
  [plain.tellsOtherVersion, 'gives created members versions of their own', 'is not good for a write'],
  [plain.tellsCapitals, 'names the path of what it returns', 'carries the path under which it was read'],
  [
    plain.ignoresCase,
    'compares paths exactly: letter case, normal forms, blanks, dots, percent signs, quotes',
    'is taken for another one',
  ],
  [
    plain.ignoresSlashes,
    'keeps paths that are members of nothing, and paths without a leading slash',
    'taken for another',
  ],
  [plain.paddedNames, 'assigns positive integers, each larger than the one before', 'is not a positive integer'],
  [plain.passesOtherName, 'makes content with the name that the member then has', 'is not the name of the member'],
  [plain.countsLate, 'assigns different names to creations at the same time', 'A name was assigned twice.'],
  [plain.countsAlone, 'never assigns a name that a client has written', 'although a client had written it'],
  [
    plain.throwsAnother,
    'writes nothing when the content cannot be made, and goes on working',
    'replaced by another one',
  ],
  [plain.emptyMembers, 'takes content that does not depend on the name', 'The member has other content.'],
  [
    plain.namesBeforeContent,
    'does not overwrite a name that a client writes while the content of the creation comes in',
    'A creation overwrote what a client wrote.',
  ],
  [
    plain.namesOfTheRemoved,
    'does not assign a name that a client writes and removes while the content of the creation comes in',
    'although a client had removed it',
  ],
  [
    plain.namesBeforeContent,
    'counts every collection on its own, and counts past names that are not integers',
    'is not a positive integer',
  ],
  [
    plain.throwsAnother,
    'fails with 507 rather than assign a name beyond the safe integers',
    'not reported as HttpError 507',
  ],
  [plain.oneByteText, 'keeps every byte of one large value', 'Large value 2 came back changed.'],
  [plain.endsAtEmptyChunk, 'takes chunks of any size, empty ones too, and a stream without any', 'came back changed'],
  [plain.sharesChunks, 'keeps streams apart that come in at the same time', 'were mixed up'],
  [
    plain.tellsNoSize,
    'replaces small content by large and large by small, and tells the new size',
    'tells another size',
  ],
  [plain.endlessNothing, 'finds no members where there are none', 'An empty collection has no next page.'],
  [plain.backwards, 'lists members that the store has named', 'in the order of their names'],
  [plain.beginsAnew, 'goes on after a cursor whose member is gone', 'The next page begins at another member.'],
  [
    plain.rootless,
    'lists the members of the root, and the queues of the service, which have no leading slash',
    'The root has exactly the paths',
  ],
  [plain.backwards, 'lists every name once, integers first, in the same order every time', 'come first'],
  [plain.listsNoContent, 'lists members with large content, which can be read from there', 'A listed member has other'],
  [offsetCursor, 'sees every member once while members are added before and after the cursor', 'The walk has'],
  [plain.inOrderOfWrites, 'sees every member once while all of them are changed', 'The walk'],
  [
    plain.inOrderOfWrites,
    'sees every member once while members are removed and made again under the same name',
    'The walk',
  ],
  [
    plain.replacesTheHidden,
    'treats a hidden resource as absent, whose state has a version of its own',
    'A hidden resource counts as absent, and was replaced.',
  ],
  [plain.hidesContent, 'keeps large content of a hidden resource, and what describes it', 'has lost its content'],
  [plain.removesAnyVersion, 'expecting a version, removes that state and no other', 'a version of the past happened'],
  [plain.forgetsAll, 'forgets a tombstone after its retention', 'forgotten before its retention was over'],
  [plain.removesTwice, 'removes once, however many remove at the same time', 'exactly one removes it'],
  [plain.keepsRelated, 'writes related paths with the write, whatever their state', 'has other content'],
  [plain.relatesLater, 'writes nothing at all when the content of a related path breaks off', 'has left something'],
  [
    plain.readsAgain,
    'does not overwrite a name that a client writes while the content of the creation comes in',
    'The member has other content.',
  ],
  [plain.createsAlone, 'writes related paths with a creation, once the name is known', 'is not the name of the member'],
  [
    plain.relatesLater,
    'shows a write and its related paths together, never one without the other',
    'A reader saw write',
  ],
  [plain.stagesMore, 'takes content in, tells its size, and shows it nowhere', 'tells another size'],
  [
    plain.stagesTheBeginning,
    'writes staged content at a path, for a new member, and at related paths',
    'Staged content came back changed.',
  ],
  [
    plain.discardsWhatWasWritten,
    'keeps what was written although its staged content is given up afterwards',
    'took a resource along',
  ],
  [plain.takesForeign, 'refuses staged content of somebody else', 'that the store has never seen'],
  [plain.emptyForBroken, 'leaves nothing of a stream that breaks off before its first chunk', 'should have failed'],
  [plain.ignoresSignals, 'leaves nothing when the signal aborts at the end of the stream', 'should have failed'],
  [
    plain.failsOtherwise,
    'ends a write at once when the signal aborts while the source is silent, and with its reason',
    'with the reason of its signal',
  ],
  [plain.keepsListening, 'leaves no listener on a signal that did not abort', 'Listeners stay on the signal'],
  [
    plain.failsOtherwise,
    'leaves nothing of staged content whose stream breaks off or whose signal aborts',
    'came out as another one',
  ],
  [checkThenWrite, 'lets exactly one of many writers win that expect nothing to be there', ''],
  [checkThenWrite, 'lets exactly one win when large content races for the same version', 'exactly one may win'],
  [
    checkThenWrite,
    'lets exactly one of a write and many removals win that expect the same version',
    'exactly one may win',
  ],
  [checkThenWrite, 'loses no update among writers that read, change and swap', 'is lost'],
  [plain.opensOneLess, 'opens single bytes and short ranges anywhere', 'has other bytes'],
  [plain.opensTheLatest, 'opens many ranges of one state at the same time', 'were mixed up'],
  [plain.opensAtOnce, 'gives large content in pieces', 'that is not a piece, but the whole'],
  [
    plain.showsTheBeginning,
    'shows nothing of a write before all of its content is there',
    'before its content was complete',
  ],
  [checkThenWrite, 'judges what a write expects when its content is complete, not when it begins', ''],
  [plain.tellsSeconds, 'tells when a state began, in milliseconds', 'is not that time'],
  [
    alwaysStrong,
    'does not call a date strong when the resource was removed and made again in that second',
    'Two states have this date',
  ],
  [
    plain.undigestedMembers,
    'has the digest of staged content, of new members and of related paths',
    'lacks the SHA-256',
  ],
  [plain.repeatsMembers, 'selects a member once although a value is repeated', ''],
  [plain.ordersAllOrNothing, 'orders what conditions select, on the same property and on others', ''],
  [plain.ordersAllOrNothing, 'orders within one scope, and among several', ''],
  [
    plain.showsFirstContent,
    'lists by a query the current state of each member, with its content, as a read gives it',
    '',
  ],
  [plain.countsTheRemoved, 'lists and counts no member that was removed', ''],
  [plain.selectsAmongNeighbours, 'selects among the direct members of one collection only', 'Only direct members'],
  [
    plain.offsetsInQueries,
    'sees every member that matches throughout exactly once, in order, whatever is written between two pages',
    '',
  ],
  [plain.findsTheRemoved, 'removes what is below a path from queries as well', 'still finds what is below'],
  [plain.namesBeforeContent, 'assigns no name again below a path that was removed and made again', 'assigned again'],
  [plain.returnsNoContent, 'returns large content from a removal, readable for a while', 'The size is wrong.'],
  [
    plain.forgetsRecords,
    'keeps a related path for its retention, and for good once it is written without one',
    'although its retention was not over',
  ],
]

const nameOf = (create: unknown): string =>
  Object.entries({ alwaysStrong, checkThenWrite, offsetCursor, versionFromContent, ...plain }).find(
    ([, one]) => one === create,
  )![0]

describe('testStore, beside stores that keep no more than a part of one sentence', () => {
  testMutants(
    MUTANTS.map(([create, title, sentence]): Mutant => [`${nameOf(create)}: ${title}`, create, title, sentence]),
    { digests: true },
  )
})
