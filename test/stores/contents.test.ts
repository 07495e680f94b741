import { createReadStream, type ReadStream } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import Libsql from 'libsql'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createBytes, stream } from '../../src/conformance/samples.ts'
import { fileContents } from '../../src/contents/file.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { HttpError } from '../../src/core/errors.ts'
import { type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres.ts'
import type { MovableContents } from '../../src/stores/sql/options.ts'
import { type SqliteStoreOptions, sqliteStore } from '../../src/stores/sqlite.ts'
import { readWhole } from '../../src/stores/streams.ts'
import type { Content, LargeBody, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { describeStore } from '../../src/testing.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { listKeys } from '../support/contents.ts'
import { scratchFolder } from '../support/folders.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { readBytes } from '../support/store-tasks.ts'

type Options = Omit<SqliteStoreOptions & PostgresStoreOptions, 'pool' | 'reserve' | 'now' | 'busyTimeout'>

/** A database of its own, and a directory for large content. */
interface Place {
  readonly directory: string
  /** The contents of the directory. */
  readonly contents: ContentStore
  open(options?: Options): ResourceStore & MovableContents
  query(sql: string): Promise<readonly Record<string, unknown>[]>
}

async function createFolder(): Promise<string> {
  const folder = await mkdtemp(join(scratchFolder, 'store-contents-'))
  closeAfterTest(() => rm(folder, { recursive: true, force: true }))
  return folder
}

function closing<Store extends ResourceStore>(store: Store): Store {
  closeAfterTest(() => store.close?.())
  return store
}

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())
let prefixes = 0

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async sqliteStore() {
    const directory = await createFolder()
    const file = join(await createFolder(), 'store.db')
    const openFile = () => {
      const handle = new Libsql(file)
      closeAfterTest(() => handle.close())
      return handle
    }
    return {
      directory,
      contents: fileContents({ directory }),
      open: (options) => closing(sqliteStore(openFile(), { contents: fileContents({ directory }), ...options })),
      query: async (sql) => openFile().prepare(sql).all() as Record<string, unknown>[],
    }
  },
  async postgresStore() {
    const directory = await createFolder()
    const tablePrefix = `beside_${++prefixes}_`
    const pool = server.createPool({ max: 8 })
    closeAfterTest(() => pool.end())
    return {
      directory,
      contents: fileContents({ directory }),
      open: (options) =>
        closing(postgresStore({ pool, tablePrefix, contents: fileContents({ directory }), ...options })),
      query: async (sql) => (await pool.query(sql.replaceAll('resource_', tablePrefix))).rows,
    }
  },
}

const binary = (body: Content['body']) => ({ contentType: 'application/octet-stream', body })
const LARGE = createBytes(300_000, 1)
const OTHER = createBytes(200_000, 2)

/** Content that comes in pieces. */
const upload = (bytes: Uint8Array) => binary(stream(bytes, 40_000))

function sound(directory: string, changes: (contents: ContentStore) => Partial<ContentStore>): ContentStore {
  const contents = fileContents({ directory })
  return { ...contents, ...changes(contents) }
}

describe('a backup of sqliteStore with fileContents', () => {
  it('is restored whole when the database is copied first and the contents within grace (docs/stores.md)', async () => {
    const [directory, copies, folder] = [await createFolder(), await createFolder(), await createFolder()]
    const handle = new Libsql(join(folder, 'store.db'))
    closeAfterTest(() => handle.close())
    const store = closing(sqliteStore(handle, { contents: fileContents({ directory }), sweepInterval: 20 }))
    for (const path of ['/kept', '/replaced', '/removed']) await store.write(path, upload(LARGE), { expect: 'any' })

    handle.exec(`VACUUM INTO '${join(folder, 'copy.db')}'`)
    // What happens between the two steps.
    await store.write('/replaced', upload(OTHER), { expect: 'any' })
    await store.write('/later', upload(OTHER), { expect: 'any' })
    await store.remove('/removed', { expect: 'any', mode: 'erase' })
    await new Promise((resolve) => setTimeout(resolve, 200))
    await cp(directory, copies, { recursive: true, preserveTimestamps: true })

    const copy = new Libsql(join(folder, 'copy.db'))
    closeAfterTest(() => copy.close())
    const options = { contents: fileContents({ directory: copies }), grace: 300, sweepInterval: 20 }
    const restored = closing(sqliteStore(copy, options))
    // The content of /later and the second one of /replaced came after the copy of the database.
    await vi.waitFor(async () => expect(await listKeys(fileContents({ directory: copies }))).toHaveLength(3), 30_000)
    for (const path of ['/kept', '/replaced', '/removed']) {
      expect(await readBytes((await restored.read(path)) as StoredResource)).toEqual(LARGE)
    }
    expect(await restored.read('/later')).toBeUndefined()
  })
})

