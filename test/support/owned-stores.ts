import { afterEach } from 'vitest'
import { type SqliteHandle, type SqliteStoreOptions, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type ClosableHandle, createDatabaseFile, type DatabaseFile } from './sqlite.ts'

/** Database files and stores that end with each test of the group. */
export function ownStores(library: (file: string) => ClosableHandle) {
  const files: DatabaseFile[] = []
  const stores: ResourceStore[] = []
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close?.()
    for (const file of files.splice(0)) await file.remove()
  })

  return {
    async createFile(): Promise<DatabaseFile> {
      const file = await createDatabaseFile(library)
      files.push(file)
      return file
    },

    openStore(handle: SqliteHandle, options?: SqliteStoreOptions) {
      const store = sqliteStore(handle, options)
      stores.push(store)
      return store
    },
  }
}
