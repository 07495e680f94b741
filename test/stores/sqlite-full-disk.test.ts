import { existsSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Libsql from 'libsql'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { isHttpError } from '../../src/core/errors.ts'
import { type SqliteStoreOptions, sqliteStore } from '../../src/stores/sqlite.ts'
import type { LargeBody, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { createSmallDisk, diskKinds, findSimulatedRoom, type SmallDisk } from '../support/small-disk.ts'
import { createDatabaseFile, sqliteLibraries } from '../support/sqlite.ts'

/** The code with which files cannot be opened now. */
const opening = vi.hoisted(() => ({ failure: undefined as string | undefined }))
/** The code with which files cannot be removed now. */
const removing = vi.hoisted(() => ({ failure: undefined as string | undefined }))

vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>()
  return {
    ...fs,
    openSync(...values: Parameters<typeof fs.openSync>) {
      if (opening.failure !== undefined) throw Object.assign(new Error('open'), { code: opening.failure })
      return fs.openSync(...values)
    },
    rmSync(...values: Parameters<typeof fs.rmSync>) {
      if (removing.failure !== undefined) throw Object.assign(new Error('unlink'), { code: removing.failure })
      fs.rmSync(...values)
    },
    statfsSync(path: string) {
      const room = findSimulatedRoom(path)
      return room === undefined ? fs.statfsSync(path) : { bsize: 1, bavail: room }
    },
  }
})

const MEGABYTE = 1024 * 1024
const text = (body: string) => ({ contentType: 'text/plain', body })
const binary = (body: AsyncIterable<Uint8Array>) => ({ contentType: 'application/octet-stream', body })

async function* feed(size: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < size; sent += 65_536) yield Buffer.alloc(Math.min(65_536, size - sent), sent >> 16)
}

/** The outcome of a call, or the status of its error. */
async function outcomeOf(call: () => unknown): Promise<string | number> {
  try {
    return ((await call()) as { outcome: string }).outcome
  } catch (error) {
    if (!isHttpError(error)) throw error
    return error.status
  }
}

async function until(condition: () => boolean, sentence: string): Promise<void> {
  for (const end = Date.now() + 30_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 5))) {
    if (Date.now() > end) throw new Error(sentence)
  }
}

