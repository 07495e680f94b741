import { describe, it } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createDatabaseFile, sqliteLibraries } from '../support/sqlite.ts'
import { checkModel } from './model.ts'
import { idFromMaximum } from './mutants/id-from-maximum.ts'
import { shownWhenHidden } from './mutants/shown-when-hidden.ts'
import { versionFromContent } from './mutants/version-from-content.ts'

/** Asks every store three times, so that what stores remember of the last times is used, and answers with the last. */
function askAgain(stores: readonly ResourceStore[]): ResourceStore {
  const [first, last] = [stores[0]!, stores.at(-1)!]
  return {
    ...first,
    async read(path, options) {
      for (let i = 0; i < 3; i++) for (const store of stores) await store.read(path, options)
      return last.read(path, options)
    },
    async list(collection, options) {
      for (let i = 0; i < 3; i++) for (const store of stores) await store.list(collection, options)
      return last.list(collection, options)
    },
    remove: last.remove.bind(last),
    async close() {
      for (const store of stores) await store.close?.()
    },
  }
}

describe('memoryStore', () => {
  it('does, call after call, what a model of a few lines does', async () => {
    await checkModel(() => ({ store: memoryStore() }), { numRuns: 150, maxCommands: 60 })
  })

  it('does so when it is asked repeatedly', async () => {
    await checkModel(() => ({ store: askAgain([memoryStore()]) }), { maxCommands: 60 })
  })
})

for (const [library, open] of Object.entries(sqliteLibraries)) {
  describe(`sqliteStore on ${library}`, () => {
    it('does what the model does when two share a file and are asked repeatedly', async () => {
      await checkModel(
        async () => {
          const file = await createDatabaseFile(open)
          const stores = [sqliteStore(file.open()), sqliteStore(file.open())]
          return { store: askAgain(stores), close: () => file.remove() }
        },
        { numRuns: 150 },
      )
    })
  })
}

describe('checkModel', () => {
  for (const create of [idFromMaximum, shownWhenHidden, versionFromContent]) {
    it('finds a broken store out', async ({ expect }) => {
      await expect(checkModel(() => ({ store: create() }), { numRuns: 200, seed: 1 })).rejects.toThrow()
    })
  }
})
