import { copyFile } from 'node:fs/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { memoryStore } from '../../src/stores/memory.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { isResource } from '../../src/stores/rules.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildServiceProgram, type ServiceProgram } from '../support/processes.ts'
import type { StorePlace } from '../support/sql-stores.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { type SendOptions, send, startService } from '../writes/support.ts'

const HOUR = 3_600_000
const NOON = Date.UTC(2026, 0, 1, 12, 0, 0, 500)

/** One service with a clock that the test sets. */
interface Machine {
  time: number
  readonly store: ResourceStore
  send(method: string, path: string, options?: SendOptions): Promise<Answer>
}

/** @param createStore makes a store whose local clock is the given one */
async function startMachine(time: number, createStore: (now: () => number) => ResourceStore): Promise<Machine> {
  const clock = { time }
  const now = () => clock.time
  const store = createStore(now)
  const target = await startService({ now }, store)
  closeAfterTest(() => store.close?.())
  closeAfterTest(() => target.close())
  return Object.assign(clock, { store, send: target.send })
}

let postgres: PostgresServer
let program: ServiceProgram
beforeAll(async () => {
  const [started, built] = await Promise.all([startPostgres(), buildServiceProgram()])
  postgres = started
  program = built
})
afterAll(async () => {
  program.remove()
  await postgres.stop()
})

let prefixes = 0
/** Two machines on one database, the second with another clock. */
const pairs: Readonly<Record<string, (offset: number) => Promise<readonly [Machine, Machine]>>> = {
  async sqliteStore(offset) {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const create = (now: () => number) => sqliteStore(file.open(), { now, sweepInterval: 0 })
    return [await startMachine(NOON, create), await startMachine(NOON + offset, create)]
  },
  async postgresStore(offset) {
    const pool = postgres.createPool()
    const tablePrefix = `clocks_${++prefixes}_`
    const create = () => postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    // The database has the real time.
    return [await startMachine(Date.now(), create), await startMachine(Date.now() + offset, create)]
  },
}

const text = (body: string, fields: Readonly<Record<string, string>> = {}): SendOptions => ({
  fields: { 'Content-Type': 'text/plain', ...fields },
  body,
})

/** The dates that a client of either machine has seen for states that are not current any more. */
async function claimNothingPasses(machines: readonly Machine[], dates: readonly string[], body: string): Promise<void> {
  for (const machine of machines) {
    for (const date of dates) {
      const read = await machine.send('GET', '/a', { fields: { 'If-Modified-Since': date } })
      expect([read.status, read.text]).toEqual([200, body])
      const fields = { Range: 'bytes=0-0', 'If-Range': date }
      expect((await machine.send('GET', '/a', { fields })).status).toBe(200)
      const refused = await machine.send('PUT', '/a', text('lost', { 'If-Unmodified-Since': date }))
      expect(refused.status).toBe(412)
    }
  }
}

describe.each(Object.keys(pairs))('clocks hours apart on %s (RFC 9110 §8.8.2.2)', (name) => {
  for (const offset of [-2 * HOUR, 2 * HOUR, -300, 900]) {
    it(`lose no update and give no wrong 304, at ${offset} ms`, async () => {
      const machines = await pairs[name]!(offset)
      const dates: string[] = []
      for (const [writer, reader] of [machines, [...machines].reverse()] as Machine[][]) {
        await writer!.send('PUT', '/a', text('first'))
        for (const machine of machines) dates.push((await machine.send('GET', '/a')).field('last-modified')!)
        await reader!.send('PUT', '/a', text('second'))
        await claimNothingPasses(machines, dates, 'second')
      }
    })

    it(`never let Last-Modified go back, at ${offset} ms`, async () => {
      const machines = await pairs[name]!(offset)
      let last = 0
      for (let round = 0; round < 6; round++) {
        const { store } = machines[round % 2]!
        await store.write('/a', { contentType: 'text/plain', body: 'x' }, { expect: 'any' })
        const state = (await store.read('/a')) as StoredResource
        expect(state.lastModified).toBeGreaterThanOrEqual(last)
        last = state.lastModified!
        const mode = (['erase', 'tombstone', 'hide'] as const)[round % 3]!
        if (round > 2) await store.remove('/a', { expect: 'any', mode })
      }
    })
  }

  it('send no Last-Modified after Date (RFC 9110 §8.8.2.1)', async () => {
    const [first, behind] = await pairs[name]!(-2 * HOUR)
    await first.send('PUT', '/a', text('x'))
    for (let i = 0; i < 3; i++) {
      const { field } = await behind.send('GET', '/a')
      expect(Date.parse(field('last-modified')!)).toBeLessThanOrEqual(Date.parse(field('date')!))
    }
  })

  it('send no Last-Modified after Date once its second is over, where `now` is ahead of the machine', async () => {
    const ahead = await startMachine(Date.now() + HOUR, (now) => memoryStore({ now }))
    await ahead.send('PUT', '/a', text('x'))
    ahead.time += 5000
    for (const fields of [{}, { Range: 'bytes=0-0' }]) {
      const { field } = await ahead.send('GET', '/a', { fields })
      expect(Date.parse(field('last-modified')!)).toBeLessThanOrEqual(Date.parse(field('date')!))
    }
  })
})