describe.each(diskKinds)('sqliteStore on a full disk (%s)', (kind) => {
  const disks: SmallDisk[] = []
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
    for (const disk of disks.splice(0)) disk.remove()
  })

  function createDisk(bytes: number): SmallDisk {
    const disk = createSmallDisk(kind, bytes)
    disks.push(disk)
    return disk
  }

  function openStore(disk: SmallDisk, options: SqliteStoreOptions = {}) {
    const handle = new Libsql(join(disk.folder, 'store.db'))
    const store = sqliteStore(disk.limit(handle), options)
    let isOpen = true
    async function close(): Promise<void> {
      if (!isOpen) return
      isOpen = false
      await store.close?.()
      handle.close()
    }
    closers.push(close)
    return { store, close }
  }

  const spare = (disk: SmallDisk): string => join(disk.folder, 'store.db-reserve')
  const upload = (store: ResourceStore, path: string, size: number) =>
    outcomeOf(() => store.write(path, binary(feed(size)), { expect: 'any' }))
  const write = (store: ResourceStore, path: string, body = 'x'.repeat(500)) =>
    outcomeOf(() => store.write(path, text(body), { expect: 'any' }))
  const remove = (store: ResourceStore, path: string) =>
    outcomeOf(() => store.remove(path, { expect: 'any', mode: 'tombstone' }))

  /** Uploads until one is refused. @returns how many were taken */
  async function fill(store: ResourceStore, size = MEGABYTE): Promise<number> {
    for (let count = 0; ; count++) if ((await upload(store, `/full/${count}`, size)) === 507) return count
  }

  it.each([8, 32])('goes on after an upload that did not fit into %i MiB (issue 17.5)', async (megabytes) => {
    const disk = createDisk(megabytes * MEGABYTE)
    const { store } = openStore(disk)
    for (let round = 0; round < 2; round++) {
      expect(await upload(store, '/large', 2 * megabytes * MEGABYTE)).toBe(507)
      expect(await store.read('/large')).toBeUndefined()
      for (let i = 0; i < 20; i++) expect(await write(store, `/small/${round}-${i}`)).toBe('created')
      expect(await remove(store, `/small/${round}-0`)).toBe('removed')
    }
    // What the failed uploads took is there for content that fits.
    expect(await upload(store, '/fits', (megabytes / 4) * MEGABYTE)).toBe('created')
  })

  it('goes on after a restart (issue 17.5)', async () => {
    const disk = createDisk(16 * MEGABYTE)
    const first = openStore(disk)
    await fill(first.store)
    expect(await upload(first.store, '/large', 32 * MEGABYTE)).toBe(507)
    await first.close()
    const { store } = openStore(disk)
    expect(await remove(store, '/full/0')).toBe('removed')
    expect(await upload(store, '/full/0', MEGABYTE / 2)).toBe('created')
  })

  it('removes while the content of the store fills the disk, and takes as much again (issue 17.5)', async () => {
    const disk = createDisk(24 * MEGABYTE)
    const { store } = openStore(disk)
    const count = await fill(store)
    expect(count).toBeGreaterThan(10)
    // And with small content what is left.
    for (let i = 0; (await write(store, `/rest/${i}`, 'x'.repeat(20_000))) === 'created'; i++);
    for (let i = 0; i < count; i++) expect(await remove(store, `/full/${i}`)).toBe('removed')
    for (let i = 0; i < count - 3; i++) expect(await upload(store, `/again/${i}`, MEGABYTE)).toBe('created')
  })

  it('gives the room of removed and replaced content to the next upload, grace or not (issue 17.5)', async () => {
    const disk = createDisk(24 * MEGABYTE)
    const { store } = openStore(disk, { now: () => 1_000_000 })
    const count = await fill(store)
    for (let round = 0; round < 12; round++) {
      const path = `/full/${round % count}`
      expect(await remove(store, path)).toBe('removed')
      expect(await upload(store, path, MEGABYTE / 2)).toBe('created')
      expect(await upload(store, path, MEGABYTE / 4)).toBe('replaced')
    }
  })

  it('makes its reserve anew after another process has given it up', async () => {
    const disk = createDisk(32 * MEGABYTE)
    const { store } = openStore(disk)
    await write(store, '/a')
    expect(existsSync(spare(disk))).toBe(true)
    rmSync(spare(disk))
    await write(store, '/a')
    expect(existsSync(spare(disk))).toBe(true)
  })

  it('finds that another process has replaced a state before it finds that there is no room', async () => {
    const disk = createDisk(16 * MEGABYTE)
    const [{ store }, other] = [openStore(disk), openStore(disk)]
    await write(store, '/a')
    for (let i = 0; i < 3; i++) store.read('/a')
    const { version } = (await store.read('/a')) as StoredResource
    await write(store, '/b')
    await fill(store)
    expect(await remove(other.store, '/a')).toBe('removed')
    for (const size of [20_000, 500]) {
      for (let i = 0; (await write(store, `/rest/${size}-${i}`, 'x'.repeat(size))) === 'created'; i++);
    }
    expect(await write(store, '/b')).toBe(507)
    // What the operator reads.
    await expect((async () => store.write('/b', text('x'.repeat(500)), { expect: 'any' }))()).rejects.toMatchObject({
      cause: { message: expect.stringContaining('full') },
    })
    expect(await outcomeOf(() => store.write('/a', text('a'), { expect: { version } }))).toBe('conflict')
  })

  it('keeps content whole beside uploads that fail (issue 17.5)', async () => {
    const disk = createDisk(16 * MEGABYTE)
    const { store } = openStore(disk)
    expect(await upload(store, '/kept', 3 * MEGABYTE)).toBe('created')
    const outcomes = await Promise.all([1, 2, 3].map((i) => upload(store, `/large/${i}`, 20 * MEGABYTE)))
    expect(outcomes).toEqual([507, 507, 507])
    const { body } = (await store.read('/kept')) as StoredResource & { body: LargeBody }
    const chunks: Uint8Array[] = []
    for await (const chunk of body.open(0, 3 * MEGABYTE - 1)) chunks.push(Buffer.from(chunk))
    const expected: Uint8Array[] = []
    for await (const chunk of feed(3 * MEGABYTE)) expected.push(chunk)
    expect(Buffer.concat(chunks).equals(Buffer.concat(expected))).toBe(true)
  })

  it('removes, in several processes, when other programs fill the disk, and grows when they give it back (issue 17.5)', async () => {
    const disk = createDisk(32 * MEGABYTE)
    const one = openStore(disk).store
    const two = openStore(disk).store
    for (let i = 0; i < 4; i++) expect(await upload(one, `/full/${i}`, MEGABYTE)).toBe('created')
    const foreign = join(disk.folder, 'foreign')
    const isFilled = () => {
      writeFileSync(foreign, Buffer.alloc(disk.free()))
      return disk.free() < 8192
    }
    await until(isFilled, 'The disk is not full.')
    // The log is used up first.
    for (let i = 0; i < 300; i++) await write(i % 2 === 0 ? one : two, `/small/${i % 7}`, 'y'.repeat(30_000))
    for (const [i, store] of [one, two, one, two].entries()) expect(await remove(store, `/full/${i}`)).toBe('removed')
    for (const store of [one, two]) expect(await upload(store, '/full/0', MEGABYTE / 2)).not.toBe(507)
    rmSync(foreign)
    expect(await upload(two, '/large', 10 * MEGABYTE)).toBe('created')
    expect(await upload(one, '/large/2', MEGABYTE)).toBe('created')
    expect(statSync(spare(disk)).size).toBeGreaterThanOrEqual(2 * MEGABYTE)
  })

  it('takes the room of the log back once the reader has left that let it grow', async () => {
    const disk = createDisk(8 * MEGABYTE)
    const { store } = openStore(disk)
    await write(store, '/a')
    const reader = new Libsql(join(disk.folder, 'store.db'))
    closers.push(() => reader.close())
    // As a backup does.
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM resource_states').get()
    // Other bytes each time: pages that stay the same are not written.
    const replace = (round: number) => write(store, '/a', `${round},`.repeat(10_000))
    for (let round = 100; (await replace(round)) !== 507; round++) expect(round).toBeLessThan(400)
    reader.exec('COMMIT')
    for (let round = 400; (await replace(round)) === 507; round++) {
      expect(round).toBeLessThan(700)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(statSync(spare(disk)).size).toBeGreaterThanOrEqual(MEGABYTE)
  })

  it('takes the reserve again when there is room (issue 17.5)', async () => {
    const disk = createDisk(64 * MEGABYTE)
    const { store } = openStore(disk, { sweepInterval: 20 })
    const whole = statSync(spare(disk)).size
    expect(whole).toBe(8 * MEGABYTE)
    const foreign = join(disk.folder, 'foreign')
    writeFileSync(foreign, Buffer.alloc(disk.free()))
    expect(await upload(store, '/large', 16 * MEGABYTE)).toBe(507)
    expect(statSync(spare(disk), { throwIfNoEntry: false })?.size ?? 0).toBeLessThan(whole)
    rmSync(foreign)
    await until(
      () => existsSync(spare(disk)) && statSync(spare(disk)).size === whole,
      'The reserve is not there again.',
    )
  })
})

