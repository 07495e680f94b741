import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it, vi } from 'vitest'
import { createExpiringStates } from '../../src/stores/memory/expiring.ts'
import type { Entry } from '../../src/stores/memory/member-index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { isResource } from '../../src/stores/rules.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { RelatedWrite, ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createMember } from '../support/create-member.ts'
import { createDatabaseFile } from '../support/sqlite.ts'

const MINUTE = 60_000

const text = (body: string) => ({ contentType: 'text/plain', body })
const record = (path: string, retention: number, body = 'record'): RelatedWrite => ({
  path,
  content: text(body),
  expect: 'absent',
  retention,
})

let made = 0
async function addRecord(store: ResourceStore, ...related: readonly RelatedWrite[]): Promise<string> {
  return (await store.write(`/items/${++made}`, text('item'), { expect: 'absent', related })).outcome
}

describe('related resources with a retention in memoryStore', () => {
  it('are removed while others are written, and not before their time', async () => {
    let time = 1_000_000
    const store = memoryStore({ now: () => time })
    for (let i = 0; i < 100; i++) expect(await addRecord(store, record(`records/${i}`, MINUTE))).toBe('created')
    const count = async (): Promise<number> => {
      const states = await Promise.all(Array.from({ length: 100 }, (_, i) => store.read(`records/${i}`)))
      return states.filter(isResource).length
    }
    time += MINUTE - 1
    await addRecord(store)
    expect(await count()).toBe(100)
    time += 1
    for (let i = 0; i < 25; i++) await addRecord(store)
    expect(await count()).toBe(0)
  })

  it('do not pile up beside many other retentions, and are removed by additions of any of them', async () => {
    let time = 1_000_000
    const store = memoryStore({ now: () => time })
    for (let i = 0; i < 2000; i++) {
      time += 10
      await addRecord(store, record(`others/${i}`, 3_600_000 + (i % 200)))
      await addRecord(store, record(`records/${i}`, 1000))
    }
    const states = await Promise.all(Array.from({ length: 2000 }, (_, i) => store.read(`records/${i}`)))
    expect(states.filter(isResource).length).toBeLessThan(110)
  })

  it('are removed as soon where many other retentions have been used before', async () => {
    let time = 1_000_000
    const store = memoryStore({ now: () => time })
    for (let i = 0; i < 500; i++) await addRecord(store, record(`others/${i}`, 1000 + i))
    time += MINUTE
    for (let i = 0; i < 600; i++) await addRecord(store)
    await addRecord(store, record('records/1', MINUTE))
    time += MINUTE
    for (let i = 0; i < 4; i++) await addRecord(store)
    expect(await store.read('records/1')).toBeUndefined()
  })

  it('leave nothing in memory once they are removed, where others of their retention never end', async () => {
    const removed: string[] = []
    const { add, sweep } = createExpiringStates(({ path }) => void removed.push(path))
    const createEntry = (path: string) => ({ path, state: { path } }) as unknown as Entry
    const first = (() => {
      const entry = createEntry('first')
      add(entry, 1000, 0)
      return new WeakRef(entry)
    })()
    for (let time = 1; time < 5000; time++) add(createEntry(String(time)), 1000, time)
    sweep(5000)
    expect(removed.length).toBeGreaterThan(3000)
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    await vi.waitFor(() => {
      collect()
      // Not by expect, which keeps what it is given.
      expect(first.deref() === undefined).toBe(true)
    }, 10_000)
    add(createEntry('last'), 1000, 5000)
  })

  it('leave alone what was removed and written anew at their path', async () => {
    let time = 1_000_000
    const store = memoryStore({ now: () => time })
    await addRecord(store, record('records/1', MINUTE))
    await addRecord(store, record('records/2', MINUTE))
    await store.remove('records/1', { expect: 'any', mode: 'erase' })
    await store.write('records/1', text('kept'), { expect: 'any' })
    await store.write('records/2', text('kept'), { expect: 'any' })
    time += MINUTE
    for (let i = 0; i < 10; i++) await addRecord(store)
    expect((await store.list('records', { limit: 5 })).items.map(({ body }) => body)).toEqual(['kept', 'kept'])
  })

  it('have a date that is neither strong nor earlier after a removal at their path (RFC 9110 §8.8.2.2)', async () => {
    const start = 1_000_000_000
    for (const mode of ['tombstone', 'erase'] as const) {
      let time = start
      const store = memoryStore({ now: () => time })
      for (const path of ['records/1', 'records/2']) {
        await store.write(path, text('before'), { expect: 'any' })
        time += 10
        await store.remove(path, { expect: 'any', mode })
        expect(await addRecord(store, record(path, MINUTE))).toBe('created')
        expect(await store.read(path)).toMatchObject({ lastModified: time, dateIsStrong: false })
      }
      await addRecord(store, record('records/3', MINUTE))
      expect(await store.read('records/3')).toMatchObject({ dateIsStrong: true })
    }
  })
})

