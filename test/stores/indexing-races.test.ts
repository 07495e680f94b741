import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CollectionIndex } from '../../src/stores/lists.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { interceptQueries } from '../support/intercepted-pool.ts'
import { type PostgresServer, startPostgres, untilHeldUp } from '../support/postgres.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { contentOf, indexByStatus, listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'

const LIMIT = 180_000
const createPrefix = () => `r${randomBytes(4).toString('hex')}_`

/** An item that is written anew, without values, while an indexing reads its values of before. */
async function writeWhileIndexed(store: ResourceStore): Promise<void> {
  await store.write('/tasks/1', contentOf({ status: 'open', n: 1 }, indexByStatus()), { expect: 'any' })
  await store.write('/tasks/2', contentOf({ status: 'open', n: 2 }), { expect: 'any' })
  let isWritten = false
  const sound = indexByStatus()
  const index: CollectionIndex = {
    ...sound,
    async valuesOf(item) {
      const values = await sound.valuesOf(item)
      if (!isWritten) await store.write('/tasks/2', contentOf({ status: 'open', n: 0 }), { expect: 'present' })
      isWritten = true
      return values
    },
  }
  expect(namesOf(await listWhenIndexed(store, '/tasks', queryByStatus('open', index)))).toEqual(['1', '2'])
  expect(isWritten).toBe(true)
}

describe('the index of a collection', () => {
  let postgres: PostgresServer
  beforeAll(async () => {
    postgres = await startPostgres()
  }, LIMIT)
  afterAll(() => postgres.stop())

  it('has an item of SQLite as it is that is written while its values of before are read', async () => {
    const file = await createDatabaseFile()
    const store = sqliteStore(file.open(), { sweepInterval: 0 })
    await writeWhileIndexed(store)
    await store.close?.()
    await file.remove()
  })

  it('has an item of Postgres as it is that is written while its values of before are read', async () => {
    const store = postgresStore({ pool: postgres.createPool(), tablePrefix: createPrefix(), sweepInterval: 0 })
    await writeWhileIndexed(store)
    await store.close?.()
  })

  it('has an item of Postgres whose write had begun and was not committed when the index was made', async () => {
    const tablePrefix = createPrefix()
    const pool = postgres.createPool()
    const other = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    await other.write('/tasks/1', contentOf({ status: 'open', n: 1 }), { expect: 'any' })
    let isWriting = false
    let listing: Promise<unknown> | undefined
    const slow = interceptQueries(pool, async ({ text }, send) => {
      if (isWriting && text === 'COMMIT' && listing === undefined) {
        listing = listWhenIndexed(other, '/tasks', queryByStatus('open'))
        // Time enough for an index that does not wait for the write.
        await Promise.race([listing, new Promise((resolve) => setTimeout(resolve, 1000))])
      }
      return send()
    })
    const store = postgresStore({ pool: slow, tablePrefix, sweepInterval: 0 })
    await store.read('/tasks/1')
    isWriting = true
    const related = [{ path: '/others/1', content: contentOf({ status: 'done', n: 1 }) }]
    await store.write('/tasks/2', contentOf({ status: 'open', n: 2 }), { expect: 'any', related })
    expect(listing).toBeDefined()
    await listing
    expect(namesOf(await listWhenIndexed(other, '/tasks', queryByStatus('open')))).toEqual(['2', '1'])
    await store.close?.()
    await other.close?.()
  })

  it('has no item of Postgres that is removed while its entry is being made', async () => {
    const tablePrefix = createPrefix()
    const pool = postgres.createPool()
    const other = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    for (const n of [1, 2]) await other.write(`/tasks/${n}`, contentOf({ status: 'open', n }), { expect: 'any' })
    let removal: Promise<unknown> | undefined
    const slow = interceptQueries(pool, async ({ text }, send) => {
      const result = await send()
      if (!text.startsWith("SELECT convert_from(path, 'UTF8') AS path, version, state")) return result
      removal = Promise.resolve(other.remove('/tasks/2', { expect: 'any', mode: 'erase' }))
      await untilHeldUp(pool, removal)
      return result
    })
    const store = postgresStore({ pool: slow, tablePrefix, sweepInterval: 0 })
    await listWhenIndexed(store, '/tasks', queryByStatus('open'))
    expect(removal).toBeDefined()
    await removal
    expect(namesOf(await listWhenIndexed(other, '/tasks', queryByStatus('open')))).toEqual(['1'])
    await store.close?.()
    await other.close?.()
  })
})
