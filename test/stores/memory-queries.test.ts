import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { range } from '../../src/conformance/samples.ts'
import { isPromise } from '../../src/core/maybe-promise.ts'
import type { CollectionIndex, ListQuery } from '../../src/stores/lists.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ListOptions, Page, ResourceStore } from '../../src/stores/types.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'

const createIndex = (version: string): CollectionIndex => ({
  version,
  properties: ['due', 'owner', 'status'],
  scope: ['owner'],
  valuesOf: ({ body }) => JSON.parse(String(body)),
})
const INDEX = createIndex('first')

/** Members of ten owners, with five statuses, due in an order that is not that of the names. */
function fill(store: ResourceStore, count: number, index?: CollectionIndex): void {
  for (let i = 0; i < count; i++) {
    const values = { due: (i * 7919) % count, owner: `owner ${i % 10}`, status: `status ${(i >> 2) % 5}` }
    const content = { contentType: 'application/json', body: JSON.stringify(values) }
    store.create('/tasks', index === undefined ? content : { ...content, indexed: { index, values } })
  }
}

function list(store: ResourceStore, query: Partial<ListQuery> = {}, options: Partial<ListOptions> = {}): Page {
  const whole = { index: INDEX, where: [], orderBy: [], count: false, ...query }
  return store.list('/tasks', { limit: 20, ...options, query: whole }) as Page
}

/** Lets ten members be indexed in one step also where the machine is busy: a step ends by the clock. */
function stopClock(): void {
  vi.spyOn(performance, 'now').mockReturnValue(0)
}

afterEach(() => {
  vi.restoreAllMocks()
})

const is = (property: string, value: string) => ({ property, operator: 'in' as const, values: [value] })
const OPEN_TASKS = {
  where: [is('owner', 'owner 3'), is('status', 'status 2')],
  orderBy: [{ property: 'due', direction: 'descending' as const }],
}

