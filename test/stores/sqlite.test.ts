import { createHash } from 'node:crypto'
import { copyFile } from 'node:fs/promises'
import { describe, expect, it, vi } from 'vitest'
import { isResource } from '../../src/stores/rules.ts'
import { type SqliteHandle, sqliteStore } from '../../src/stores/sqlite.ts'
import { readWhole } from '../../src/stores/streams.ts'
import type { LargeBody, StoredResource } from '../../src/stores/types.ts'
import { testStore } from '../../src/testing.ts'
import { memoryContents } from '../contents/mutants.ts'
import { MEASURED } from '../support/measured.ts'
import { ownStores } from '../support/owned-stores.ts'
import { type ClosableHandle, createDatabaseFile, sqliteLibraries } from '../support/sqlite.ts'
import { contentOf, indexByStatus, listWhenIndexed, queryByStatus } from '../support/statuses.ts'

const text = (body: string) => ({ contentType: 'text/plain', body })
const binary = (body: Uint8Array | AsyncIterable<Uint8Array>) => ({ contentType: 'application/octet-stream', body })

async function* streamOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks
}

for (const [library, open] of Object.entries(sqliteLibraries)) {
  testStore(
    `sqliteStore on ${library}`,
    async () => {
      const file = await createDatabaseFile(open)
      return {
        store: sqliteStore(file.open()),
        reopen: () => sqliteStore(file.open()),
        close: () => file.remove(),
      }
    },
    { describe, it, digests: true },
  )

  describe(`sqliteStore on ${library}, its own ways`, () => {
    const { createFile, openStore } = ownStores(open)

    function countRows(handle: SqliteHandle, table: string): number {
      return (handle.prepare(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n
    }

    async function until(condition: () => boolean, sentence: string): Promise<void> {
      for (const end = Date.now() + 30_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 5))) {
        if (Date.now() > end) throw new Error(sentence)
      }
    }

    function readPragma(handle: SqliteHandle, name: string): unknown {
      return Object.values(handle.prepare(`PRAGMA ${name}`).get() as object)[0]
    }

    it('keeps a write-ahead log, and has every commit on the disk before it is acknowledged', async () => {
      const handle = (await createFile()).open()
      const store = openStore(handle)
      expect(readPragma(handle, 'journal_mode')).toBe('wal')
      // Chunks that no path shows yet do not wait for the disk, what follows them does again.
      await store.write('/big', binary(streamOf(Buffer.alloc(900_000))), { expect: 'any' })
      expect(readPragma(handle, 'synchronous')).toBe(2)
    })

    it('waits in SQLite itself for 5 ms at most, and maps no pages into memory', async () => {
      const handle = (await createFile()).open()
      handle.exec('PRAGMA mmap_size = 100000000')
      handle.exec('PRAGMA busy_timeout = 1000')
      openStore(handle)
      expect(readPragma(handle, 'busy_timeout')).toBe(5)
      expect(readPragma(handle, 'mmap_size')).toBe(0)
    })

    it('shares a commit among up to 64 writes that arrive together, each with its own outcome', async () => {
      const watched = watchHandle((await createFile()).open())
      const store = openStore(watched.handle, { sweepInterval: 0 })
      await store.write('/items/7', text('before'), { expect: 'any' })
      watched.runs.length = 0
      const writes = Array.from({ length: 130 }, async (_, i) =>
        store.write(`/items/${i}`, text(`${i}`), { expect: 'absent' }),
      )
      const outcomes = (await Promise.all(writes)).map(({ outcome }) => outcome)
      expect(outcomes).toEqual(outcomes.map((_, i) => (i === 7 ? 'conflict' : 'created')))
      expect(watched.runs.filter((sql) => sql === 'COMMIT')).toHaveLength(3)
    })

    it('has every commit on the disk also after an upload that found the database locked', async () => {
      const file = await createFile()
      const handle = file.open()
      const store = openStore(handle, { busyTimeout: 30, sweepInterval: 0 })
      const other = file.open()
      other.exec('BEGIN IMMEDIATE')
      const upload = store.write('/big', binary(streamOf(Buffer.alloc(900_000))), { expect: 'any' })
      await expect(upload).rejects.toMatchObject({ status: 503 })
      other.exec('ROLLBACK')
      expect(readPragma(handle, 'synchronous')).toBe(2)
    })

    it('works on a database in memory', async () => {
      const handle = open(':memory:')
      const store = openStore(handle)
      await store.write('/a', text('a'), { expect: 'any' })
      expect(await store.read('/a')).toMatchObject({ size: 1 })
      await store.close?.()
      handle.close()
    })

    it('reads small content with one statement', async () => {
      const watched = watchHandle((await createFile()).open())
      const store = openStore(watched.handle)
      await store.write('/a', text('a'), { expect: 'any' })
      watched.runs.length = 0
      store.read('/a')
      expect(watched.runs).toHaveLength(1)
    })

    it('remembers what is read again, and asks for its version before it uses it', async () => {
      const file = await createFile()
      const watched = watchHandle(file.open())
      const store = openStore(watched.handle)
      const other = openStore(file.open())
      await store.write('/a/1', text('one'), { expect: 'any' })
      const first = store.read('/a/1')
      expect(store.read('/a/1')).toBe(first)
      store.list('/a', { limit: 5 })
      const page = store.list('/a', { limit: 5 })
      expect(store.list('/a', { limit: 5 })).toBe(page)
      watched.runs.length = 0
      store.read('/a/1')
      store.list('/a', { limit: 5 })
      expect(watched.runs).toEqual([
        expect.stringMatching(/^SELECT version /),
        expect.stringMatching(/^SELECT group_concat\(version\) /),
      ])

      await other.write('/a/1', text('two'), { expect: 'any' })
      expect(store.read('/a/1')).toMatchObject({ body: 'two' })
      expect(store.list('/a', { limit: 5 })).toMatchObject({ items: [{ body: 'two' }] })
      await other.write('/a/2', text('new'), { expect: 'absent' })
      expect(store.list('/a', { limit: 5 })).toMatchObject({ items: [{ body: 'two' }, { body: 'new' }] })
      await other.remove('/a/1', { expect: 'any', mode: 'tombstone' })
      expect(store.read('/a/1')).toMatchObject({ removed: true })
      expect(store.list('/a', { limit: 5 })).toMatchObject({ items: [{ body: 'new' }] })
      await other.remove('/a/2', { expect: 'any', mode: 'hide' })
      expect(store.read('/a/2')).toMatchObject({ removed: true })
      expect(store.list('/a', { limit: 5 })).toEqual({ items: [] })
    })

    it('keeps for other processes what describes content that replaces other content', async () => {
      const file = await createFile()
      const store = openStore(file.open())
      const fields = { contentEncoding: 'gzip', contentLanguage: 'de', filename: 'a.txt' }
      await store.write('/a/1', text('one'), { expect: 'any' })
      await store.write('/a/1', { ...text('two'), ...fields }, { expect: 'any' })
      expect(await openStore(file.open()).read('/a/1')).toMatchObject({ body: 'two', ...fields })
      await store.write('/a/1', text('three'), { expect: 'any' })
      const last = await openStore(file.open()).read('/a/1')
      expect(last).toMatchObject({ body: 'three' })
      for (const name of Object.keys(fields)) expect(last).not.toHaveProperty(name)
    })

    it('sees what other code with the same handle does to states that it remembers', async () => {
      const handle = (await createFile()).open()
      const store = openStore(handle)
      await store.write('/a/1', text('one'), { expect: 'any' })
      for (let i = 0; i < 3; i++) expect(store.read('/a/1')).toMatchObject({ body: 'one' })
      handle.exec('DELETE FROM resource_states')
      expect(store.read('/a/1')).toBeUndefined()
    })

    it('gives no bytes that it keeps for other content, where a backup is restored into the open database', async () => {
      const file = await createFile()
      const store = openStore(file.open(), { inlineLimit: 1000 })
      const readAll = async (path: string) => {
        const { body } = (await store.read(path)) as StoredResource
        return readWhole((body as LargeBody).open(0, 1999))
      }
      await store.write('/a', text('1'.repeat(2000)), { expect: 'any' })
      for (let i = 0; i < 3; i++) expect((await readAll('/a'))[0]).toBe(0x31)
      // As from a backup of an empty database: numbers of contents begin anew.
      const tables = ['resource_states', 'resource_contents', 'resource_chunks', 'sqlite_sequence']
      file.open().exec(tables.map((table) => `DELETE FROM ${table}`).join('; '))
      await store.write('/b', text('2'.repeat(2000)), { expect: 'any' })
      for (let i = 0; i < 3; i++) expect((await readAll('/b'))[0]).toBe(0x32)
    })

    it('remembers the bytes of large content that it has written, as of content that it has found', async () => {
      const watched = watchHandle((await createFile()).open())
      const store = openStore(watched.handle, { inlineLimit: 1000 })
      const readAll = async () => {
        const { body } = (await store.read('/a')) as StoredResource
        return readWhole((body as LargeBody).open(0, 1999))
      }
      for (let i = 0; i < 2; i++) await store.write('/a', text('1'.repeat(2000)), { expect: 'any' })
      for (let i = 0; i < 2; i++) await readAll()
      watched.runs.length = 0
      expect((await readAll()).length).toBe(2000)
      expect(watched.runs.filter((sql) => sql.includes('resource_chunks'))).toEqual([])
    })

    it('gives each related path a version of its own, also where Object.prototype has one', async () => {
      const store = openStore((await createFile()).open())
      const paths = ['/a/1', '/a/2', '/b/1', '/b/2']
      const related = (names: string[]) => names.map((path) => ({ path, content: text(path), expect: 'any' as const }))
      Object.defineProperty(Object.prototype, 'version', { value: 'same', configurable: true })
      try {
        await store.write('/c', text('c'), { expect: 'any', related: related(paths.slice(0, 2)) })
        await store.remove('/c', { expect: 'any', mode: 'tombstone', relatedWrites: related(paths.slice(2)) })
      } finally {
        Reflect.deleteProperty(Object.prototype, 'version')
      }
      const states = await Promise.all(paths.map((path) => store.read(path) as StoredResource))
      expect(new Set(states.map(({ version }) => version)).size).toBe(4)
      expect(states.map(({ version }) => version)).not.toContain('same')
    })

    it('replaces a member that it remembers by one statement, and reads the row where another has changed it', async () => {
      const file = await createFile()
      const watched = watchHandle(file.open())
      const [store, other] = [openStore(watched.handle), openStore(file.open())]
      await store.write('/a/1', text('1'), { expect: 'any' })
      for (let i = 0; i < 3; i++) store.read('/a/1')
      watched.runs.length = 0
      const second = await store.write('/a/1', text('2'), { expect: 'present' })
      const ofStates = watched.runs.filter((sql) => sql.includes('resource_states'))
      expect(ofStates).toEqual([expect.stringMatching(/^UPDATE/)])
      const { version } = (second as { resource: StoredResource }).resource
      expect(second).toMatchObject({ outcome: 'replaced', resource: { body: '2' } })
      await other.write('/a/1', text('3'), { expect: { version } })
      expect(await store.write('/a/1', text('4'), { expect: { version } })).toMatchObject({
        outcome: 'conflict',
        current: { body: '3' },
      })
      await other.write('/a/1', { ...text('5'), filename: 'five.txt' }, { expect: 'present' })
      expect(await store.write('/a/1', text('6'), { expect: 'any' })).toMatchObject({ outcome: 'replaced' })
      expect(other.read('/a/1')).toMatchObject({ body: '6' })
      expect(other.read('/a/1')).not.toHaveProperty('filename')
      await other.remove('/a/1', { expect: 'any', mode: 'tombstone' })
      expect(await store.write('/a/1', text('7'), { expect: 'any' })).toMatchObject({ outcome: 'created' })
      expect(other.list('/a', { limit: 5 })).toMatchObject({ items: [{ body: '7' }] })
    })

    it('assigns no name that a client has written after the transaction that had taken it was undone', async () => {
      const store = openStore((await createFile()).open())
      const failing = store.create('/a', () => {
        throw new Error('no content')
      })
      await expect(failing).rejects.toThrow('no content')
      expect(await store.write('/a/1', text('by a client'), { expect: 'absent' })).toMatchObject({ outcome: 'created' })
      expect(await store.create('/a', text('new'))).toMatchObject({ resource: { path: '/a/2' } })
    })

    it('leaves no member to be indexed that was written with the values of its index', async () => {
      const handle = (await createFile()).open()
      const store = openStore(handle)
      const createIndex = (version: string) => ({ version, properties: ['n'], scope: [], valuesOf: () => ({ n: 1 }) })
      const [older, newer] = [createIndex('older'), createIndex('newer')]
      const write = (index: typeof older) =>
        store.write('/a/1', { ...text('1'), indexed: { index, values: { n: 1 } } }, { expect: 'any' })
      const countPending = () => countRows(handle, 'resource_pending')
      await write(older)
      await write(newer)
      expect(countPending()).toBe(1) // for the older index
      await write(older)
      expect(
        handle.prepare('SELECT index_version AS v FROM resource_pending JOIN resource_places ON id = place').all(),
      ).toMatchObject([{ v: 'newer' }])
    })

    it('keeps the members of two collections apart that have one index and are written in one transaction', async () => {
      const handle = (await createFile()).open()
      const store = openStore(handle)
      const exec = vi.spyOn(handle, 'exec')
      const index = indexByStatus()
      const write = (path: string, status: string) =>
        store.write(path, contentOf({ status, n: 1 }, index), { expect: 'absent' })
      await Promise.all([write('/a/1', 'open'), write('/b/1', 'done')])
      expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT')).toHaveLength(1)
      for (const [collection, status] of [
        ['/a', 'open'],
        ['/b', 'done'],
      ] as const) {
        const { items } = await listWhenIndexed(store, collection, queryByStatus(status))
        expect(items.map((item) => item.path)).toEqual([`${collection}/1`])
      }
    })

    it('remembers nothing of a write that is undone', async () => {
      const handle = (await createFile()).open()
      let isDiskFull = false
      const store = openStore({
        exec(sql) {
          if (isDiskFull && sql === 'COMMIT') throw new Error('no space')
          return handle.exec(sql)
        },
        prepare: (sql) => handle.prepare(sql),
      })
      await store.write('/a', text('before'), { expect: 'any' })
      for (let i = 0; i < 3; i++) store.read('/a')
      isDiskFull = true
      await expect(store.write('/a', text('after'), { expect: 'any' })).rejects.toThrow('no space')
      isDiskFull = false
      expect(store.read('/a')).toMatchObject({ body: 'before' })
      const written = await store.write('/a', text('after'), { expect: 'present' })
      expect(written).toMatchObject({ outcome: 'replaced' })
      expect(store.read('/a')).toMatchObject({ body: 'after' })
    })

    it('keeps its own copy of content whose buffer the caller uses again', async () => {
      const store = openStore((await createFile()).open())
      const body = Buffer.from([200, 201, 202])
      for (let i = 0; i < 3; i++) {
        await store.write('/a', binary(body), { expect: 'any' })
        store.read('/a')
      }
      body.fill(0)
      expect(store.read('/a')).toMatchObject({ body: Buffer.from([200, 201, 202]) })
    })

    it('looks at the content of each related path a few times, however many there are', async () => {
      const count = 200
      let looks = 0
      const related = Array.from({ length: count }, (_, at) => ({
        path: `/history/${at}`,
        content: {
          contentType: 'text/plain',
          get body() {
            looks++
            return `entry ${at}`
          },
        },
      }))
      await openStore((await createFile()).open()).write('/items/1', text('own'), { expect: 'any', related })
      expect(looks).toBeLessThan(10 * count)
    })

    it('keeps no state that was read without its content', async () => {
      const file = await createFile()
      await openStore(file.open()).write('/a', text('content'), { expect: 'any' })
      const store = openStore(file.open())
      for (let i = 0; i < 3; i++) await store.read('/a', { metadataOnly: true })
      expect(await store.read('/a')).toMatchObject({ size: 7, body: 'content' })
    })

    it('remembers chunks that are read again, across their edges too, up to cacheSize', async () => {
      const bytes = Buffer.from(Uint8Array.from({ length: 400_000 }, (_, i) => (i * 7919) & 0xff))
      for (const [cacheSize, statements] of [
        [1_000_000, 0],
        [0, 2],
      ] as const) {
        const watched = watchHandle((await createFile()).open())
        const store = openStore(watched.handle, { cacheSize })
        await store.write('/big', binary(bytes), { expect: 'any' })
        const { body } = (await store.read('/big')) as StoredResource & { body: LargeBody }
        const read = async (first: number, last: number) => Buffer.concat([await body.read!(first, last)].flat())
        for (let i = 0; i < 4; i++) expect(await read(100_000, 165_000)).toEqual(bytes.subarray(100_000, 165_001))
        watched.runs.length = 0
        expect(await read(120_000, 140_000)).toEqual(bytes.subarray(120_000, 140_001))
        expect(await read(5, 9)).toEqual(bytes.subarray(5, 10))
        expect(watched.runs).toHaveLength(statements)
      }
    })

    it('remembers pages up to a quarter of cacheSize, by what their content takes', async () => {
      for (const [size, isKept] of [
        [1000, true],
        [10_000, false],
      ] as const) {
        const store = openStore((await createFile()).open(), { cacheSize: 80_000 })
        for (const path of ['/a/1', '/a/2']) await store.write(path, text('x'.repeat(size)), { expect: 'any' })
        const pages = [1, 2, 3, 4].map(() => store.list('/a', { limit: 5 }))
        expect([size, pages[3] === pages[2]]).toEqual([size, isKept])
      }
    })

    it('reads only the chunks that a range lies in', async () => {
      const watched = watchHandle((await createFile()).open())
      const store = openStore(watched.handle)
      await store.write('/big', binary(Buffer.alloc(5_000_000)), { expect: 'any' })
      const state = (await store.read('/big')) as StoredResource & { body: LargeBody }
      watched.runs.length = 0
      let length = 0
      for await (const chunk of state.body.open(3_000_000, 3_065_535)) length += chunk.length
      expect(length).toBe(65_536)
      expect(watched.runs.length).toBeLessThanOrEqual(2)
    })

    it('commits the writes of one turn together, each with its own outcome', async () => {
      const watched = watchHandle((await createFile()).open())
      const store = openStore(watched.handle)
      await store.write('/a/1', text('a'), { expect: 'any' })
      watched.runs.length = 0
      const outcomes = await Promise.all([
        store.write('/a/1', text('b'), { expect: 'absent' }),
        store.write('/a/2', text('b'), { expect: 'absent' }),
        store.remove('/a/1', { expect: 'any', mode: 'erase' }),
        store.write('/a/1', text('b'), { expect: 'absent' }),
        store.create('/a', text('c')),
      ])
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(['conflict', 'created', 'removed', 'created', 'created'])
      expect(watched.runs.filter((sql) => sql === 'COMMIT')).toHaveLength(1)
    })

    it('undoes nothing of the others when one of them throws', async () => {
      const store = openStore((await createFile()).open())
      const error = new Error('no content')
      const results = await Promise.allSettled([
        store.write('/b/1', text('1'), { expect: 'any' }),
        store.create('/c', () => {
          throw error
        }),
        store.write('/b/2', text('2'), { expect: 'any' }),
      ])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(results[1]).toMatchObject({ reason: error })
      expect((await store.list('/b', { limit: 5 })).items).toHaveLength(2)
    })

    it('undoes nothing of the others when the content of one of them is gone', async () => {
      const store = openStore((await createFile()).open())
      const staged = await store.stage!(streamOf(Buffer.alloc(200_000)))
      await staged.discard()
      const results = await Promise.allSettled([
        store.write('/b/1', text('1'), { expect: 'any' }),
        store.write('/b/2', { contentType: 'text/plain', body: staged }, { expect: 'any' }),
        store.write('/b/3', text('3'), { expect: 'any' }),
      ])
      expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(results[1]).toMatchObject({ reason: { status: 503 } })
      expect((await store.list('/b', { limit: 5 })).items).toHaveLength(2)
    })

    it('waits for another process that writes, and goes on with other things meanwhile', MEASURED, async () => {
      const file = await createFile()
      const store = openStore(file.open())
      await store.write('/a', text('a'), { expect: 'any' })
      const other = file.open()
      other.exec('BEGIN IMMEDIATE')
      let isWritten = false
      const writing = Promise.resolve(store.write('/a', text('b'), { expect: 'any' })).then(() => {
        isWritten = true
      })
      for (let turn = 0; turn < 5; turn++) {
        const start = performance.now()
        await new Promise((resolve) => setTimeout(resolve, 10))
        // A store that blocked would wait for as long as the lock is held: for ever.
        expect(performance.now() - start).toBeLessThan(3000)
        expect(await store.read('/a')).toMatchObject({ size: 1 })
      }
      expect(isWritten).toBe(false)
      other.exec('COMMIT')
      await writing
      expect(Buffer.from(((await store.read('/a')) as StoredResource).body as Uint8Array).toString()).toBe('b')
    })

    it('answers 503 with Retry-After when another process keeps the lock for too long', async () => {
      const file = await createFile()
      const store = openStore(file.open(), { busyTimeout: 60 })
      const other = file.open()
      other.exec('BEGIN IMMEDIATE')
      await expect(store.write('/a', text('b'), { expect: 'any' })).rejects.toMatchObject({
        status: 503,
        headers: { 'Retry-After': '1' },
      })
      expect(await store.read('/a')).toBeUndefined()
      other.exec('COMMIT')
      expect(await store.write('/a', text('b'), { expect: 'any' })).toMatchObject({ outcome: 'created' })
    })

    it(
      'answers 503 to every write that waited for the lock, in bounded time, and makes none later (issue 17.4)',
      MEASURED,
      async () => {
        const file = await createFile()
        const store = openStore(file.open(), { busyTimeout: 200, sweepInterval: 0 })
        const other = file.open()
        other.exec('BEGIN IMMEDIATE')
        const start = performance.now()
        const writes = Array.from({ length: 640 }, (_, i) => store.write(`/a/${i}`, text('b'), { expect: 'any' }))
        const results = await Promise.allSettled(writes)
        expect(performance.now() - start).toBeLessThan(1500)
        for (const result of results) expect(result).toMatchObject({ status: 'rejected', reason: { status: 503 } })
        other.exec('COMMIT')
        expect(await store.write('/a', text('b'), { expect: 'any' })).toMatchObject({ outcome: 'created' })
        expect(await store.list('/a', { limit: 10 })).toEqual({ items: [] })
      },
    )

    it('answers 503 at once when too many writes wait already (issue 17.4)', async () => {
      const store = openStore((await createFile()).open(), { sweepInterval: 0 })
      const writes = Array.from({ length: 10_050 }, () => store.remove('/a', { expect: 'any', mode: 'erase' }))
      const results = await Promise.allSettled(writes)
      expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(50)
      expect(results.at(-1)).toMatchObject({ reason: { status: 503, headers: { 'Retry-After': '1' } } })
    })

    it('sees what others write after it was refused the lock', async () => {
      const file = await createFile()
      const store = openStore(file.open(), { busyTimeout: 60, sweepInterval: 0 })
      const second = openStore(file.open())
      await store.write('/a', text('one'), { expect: 'any' })
      const other = file.open()
      other.exec('BEGIN IMMEDIATE')
      await expect(store.write('/a', text('never'), { expect: 'any' })).rejects.toMatchObject({ status: 503 })
      other.exec('COMMIT')
      expect(await store.read('/a')).toMatchObject({ body: 'one' })
      await second.write('/a', text('two'), { expect: 'any' })
      expect(await store.read('/a')).toMatchObject({ body: 'two' })
    })

    it('clears uploads away that were given up or forgotten, and nothing that a path shows', async () => {
      const file = await createFile()
      const handle = file.open()
      const store = openStore(handle, { sweepInterval: 0 })
      const content = Buffer.alloc(1_000_000, 7)
      await store.stage!(streamOf(content))
      await (await store.stage!(streamOf(content))).discard()
      await store.write('/kept', binary(content), { expect: 'any' })
      await store.write('/replaced', binary(content), { expect: 'any' })
      await store.write('/replaced', text('small'), { expect: 'any' })
      await store.write('/described', binary(content), { expect: 'any' })
      await store.write('/described', { ...text('small'), filename: 'small.txt' }, { expect: 'any' })
      await store.write('/removed', binary(content), { expect: 'any' })
      await store.remove('/removed', { expect: 'any', mode: 'tombstone' })
      for (const [path, mode] of [
        ['/parent/live', undefined],
        ['/parent/hidden', 'hide'],
      ] as const) {
        await store.write(path, binary(content), { expect: 'any' })
        if (mode !== undefined) await store.remove(path, { expect: 'any', mode })
      }
      await store.write('/parent', text('small'), { expect: 'any' })
      await store.remove('/parent', { expect: 'any', mode: 'tombstone', below: true })
      // As if the grace were over: a short one might be over before an upload on a busy machine is.
      const options = { sweepInterval: 50, now: () => Date.now() + 3_600_000 }
      openStore(file.open(), options)
      openStore(file.open(), options)
      await until(() => countRows(handle, 'resource_contents') === 1, 'The sweep has left content that no state has.')
      expect(countRows(handle, 'resource_chunks')).toBe(8)
      const chunks: Uint8Array[] = []
      const kept = (await store.read('/kept')) as StoredResource & { body: LargeBody }
      for await (const chunk of kept.body.open(0, content.length)) chunks.push(Buffer.from(chunk))
      expect(Buffer.concat(chunks).equals(content)).toBe(true)
    })

    it('takes several small contents in one step: those that are replaced all the time would outrun it', async () => {
      const file = await createFile()
      openStore(file.open(), { sweepInterval: 0 })
      const other = file.open()
      for (let id = 1; id <= 48; id++) {
        other.exec(`INSERT INTO resource_contents (id, expires) VALUES (${id}, 1)`)
        other.exec(`INSERT INTO resource_chunks VALUES (${id}, 0, x'00')`)
      }
      const watched = watchHandle(file.open())
      openStore(watched.handle, { sweepInterval: 3_600_000 })
      await until(() => countRows(other, 'resource_contents') === 0, 'The sweep has left content that no state has.')
      expect(countRows(other, 'resource_chunks')).toBe(0)
      // One more than 48 / 16, where the last step has found that nothing is left.
      const steps = watched.runs.filter((sql) => /SELECT id FROM resource_contents .* key IS NULL/s.test(sql))
      expect([3, 4]).toContain(steps.length)
    })

    it('shows no content of which the sweep of another process has taken a part', async () => {
      const handle = (await createFile()).open()
      const store = openStore(handle, { sweepInterval: 0 })
      // As the first step of that sweep does.
      const lose = () => handle.exec('UPDATE resource_contents SET expires = 0')
      const body = await store.stage!(streamOf(Buffer.alloc(1_000_000)))
      lose()
      await expect(store.write('/a', { contentType: 'text/plain', body }, { expect: 'any' })).rejects.toThrow()
      async function* interrupted() {
        yield Buffer.alloc(2_000_000)
        lose()
        yield Buffer.alloc(2_000_000)
      }
      await expect(store.write('/a', binary(interrupted()), { expect: 'any' })).rejects.toThrow()
      expect(await store.read('/a')).toBeUndefined()
    })

    it('clears expired tombstones away', async () => {
      const handle = (await createFile()).open()
      const first = openStore(handle, { sweepInterval: 0 })
      for (const [path, mode] of [
        ['/a', 'erase'],
        ['/b', 'tombstone'],
        ['/c', 'tombstone'],
      ] as const) {
        await first.write(path, text('a'), { expect: 'any' })
        await first.remove(path, { expect: 'any', mode, retention: path === '/c' ? 86_400_000 : 1 })
      }
      openStore(handle, { sweepInterval: 20, now: () => Date.now() + 3_600_000 })
      await until(() => countRows(handle, 'resource_states') === 1, 'The sweep has left expired tombstones.')
      expect(await first.read('/c')).toMatchObject({ removed: true })
    })

    it('keeps no tombstone whose retention is 0', async () => {
      const store = openStore((await createFile()).open())
      await store.write('/a', text('a'), { expect: 'any' })
      await store.remove('/a', { expect: 'any', mode: 'tombstone', retention: 0 })
      expect(store.read('/a')).toBeUndefined()
    })

    it('leaves the tombstone of a related path as it is', async () => {
      let time = 1_000_000_000
      const store = openStore((await createFile()).open(), { now: () => time })
      for (const path of ['/item', '/file']) await store.write(path, text('x'), { expect: 'any' })
      await store.remove('/file', { expect: 'any', mode: 'tombstone' })
      time += 5000
      await store.remove('/item', { expect: 'any', mode: 'erase', related: ['/file'] })
      expect(await store.read('/file')).toMatchObject({ removed: true, removedAt: 1_000_000_000 })
    })

    it('reads a tombstone that is kept for longer than any integer of a number', async () => {
      const store = openStore((await createFile()).open())
      await store.write('/docs/1', text('removed'), { expect: 'any' })
      await store.remove('/docs/1', { expect: 'any', mode: 'tombstone', retention: 2 ** 60 })
      expect(await store.read('/docs/1')).toMatchObject({ removed: true })
    })

    it('dates no state before one that was removed with its parent by a process whose clock is some milliseconds behind', async () => {
      const file = await createFile()
      const second = Math.floor(Date.now() / 1000) * 1000
      const [ahead, behind] = [900, 100].map((time) => openStore(file.open(), { now: () => second + time }))
      for (const path of ['/parent', '/parent/child']) await ahead!.write(path, text('before'), { expect: 'any' })
      await behind!.remove('/parent', { expect: 'any', mode: 'erase', below: true })
      await behind!.write('/parent/child', text('after'), { expect: 'any' })
      expect(await behind!.read('/parent/child')).toMatchObject({ lastModified: second + 900 })
    })

    it('dates no state before one that another process has written a second later than the one before', async () => {
      const file = await createFile()
      let time = Math.floor(Date.now() / 1000) * 1000
      const start = time
      const ahead = openStore(file.open(), { now: () => time })
      const behind = openStore(file.open(), { now: () => start - 5000 })
      await ahead.write('/a', text('before'), { expect: 'any' })
      time += 1000
      await ahead.write('/a', text('a second later'), { expect: 'any' })
      await behind.write('/b', text('after'), { expect: 'any' })
      expect(await behind.read('/b')).toMatchObject({ lastModified: time })
    })

    it('keeps tables of several prefixes apart in one file', async () => {
      const handle = (await createFile()).open()
      const one = openStore(handle, { tablePrefix: 'one_' })
      const two = openStore(handle, { tablePrefix: 'two_' })
      await one.write('/a', text('a'), { expect: 'any' })
      expect(await two.read('/a')).toBeUndefined()
    })

    it.each(['UTF-16le', 'UTF-16be'])('makes no tables in a database with the encoding %s', async (encoding) => {
      const handle = (await createFile()).open()
      handle.exec(`PRAGMA encoding = '${encoding}'`)
      const expected = `sqliteStore needs a database with the encoding UTF-8, not ${encoding}.`
      expect(() => sqliteStore(handle)).toThrow(expected)
    })

    it('refuses tables that a newer release has made', async () => {
      const handle = (await createFile()).open()
      openStore(handle, { sweepInterval: 0 })
      handle.exec('UPDATE resource_schema SET version = 99')
      expect(() => sqliteStore(handle)).toThrow(/schema version 99, and this release knows versions up to 5/)
    })

    it('keeps every byte of a stream that is longer than a batch and not longer than inlineLimit', async () => {
      const store = openStore((await createFile()).open(), { inlineLimit: 2_000_000 })
      const bytes = Buffer.alloc(900_000, 'abc')
      await store.write('/a', binary(streamOf(bytes)), { expect: 'any' })
      const { body } = (await store.read('/a')) as { body: LargeBody }
      const chunks: Uint8Array[] = []
      for await (const chunk of body.open(0, bytes.length - 1)) chunks.push(Buffer.from(chunk))
      expect(Buffer.concat(chunks).equals(bytes)).toBe(true)
    })

    it('has no digest of content that release 0.1.0 has written, and one of content written since', async () => {
      const file = await createFile()
      await copyFile(new URL('./release-0.1/store.db', import.meta.url), file.path)
      const store = openStore(file.open(), { sweepInterval: 0, inlineLimit: 1000 })
      expect(await store.read('/large')).toMatchObject({ size: 3000 })
      expect(await store.read('/large')).toEqual(expect.not.objectContaining({ sha256: expect.anything() }))
      const large = Buffer.alloc(3000, 1)
      await store.write('/new', binary(large), { expect: 'any' })
      const { sha256 } = (await store.read('/new')) as { sha256: Uint8Array }
      expect(Buffer.from(sha256)).toEqual(createHash('sha256').update(large).digest())
    })

    it('keeps paths and file names with U+0000 and lone surrogates apart', async () => {
      const store = openStore((await createFile()).open())
      const names = ['a\0b', 'a\u0001b', 'a\u00010000b', '\ud800', '\udc00', '\ufffd', '😀']
      for (const name of names) await store.write(`/n/${name}`, { ...text(name), filename: name }, { expect: 'absent' })
      const { items } = await store.list('/n', { limit: 20 })
      expect(items.map((item) => item.path.slice(3)).sort()).toEqual([...names].sort())
      for (const name of names) {
        expect(await store.read(`/n/${name}`)).toMatchObject({ path: `/n/${name}`, filename: name })
      }
    })

    it('refuses options that do not exist and prefixes that are not names', async () => {
      const handle = (await createFile()).open()
      expect(() => sqliteStore(handle, { tablePrefix: 'x; DROP TABLE y' })).toThrow(TypeError)
      expect(() => sqliteStore(handle, { prefix: 'x' } as never)).toThrow(/no option "prefix"/)
    })

    it('ends a list that takes long between two of its steps, once the signal has aborted', async () => {
      const store = openStore((await createFile()).open())
      await store.write('/tasks/1', contentOf({ status: 'open', n: 1 }), { expect: 'any' })
      const query = queryByStatus('open')
      await listWhenIndexed(store, '/tasks', query)
      let time = performance.now()
      const clock = vi.spyOn(performance, 'now').mockImplementation(() => (time += 1000))
      const controller = new AbortController()
      const listed = store.list('/tasks', { limit: 5, query, signal: controller.signal })
      controller.abort(new Error('The client has left.'))
      await expect(listed).rejects.toThrow('The client has left.')
      clock.mockRestore()
    })

    it('answers a page as fast among many members as among few', async () => {
      const handle = (await createFile()).open()
      const store = openStore(handle)
      await Promise.all(Array.from({ length: 300 }, () => store.create('/few', text('a'))))
      const plan = handle
        .prepare(
          'EXPLAIN QUERY PLAN SELECT path FROM resource_states INDEXED BY resource_states_listed ' +
            "WHERE collection = '/few' AND state = 0 AND sort_key > 'c' ORDER BY sort_key LIMIT 10",
        )
        .all() as { detail: string }[]
      expect(plan.map(({ detail }) => detail).join()).toMatch(/SEARCH .*collection=\? AND state=\? AND sort_key>\?/)
      expect(plan.map(({ detail }) => detail).join()).not.toMatch(/TEMP B-TREE/)
      const page = await store.list('/few', { limit: 2, after: '250' })
      expect(page.items.filter(isResource).map(({ path }) => path)).toEqual(['/few/251', '/few/252'])
    })

    it('finds what the sweep may take by an index of its kind, and does not sort what has expired together', async () => {
      const file = await createFile()
      const { handle, runs } = watchHandle(file.open())
      openStore(handle, { contents: memoryContents(), sweepInterval: 5 })
      const found = () => [...new Set(runs.filter((sql) => /FROM resource_contents.* expires < \?/s.test(sql)))]
      await vi.waitFor(() => expect(found()).toHaveLength(2), 30_000)
      const planner = file.open()
      const plans = found().map((sql) =>
        (planner.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(0 as never) as { detail: string }[])
          .map(({ detail }) => /contents_\w+ \(.*\)|TEMP B-TREE|SCAN resource.*/.exec(detail)?.[0])
          .filter((step) => step !== undefined),
      )
      expect(plans).toEqual([
        ['contents_expiring (expires>? AND expires<?)'],
        // The last two are of what was taken before and could not be removed.
        ['contents_lost (expires>? AND expires<?)', 'contents_lost (expires=?)', 'TEMP B-TREE'],
      ])
    })
  })
}

