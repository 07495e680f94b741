import { existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Libsql from 'libsql'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createReserve, createSpace } from '../../src/stores/sqlite/space.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'

const MEBIBYTE = 1024 * 1024

/** A disk: how many bytes the reserve and what is free have together, and with what code it refuses bytes from a place on. */
const disk = vi.hoisted(() => ({
  room: 0,
  failure: undefined as { code: string; errno?: number; at: number } | undefined,
  file: '',
}))

vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>()
  return {
    ...fs,
    statfsSync: () => ({
      bsize: 1,
      bavail: disk.room - (fs.statSync(`${disk.file}-reserve`, { throwIfNoEntry: false })?.size ?? 0),
    }),
    writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, at: number) {
      if (disk.failure !== undefined && at >= disk.failure.at) {
        throw Object.assign(new Error('full'), disk.failure)
      }
      return fs.writeSync(descriptor, bytes, offset, length, at)
    },
  }
})

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sqlite-reserve-'))
  disk.file = join(folder, 'store.db')
  disk.failure = undefined
  writeFileSync(disk.file, '')
})
afterEach(() => rmSync(folder, { recursive: true }))

const readFile = () => statSync(`${disk.file}-reserve`)

it.each([
  { code: 'ENOSPC' },
  { code: 'EDQUOT' },
  // As Node says it, which has no name for EDQUOT.
  { code: 'UNKNOWN', errno: -122 },
])('a reserve gives back what it has taken where it cannot be whole, and is tried again: $code', (failure) => {
  disk.room = 100 * MEBIBYTE
  disk.failure = { ...failure, at: MEBIBYTE }
  const reserve = createReserve(disk.file, 4 * MEBIBYTE)
  reserve.take()
  expect([readFile().size, reserve.isWhole()]).toEqual([0, false])
  disk.failure = undefined
  reserve.take()
  expect([readFile().size, reserve.isWhole()]).toEqual([4 * MEBIBYTE, true])
  expect(readFile().mode & 0o777).toBe(0o600)
})

it.runIf(process.platform === 'linux')('a reserve leaves no file open, whether it could be whole or not', () => {
  disk.room = 100 * MEBIBYTE
  const reserve = createReserve(disk.file, 4 * MEBIBYTE)
  for (const failure of [{ code: 'ENOSPC', at: MEBIBYTE }, undefined]) {
    disk.failure = failure
    reserve.take()
    const open = readdirSync('/proc/self/fd').filter((name) => {
      const path = `/proc/self/fd/${name}`
      return existsSync(path) && readlinkSync(path).startsWith(folder)
    })
    expect(open).toEqual([])
  }
})

it('a reserve has a quarter of the room, grows with it, and does not give up what it has', () => {
  disk.room = 16 * MEBIBYTE
  const reserve = createReserve(disk.file, 64 * MEBIBYTE)
  const take = (room: number): number[] => {
    disk.room = room * MEBIBYTE
    reserve.take()
    return [reserve.size / MEBIBYTE, readFile().size / MEBIBYTE]
  }
  expect(take(16)).toEqual([4, 4])
  expect(take(32)).toEqual([8, 8])
  expect(take(16)).toEqual([8, 8])
  expect(reserve.release()).toBe(true)
  expect(take(16)).toEqual([4, 4])
  // The log needs room as well.
  reserve.release()
  expect(take(2)).toEqual([2, 1])
})

it('while a reserve is not whole, a write takes what lies in the database already, and nothing more', async () => {
  disk.room = 100 * MEBIBYTE
  const handle = new Libsql(disk.file)
  const store = sqliteStore(handle, { reserve: 4 * MEBIBYTE, sweepInterval: 0, inlineLimit: 500_000 })
  const write = (path: string, body: Parameters<typeof store.write>[1]['body']) =>
    store.write(path, { contentType: 'application/octet-stream', body }, { expect: 'any' })
  const staged = await store.stage!(
    (async function* () {
      yield Buffer.alloc(MEBIBYTE)
    })(),
  )
  for (let i = 0; i < 3; i++) await write('/known', 'x')
  for (let i = 0; i < 5; i++) await write(`/removed/${i}`, Buffer.alloc(50_000))
  for (let i = 0; i < 5; i++) await store.remove(`/removed/${i}`, { expect: 'any', mode: 'erase' })

  disk.room = 0
  rmSync(`${disk.file}-reserve`)
  const { freelist_count: free } = handle.prepare('PRAGMA freelist_count').get() as { freelist_count: number }
  expect(free).toBeGreaterThan(20)
  expect(await write('/large', staged)).toMatchObject({ outcome: 'created' })
  await expect(write('/known', Buffer.alloc(500_000))).rejects.toMatchObject({ status: 507 })
  const staging = async () =>
    store.stage!(
      (async function* () {
        yield Buffer.alloc(MEBIBYTE)
      })(),
    )
  await expect(staging()).rejects.toMatchObject({ status: 507 })
  await store.close?.()
  handle.close()
})

it('without its reserve, the free pages have to suffice for the content of several rows, and for what each takes besides', () => {
  let free = 0
  const prepare = (sql: string) => ({
    get: () => (sql.endsWith('page_size') ? { page_size: 4096 } : { freelist_count: free }),
  })
  const reserve = { size: MEBIBYTE, isWhole: () => false, take: () => {}, release: () => false }
  const { admit } = createSpace({ prepare, exec: () => {} } as never, reserve, () => {})
  for (const [bytes, rows, pages] of [
    [0, 3, 48],
    [2 * 4080, 1, 18],
  ] as const) {
    free = pages - 1
    expect(() => admit(bytes, rows, () => 'all')).toThrow(expect.objectContaining({ status: 507 }))
    free = pages
    admit(bytes, rows, () => 'all')
  }
})
