import { describe, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { checkModel } from './model.ts'
import { idFromMaximum } from './mutants/id-from-maximum.ts'
import { shownWhenHidden } from './mutants/shown-when-hidden.ts'
import { versionFromContent } from './mutants/version-from-content.ts'

describe('memoryStore', () => {
  it('does, call after call, what a model of a few lines does', async () => {
    await checkModel(() => ({ store: memoryStore() }), { numRuns: 150, maxCommands: 60 })
  })
})

describe('checkModel', () => {
  for (const create of [idFromMaximum, shownWhenHidden, versionFromContent]) {
    it('finds a broken store out', async ({ expect }) => {
      await expect(checkModel(() => ({ store: create() }), { numRuns: 200, seed: 1 })).rejects.toThrow()
    })
  }
})