/** A handle that tells of every statement that runs on it. */
function watchHandle(handle: ClosableHandle): { handle: SqliteHandle; runs: string[] } {
  const runs: string[] = []
  return {
    runs,
    handle: {
      exec(sql) {
        runs.push(sql)
        return handle.exec(sql)
      },
      prepare(sql) {
        const statement = handle.prepare(sql)
        const watch =
          <Result>(run: (...values: never[]) => Result) =>
          (...values: unknown[]): Result => {
            runs.push(sql)
            return run.call(statement, ...(values as never[]))
          }
        return { get: watch(statement.get), all: watch(statement.all), run: watch(statement.run) }
      },
    },
  }
}

it('sqliteStore refuses a database that gives integers as BigInt, or rows as lists', () => {
  const handle = sqliteLibraries['libsql']!(':memory:') as ClosableHandle & { defaultSafeIntegers(): unknown }
  handle.defaultSafeIntegers()
  expect(() => sqliteStore(handle)).toThrow(/^sqliteStore takes a database that gives integers as numbers/)
  // As a database of `node:sqlite` does with `returnArrays`.
  const arrays = { exec: () => {}, prepare: () => ({ get: () => [1], all: () => [], run: () => {} }) }
  expect(() => sqliteStore(arrays)).toThrow(/and rows as objects, .* or returnArrays\.$/)
  handle.close()
})