describe('clocks of processes hours apart (RFC 9110 §8.8.2.2)', () => {
  const places: Readonly<Record<string, () => Promise<StorePlace>>> = {
    async sqliteStore() {
      const file = await createDatabaseFile()
      closeAfterTest(() => file.remove())
      return { kind: 'sqlite', file: file.path }
    },
    async postgresStore() {
      const { connectionString } = postgres
      return { kind: 'postgres', connectionString, tablePrefix: `clocks_${++prefixes}_` }
    },
  }

  it.each(Object.keys(places))('lose no update and give no wrong 304 on %s', async (name) => {
    const place = await places[name]!()
    const processes = [0, -3 * HOUR, 3 * HOUR].map((offset) => program.start(place, offset))
    closeAfterTest(() => Promise.all(processes.map((process) => process.kill())))
    await Promise.all(processes.map((process) => process.told(1)))
    const machines = processes.map(({ lines }) => {
      const port = Number(lines[0])
      return { send: (...request: [string, string, SendOptions?]) => send(port, ...request) } as Machine
    })
    const dates: string[] = []
    for (let round = 0; round < 6; round++) {
      const body = `state ${round}`
      expect((await machines[round % 3]!.send('PUT', '/a', text(body))).status).toBeLessThan(300)
      await claimNothingPasses(machines, dates, body)
      for (const machine of machines) dates.push((await machine.send('GET', '/a')).field('last-modified')!)
    }
  })
})

describe('a clock that is set back', () => {
  const content = (body: string) => ({ contentType: 'text/plain', body })
  const stores: Readonly<Record<string, () => Promise<(now: () => number) => ResourceStore>>> = {
    memoryStore: async () => (now) => memoryStore({ now }),
    async sqliteStore() {
      const file = await createDatabaseFile()
      closeAfterTest(() => file.remove())
      return (now) => sqliteStore(file.open(), { now, sweepInterval: 0 })
    },
  }

  it.each(Object.keys(stores))('lets no date of before pass for that of a later state, on %s', async (name) => {
    const machine = await startMachine(NOON, await stores[name]!())
    await machine.send('PUT', '/a', text('first'))
    const date = (await machine.send('GET', '/a')).field('last-modified')!
    machine.time -= HOUR
    const dates = [date, (await machine.send('GET', '/a')).field('last-modified')!]
    await machine.send('PUT', '/a', text('second'))
    await claimNothingPasses([machine], dates, 'second')
    const { field } = await machine.send('GET', '/a')
    expect(Date.parse(field('last-modified')!)).toBeLessThanOrEqual(Date.parse(field('date')!))
  })

  it.each(Object.keys(stores))(
    'gives no date a second time to a path that was erased meanwhile, on %s',
    async (name) => {
      const clock = { time: NOON }
      const store = (await stores[name]!())(() => clock.time)
      closeAfterTest(() => store.close?.())
      for (const path of ['/other', '/a']) {
        await store.write(path, content('x'), { expect: 'any' })
        await store.remove(path, { expect: 'any', mode: 'erase' })
        clock.time -= HOUR
      }
      const seen: StoredResource[] = []
      for (let i = 0; i < 3; i++) {
        await store.write('/b', content('x'), { expect: 'any' })
        const state = await store.read('/b')
        if (isResource(state)) seen.push(state)
        await store.remove('/b', { expect: 'any', mode: 'erase' })
        clock.time += 100
      }
      const strong = seen
        .filter((state) => state.dateIsStrong)
        .map(({ lastModified }) => Math.floor(lastModified! / 1000))
      expect(seen).toHaveLength(3)
      expect(new Set(strong).size).toBe(strong.length)
    },
  )
})