it('sqliteStore has no chunks left once content has moved, nor after the next move those that an end of the process left', async () => {
  const place = await PLACES['sqliteStore']!()
  await place.open({ contents: undefined as never, sweepInterval: 0 }).write('/a', upload(LARGE), { expect: 'any' })
  const store = place.open({ sweepInterval: 0 })
  const count = async () => (await place.query('SELECT 1 FROM resource_chunks')).length
  expect(await count()).toBeGreaterThan(0)
  expect(await store.moveContents()).toBe(1)
  expect(await count()).toBe(0)
  await place.query("INSERT INTO resource_chunks SELECT id, 0, x'00' FROM resource_contents RETURNING 1")
  expect(await count()).toBe(1)
  expect(await store.moveContents()).toBe(0)
  expect(await count()).toBe(0)
})

it('sqliteStore moves nothing to content that the sweep of another process is removing', async () => {
  const place = await PLACES['sqliteStore']!()
  const before = place.open({ contents: undefined as never, sweepInterval: 0 })
  await before.write('/a', upload(LARGE), { expect: 'any' })
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => (begin = resolve))
  let letGo = (): void => {}
  const held = new Promise<void>((resolve) => (letGo = resolve))
  const slow = sound(place.directory, ({ remove }) => ({
    async remove(key) {
      begin()
      await held
      await remove(key)
    },
  }))
  const contents = sound(place.directory, ({ put }) => ({
    async put(...values) {
      const stored = await put(...values)
      // This process has stood still for longer than `grace`.
      await place.query('UPDATE resource_contents SET expires = 1 WHERE expires > 1 RETURNING id')
      place.open({ contents: slow, sweepInterval: 10 })
      await begun
      return stored
    },
  }))
  const store = place.open({ contents, sweepInterval: 0 })
  const result = await store.moveContents().catch((error: unknown) => error)
  letGo()
  expect(result).toMatchObject({ status: 503 })
  expect(await readBytes((await store.read('/a')) as StoredResource)).toEqual(LARGE)
})

/** Queries read the tables alone: with Postgres their cases run without contents beside them, which saves half of the time. */
const withoutQueries = (title: string, define: () => void) => title.startsWith('queries') || describe(title, define)

