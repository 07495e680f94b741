import { randomBytes } from 'node:crypto'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresStore } from '../../src/stores/postgres.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { checkPostgresEntries, checkSqliteEntries } from '../support/check-entries.ts'
import { interceptQueries } from '../support/intercepted-pool.ts'
import { ownStores } from '../support/owned-stores.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildStoreProgram } from '../support/processes.ts'
import { type DatabaseFile, sqliteLibraries } from '../support/sqlite.ts'
import { contentOf, listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'

/** Written by release 0.1.0 itself; see make.mjs there. */
const folder = fileURLToPath(new URL('./release-0.1/', import.meta.url))

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
/** Of 30 items each third is done; 7 is hidden, 8 and 9 are removed. */
const open = range(1, 30).filter((n) => n % 3 !== 0 && ![7, 8].includes(n))
const done = range(1, 30).filter((n) => n % 3 === 0 && n !== 9)

async function checkContents(store: ResourceStore): Promise<void> {
  expect(await store.read('/tasks/1')).toMatchObject({ body: '{"status":"open","n":1}', dateIsStrong: true })
  expect(await store.read('/tasks/7', { hidden: true })).toMatchObject({ hidden: true })
  expect(await store.read('/tasks/8')).toMatchObject({ removed: true })
  expect(await store.read('/tasks/9')).toBeUndefined()
  expect(await store.read('/about')).toMatchObject({ filename: 'über.txt', body: 'about' })
  expect(await store.read('/large')).toMatchObject({ size: 3000 })
  expect(await store.list('/tasks', { limit: 100 })).toMatchObject({ items: { length: 28 } })
}

async function checkQueries(store: ResourceStore): Promise<void> {
  const page = await listWhenIndexed(store, '/tasks', queryByStatus('open'))
  expect(namesOf(page)).toEqual(['other', ...[...open].reverse().map(String)])
  expect(page.total).toBe(open.length + 1)
  expect(namesOf(await listWhenIndexed(store, '/tasks', queryByStatus('done')))).toEqual(
    [...done].reverse().map(String),
  )
}

/** A write without values, as by a service without an index. */
async function checkWrite(store: ResourceStore): Promise<void> {
  await store.write('/tasks/1', contentOf({ status: 'done', n: 1 }), { expect: 'any' })
  expect(namesOf(await listWhenIndexed(store, '/tasks', queryByStatus('done')))).toContain('1')
}

describe.each(Object.entries(sqliteLibraries))('a database of release 0.1.0, opened by %s', (_, library) => {
  const stores = ownStores(library)
  const openStore = (handle: SqliteHandle) => stores.openStore(handle, { sweepInterval: 0 })

  async function createFile(): Promise<DatabaseFile> {
    const file = await stores.createFile()
    await copyFile(join(folder, 'store.db'), file.path)
    return file
  }

  it('has all of its contents, and answers queries', async () => {
    const handle = (await createFile()).open()
    const store = openStore(handle)
    await checkContents(store)
    await checkQueries(store)
    await checkWrite(store)
    checkSqliteEntries(handle)
  })

  it('is migrated once by several processes that open it at the same time', async () => {
    const file = await createFile()
    const program = await buildStoreProgram()
    const place = { kind: 'sqlite', file: file.path } as const
    const processes = Array.from({ length: 4 }, () => program.start({ place, task: { task: 'create', count: 5 } }))
    await Promise.all(processes.map((process) => process.done()))
    program.remove()
    const handle = file.open()
    const store = openStore(handle)
    await checkContents(store)
    await checkQueries(store)
    checkSqliteEntries(handle)
  })

  it('is migrated in one step: a process that dies in its midst leaves the tables of 0.1.0', async () => {
    const file = await createFile()
    const handle = file.open()
    const failing = {
      prepare: (sql: string) => handle.prepare(sql),
      exec(sql: string) {
        handle.exec(sql)
        // Behind the last table, before the commit.
        if (sql.includes('resource_pending')) throw new Error('The process is gone.')
      },
    }
    expect(() => sqliteStore(failing, { sweepInterval: 0 })).toThrow('The process is gone.')
    const other = file.open()
    expect(other.prepare('SELECT version FROM resource_schema').get()).toMatchObject({ version: 1 })
    await checkContents(openStore(other))
  })

  it('refuses every statement of 0.1.0 that writes a state, prepared before the migration, and answers those that read', async () => {
    const file = await createFile()
    const { sqlite } = JSON.parse(await readFile(join(folder, 'statements.json'), 'utf8')) as {
      sqlite: Record<string, string>
    }
    const old = file.open()
    old.exec('PRAGMA busy_timeout = 5000')
    const prepared = Object.entries(sqlite).map(([name, sql]) => ({ name, sql, statement: old.prepare(sql) }))
    const store = openStore(file.open())
    const before = await store.list('/tasks', { limit: 100, hidden: true })
    for (const { name, sql, statement } of prepared) {
      const values = Array.from(sql.matchAll(/\?/g), () => 1) as never[]
      const run = () => (sql.startsWith('SELECT') ? statement.all(...values) : statement.run(...values))
      if (['putState', 'hideState', 'removeState'].includes(name)) expect(run, name).toThrow(/generated column/)
      if (sql.startsWith('SELECT')) expect(run, name).not.toThrow()
    }
    expect(await store.list('/tasks', { limit: 100, hidden: true })).toEqual(before)
    expect(old.prepare(sqlite['readState']!).get(...(['/tasks/1'] as never[]))).toMatchObject({ path: '/tasks/1' })
  })
})

describe('tables of release 0.1.0 in Postgres', () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  async function createTables(): Promise<{ pool: pg.Pool; statements: Record<string, string> }> {
    const admin = server.createPool({ max: 1 })
    const name = `d${randomBytes(4).toString('hex')}`
    await admin.query(`CREATE DATABASE ${name}`)
    const pool = server.createPool({ connectionString: server.connectionString.replace(/[^/]*$/, name) })
    await pool.query(await readFile(join(folder, 'postgres.sql'), 'utf8'))
    const { postgres } = JSON.parse(await readFile(join(folder, 'statements.json'), 'utf8')) as {
      postgres: Record<string, string>
    }
    return { pool, statements: postgres }
  }

  it('have all of their contents, and answer queries', async () => {
    const { pool } = await createTables()
    const store = postgresStore({ pool, sweepInterval: 0 })
    await checkContents(store)
    await checkQueries(store)
    await checkWrite(store)
    await checkPostgresEntries(pool, 'resource_')
    await store.close?.()
  })

  it('are migrated once by several processes at the same time', async () => {
    const { pool } = await createTables()
    const stores = Array.from({ length: 5 }, () => postgresStore({ pool, sweepInterval: 0 }))
    await Promise.all(stores.map((store) => checkContents(store)))
    await Promise.all(stores.map((store) => checkQueries(store)))
    await checkPostgresEntries(pool, 'resource_')
    for (const store of stores) await store.close?.()
  })

  it('are migrated in the schema in which they lie, also where another one comes before it in the search path', async () => {
    const { pool } = await createTables()
    await pool.query('CREATE SCHEMA first')
    const { connectionString } = pool.options
    const other = server.createPool({ connectionString, options: '-c search_path=first,public' })
    const store = postgresStore({ pool: other, sweepInterval: 0 })
    await checkContents(store)
    await checkQueries(store)
    await checkWrite(store)
    await checkPostgresEntries(pool, 'resource_')
    await store.close?.()
  })

  it('are as they were when the process dies in the midst of the migration, and are migrated by the next one', async () => {
    const { pool } = await createTables()
    const dying = interceptQueries(pool, async ({ text }, send, client) => {
      const result = await send()
      // Behind the last table, before the commit.
      if (text.includes('resource_pending (place')) await killBackend(client)
      return result
    })
    await expect(postgresStore({ pool: dying, sweepInterval: 0 }).read('/tasks/1')).rejects.toMatchObject({
      status: 503,
    })
    const { rows } = await pool.query('SELECT version FROM resource_schema')
    expect(rows).toEqual([{ version: 1 }])
    const store = postgresStore({ pool, sweepInterval: 0 })
    await checkContents(store)
    await checkQueries(store)
    await store.close?.()
  })

  it('stay as they are while another program uses them: the migration keeps all others waiting for a moment only', async () => {
    const { pool } = await createTables()
    const dump = await pool.connect()
    await dump.query('BEGIN; LOCK TABLE resource_states IN ACCESS SHARE MODE')
    const store = postgresStore({ pool, sweepInterval: 0, statementTimeout: 5000 })
    const begin = performance.now()
    const refused = store.read('/tasks/1')
    await expect(refused).rejects.toMatchObject({ status: 503, cause: { code: '55P03' } })
    const waited = performance.now() - begin
    await dump.query('COMMIT')
    dump.release()
    await checkContents(store)
    await store.close?.()
    // An autovacuum that is in the way is ended by Postgres once this time is over, and not before.
    const { rows } = await pool.query("SELECT setting FROM pg_settings WHERE name = 'deadlock_timeout'")
    expect(waited).toBeGreaterThan(Number(rows[0].setting))
  })

  it('refuse the statements of 0.1.0 that write states, and answer those that read them', async () => {
    const { pool, statements } = await createTables()
    const old = await pool.connect()
    const run = (name: string, values: unknown[]) => old.query(`EXECUTE "${name}" (${values.map(literal).join(', ')})`)
    // Prepared before the migration, as by a process that still runs.
    for (const [name, text] of Object.entries(statements)) await old.query(`PREPARE "${name}" AS ${text}`)
    const store = postgresStore({ pool, sweepInterval: 0 })
    const before = await store.list('/tasks', { limit: 100, hidden: true })
    const key = Buffer.from('/tasks/1')
    const put = [key, 'other', 2, 'text/plain', null, null, null, null, Buffer.from('no'), 0]
    const refused = /resource_states_revised/
    const member = [Buffer.from('/tasks'), Buffer.from('a1')]
    await expect(run('putState', [...put, ...member, 0]), 'putState').rejects.toThrow(refused)
    await expect(run('putNamed', [...put, ...member, 0, 99]), 'putNamed').rejects.toThrow(refused)
    await expect(run('replaceState', [...put, null]), 'replaceState').rejects.toThrow(refused)
    await expect(run('hideState', [key, null, 'other', 0]), 'hideState').rejects.toThrow(refused)
    await expect(run('removeState', [key, null, 'other', 0, 0, 0]), 'removeState').rejects.toThrow(refused)
    expect(await store.list('/tasks', { limit: 100, hidden: true })).toEqual(before)
    expect((await run('readState', [key])).rows).toMatchObject([{ path: '/tasks/1' }])
    expect((await run('listLive', [Buffer.from('/tasks'), Buffer.from(''), 100])).rows).toHaveLength(28)
    old.release()
    await store.close?.()
  })
})

function literal(value: unknown): string {
  if (value === null) return 'NULL'
  return value instanceof Uint8Array ? `'\\x${Buffer.from(value).toString('hex')}'` : `'${value}'`
}

/** Ends the connection as when its process is gone. */
async function killBackend(client: pg.PoolClient): Promise<void> {
  const ended = new Promise((resolve) => client.once('end', resolve))
  await client.query('SELECT pg_terminate_backend(pg_backend_pid())').catch(() => {})
  await ended
}