describe('the clock of a store whose machine was set back', () => {
  afterEach(() => void vi.useRealTimers())

  it('goes on at the pace of the machine', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const clock = { time: NOON }
    const store = memoryStore({ now: () => clock.time })
    const write = async () => {
      const result = await store.write('/a', { contentType: 'text/plain', body: 'a' }, { expect: 'any' })
      return 'resource' in result ? result.resource.lastModified! - NOON : undefined
    }
    const dates = [await write()]
    clock.time -= HOUR
    for (let second = 0; second <= 3; second++) {
      dates.push(await write())
      vi.advanceTimersByTime(1000)
    }
    expect(dates).toEqual([0, 0, 1000, 2000, 3000])
  })
})

describe('sqliteStore with clocks hours apart', () => {
  it('dates no state like one whose row another process has swept', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const clock = { time: NOON }
    const behind = sqliteStore(file.open(), { now: () => clock.time, sweepInterval: 0 })
    const content = { contentType: 'text/plain', body: 'x' }
    await behind.write('/a', content, { expect: 'any' })
    const first = (await behind.read('/a')) as StoredResource
    await behind.remove('/a', { expect: 'any', mode: 'erase' })
    const handle = file.open()
    const ahead = sqliteStore(handle, { now: () => clock.time + 2 * HOUR, sweepInterval: 10 })
    closeAfterTest(() => behind.close?.())
    closeAfterTest(() => ahead.close?.())
    const count = () => (handle.prepare('SELECT count(*) AS n FROM resource_states').get() as { n: number }).n
    for (const end = Date.now() + 10_000; count() > 0; await new Promise((resolve) => setTimeout(resolve, 10))) {
      expect(Date.now()).toBeLessThan(end)
    }
    await behind.write('/a', content, { expect: 'any' })
    const second = (await behind.read('/a')) as StoredResource
    expect(Math.floor(second.lastModified! / 1000)).toBeGreaterThan(Math.floor(first.lastModified! / 1000))
  })

  it('keeps what the one behind takes in from the sweep of the other one', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    const behind = sqliteStore(file.open(), { now: () => NOON, sweepInterval: 0, inlineLimit: 0 })
    const ahead = sqliteStore(file.open(), { now: () => NOON + 2 * HOUR, sweepInterval: 10 })
    closeAfterTest(() => behind.close?.())
    closeAfterTest(() => ahead.close?.())
    const content = { contentType: 'text/plain', body: 'x' }
    await ahead.write('/a', content, { expect: 'any' })
    const body = await behind.stage!(new Blob(['x']).stream())
    await new Promise((resolve) => setTimeout(resolve, 200))
    const result = await behind.write('/b', { ...content, body }, { expect: 'any' })
    expect(result).toMatchObject({ outcome: 'created' })
  })

  it('knows the times in a file of the first release', async () => {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    await copyFile(new URL('../stores/release-0.1/store.db', import.meta.url), file.path)
    const handle = file.open()
    const { latest } = handle.prepare('SELECT MAX(changed) AS latest FROM resource_states').get() as { latest: number }
    const behind = sqliteStore(handle, { sweepInterval: 0, now: () => latest - HOUR })
    closeAfterTest(() => behind.close?.())
    const result = await behind.write('/b', { contentType: 'text/plain', body: 'x' }, { expect: 'any' })
    expect(result).toMatchObject({ resource: { lastModified: Math.floor(latest / 1000) * 1000 } })
  })
})
