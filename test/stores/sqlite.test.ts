import { describe, it } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { describeStore } from '../../src/testing.ts'
import { createDatabaseFile, sqliteLibraries } from '../support/sqlite.ts'

for (const [library, open] of Object.entries(sqliteLibraries)) {
  describeStore(
    `sqliteStore on ${library}`,
    async () => {
      const file = await createDatabaseFile(open)
      return {
        store: sqliteStore(file.open()),
        reopen: () => sqliteStore(file.open()),
        close: () => file.remove(),
      }
    },
    { describe, it, durable: true },
  )
}