for (const [name, createPlace] of Object.entries(PLACES)) {
  describeStore(
    `${name} with fileContents`,
    async () => {
      const place = await createPlace()
      // Larger content than that of most cases lies beside the tables.
      const open = () => place.open({ inlineLimit: 10 })
      return { store: open(), reopen: open }
    },
    { describe: name === 'postgresStore' ? withoutQueries : describe, it },
  )

  describe(`${name} with contents, its own ways`, () => {
    it('keeps content above inlineLimit beside the tables, and other content in its row (issue 22)', async () => {
      const place = await createPlace()
      const store = place.open({ sweepInterval: 0 })
      await store.write('/a', upload(LARGE), { expect: 'absent' })
      await store.write('/b', upload(LARGE.subarray(0, 65_536)), { expect: 'absent' })
      expect(await listKeys(place.contents)).toHaveLength(1)
      expect(await place.query('SELECT 1 FROM resource_chunks')).toEqual([])
      expect(await readBytes((await store.read('/a')) as StoredResource)).toEqual(LARGE)
    })

    it('puts content under a key that is never used again, also for the same bytes (issue 22)', async () => {
      const place = await createPlace()
      const store = place.open({ sweepInterval: 0 })
      for (let count = 0; count < 3; count++) await store.write('/a', upload(LARGE), { expect: 'any' })
      expect(new Set(await listKeys(place.contents)).size).toBe(3)
    })

    it('removes the content of a lost swap, of a creation in conflict, of an aborted upload and of staged content that was given up', async () => {
      const place = await createPlace()
      const store = place.open({ sweepInterval: 0 })
      await store.write('/a', upload(LARGE), { expect: 'absent' })
      const lost = await store.write('/a', upload(OTHER), { expect: 'absent' })
      expect(lost.outcome).toBe('conflict')
      const related = () => [{ path: '/a', content: upload(OTHER), expect: 'absent' as const }]
      expect((await store.create('/c', upload(OTHER), { related })).outcome).toBe('conflict')
      const staged = await store.stage!(stream(OTHER, 40_000))
      await staged.discard()
      const controller = new AbortController()
      async function* leaving(): AsyncGenerator<Uint8Array> {
        yield OTHER
        controller.abort(new Error('The client has left.'))
        yield OTHER
      }
      const write = store.write('/b', binary(leaving()), { expect: 'any', signal: controller.signal })
      await expect(write).rejects.toThrow('The client has left.')
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toHaveLength(1), 30_000)
      await vi.waitFor(async () => expect(await place.query('SELECT 1 FROM resource_contents')).toHaveLength(1), 30_000)
    })

    it('removes content that is whole only after other content of the same write has failed', async () => {
      const place = await createPlace()
      const store = place.open({ sweepInterval: 0 })
      let goOn: (() => void) | undefined
      async function* slow(): AsyncGenerator<Uint8Array> {
        yield LARGE
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
        yield OTHER
      }
      async function* broken(): AsyncGenerator<Uint8Array> {
        await vi.waitFor(() => expect(goOn).toBeDefined(), 30_000)
        throw new Error('The source broke.')
      }
      const related = [{ path: '/b', content: binary(broken()) }]
      const write = store.write('/a', binary(slow()), { expect: 'any', related })
      await expect(write).rejects.toThrow('The source broke.')
      expect(await place.query('SELECT 1 FROM resource_contents')).toHaveLength(1)
      goOn!()
      await vi.waitFor(async () => expect(await place.query('SELECT 1 FROM resource_contents')).toEqual([]), 30_000)
      expect(await listKeys(place.contents)).toEqual([])
    })

    it('keeps replaced and removed content for the grace period, and sweeps it then (issue 22)', async () => {
      const place = await createPlace()
      const store = place.open({ grace: 600, sweepInterval: 20 })
      await store.write('/a', upload(LARGE), { expect: 'any' })
      const before = (await store.read('/a')) as StoredResource
      await store.write('/a', upload(OTHER), { expect: 'any' })
      expect(await readBytes(before)).toEqual(LARGE)
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toHaveLength(1), 30_000)
      await expect(readBytes(before)).rejects.toMatchObject({ status: 503 })
      expect(await readBytes((await store.read('/a')) as StoredResource)).toEqual(OTHER)
      await store.remove('/a', { expect: 'any', mode: 'erase' })
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toEqual([]), 30_000)
      await vi.waitFor(async () => expect(await place.query('SELECT 1 FROM resource_contents')).toEqual([]), 30_000)
    })

    it('removes content without a row of its own database, and leaves that of other databases alone', async () => {
      const place = await createPlace()
      const contents = fileContents({ directory: place.directory })
      await place.open({ sweepInterval: 0 }).write('/a', upload(LARGE), { expect: 'any' })
      const [{ id }] = (await place.query('SELECT id FROM resource_identity')) as [{ id: string }]
      const foreign = `${'0'.repeat(16)}${'1'.repeat(32)}`
      const orphan = `${id}${'1'.repeat(32)}`
      for (const key of [foreign, orphan]) await contents.put(key, stream(OTHER, 40_000))
      // The first call starts the sweep.
      await place.open({ grace: 100, sweepInterval: 20 }).read('/a')
      await vi.waitFor(async () => expect(await listKeys(place.contents)).not.toContain(orphan), 30_000)
      // Several further passes.
      await new Promise((resolve) => setTimeout(resolve, 400))
      const left = await listKeys(place.contents)
      expect(left).toHaveLength(2)
      expect(left).toContain(foreign)
    })

    it('closes the list of the content store that it looks through when it is closed', async () => {
      const place = await createPlace()
      let listed = 0
      let isClosed = false
      const contents = sound(place.directory, () => ({
        async *list() {
          try {
            for (;;) yield { key: (++listed).toString(16).padStart(48, '0'), age: 0, remove: async () => {} }
          } finally {
            isClosed = true
          }
        },
      }))
      const store = place.open({ contents, sweepInterval: 20 })
      await store.read('/a')
      await vi.waitFor(() => expect(listed).toBeGreaterThan(0), 30_000)
      await store.close?.()
      expect(isClosed).toBe(true)
    })

    it('keeps the content of an upload that takes longer than the grace period, and of earlier parts of its request', async () => {
      const place = await createPlace()
      async function* slow(): AsyncGenerator<Uint8Array> {
        yield LARGE
        await new Promise((resolve) => setTimeout(resolve, 2000))
        yield OTHER
      }
      const stores = [{}, { contents: undefined as never }].map((options) =>
        place.open({ grace: 600, sweepInterval: 10, ...options }),
      )
      const writeForm = async (store: ResourceStore, path: string): Promise<void> => {
        const { signal } = new AbortController()
        const photo = await store.stage!(stream(LARGE, 40_000), { signal })
        const video = await store.stage!(slow(), { signal })
        const related = [{ path: `${path}/photo`, content: binary(photo) }]
        await store.write(path, binary(video), { expect: 'any', related })
      }
      await Promise.all([
        stores[0]!.write('/a', binary(slow()), { expect: 'any' }),
        ...stores.map((store, i) => writeForm(store, `/forms/${i}`)),
      ])
      const whole = Buffer.concat([LARGE, OTHER])
      for (const path of ['/a', '/forms/0', '/forms/1', '/forms/0/photo', '/forms/1/photo']) {
        const found = await readBytes((await stores[0]!.read(path)) as StoredResource)
        expect(found.equals(path.endsWith('photo') ? LARGE : whole), path).toBe(true)
      }
    })

    it('writes nothing when the content store has kept another number of bytes (issue 22)', async () => {
      const place = await createPlace()
      const contents = sound(place.directory, ({ put }) => ({
        put: async (...values) => ({ size: (await put(...values)).size - 1 }),
      }))
      const store = place.open({ contents, sweepInterval: 0 })
      await expect(store.write('/a', upload(LARGE), { expect: 'any' })).rejects.toThrow(
        'The content store reports 299999 bytes of content that has 300000.',
      )
      expect(await store.read('/a')).toBeUndefined()
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toEqual([]), 30_000)
    })

    it('breaks a reader off when the content store gives fewer or more bytes than asked for', async () => {
      const place = await createPlace()
      await place.open({ sweepInterval: 0 }).write('/a', upload(LARGE), { expect: 'any' })
      for (const change of [-1, 1]) {
        const contents = sound(place.directory, ({ open, read }) => ({
          open: (key, first, last) => open(key, first, last + change),
          read: (key, first, last, options) => read!(key, first, last + change, options),
        }))
        const store = place.open({ contents, sweepInterval: 0 })
        const { body } = (await store.read('/a')) as StoredResource
        const readings = [
          async () => readWhole((body as LargeBody).open(0, 99_999)),
          async () => (body as LargeBody).read!(0, 9999),
        ]
        for (const read of readings) await expect(read()).rejects.toMatchObject({ status: 503 })
      }
    })

    it('opens nothing for a reader who has left before it reads', async () => {
      const place = await createPlace()
      const streams: ReadStream[] = []
      const contents = sound(place.directory, () => ({
        open(key, start, end) {
          streams.push(createReadStream(join(place.directory, key.slice(-2), key), { start, end }))
          return streams.at(-1)!
        },
      }))
      const store = place.open({ contents, sweepInterval: 0 })
      await store.write('/a', upload(LARGE), { expect: 'any' })
      const { body } = (await store.read('/a')) as StoredResource
      const reason = new Error('The client has left.')
      const left = (body as LargeBody).open(0, 99_999, { signal: AbortSignal.abort(reason) })
      await expect(readWhole(left)).rejects.toBe(reason)
      await (body as LargeBody).open(0, 99_999)[Symbol.asyncIterator]().return!()
      expect(streams).toEqual([])
      expect(await readWhole((body as LargeBody).open(0, 99_999))).toHaveLength(100_000)
      expect(streams.map(({ destroyed }) => destroyed)).toEqual([true])
    })

    it('passes on that the content store is away, and tries a removal again later', async () => {
      const place = await createPlace()
      let isAway = false
      const check = (): void => {
        if (isAway) throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '5' } })
      }
      const contents = sound(place.directory, ({ put, remove }) => ({
        put(...values) {
          check()
          return put(...values)
        },
        remove(key) {
          check()
          return remove(key)
        },
      }))
      const store = place.open({ contents, grace: 50, sweepInterval: 20 })
      await store.write('/a', upload(LARGE), { expect: 'any' })
      isAway = true
      await expect(store.write('/b', upload(LARGE), { expect: 'any' })).rejects.toMatchObject({
        status: 503,
        headers: { 'Retry-After': '5' },
      })
      await store.remove('/a', { expect: 'any', mode: 'erase' })
      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(await listKeys(place.contents)).toHaveLength(1)
      isAway = false
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toEqual([]), 30_000)
      await vi.waitFor(async () => expect(await place.query('SELECT 1 FROM resource_contents')).toEqual([]), 30_000)
    })

    it('reads chunks that are in its tables beside content in the content store (issue 22)', async () => {
      const place = await createPlace()
      await place.open({ contents: undefined as never, sweepInterval: 0 }).write('/a', upload(LARGE), { expect: 'any' })
      const store = place.open({ sweepInterval: 0 })
      await store.write('/b', upload(OTHER), { expect: 'any' })
      expect(await readBytes((await store.read('/a')) as StoredResource)).toEqual(LARGE)
      expect(await readBytes((await store.read('/b')) as StoredResource)).toEqual(OTHER)
    })

    it('moves chunks to the content store, with their versions and dates (issue 22)', async () => {
      const place = await createPlace()
      const before = place.open({ contents: undefined as never, sweepInterval: 0 })
      for (let name = 1; name <= 5; name++) {
        await before.write(`/a/${name}`, upload(createBytes(300_000, name)), { expect: 'any' })
      }
      await before.write('/a/small', binary(LARGE.subarray(0, 100)), { expect: 'any' })
      await before.remove('/a/5', { expect: 'any', mode: 'hide' })
      const store = place.open({ grace: 1000, sweepInterval: 20 })
      const facts = async () =>
        (await store.list('/a', { limit: 10, hidden: true })).items.map(({ body: _, ...rest }) => rest)
      const states = await facts()
      const readBefore = (await store.read('/a/1')) as StoredResource
      await expect(store.moveContents({ singal: 1 } as never)).rejects.toThrow('Did you mean "signal"?')
      await expect(store.moveContents({ signal: 1 } as never)).rejects.toThrow('takes as signal: an AbortSignal')
      expect(await store.moveContents({ signal: new AbortController().signal })).toBe(5)
      expect(await store.moveContents()).toBe(0)
      expect(await facts()).toEqual(states)
      await vi.waitFor(async () => expect(await place.query('SELECT 1 FROM resource_chunks')).toEqual([]), 30_000)
      expect(await listKeys(place.contents)).toHaveLength(5)
      for (let name = 1; name <= 5; name++) {
        const state = (await store.read(`/a/${name}`, { hidden: true })) as StoredResource
        expect((await readBytes(state)).equals(createBytes(300_000, name))).toBe(true)
      }
      // SQLite keeps states in memory: they go on with what has moved.
      if (name === 'sqliteStore') expect((await readBytes(readBefore)).equals(createBytes(300_000, 1))).toBe(true)
      await store.write('/a/1', upload(OTHER), { expect: 'present' })
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toHaveLength(5), 30_000)
    })

    it('moves chunks that lie before, amid and behind many states of other content', async () => {
      const place = await createPlace()
      const before = place.open({ contents: undefined as never, sweepInterval: 0 })
      const [large, small] = [createBytes(100_000, 1), binary(Buffer.from('small'))]
      for (const path of ['/a', '/c', '/e']) await before.write(path, upload(large), { expect: 'any' })
      const names = Array.from({ length: 2200 }, (_, i) => (i < 1100 ? `/b/${i}` : `/d/${i}`))
      while (names.length > 0) {
        await Promise.all(names.splice(0, 200).map((path) => before.write(path, small, { expect: 'any' })))
      }
      const store = place.open({ sweepInterval: 0 })
      expect(await store.moveContents()).toBe(3)
      expect(await listKeys(place.contents)).toHaveLength(3)
      expect(await readBytes((await store.read('/e')) as StoredResource)).toEqual(large)
    })

    it('leaves content alone that is replaced while it moves, and nothing of what was put', async () => {
      const place = await createPlace()
      const before = place.open({ contents: undefined as never, sweepInterval: 0 })
      await before.write('/a', upload(LARGE), { expect: 'any' })
      const contents = sound(place.directory, ({ put }) => ({
        async put(...values) {
          const stored = await put(...values)
          await before.write('/a', binary(Buffer.from('small')), { expect: 'any' })
          return stored
        },
      }))
      const store = place.open({ contents, grace: 100, sweepInterval: 0 })
      expect(await store.moveContents()).toBe(0)
      // That of the chunks, and that of what was put.
      const [row] = await place.query('SELECT count(*) AS n FROM resource_contents WHERE expires IS NOT NULL')
      expect(Number(row!['n'])).toBe(2)
      const other = place.open({ grace: 100, sweepInterval: 20 })
      expect(await readBytes((await other.read('/a')) as StoredResource)).toEqual(Buffer.from('small'))
      await vi.waitFor(async () => expect(await listKeys(place.contents)).toEqual([]), 30_000)
    })

    it('passes over content that is replaced and swept while it moves', async () => {
      const place = await createPlace()
      const filling = place.open({ contents: undefined as never, sweepInterval: 0 })
      for (const path of ['/a', '/b']) await filling.write(path, upload(LARGE), { expect: 'any' })
      const before = place.open({ contents: undefined as never, grace: 0, sweepInterval: 20 })
      const contents = sound(place.directory, ({ put }) => ({
        async put(...values) {
          const small = binary(Buffer.from('small'))
          const { outcome } = await before.write('/replaced', small, { expect: 'absent' })
          if (outcome === 'created') {
            await before.write('/a', small, { expect: 'any' })
            const count = async () => (await place.query('SELECT count(*) AS n FROM resource_contents'))[0]!['n']
            // The row of /b, and that of what is put.
            await vi.waitFor(async () => expect(Number(await count())).toBe(2), 30_000)
          }
          return put(...values)
        },
      }))
      expect(await place.open({ contents, sweepInterval: 0 }).moveContents()).toBe(1)
    })

    it('ends a move with the reason of the signal, goes on with the rest later, and needs the option', async () => {
      const place = await createPlace()
      const before = place.open({ contents: undefined as never, sweepInterval: 0 })
      for (const path of ['/a', '/b']) await before.write(path, upload(LARGE), { expect: 'any' })
      const controller = new AbortController()
      const contents = sound(place.directory, ({ put }) => ({
        async put(...values) {
          const stored = await put(...values)
          // Once the first one has moved.
          setImmediate(() => setImmediate(() => controller.abort(new Error('Enough.'))))
          return stored
        },
      }))
      const store = place.open({ contents, sweepInterval: 0 })
      await store.moveContents({ signal: controller.signal }).catch(() => {})
      await store.moveContents()
      for (const path of ['/a', '/b']) {
        expect(await readBytes((await store.read(path)) as StoredResource)).toEqual(LARGE)
      }
      // Also where nothing is left to move.
      await expect(store.moveContents({ signal: AbortSignal.abort(new Error('Not now.')) })).rejects.toThrow('Not now.')
      await expect(before.moveContents()).rejects.toThrow(`${name}: moveContents needs the option contents.`)
    })

    it('names the missing option when content lies in a content store', async () => {
      const place = await createPlace()
      await place.open({ sweepInterval: 0 }).write('/a', upload(LARGE), { expect: 'any' })
      const store = place.open({ contents: undefined as never, sweepInterval: 0 })
      const state = (await store.read('/a')) as StoredResource
      await expect(readBytes(state)).rejects.toThrow(`${name} has content in a content store: pass the option contents`)
    })

    it('refuses contents that are not a content store', async () => {
      const place = await createPlace()
      const contents = { directory: './contents' } as never
      expect(() => place.open({ contents })).toThrow(/takes as contents: a ContentStore, as in fileContents/)
    })
  })
}
