import { createServer } from 'node:http'
import { afterEach, expect, it, vi } from 'vitest'
import { formatRecord, makeRepeatable, readRecord } from '../../src/actions/first-answer.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { createRecordSweeper } from '../../src/work/poll.ts'
import { runServer } from '../support/hosts.ts'
import { openStore } from '../support/sql-stores.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { losing, senderTo, serve } from './serve.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const NOW = 1_800_000_000_000

afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

async function fill(store: ResourceStore, records: readonly (number | null)[]): Promise<void> {
  for (const [i, expires] of records.entries()) {
    const body = `${JSON.stringify({ expires, fingerprint: 'x', status: 201, headers: [], hasContent: false })}\n`
    const path = `idempotency/${String(i).padStart(5, '0')}`
    await store.write(path, { contentType: 'text/plain', body }, { expect: 'absent' })
  }
}

async function count(store: ResourceStore): Promise<number> {
  return (await store.list('idempotency', { limit: 10_000 })).items.length
}

it('removes the records of answers that have expired, and no other', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const store = memoryStore()
  await fill(store, [NOW - DAY, NOW, NOW + 1, null])
  const sweeper = createRecordSweeper(store, () => NOW, DAY)
  sweeper.start()
  await vi.advanceTimersByTimeAsync(0)
  await vi.waitFor(async () => expect(await count(store)).toBe(2), 30_000)
  expect(await store.read('idempotency/00002')).toBeDefined()
  sweeper.close()
})

it('passes over a record whose content is lost', async () => {
  const inner = memoryStore()
  await fill(inner, [NOW - 1, NOW - 1, NOW - 1])
  const store = losing(inner, 'idempotency/00001')
  const sweeper = createRecordSweeper(store, () => NOW, DAY)
  sweeper.start()
  await vi.waitFor(async () => expect(await count(inner)).toBe(1), 30_000)
  expect(await inner.read('idempotency/00001')).toBeDefined()
  sweeper.close()
})

it('goes on after a pause where one turn has ended, and begins anew once it has come to the end', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const store = memoryStore()
  const list = vi.spyOn(store, 'list')
  await fill(store, Array(700).fill(NOW + 1))
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const sweeper = createRecordSweeper(store, () => NOW, DAY)
  sweeper.start()
  async function turn(pause: number, pages: number): Promise<void> {
    list.mockClear()
    vi.advanceTimersByTime(pause)
    // Without vi.waitFor, which lets the time go on.
    for (let i = 0; i < 10_000 && list.mock.calls.length < pages; i++) await new Promise(setImmediate)
    // The turn ends after its last page.
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
    expect(list).toHaveBeenCalledTimes(pages)
  }
  await turn(0, 10)
  await turn(1001, 4)
  // At intervals of three quarters of an hour to five, so that processes do not look in step.
  await turn(0.74 * HOUR, 0)
  await turn(0.011 * HOUR, 10)
  expect(list.mock.calls[0]![1].after).toBeUndefined()
  sweeper.close()
})

it('does not remove a record that was made anew meanwhile', async () => {
  const inner = memoryStore()
  await fill(inner, [NOW - 1])
  const path = 'idempotency/00000'
  const removed = vi.fn()
  const store: ResourceStore = {
    ...inner,
    async remove(...values) {
      await inner.write(path, { contentType: 'text/plain', body: '{"expires":9' }, { expect: 'present' })
      const result = await inner.remove(...values)
      removed(result.outcome)
      return result
    },
  }
  const sweeper = createRecordSweeper(store, () => NOW, DAY)
  sweeper.start()
  await vi.waitFor(() => expect(removed).toHaveBeenCalledWith('conflict'), 30_000)
  sweeper.close()
})

