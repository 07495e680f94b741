import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { checkSqliteEntries } from '../support/check-entries.ts'
import { createDatabaseFile, type DatabaseFile, sqliteLibraries } from '../support/sqlite.ts'
import { listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'

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

describe.each(Object.entries(sqliteLibraries))('a database of release 0.1.0, opened by %s', (_, library) => {
  const files: DatabaseFile[] = []
  const stores: ResourceStore[] = []
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close?.()
    for (const file of files.splice(0)) await file.remove()
  })

  async function createFile(): Promise<DatabaseFile> {
    const file = await createDatabaseFile(library)
    files.push(file)
    await copyFile(join(folder, 'store.db'), file.path)
    return file
  }

  function openStore(handle: Parameters<typeof sqliteStore>[0]): ResourceStore {
    const store = sqliteStore(handle, { sweepInterval: 0 })
    stores.push(store)
    return store
  }

  it('has all of its contents, and answers queries', async () => {
    const handle = (await createFile()).open()
    const store = openStore(handle)
    await checkContents(store)
    await checkQueries(store)
    await store.write(
      '/tasks/1',
      { contentType: 'application/json', body: '{"status":"done","n":1}' },
      { expect: 'any' },
    )
    expect(namesOf(await listWhenIndexed(store, '/tasks', queryByStatus('done')))).toContain('1')
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