describe('memoryStore, queries', () => {
  it('answers without a promise', () => {
    const store = memoryStore()
    fill(store, 50, INDEX)
    expect(isPromise(list(store))).toBe(false)
    expect(list(store, { count: true }).total).toBe(50)
  })

  it.each(['owner', 'status'])('finds members by one of two properties of the scope alone: %s', (property) => {
    const store = memoryStore()
    const index = { ...INDEX, scope: ['owner', 'status'] }
    fill(store, 100, index)
    const where = [is(property, `${property} 3`)]
    const values = (page: Page) => page.items.map(({ body }) => JSON.parse(String(body))[property])
    expect(values(list(store, { index, where }, { limit: 100 }))).toEqual(
      Array(property === 'owner' ? 10 : 20).fill(`${property} 3`),
    )
  })

  it.each(['ascending', 'descending'] as const)('goes on in a large group behind a cursor: %s', async (direction) => {
    const store = memoryStore()
    const values = (i: number) => ({ due: (i + 300) % 600, owner: 'ada', status: i < 300 ? 'a' : 'b' })
    for (let i = 0; i < 600; i++) {
      const content = { contentType: 'application/json', body: '{}' }
      store.create('/tasks', { ...content, indexed: { index: INDEX, values: values(i) } })
    }
    const orderBy = [
      { property: 'status', direction },
      { property: 'due', direction: 'ascending' },
    ] as const
    const found: unknown[] = []
    let after: string | undefined
    for (let pages = 0; pages < 9; pages++) {
      const page = list(store, { orderBy }, { limit: 70, after })
      found.push(...page.items.map(({ indexed }) => indexed!.values['due']))
      after = page.next
    }
    expect(after).toBeUndefined()
    const groups = [range(300, 599), range(0, 299)]
    expect(found).toEqual((direction === 'ascending' ? groups : groups.reverse()).flat())
  })

  it('reads a page by scope, one equality and one order as fast from 100 000 members as from 2 000', MEASURED, () => {
    const durations = [2000, 100_000].map((count) => {
      const store = memoryStore()
      fill(store, count, INDEX)
      const { next } = list(store, OPEN_TASKS)
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 20; round++) {
        const elapsed = startProcessorClock()
        for (let i = 0; i < 50; i++) list(store, OPEN_TASKS, { after: i % 2 === 0 ? undefined : next })
        best = Math.min(best, elapsed() / 50)
      }
      return best
    })
    // Both read a few dozen members; a scan would take fifty times as long.
    expect(durations[1]! / durations[0]!).toBeLessThan(5)
  })

  it('indexes 20 000 members that exist already in small steps, and lets others have their turn', async () => {
    const store = memoryStore()
    fill(store, 20_000)
    const reports: number[] = []
    const index = { ...INDEX, report: ({ indexed }: { readonly indexed: number }) => void reports.push(indexed) }
    let refusals = 0
    for (let isRefused = true; isRefused; refusals += Number(isRefused)) {
      try {
        expect(list(store, { index, count: true }).total).toBe(20_000)
        isRefused = false
      } catch (error) {
        expect(error).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
        await nextTurn()
      }
    }
    // A step has at most 500 members.
    expect(refusals).toBeGreaterThanOrEqual(39)
    expect(Math.max(...reports.map((count, at) => count - (reports[at - 1] ?? 0)))).toBeLessThanOrEqual(500)
    expect(reports.at(-1)).toBe(20_000)
  })

  it('indexes an item from which no values can be taken without any', () => {
    stopClock()
    const store = memoryStore()
    store.write('/tasks/1', { contentType: 'text/plain', body: 'no JSON' }, { expect: 'any' })
    store.write('/tasks/2', { contentType: 'application/json', body: '{"owner":"ann"}' }, { expect: 'any' })
    const names = (page: Page) => page.items.map(({ path }) => path)
    expect(names(list(store))).toEqual(['/tasks/1', '/tasks/2'])
    expect(names(list(store, { where: [is('owner', 'ann')] }))).toEqual(['/tasks/2'])
    expect(names(list(store, { where: [{ property: 'owner', operator: 'exists', value: false }] }))).toEqual([
      '/tasks/1',
    ])
  })

  it('lists no item that was removed while its values were on their way', async () => {
    stopClock()
    const store = memoryStore()
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const index: CollectionIndex = {
      ...INDEX,
      valuesOf: (item) => (item.path === '/tasks/2' ? held.then(() => INDEX.valuesOf(item)) : INDEX.valuesOf(item)),
    }
    const names = () => list(store, { index }).items.map(({ path }) => path)
    const content = { contentType: 'application/json', body: '{"owner":"ann"}' }
    store.write('/tasks/1', content, { expect: 'any' })
    expect(names()).toEqual(['/tasks/1'])
    store.write('/tasks/2', content, { expect: 'any' })
    expect(names).toThrow(expect.objectContaining({ status: 503 }))
    store.remove('/tasks/2', { expect: 'any', mode: 'erase' })
    expect(names()).toEqual(['/tasks/1'])
    release()
    await nextTurn()
    expect(names()).toEqual(['/tasks/1'])
  })

  it('keeps the four indexes of a collection that were used last, and makes an older one again', () => {
    stopClock()
    const store = memoryStore()
    fill(store, 10)
    let taken = 0
    const indexes = Array.from({ length: 5 }, (_, i): CollectionIndex => {
      const index = createIndex(`version ${i}`)
      return {
        ...index,
        valuesOf(item) {
          taken++
          return index.valuesOf(item)
        },
      }
    })
    const takenBy = (index: CollectionIndex): number => {
      const before = taken
      expect(list(store, { index, count: true }).total).toBe(10)
      return taken - before
    }
    expect(indexes.map(takenBy)).toEqual([10, 10, 10, 10, 10])
    expect(indexes.toReversed().map(takenBy)).toEqual([0, 0, 0, 0, 10])
  })

  it('goes on with no index that has made room for newer ones', async () => {
    const store = memoryStore()
    fill(store, 1200)
    const done = new Set<string>()
    const versions = ['1', '2', '3', '4', '5']
    for (const version of versions) {
      const report = ({ isDone }: { isDone: boolean }) => void (isDone && done.add(version))
      expect(() => list(store, { index: { ...createIndex(version), report } })).toThrow()
    }
    await vi.waitFor(() => expect(done.size).toBeGreaterThanOrEqual(4), 30_000)
    expect([...done].sort()).toEqual(versions.slice(1))
  })

  it('is not held up by a report that fails', () => {
    stopClock()
    const store = memoryStore()
    fill(store, 10)
    const report = () => {
      throw new Error('The log is full.')
    }
    expect(list(store, { index: { ...INDEX, report }, count: true }).total).toBe(10)
  })

  it('refuses a cursor that is none, also where the collection has no members', () => {
    const orderBy = [{ property: 'status', direction: 'ascending' }] as const
    expect(() => list(memoryStore(), { orderBy }, { after: 'x' })).toThrow('after is a cursor')
  })

  it('refuses a query about a property that its index does not have', () => {
    stopClock()
    const store = memoryStore()
    fill(store, 1)
    expect(() => list(store, { where: [is('colour', 'red')] })).toThrow('The index has no property "colour".')
  })
})