describe('sqliteStore, the reserve', () => {
  it('is allocated, not a hole, and stays after close (issue 17.5)', async () => {
    const file = await createDatabaseFile()
    const store = sqliteStore(file.open(), { reserve: 3 * MEGABYTE })
    const { size, blocks } = statSync(`${file.path}-reserve`)
    expect(size).toBe(3 * MEGABYTE)
    expect(blocks * 512).toBeGreaterThanOrEqual(size)
    await store.close?.()
    expect(existsSync(`${file.path}-reserve`)).toBe(true)
    await file.remove()
  })

  it('is left out with 0, and for a database in memory', async () => {
    const file = await createDatabaseFile()
    const store = sqliteStore(file.open(), { reserve: 0 })
    await store.write('/a', text('a'), { expect: 'any' })
    expect(existsSync(`${file.path}-reserve`)).toBe(false)
    await store.close?.()
    await file.remove()
    const handle = sqliteLibraries['libsql']!(':memory:')
    await sqliteStore(handle).close?.()
    expect(existsSync('-reserve')).toBe(false)
    expect(() => sqliteStore(handle, { reserve: -1 })).toThrow(/reserve: a number of bytes, 0 or more/)
    handle.close()
  })

  it.each(['EMFILE', 'ENFILE', 'ENOMEM'])('is made once files can be opened again: %s', async (code) => {
    const file = await createDatabaseFile()
    const reserve = `${file.path}-reserve`
    const store = sqliteStore(file.open(), { sweepInterval: 20 })
    const write = () => outcomeOf(() => store.write('/a', text('a'), { expect: 'any' }))
    opening.failure = code
    try {
      rmSync(reserve)
      // Without the reserve the store goes on.
      expect(await write()).toBe('created')
    } finally {
      opening.failure = undefined
    }
    await until(() => existsSync(reserve), 'The reserve is not there again.')
    expect(await write()).toBe('replaced')
    await store.close?.()
    await file.remove()
  })

  it.each([
    [3, 192],
    [16, 1000],
  ])('of %i MiB lets the log have %i pages, and no more than SQLite does by itself', async (megabytes, pages) => {
    const file = await createDatabaseFile()
    const handle = file.open()
    const store = sqliteStore(handle, { reserve: megabytes * MEGABYTE })
    expect(Object.values(handle.prepare('PRAGMA wal_autocheckpoint').get() as object)[0]).toBe(pages)
    await store.close?.()
    await file.remove()
  })

  it('is taken again soon after it was given up, whenever the next write comes', async () => {
    const file = await createDatabaseFile()
    const handle = file.open()
    let isFull = false
    const store = sqliteStore({
      exec(sql) {
        if (isFull && sql === 'COMMIT') {
          isFull = false
          throw Object.assign(new Error('full'), { code: 'SQLITE_FULL', rawCode: 13 })
        }
        return handle.exec(sql)
      },
      prepare: (sql) => handle.prepare(sql),
    })
    const isBack = () => until(() => existsSync(`${file.path}-reserve`), 'The reserve is not there again.')
    // The sweep of the start.
    rmSync(`${file.path}-reserve`)
    await isBack()
    isFull = true
    opening.failure = 'EMFILE'
    try {
      expect(await outcomeOf(() => store.write('/a', text('a'), { expect: 'any' }))).toBe('created')
    } finally {
      opening.failure = undefined
    }
    expect(existsSync(`${file.path}-reserve`)).toBe(false)
    await isBack()
    await store.close?.()
    await file.remove()
  })

  it('may stay where its folder is read-only by now: what does not fit is 507 all the same', async () => {
    const file = await createDatabaseFile()
    const handle = file.open()
    let isFull = false
    const store = sqliteStore({
      exec(sql) {
        if (isFull && sql === 'COMMIT') throw Object.assign(new Error('full'), { code: 'SQLITE_FULL', rawCode: 13 })
        return handle.exec(sql)
      },
      prepare: (sql) => handle.prepare(sql),
    })
    const write = () => outcomeOf(() => store.write('/a', text('a'), { expect: 'any' }))
    isFull = true
    removing.failure = 'EACCES'
    try {
      expect(await write()).toBe(507)
    } finally {
      removing.failure = undefined
    }
    isFull = false
    expect(await write()).toBe('created')
    await store.close?.()
    await file.remove()
  })

  it('is not tried again in a folder where the program may make no file', async () => {
    const file = await createDatabaseFile()
    const reserve = `${file.path}-reserve`
    const store = sqliteStore(file.open(), { sweepInterval: 20 })
    opening.failure = 'EACCES'
    try {
      rmSync(reserve)
      expect(await outcomeOf(() => store.write('/a', text('a'), { expect: 'any' }))).toBe('created')
    } finally {
      opening.failure = undefined
    }
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(existsSync(reserve)).toBe(false)
    await store.close?.()
    await file.remove()
  })

  it('is not needed to give an upload back that failed at once (issue 17.5)', async () => {
    const file = await createDatabaseFile()
    const handle = file.open()
    const store = sqliteStore(handle, { sweepInterval: 0 })
    handle.exec('PRAGMA max_page_count = 1000')
    for (let round = 0; round < 3; round++) {
      expect(await outcomeOf(() => store.write('/large', binary(feed(8 * MEGABYTE)), { expect: 'any' }))).toBe(507)
      expect(await outcomeOf(() => store.write('/fits', binary(feed(MEGABYTE)), { expect: 'any' }))).not.toBe(507)
      expect(await outcomeOf(() => store.remove('/fits', { expect: 'any', mode: 'erase' }))).toBe('removed')
    }
    const { n } = handle.prepare('SELECT count(*) AS n FROM resource_contents WHERE expires = 0').get() as { n: number }
    expect(n).toBe(0)
    await store.close?.()
    await file.remove()
  })
})
