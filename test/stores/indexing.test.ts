import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { CollectionIndex } from '../../src/stores/lists.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { checkPostgresEntries, checkSqliteEntries, checkStatuses } from '../support/check-entries.ts'
import { interceptQueries } from '../support/intercepted-pool.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildStoreProgram, type StoreProgram } from '../support/processes.ts'
import { createSmallDisk } from '../support/small-disk.ts'
import { openStore, type StorePlace } from '../support/sql-stores.ts'
import { createDatabaseFile, sqliteLibraries } from '../support/sqlite.ts'
import { contentOf, indexByStatus, listWhenIndexed, queryByStatus } from '../support/statuses.ts'

const LIMIT = 180_000
const STATUSES = ['open', 'done', 'late']
const createPrefix = () => `i${randomBytes(4).toString('hex')}_`

/** Items of a time before their collection had an index. */
async function fill(store: ResourceStore, count: number): Promise<void> {
  const writes = Array.from({ length: count }, (_, i) =>
    store.write(`/tasks/${i + 1}`, contentOf({ status: STATUSES[i % 3]!, n: i }), { expect: 'any' }),
  )
  await Promise.all(writes)
}

describe('the indexing of items that exist already', () => {
  let postgres: PostgresServer
  let program: StoreProgram
  beforeAll(async () => {
    ;[postgres, program] = await Promise.all([startPostgres(), buildStoreProgram()])
  }, LIMIT)
  afterAll(async () => {
    program.remove()
    await postgres.stop()
  })

  /** Two processes with indexes of their own, killed in the midst of their work, some times. */
  async function killAndCheck(place: StorePlace): Promise<void> {
    const first = openStore(place)
    await fill(first.store, 600)
    await first.close()
    for (let round = 0; round < 3; round++) {
      const processes = ['a', 'b'].map((version, writer) =>
        program.start({ place, task: { task: 'change-indexed', writer: writer + 1, version } }),
      )
      await Promise.all(processes.map((process) => process.told(10 + 20 * round)))
      await Promise.all(processes.map((process) => process.kill()))
    }
    const { store, close } = openStore(place)
    await checkStatuses(store, 'a')
    await checkStatuses(store, 'b')
    await close()
  }

  it(
    'leaves each member of SQLite with its entry when two processes that write and index are killed',
    async () => {
      const file = await createDatabaseFile()
      try {
        await killAndCheck({ kind: 'sqlite', file: file.path })
        checkSqliteEntries(file.open())
      } finally {
        await file.remove()
      }
    },
    LIMIT,
  )

  it(
    'leaves each member of Postgres with its entry when two processes that write and index are killed',
    async () => {
      const tablePrefix = createPrefix()
      await killAndCheck({ kind: 'postgres', connectionString: postgres.connectionString, tablePrefix })
      await checkPostgresEntries(postgres.createPool(), tablePrefix)
    },
    LIMIT,
  )

  it('answers 503 with Retry-After meanwhile, reports its progress, and answers everything else', async () => {
    const file = await createDatabaseFile()
    const store = sqliteStore(file.open(), { sweepInterval: 0 })
    await fill(store, 120)
    const reports: { indexed: number; isDone: boolean }[] = []
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const index = indexByStatus()
    const query = queryByStatus('open', {
      ...index,
      report: (progress) => reports.push(progress),
      valuesOf: async (item) => held.then(() => index.valuesOf(item)),
    })
    await expect(store.list('/tasks', { query, limit: 10 })).rejects.toMatchObject({
      status: 503,
      headers: { 'Retry-After': '1' },
    })
    expect(await store.list('/tasks', { limit: 10 })).toMatchObject({ items: { length: 10 } })
    await store.write('/tasks/new', contentOf({ status: 'open', n: 999 }, query.index), { expect: 'any' })
    release()
    await checkStatuses(store, index.version)
    // The last step follows the commit that has made the list complete.
    await vi.waitFor(() => expect(reports.at(-1)).toEqual({ indexed: 121, isDone: true }), 30_000)
    expect(reports.slice(0, -1).every(({ isDone }) => !isDone)).toBe(true)
    await store.close?.()
    await file.remove()
  })

  it('goes on where it was when the process ends, and does not begin anew', async () => {
    const file = await createDatabaseFile()
    const before = sqliteStore(file.open(), { sweepInterval: 0 })
    await fill(before, 400)
    const seen: string[] = []
    const index = indexByStatus()
    const watched = (atMost: number) => ({
      ...index,
      valuesOf: async (item: Parameters<typeof index.valuesOf>[0]) => {
        if (seen.length >= atMost) await new Promise(() => {})
        seen.push(item.path)
        return index.valuesOf(item)
      },
    })
    await expect(
      before.list('/tasks', { query: queryByStatus('open', watched(200)), limit: 10 }),
    ).rejects.toMatchObject({ status: 503 })
    const after = sqliteStore(file.open(), { sweepInterval: 0 })
    await listWhenIndexed(after, '/tasks', queryByStatus('open', watched(Number.POSITIVE_INFINITY)))
    await checkStatuses(after, index.version)
    expect(seen.length).toBeLessThan(500)
    expect(new Set(seen).size).toBe(400)
    await after.close?.()
    await file.remove()
  })

  it(
    'waits for room on a full disk, and has every entry once there is some',
    async () => {
      const disk = createSmallDisk('simulated', 3 * 1024 * 1024)
      const handle = disk.limit(sqliteLibraries['libsql']!(join(disk.folder, 'store.db')))
      const store = sqliteStore(handle, { sweepInterval: 0, reserve: 0 })
      await fill(store, 300)
      const ballast = join(disk.folder, 'ballast')
      writeFileSync(ballast, Buffer.alloc(4 * 1024 * 1024))
      await expect(store.list('/tasks', { query: queryByStatus('open'), limit: 10 })).rejects.toMatchObject({
        status: 503,
      })
      rmSync(ballast)
      await checkStatuses(store, 'status-1')
      checkSqliteEntries(handle)
      await store.close?.()
      handle.close()
      disk.remove()
    },
    LIMIT,
  )

  it(
    'goes on when Postgres has died in its midst',
    async () => {
      const server = await startPostgres()
      const tablePrefix = createPrefix()
      const store = postgresStore({ pool: server.createPool(), tablePrefix, sweepInterval: 0 })
      await fill(store, 1000)
      let seen = 0
      const index = indexByStatus()
      const dying = {
        ...index,
        valuesOf: async (item: Parameters<typeof index.valuesOf>[0]) => {
          if (++seen === 350) await server.kill()
          return index.valuesOf(item)
        },
      }
      await expect(store.list('/tasks', { query: queryByStatus('open', dying), limit: 10 })).rejects.toMatchObject({
        status: 503,
      })
      while (seen < 350) await new Promise((resolve) => setTimeout(resolve, 5))
      await server.restart()
      await checkStatuses(store, index.version)
      await checkPostgresEntries(server.createPool(), tablePrefix)
      await store.close?.()
      await server.stop()
    },
    LIMIT,
  )

  it(
    'repeats what Postgres has rolled back for the sake of others, where all transactions are serializable',
    async () => {
      const tablePrefix = createPrefix()
      const pool = postgres.createPool({ options: '-c default_transaction_isolation=serializable', max: 8 })
      const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
      await fill(store, 100)
      const index = indexByStatus()
      for (let round = 0; round < 20; round++) {
        await Promise.all(
          Array.from({ length: 8 }, (_, i) => {
            const content = contentOf({ status: STATUSES[(round + i) % 3]!, n: round }, i % 2 === 0 ? index : undefined)
            return store.write(`/tasks/${(i % 5) + 1}`, content, { expect: 'any' })
          }),
        )
        await listWhenIndexed(store, '/tasks', queryByStatus('open', index), 10)
      }
      await checkStatuses(store, index.version)
      await checkPostgresEntries(postgres.createPool(), tablePrefix)
      await store.close?.()
    },
    LIMIT,
  )

  it('has nothing to do in Postgres where a creation writes another item that must be absent', async () => {
    const store = postgresStore({ pool: postgres.createPool(), tablePrefix: createPrefix(), sweepInterval: 0 })
    const index: CollectionIndex = {
      ...indexByStatus(),
      valuesOf: () => {
        throw new Error('The item was written with its values.')
      },
    }
    const content = contentOf({ status: 'open', n: 1 }, index)
    await store.create('/tasks', contentOf({ status: 'done', n: 1 }), {
      related: (name) => [{ path: `/audit/of-${name}`, content, expect: 'absent' }],
    })
    expect(await store.read('/audit/of-1')).toMatchObject({ indexed: { values: { status: 'open', n: 1 } } })
    const { items } = await store.list('/audit', { query: queryByStatus('open', index), limit: 5 })
    expect(items.map(({ path }) => path)).toEqual(['/audit/of-1'])
    await store.close?.()
  })

  it(
    'leaves an item of Postgres to be indexed that is removed and created again while the step before reads it',
    async () => {
      const tablePrefix = createPrefix()
      const pool = postgres.createPool()
      const other = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
      await fill(other, 3)
      await checkStatuses(other, 'status-1')
      await other.write('/tasks/1', contentOf({ status: 'late', n: 100 }), { expect: 'any' })
      let step = 0
      const interleaved = interceptQueries(pool, async ({ text }, send) => {
        const result = await send()
        if (step === 0 && text.includes(`FROM ${tablePrefix}pending WHERE place = $1`)) {
          step = 1
          await other.remove('/tasks/1', { expect: 'any', mode: 'erase' })
        } else if (step === 1 && text.includes(`FROM ${tablePrefix}states WHERE path IN`)) {
          step = 2
          await other.write('/tasks/1', contentOf({ status: 'done', n: 200 }), { expect: 'any' })
        }
        return result
      })
      const store = postgresStore({ pool: interleaved, tablePrefix, sweepInterval: 0 })
      await listWhenIndexed(store, '/tasks', queryByStatus('open'))
      expect(step).toBe(2)
      await store.close?.()
      await checkPostgresEntries(pool, tablePrefix)
      await checkStatuses(other, 'status-1')
      await other.close?.()
    },
    LIMIT,
  )

  it('leaves an item of SQLite to be indexed that is removed and created again while the step before reads it', async () => {
    const file = await createDatabaseFile()
    const handle = file.open()
    const other = file.open()
    let step = 0
    /** By another process, unless the step keeps others from writing meanwhile. */
    const change = (state: number) => {
      step++
      const text = `UPDATE resource_states SET state = ${state}, revision = 'other-${state}' WHERE path = '/tasks/1'`
      expect(() => other.exec(text)).not.toThrow(/^(?!.*database is locked)/)
    }
    const interleaved: SqliteHandle = {
      exec: (sql) => handle.exec(sql),
      prepare(sql) {
        const statement = handle.prepare(sql)
        return {
          run: statement.run.bind(statement),
          get(...values) {
            const row = statement.get(...values)
            if (step === 1 && sql.includes('resource_states WHERE path = ?')) change(0)
            return row
          },
          all(...values) {
            const rows = statement.all(...values) as unknown[]
            if (step === 0 && rows.length > 0 && sql.startsWith('SELECT sort_key FROM resource_pending')) change(2)
            return rows
          },
        }
      },
    }
    const store = sqliteStore(interleaved, { sweepInterval: 0 })
    await fill(store, 3)
    await checkStatuses(store, 'status-1')
    await store.write('/tasks/1', contentOf({ status: 'late', n: 100 }), { expect: 'any' })
    await checkStatuses(store, 'status-1')
    expect(step).toBe(2)
    checkSqliteEntries(handle)
    await store.close?.()
    await file.remove()
  })
})