describe('memoryStore, conditions on a property of the scope', () => {
  const among = (...values: readonly string[]) => ({ property: 'owner', operator: 'in' as const, values })

  it('select each member once, and those that meet all of them', () => {
    const store = memoryStore()
    fill(store, 50, INDEX)
    const count = (...where: readonly ListQuery['where'][number][]) => {
      const { items, total } = list(store, { where, count: true })
      return [items.length, total]
    }
    expect(count(among('owner 3', 'owner 3'))).toEqual([5, 5])
    expect(count(among('owner 3'), among('owner 4'))).toEqual([0, 0])
    expect(count(among('owner 3', 'owner 4'), among('owner 4', 'owner 5'))).toEqual([5, 5])
    expect(count(among('owner 3'), { property: 'owner', operator: 'notIn', values: ['owner 3'] })).toEqual([0, 0])
  })
})

describe('memoryStore, an index of content', () => {
  const content = (status: string) => ({ contentType: 'application/json', body: JSON.stringify({ status }) })
  const indexed = (status: string) => ({ ...content(status), indexed: { index: INDEX, values: { status } } })
  const namesBy = (store: ResourceStore, status: string, options: Partial<ListOptions> = {}) =>
    list(store, { where: [is('status', status)] }, options).items.map(({ path }) => path)

  it('takes no values of an earlier state that come late', async () => {
    const store = memoryStore()
    let answer: (values: object) => void = () => {}
    const late = { ...INDEX, valuesOf: () => new Promise<never>((resolve) => (answer = resolve as never)) }
    store.write('/tasks/1', { ...indexed('first'), indexed: { index: late, values: {} } }, { expect: 'any' })
    store.write('/tasks/1', content('second'), { expect: 'any' })
    store.write('/tasks/1', indexed('third'), { expect: 'any' })
    answer({ status: 'second' })
    await nextTurn()
    expect([namesBy(store, 'second'), namesBy(store, 'third')]).toEqual([[], ['/tasks/1']])
  })

  it('has no values of content that cannot be read, and answers all the same', async () => {
    const store = memoryStore()
    const broken = { ...INDEX, valuesOf: async () => Promise.reject(new Error('away')) }
    store.write(
      '/tasks/1',
      { ...indexed('open'), indexed: { index: broken, values: { status: 'open' } } },
      { expect: 'any' },
    )
    store.write('/tasks/2', content('open'), { expect: 'any' })
    await nextTurn()
    expect([namesBy(store, 'open'), list(store).items.length]).toEqual([['/tasks/1'], 2])
  })

  it('forgets a hidden member that is removed with another', () => {
    const store = memoryStore()
    for (const name of [1, 2, 3]) store.write(`/tasks/${name}`, indexed('open'), { expect: 'any' })
    store.remove('/tasks/2', { expect: 'any', mode: 'hide' })
    expect(namesBy(store, 'open', { hidden: true })).toEqual(['/tasks/1', '/tasks/2', '/tasks/3'])
    store.remove('/tasks/1', { expect: 'any', mode: 'erase', related: ['/tasks/2'] })
    expect(namesBy(store, 'open', { hidden: true })).toEqual(['/tasks/3'])
  })
})
