import { copyFileSync, renameSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type ClosableHandle, createDatabaseFile, type DatabaseFile, sqliteLibraries } from '../support/sqlite.ts'
import { contentOf, indexByStatus, listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'

const text = (body: string) => ({ contentType: 'text/plain', body })
const broken = Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC', rawCode: 1034, errcode: 1034 })

describe.each(Object.entries(sqliteLibraries))('sqliteStore on a disk that fails (%s)', (_, open) => {
  let file: DatabaseFile
  let store: ResourceStore
  /** The commands that fail now. */
  let failing: Set<string>
  /** What ROLLBACK throws where there is no transaction. */
  let endsByItself: Error | undefined
  let synchronous: () => unknown
  let handle: ClosableHandle
  beforeEach(async () => {
    file = await createDatabaseFile(open)
    failing = new Set()
    endsByItself = undefined
    handle = file.open()
    store = sqliteStore(
      {
        exec(sql) {
          if (failing.has(sql)) throw broken
          if (sql !== 'ROLLBACK' || endsByItself === undefined) return handle.exec(sql)
          try {
            handle.exec(sql)
          } catch {}
          throw endsByItself
        },
        prepare: (sql) => handle.prepare(sql),
      },
      { sweepInterval: 0 },
    )
    synchronous = () => (handle.prepare('PRAGMA synchronous').get() as { synchronous: number }).synchronous
    await store.write('/a', text('before'), { expect: 'any' })
  })
  afterEach(async () => {
    failing.clear()
    await store.close?.()
    await file.remove()
  })

  const write = (body: string) => store.write('/a', text(body), { expect: 'any' })
  const read = async () => store.read('/a')

  it('shows nothing of a transaction that can be neither committed nor rolled back, and goes on by itself', async () => {
    failing = new Set(['COMMIT', 'ROLLBACK'])
    await expect(write('lost')).rejects.toBe(broken)
    const unavailable = { status: 503, code: 'ERR_UNAVAILABLE', headers: { 'Retry-After': '1' } }
    await expect(read()).rejects.toMatchObject(unavailable)
    await expect(write('lost')).rejects.toMatchObject(unavailable)
    failing.clear()
    expect(await read()).toMatchObject({ body: 'before' })
    expect(await write('after')).toMatchObject({ outcome: 'replaced' })
    expect(await read()).toMatchObject({ body: 'after' })
  })

  it('goes on where SQLite has ended the transaction by itself, and says so with an error of another realm', async () => {
    const ended: Error = runInNewContext('new Error("cannot rollback - no transaction is active")')
    failing = new Set(['COMMIT'])
    endsByItself = ended
    await expect(write('lost')).rejects.toBe(broken)
    failing.clear()
    expect(await read()).toMatchObject({ body: 'before' })
    expect(await write('after')).toMatchObject({ outcome: 'replaced' })
  })

  it('puts no item into the index of another collection, where that of its own was lost with a transaction', async () => {
    const put = (path: string) =>
      store.write(path, contentOf({ status: 'open', n: 1 }, indexByStatus()), { expect: 'any' })
    failing = new Set(['COMMIT'])
    await expect(put('/lost/1')).rejects.toBe(broken)
    failing.clear()
    for (const path of ['/other/1', '/lost/2']) await put(path)
    for (const [collection, name] of [
      ['/other', '1'],
      ['/lost', '2'],
    ] as const) {
      const page = await listWhenIndexed(store, collection, queryByStatus('open'))
      expect([page.total, namesOf(page)]).toEqual([1, [name]])
    }
  })

  it('commits what is written after it, though the first call is a write', async () => {
    failing = new Set(['COMMIT', 'ROLLBACK'])
    await expect(write('lost')).rejects.toBe(broken)
    failing.clear()
    expect(await write('after')).toMatchObject({ outcome: 'replaced' })
    expect(await read()).toMatchObject({ body: 'after' })
  })

  it('acknowledges no write before it waits for the disk again, after it could not return to that', async () => {
    failing.add('PRAGMA synchronous = FULL')
    // Large content comes in steps that need no wait for the disk.
    const content = { contentType: 'application/octet-stream', body: new Uint8Array(200_000) }
    await expect((async () => store.write('/large', content, { expect: 'any' }))()).rejects.toBe(broken)
    await expect(write('lost')).rejects.toBe(broken)
    expect(await read()).toMatchObject({ body: 'before' })
    failing.clear()
    expect(await write('after')).toMatchObject({ outcome: 'replaced' })
    expect(synchronous()).toBe(2)
  })

  it.each([
    ['its path', ''],
    ['the path of its log', '-wal'],
    ['the path of the index of its log', '-shm'],
  ])(
    'acknowledges no write while another file, or none, is at %s: it would be gone with the process',
    async (_, suffix) => {
      const path = file.path + suffix
      const aside = `${path}-aside`
      const refusal = { status: 503, cause: { message: expect.stringContaining(`${path} was removed or replaced`) } }
      renameSync(path, aside)
      await expect(write('lost')).rejects.toMatchObject(refusal)
      copyFileSync(aside, path)
      await expect(write('lost')).rejects.toMatchObject(refusal)
      expect(await read()).toMatchObject({ body: 'before' })
      renameSync(aside, path)
      expect(await write('after')).toMatchObject({ outcome: 'replaced' })
    },
  )

  it('is away once the program has closed its handle, as postgresStore is once its pool has ended', async () => {
    handle.close()
    const refusal = { status: 503, code: 'ERR_UNAVAILABLE', headers: { 'Retry-After': '1' } }
    await expect(write('lost')).rejects.toMatchObject(refusal)
    await expect((async () => store.create('/items', text('lost')))()).rejects.toMatchObject(refusal)
    await expect((async () => store.remove('/a', { expect: 'any', mode: 'erase' }))()).rejects.toMatchObject(refusal)
    // Statements of libsql can be read from for as long as they are there.
    const answer = await read().catch((error: unknown) => error)
    if (answer instanceof Error) expect(answer).toMatchObject(refusal)
    else expect(answer).toMatchObject({ body: 'before' })
  })
})
