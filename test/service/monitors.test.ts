import { describe, expect, it, vi } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createMonitors } from '../../src/work/monitors.ts'
import { losing } from './serve.ts'

const NOW = 1_800_000_000_000
const RETENTION = 60_000

const open = (store: ResourceStore) =>
  createMonitors({ store, now: () => NOW, path: '/operations', retention: RETENTION, isAdmin: undefined })

async function fill(store: ResourceStore, monitors: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [id, facts] of Object.entries(monitors)) {
    const body = JSON.stringify({ id, kind: 'removal', ...(facts as object) })
    await store.write(`monitors/${id}`, { contentType: 'application/json', body }, { expect: 'absent' })
  }
}

async function listIds(store: ResourceStore): Promise<string[]> {
  return (await store.list('monitors', { limit: 1000 })).items.map(({ path }) => path.slice('monitors/'.length)).sort()
}

const at = (time: number) => new Date(time).toISOString()

describe('the sweep of monitors', () => {
  it('keeps a monitor for the retention after its work has ended, and for as long as it is pending', async () => {
    const store = memoryStore()
    await fill(store, {
      over: { state: 'done', ended: at(NOW - RETENTION) },
      failed: { state: 'failed', ended: at(NOW - RETENTION - 1) },
      kept: { state: 'done', ended: at(NOW - RETENTION + 1) },
      odd: { state: 'done', ended: 'never' },
      pending: { state: 'pending', accepted: at(0) },
    })
    await open(store).sweep()
    expect(await listIds(store)).toEqual(['kept', 'odd', 'pending'])
  })

  it('keeps a monitor of which nothing says when its work ended', async () => {
    const inner = memoryStore()
    await fill(inner, { a: { state: 'done' } })
    const list: ResourceStore['list'] = async (...values) => {
      const { items } = await inner.list(...values)
      return { items: items.map(({ lastModified: _, ...item }) => item) }
    }
    await open({ ...inner, list }).sweep()
    expect(await listIds(inner)).toEqual(['a'])
  })

  it('looks at more monitors than a page has, once each', async () => {
    const store = memoryStore()
    const names = Array.from({ length: 250 }, (_, i) => `m${String(i).padStart(3, '0')}`)
    const facts = (i: number) => (i < 240 ? { state: 'pending' } : { state: 'done', ended: at(0) })
    await fill(store, Object.fromEntries(names.map((name, i) => [name, facts(i)])))
    const list = vi.spyOn(store, 'list')
    await open(store).sweep()
    expect(list.mock.calls.map(([collection]) => collection)).toEqual([...Array(3).fill('monitors'), '/operations'])
    expect(await listIds(store)).toEqual(names.slice(0, 240))
  })

  it('passes over a monitor whose content is lost', async () => {
    const inner = memoryStore()
    await fill(inner, { a: { state: 'done', ended: at(0) }, b: { state: 'done', ended: at(0) } })
    await open(losing(inner, 'monitors/a')).sweep()
    expect(await listIds(inner)).toEqual(['a'])
  })

  it('leaves a monitor alone that was changed after it was looked at', async () => {
    const inner = memoryStore()
    await fill(inner, { a: { state: 'done', ended: at(0) } })
    const store: ResourceStore = {
      ...inner,
      async remove(...values) {
        await inner.write('monitors/a', { contentType: 'application/json', body: '{}' }, { expect: 'present' })
        return inner.remove(...values)
      },
    }
    await open(store).sweep()
    expect(await listIds(inner)).toEqual(['a'])
  })
})

it('monitors are left alone once the service is closed', async () => {
  const store = memoryStore()
  const list = vi.spyOn(store, 'list')
  const sweeps = () => list.mock.calls.filter(([collection]) => collection === 'monitors').length
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const service = createResourceService(store, { resources: { '/tasks': collection({ deletion: 'queued' }) } })
    const passHours = async () => {
      for (let hour = 0; hour < 3; hour++) {
        vi.advanceTimersByTime(2 * 3_600_000)
        for (let i = 0; i < 20; i++) await new Promise(setImmediate)
      }
    }
    await passHours()
    expect(sweeps()).toBeGreaterThan(1)
    await service.close()
    list.mockClear()
    await passHours()
    expect(list).not.toHaveBeenCalled()
  } finally {
    vi.useRealTimers()
  }
})

it.each<[string, object]>([
  ['of another id', { id: 'b', kind: 'removal' }],
  ['of another kind', { id: 'a', kind: 'note' }],
  ['without properties', []],
])('content %s is not shown as a monitor', async (_, value) => {
  const { authorize } = open(memoryStore())
  const judge = (found: object) => authorize(undefined, {} as never, { path: '/operations/a', value: found } as never)
  expect(await judge(value)).toBe('not-found')
  expect(await judge({ id: 'a', kind: 'removal' })).toBe(true)
})

it.each([1, 'yes', {}])('an isAdmin that gives %j and not true makes no admin', async (given) => {
  const isAdmin = () => given as boolean
  const { authorize } = createMonitors({
    store: memoryStore(),
    now: () => NOW,
    path: '/operations',
    retention: RETENTION,
    isAdmin,
  })
  const owner = { scheme: 'basic', id: 'ada' }
  const current = { path: '/operations/a', value: { id: 'a', kind: 'removal', principal: owner } } as never
  expect(await authorize({ ...owner, claims: undefined } as never, {} as never, current)).toBe(true)
  expect(await authorize({ scheme: 'basic', id: 'bob' } as never, {} as never, current)).toBe('not-found')
})