it('removes large records as well, of which it reads the beginning alone', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const file = await createDatabaseFile()
  const { store, close } = openStore({ kind: 'sqlite', file: file.path })
  for (const [name, expires] of [
    ['old', NOW],
    ['new', NOW + 1],
  ] as const) {
    const body = `${JSON.stringify({ expires, fingerprint: 'x'.repeat(100_000) })}\n`
    await store.write(`idempotency/${name}`, { contentType: 'text/plain', body }, { expect: 'absent' })
  }
  const sweeper = createRecordSweeper(store, () => NOW, DAY)
  sweeper.start()
  await vi.advanceTimersByTimeAsync(0)
  await vi.waitFor(async () => expect(await count(store)).toBe(1), 30_000)
  expect(await store.read('idempotency/new')).toBeDefined()
  sweeper.close()
  await close()
  await file.remove()
})

it('records of one definition are swept where another keeps its own for good', async () => {
  const store = memoryStore()
  await fill(store, [NOW - DAY, null])
  const keyed = (idempotencyRetention: number) => collection({ idempotency: 'optional', idempotencyRetention })
  const resources = { '/a': keyed(Number.POSITIVE_INFINITY), '/b': keyed(HOUR) }
  const { send } = await serve(store, { resources, now: () => NOW })
  await send('GET', '/a')
  await vi.waitFor(async () => expect(await count(store)).toBe(1), 30_000)
})

it('tells the store for how long a record is kept, where that ends', async () => {
  const store = memoryStore()
  const seen: unknown[] = []
  const create: typeof store.create = (path, content, { related, ...options } = {}) =>
    store.create(path, content, {
      ...options,
      related(name, state) {
        const writes = related!(name, state)
        seen.push(writes.map(({ retention }) => retention))
        return writes
      },
    })
  const keyed = (idempotencyRetention: number) => collection({ idempotency: 'optional', idempotencyRetention })
  const resources = { '/a': keyed(Number.POSITIVE_INFINITY), '/b': keyed(HOUR) }
  const { send } = await serve({ ...store, create }, { resources, now: () => NOW })
  const fields = ['Content-Type: application/json', 'Idempotency-Key: "0123456789abcdef"']
  for (const path of ['/a', '/b']) expect((await send('POST', path, fields, '{}')).status).toBe(201)
  expect(seen).toEqual([[undefined], [HOUR]])
})

it('records are left alone once the service is closed', async () => {
  const store = memoryStore()
  const list = vi.spyOn(store, 'list')
  const service = createResourceService(store, { resources: { '/a': collection({ idempotency: 'optional' }) } })
  const host = await runServer(createServer(service))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  await senderTo(host.port)('POST', '/a', ['Content-Type: application/json'], '{}')
  vi.advanceTimersByTime(0)
  await service.close()
  list.mockClear()
  for (let hour = 0; hour < 3; hour++) {
    vi.advanceTimersByTime(HOUR)
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  expect(list).not.toHaveBeenCalled()
  vi.useRealTimers()
  await host.close()
})

it('looks for expired records four times within the time for which they are kept', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const store = memoryStore()
  const list = vi.spyOn(store, 'list')
  const sweeper = createRecordSweeper(store, () => NOW, HOUR)
  sweeper.start()
  await vi.advanceTimersByTimeAsync(HOUR - 1)
  sweeper.close()
  expect(list).toHaveBeenCalledTimes(4)
})

it('a first answer is kept whole, but for its dates, and without its content where that is large', async () => {
  const described = ['Content-Type', 'Content-Length', 'Content-Location', 'Content-Language', 'Content-Disposition']
  const headers = ['ETag', ...described, 'Date', 'Last-Modified'].flatMap((name) => [name, name])
  const answer = (size: number, status = 201) => makeRepeatable({ status, headers, body: 'x\n'.repeat(size / 2) })
  const whole = answer(65_536)
  expect(whole.headers).toEqual(headers.slice(0, -4))
  const record = await readRecord(
    { body: formatRecord(whole, Number.POSITIVE_INFINITY, 'f') } as StoredResource,
    undefined,
  )
  expect(record).toEqual({
    status: 201,
    headers: whole.headers,
    content: whole.body,
    fingerprint: 'f',
    expires: Infinity,
  })
  expect(answer(65_538)).toEqual({ status: 201, headers: ['ETag', 'ETag', 'Content-Length', '0'] })
  expect(answer(65_538, 200)).toEqual({ status: 204, headers: ['ETag', 'ETag'] })
})
