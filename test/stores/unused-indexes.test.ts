import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { contentOf, indexByStatus, listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'

/** What stands in the tables: index versions, and entries by place. */
interface Tables {
  age(version: string): Promise<void>
  /** Removes a state as other code with the database does. */
  erase(path: string): Promise<void>
  versions(): Promise<string[]>
  countEntries(): Promise<number>
}

/** Indexes by two versions; the first has not been used for two days, nor the only one of another collection. */
async function check(open: () => ResourceStore, tables: Tables): Promise<void> {
  const first = open()
  for (let n = 1; n <= 3; n++) {
    await first.write(`/tasks/${n}`, contentOf({ status: 'open', n }, indexByStatus('old')), { expect: 'any' })
  }
  // Hidden members have their entries as well.
  await first.write('/tasks/hidden', contentOf({ status: 'open', n: 0 }, indexByStatus('old')), { expect: 'any' })
  await first.remove('/tasks/hidden', { expect: 'any', mode: 'hide' })
  await first.write('/others/1', contentOf({ status: 'open', n: 1 }, indexByStatus('only')), { expect: 'any' })
  await first.write('/gone/1', contentOf({ status: 'open', n: 1 }, indexByStatus('gone')), { expect: 'any' })
  for (const name of ['hidden', 'erased']) {
    await first.write(`/gone/${name}`, contentOf({ status: 'open', n: 1 }, indexByStatus('gone')), { expect: 'any' })
  }
  await first.remove('/gone/hidden', { expect: 'any', mode: 'hide' })
  // Removed, in whatever way, they have none.
  await first.remove('/gone/1', { expect: 'any', mode: 'erase', related: ['/gone/hidden'] })
  await tables.erase('/gone/erased')
  await listWhenIndexed(first, '/tasks', queryByStatus('open', indexByStatus('new')))
  expect(await tables.countEntries()).toBe(9)
  for (const version of ['old', 'only', 'gone']) await tables.age(version)
  await vi.waitFor(async () => expect((await tables.versions()).sort()).toEqual(['new', 'only']), 30_000)
  expect(await tables.countEntries()).toBe(5)
  // A process with the old definition that comes back has its index made anew.
  const listOld = async () =>
    namesOf(await listWhenIndexed(first, '/tasks', queryByStatus('open', indexByStatus('old'))))
  expect(await listOld()).toEqual(['3', '2', '1'])
  await first.write('/tasks/4', contentOf({ status: 'open', n: 4 }, indexByStatus('old')), { expect: 'any' })
  expect(await listOld()).toEqual(['4', '3', '2', '1'])
  await first.close?.()
}

describe('an index that has not been used for a day', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  it('is removed from SQLite once another one is used, or its collection is empty', async () => {
    const file = await createDatabaseFile()
    const handle = file.open()
    const read = <Row>(sql: string): Row[] => handle.prepare(sql).all() as Row[]
    await check(() => sqliteStore(file.open(), { sweepInterval: 20 }), {
      age: async (version) =>
        void handle.exec(`UPDATE resource_places SET used = used - 172800000 WHERE index_version = '${version}'`),
      erase: async (path) => void handle.exec(`DELETE FROM resource_states WHERE path = '${path}'`),
      versions: async () => read<{ v: string }>('SELECT index_version AS v FROM resource_places').map(({ v }) => v),
      countEntries: async () => read<{ n: number }>('SELECT count(*) AS n FROM resource_entries')[0]!.n,
    })
    await file.remove()
  })

  it('is removed from Postgres once another one is used, or its collection is empty', async () => {
    const tablePrefix = `u${randomBytes(4).toString('hex')}_`
    const pool = server.createPool({ max: 4 })
    const read = async <Row>(sql: string): Promise<Row[]> => (await pool.query(sql)).rows
    await check(() => postgresStore({ pool, tablePrefix, sweepInterval: 20 }), {
      age: async (version) =>
        void (await read(`UPDATE ${tablePrefix}places SET used = used - 172800000 WHERE index_version = '${version}'`)),
      erase: async (path) =>
        void (await read(`DELETE FROM ${tablePrefix}states WHERE convert_from(path, 'UTF8') = '${path}'`)),
      versions: async () =>
        (await read<{ v: string }>(`SELECT index_version AS v FROM ${tablePrefix}places`)).map(({ v }) => v),
      countEntries: async () =>
        (await read<{ n: number }>(`SELECT count(*)::integer AS n FROM ${tablePrefix}entries`))[0]!.n,
    })
  })
})
