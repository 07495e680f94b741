import { describe, expect, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { runKit } from './kit-runner.ts'
import * as parents from './mutants/parents.ts'
import { keepsBelow, removesBelowFirst } from './mutants/written-removals.ts'
import { testMutants } from './test-mutants.ts'

/** Broken stores; the case that finds each of them out, and the sentence of the contract that it names. */
const MUTANTS = [
  [
    'removesBelowFirst',
    removesBelowFirst,
    'removes what is below a path and writes other paths in one step, or does neither',
    'A removal that was refused for what it writes has removed what is below its path.',
  ],
  [
    'keepsBelow',
    keepsBelow,
    'removes what is below a path and writes other paths in one step, or does neither',
    'A removal that writes has left what is below its path.',
  ],
  [
    'deafToRequirements',
    parents.deafToRequirements,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The required path was not present (undefined), and the write went on.',
  ],
  [
    'creationsWithoutParent',
    parents.creationsWithoutParent,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The required path was not present (undefined), and a member was created.',
  ],
  [
    'hiddenParents',
    parents.hiddenParents,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The required path was not present (hide), and the write went on.',
  ],
  [
    'tombstonesAsParents',
    parents.tombstonesAsParents,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The required path was not present (tombstone), and the write went on.',
  ],
  [
    'looksAtParentFirst',
    parents.looksAtParentFirst,
    'lets no item be written below a path in the moment in which it is removed',
    'An item has been written below a path that was removed in that moment.',
  ],
  [
    'unnamedParent',
    parents.unnamedParent,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The conflict does not say which path is missing.',
  ],
  [
    'parentIsThePath',
    parents.parentIsThePath,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The conflict does not say which path is missing.',
  ],
  [
    'parentLast',
    parents.parentLast,
    'judges the path that is required before all others, and names no missing path in other conflicts',
    'The required path is judged first of all.',
  ],
  [
    'alwaysMissing',
    parents.alwaysMissing,
    'judges the path that is required before all others, and names no missing path in other conflicts',
    'A conflict names a missing path although the required one is present.',
  ],
  [
    'orphanedRecords',
    parents.orphanedRecords,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'A refused write has left something.',
  ],
  [
    'leavesAllBelow',
    parents.leavesAllBelow,
    'removes with a path everything below it, at any depth, without a trace',
    'Something below a removed path has left a trace.',
  ],
  [
    'directMembersOnly',
    parents.directMembersOnly,
    'removes with a path everything below it, at any depth, without a trace',
    'Something below a removed path has left a trace.',
  ],
  [
    'leavesHiddenBelow',
    parents.leavesHiddenBelow,
    'removes with a path everything below it, at any depth, without a trace',
    'Something below a removed path has left a trace.',
  ],
  [
    'tombstonesBelow',
    parents.tombstonesBelow,
    'removes with a path everything below it, at any depth, without a trace',
    'Something below a removed path has left a trace.',
  ],
  [
    'unspeltParent',
    parents.unspeltParent,
    'removes what is below a path of any characters, and nothing else',
    'What is below a removed path goes with it.',
  ],
  [
    'beyondSpeltParent',
    parents.beyondSpeltParent,
    'removes what is below a path of any characters, and nothing else',
    '/things/a\0b0/1 is not below the removed path, and is gone.',
  ],
  [
    'bareParentPrefix',
    parents.bareParentPrefix,
    'leaves all that is not below a removed path alone',
    '/things/a_b2 is not below the removed path, and is gone.',
  ],
  [
    'likeParent',
    parents.likeParent,
    'leaves all that is not below a removed path alone',
    '/things/axb/1 is not below the removed path, and is gone.',
  ],
  [
    'rangeBeyondParent',
    parents.rangeBeyondParent,
    'leaves all that is not below a removed path alone',
    '/things/a_b0/1 is not below the removed path, and is gone.',
  ],
  [
    'caseInsensitiveParent',
    parents.caseInsensitiveParent,
    'leaves all that is not below a removed path alone',
    '/things/A_B/1 is not below the removed path, and is gone.',
  ],
  [
    'alwaysRemovesBelow',
    parents.alwaysRemovesBelow,
    'removes nothing below a path that is not removed, or is removed without what is below it',
    'A refused removal has removed what is below.',
  ],
  [
    'removesBelowNothing',
    parents.removesBelowNothing,
    'removes nothing below a path that is not removed, or is removed without what is below it',
    'A removal that found nothing to remove has removed what is below.',
  ],
  [
    'removesBelowLater',
    parents.removesBelowLater,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The required path was not present (undefined), and the write went on.',
  ],
  [
    'countsAgainBelow',
    parents.countsAgainBelow,
    'writes nothing at all while the path that is required is not present or hidden, and says which it is',
    'The required path was not present (undefined), and a member was created.',
  ],
] as const

describe('the kit, parents', () => {
  it('leaves parents out for a store that does not support them', async () => {
    const { skipped, failures } = await runKit(() => ({ ...memoryStore(), supports: { queries: true } }))
    expect(failures).toEqual(new Map())
    expect(skipped).toContain('writes and creates where the path that is required is present')
    expect(skipped).not.toContain('orders by two keys, each in its own direction')
  })

  testMutants(MUTANTS)
})
