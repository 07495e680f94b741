import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createIndex, createQuery, listUnder } from '../../src/conformance/lists.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { checkQueries } from '../support/query-oracle.ts'
import { openStore } from '../support/sql-stores.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

/** `npm run soak` sets these to 10 000 and 1000. */
const QUERIES = Number(process.env['QUERIES'] ?? 300)
const CHANGES = Number(process.env['CHANGES'] ?? 60)
const SEED = Number(process.env['QUERY_SEED'] ?? 20_260_101)
const LIMIT = 60_000 + 100 * (QUERIES + CHANGES)

describe('queries, beside filter and sort over an array', () => {
  let postgres: PostgresServer
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres.stop())

  async function check(store: ResourceStore): Promise<void> {
    expect(store.supports).toMatchObject({ queries: true, parents: true })
    // Few items, whose values often meet; and many, for which a store plans in another way.
    await checkQueries(store, { items: 150, queries: QUERIES, changes: CHANGES, seed: SEED })
    const index = createIndex('whole', ['a'])
    await listUnder(store, '/whole', index).fill([{ a: 1 }, { a: 2 }, { a: 3 }])
    const queries = [[], ['-a']].map((order) => createQuery(index, { order, count: true }))
    for (const limit of [2 ** 31 - 1, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]) {
      for (const query of [undefined, ...queries])
        expect((await store.list('/whole', { limit, query })).items).toHaveLength(3)
    }
  }

  it('answers the same from memoryStore', () => check(memoryStore()), LIMIT)

  it(
    'answers the same from memoryStore when there are thousands of items',
    async () => {
      await checkQueries(memoryStore(), { items: 4000, queries: QUERIES / 3, changes: CHANGES / 3, seed: SEED + 1 })
    },
    LIMIT,
  )

  it(
    'answers the same from sqliteStore',
    async () => {
      const file = await createDatabaseFile()
      const { store, close } = openStore({ kind: 'sqlite', file: file.path })
      try {
        await check(store)
      } finally {
        await close()
        await file.remove()
      }
    },
    LIMIT,
  )

  it(
    'answers the same from postgresStore',
    async () => {
      const tablePrefix = `q${randomBytes(4).toString('hex')}_`
      const { connectionString } = postgres
      const { store, close } = openStore({ kind: 'postgres', connectionString, tablePrefix })
      try {
        await check(store)
      } finally {
        await close()
      }
    },
    LIMIT,
  )
})