describe('related resources with a retention and an integer for a name in memoryStore', () => {
  it('are not overwritten by creations', async () => {
    const store = memoryStore()
    await addRecord(store, record('members/2', MINUTE), record('members/3', MINUTE))
    const created: string[] = []
    for (let i = 0; i < 2; i++) created.push((await createMember(store, 'members', text('new'))).path)
    expect(created).toEqual(['members/1', 'members/4'])
    expect(await store.read('members/2')).toMatchObject({ body: 'record' })
  })
})

describe('related resources with a retention in sqliteStore', () => {
  async function open() {
    let time = Date.now()
    const file = await createDatabaseFile()
    const handle = file.open()
    const store = sqliteStore(handle, { sweepInterval: 20, now: () => time })
    closeAfterTest(() => file.remove())
    closeAfterTest(() => store.close?.())
    const count = (): number =>
      (handle.prepare("SELECT count(*) AS n FROM resource_states WHERE path LIKE 'records%'").get() as { n: number }).n
    return { store, count, pass: (milliseconds: number) => void (time += milliseconds) }
  }

  it('keep their names from being assigned, where those are integers', async () => {
    for (const store of [(await open()).store, memoryStore()]) {
      await addRecord(store, record('/named/1', MINUTE))
      expect(await createMember(store, '/named', text('member'))).toMatchObject({ path: '/named/2' })
      expect(await store.read('/named/1')).toMatchObject({ body: 'record' })
    }
  })

  it('are swept once their time is over', async () => {
    const { store, count, pass } = await open()
    for (let i = 0; i < 50; i++) expect(await addRecord(store, record(`records/${i}`, MINUTE))).toBe('created')
    expect(count()).toBe(50)
    pass(2 * MINUTE)
    expect(isResource(await store.read('records/1'))).toBe(true)
    pass(10 * MINUTE)
    await expect.poll(count).toBe(0)
    expect(await addRecord(store, record('records/1', MINUTE))).toBe('created')
  })

  it('stay once they are written without one, and where their content lies in chunks', async () => {
    const { store, count, pass } = await open()
    await addRecord(store, record('records/1', MINUTE))
    await store.write('records/1', text('kept'), { expect: 'any' })
    await addRecord(store, record('records/2', MINUTE, 'x'.repeat(100_000)))
    await addRecord(store, record('records/3', MINUTE))
    pass(20 * MINUTE)
    await expect.poll(count).toBe(2)
    const { items } = await store.list('records', { limit: 5 })
    expect(items.map(({ path }) => path)).toEqual(['records/1', 'records/2'])
  })

  it('are not overwritten by creations where their names are integers', async () => {
    const { store } = await open()
    await addRecord(store, record('members/2', MINUTE))
    await addRecord(store, record('members/4', MINUTE), record('members/6', MINUTE))
    await store.write('members/4', text('kept'), { expect: 'any' })
    const created: string[] = []
    for (let i = 0; i < 3; i++) created.push((await createMember(store, 'members', text('new'))).path)
    expect(created).toEqual(['members/7', 'members/8', 'members/9'])
    expect(await store.read('members/2')).toMatchObject({ body: 'record' })
    expect(await store.read('members/4')).toMatchObject({ body: 'kept' })
  })

  it('add nothing where one of several is there', async () => {
    const { store, count } = await open()
    await addRecord(store, record('records/2', MINUTE))
    const result = await addRecord(store, record('records/1', MINUTE), record('records/2', MINUTE))
    expect([result, count()]).toEqual(['conflict', 1])
    const mixed = await addRecord(store, { path: 'records/3', content: text('other') }, record('records/2', MINUTE))
    expect([mixed, count()]).toEqual(['conflict', 1])
  })

  it('have all that describes their content, and take the place of what stays', async () => {
    const { store, count, pass } = await open()
    const filename = 'record.txt'
    const { content, ...own } = record('records/1', MINUTE)
    await addRecord(store, { ...own, content: { ...content, filename } })
    expect(await store.read('records/1')).toMatchObject({ filename })
    await store.write('records/2', text('stays'), { expect: 'any' })
    await addRecord(store, { ...record('records/2', MINUTE), expect: 'any' })
    pass(20 * MINUTE)
    await expect.poll(count).toBe(0)
  })
})
