import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CollectionIndex } from '../../src/stores/lists.ts'
import { createIndexer } from '../../src/stores/sql/background.ts'
import type { Batch, IndexSteps } from '../../src/stores/sql/dialect.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { contentOf, indexByStatus, queryByStatus } from '../support/statuses.ts'

type Item = Batch<number>['items'][number]

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

function toItem(n: number, indexed?: Item['indexed']): Item {
  const item = { path: `/tasks/${n}`, body: JSON.stringify({ status: 'open', n }), version: String(n), indexed }
  return item as unknown as Item
}

/** Steps over batches of items, and what they were called with. */
function createSteps(batches: readonly (readonly Item[])[], changes: Partial<IndexSteps<number>> = {}) {
  const read: string[] = []
  const committed: unknown[] = []
  let done = 0
  const steps: IndexSteps<number> = {
    async read(collection, { version }) {
      read.push(`${version} ${collection}`)
      const items = batches[done]
      return items && { items, position: done }
    },
    async commit(position, items) {
      committed.push([position, ...items.map(({ item }) => item.path)])
      done++
      return 10 * done
    },
    ...changes,
  }
  return { indexer: createIndexer(steps), read, committed }
}

const INDEX = indexByStatus()

describe('createIndexer', () => {
  it('indexes batch after batch, and reports how far it has come', async () => {
    const { indexer, committed } = createSteps([[toItem(1), toItem(2)], [toItem(3)]])
    const report = vi.fn()
    const run = indexer.run('/tasks', { ...INDEX, report })
    await vi.advanceTimersByTimeAsync(100)
    await run
    expect(committed).toEqual([
      [0, '/tasks/1', '/tasks/2'],
      [1, '/tasks/3'],
    ])
    expect(report.mock.calls.map(([progress]) => progress)).toEqual([
      { indexed: 10, isDone: false },
      { indexed: 20, isDone: false },
      { indexed: 20, isDone: true },
    ])
    // Nor is anything left that keeps the process alive.
    expect(vi.getTimerCount()).toBe(0)
  })

  it('takes the values that were written by the same rules, and finds others anew', async () => {
    const valuesOf = vi.fn(INDEX.valuesOf)
    const index: CollectionIndex = { ...INDEX, valuesOf }
    const values = { status: 'open', n: 1 }
    const items = [toItem(1, { index, values }), toItem(2, { index: indexByStatus('other'), values }), toItem(3)]
    const { indexer } = createSteps([items])
    const run = indexer.run('/tasks', index)
    await vi.advanceTimersByTimeAsync(100)
    await run
    expect(valuesOf.mock.calls.map(([item]) => item.path)).toEqual(['/tasks/2', '/tasks/3'])
  })

  it('works once for all that ask for an index of a collection meanwhile, and anew for those that ask later', async () => {
    const { indexer, read } = createSteps([])
    const runs = ['/tasks', '/tasks', '/others'].map((collection) => indexer.run(collection, INDEX))
    runs.push(indexer.run('/tasks', indexByStatus('status-2')))
    await vi.advanceTimersByTimeAsync(100)
    await Promise.all(runs)
    expect(read).toEqual(['status-1 /tasks', 'status-1 /others', 'status-2 /tasks'])
    await indexer.run('/tasks', INDEX)
    expect(read).toHaveLength(4)
  })

  it('is waited for a quarter of a second at most, and goes on', async () => {
    let goOn = (): void => {}
    const { indexer, committed } = createSteps([[toItem(1)]], {
      read: async () => {
        if (committed.length > 0) return undefined
        await new Promise<void>((resolve) => {
          goOn = resolve
        })
        return { items: [toItem(1)], position: 0 }
      },
    })
    const run = indexer.run('/tasks', INDEX)
    await vi.advanceTimersByTimeAsync(250)
    await run
    goOn()
    await vi.advanceTimersByTimeAsync(100)
    expect(committed).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('remembers a thousand failures, the newest', async () => {
    const read = vi.fn(async () => {
      throw new Error('The disk is gone.')
    })
    const ignore = () => {}
    subscribe('http-resource-service:failure', ignore)
    closeAfterTest(() => unsubscribe('http-resource-service:failure', ignore))
    const { indexer } = createSteps([], { read })
    for (let n = 0; n <= 1000; n++) await indexer.run(`/${n}`, INDEX)
    await indexer.run('/1', INDEX)
    expect(read).toHaveBeenCalledTimes(1001)
    await indexer.run('/0', INDEX)
    expect(read).toHaveBeenCalledTimes(1002)
  })

  it('waits where another process works, whose progress is not its own', async () => {
    const commit = vi.fn(async () => undefined)
    const report = vi.fn()
    const { indexer } = createSteps([[toItem(1)]], { commit })
    void indexer.run('/tasks', { ...INDEX, report })
    await vi.advanceTimersByTimeAsync(1000)
    expect(commit.mock.calls.length).toBeGreaterThanOrEqual(6)
    expect(commit.mock.calls.length).toBeLessThanOrEqual(21)
    expect(report).not.toHaveBeenCalled()
    const closed = indexer.close()
    await vi.advanceTimersByTimeAsync(1000)
    await closed
  })

  it('reports a failure, and begins anew when it is asked a second later, not before', async () => {
    const failed = vi.fn()
    subscribe('http-resource-service:failure', failed)
    closeAfterTest(() => unsubscribe('http-resource-service:failure', failed))
    let isAway = true
    const { indexer, read, committed } = createSteps([[toItem(1)]], {
      async read() {
        read.push('')
        if (isAway) throw new Error('The database is away.')
        return committed.length === 0 ? { items: [toItem(1)], position: 0 } : undefined
      },
    })
    await indexer.run('/tasks', INDEX)
    expect(failed.mock.calls).toMatchObject([
      [{ stage: 'background', error: { message: 'The database is away.' } }, {}],
    ])
    await vi.advanceTimersByTimeAsync(999)
    await indexer.run('/tasks', INDEX)
    expect(read).toHaveLength(1)
    isAway = false
    await vi.advanceTimersByTimeAsync(1)
    const run = indexer.run('/tasks', INDEX)
    await vi.advanceTimersByTimeAsync(100)
    await run
    expect(committed).toHaveLength(1)
    // What has failed once and worked since is begun anew at once.
    const count = read.length
    await indexer.run('/tasks', INDEX)
    expect(read.length).toBe(count + 1)
  })

  it.each(['read', 'valuesOf', 'commit'])(
    'is closed when its %s is done, and touches the database no more',
    async (step) => {
      let goOn = (): void => {}
      const wait = () =>
        new Promise<void>((resolve) => {
          goOn = resolve
        })
      const calls: string[] = []
      const call = async (name: string): Promise<void> => {
        calls.push(name)
        if (name === step) await wait()
      }
      const { indexer } = createSteps([], {
        async read() {
          await call('read')
          return { items: [toItem(1)], position: 0 }
        },
        async commit() {
          await call('commit')
          return 1
        },
      })
      const index: CollectionIndex = {
        ...INDEX,
        async valuesOf(item) {
          await call('valuesOf')
          return INDEX.valuesOf(item)
        },
      }
      void indexer.run('/tasks', index)
      await vi.advanceTimersByTimeAsync(0)
      expect(calls.at(-1)).toBe(step)
      let isClosed = false
      const closed = Promise.resolve(indexer.close()).then(() => {
        isClosed = true
      })
      await vi.advanceTimersByTimeAsync(0)
      expect(isClosed).toBe(false)
      goOn()
      await vi.advanceTimersByTimeAsync(1000)
      await closed
      await indexer.run('/others', index)
      expect(calls.at(-1)).toBe(step)
    },
  )

  it('does not keep the process alive between its steps', async () => {
    vi.useRealTimers()
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const { indexer } = createSteps([[toItem(1)]])
    await indexer.run('/tasks', INDEX)
    const pauses = setTimer.mock.results.filter((_, i) => setTimer.mock.calls[i]![1] === 2)
    expect(pauses.map(({ value }) => value.hasRef())).toEqual([false])
    await indexer.close()
  })

  it('keeps the process alive while it is being closed between its steps: its caller goes on afterwards', async () => {
    vi.useRealTimers()
    const commit = vi.fn(async () => undefined)
    const { indexer } = createSteps([[toItem(1)]], { commit })
    void indexer.run('/tasks', INDEX)
    await vi.waitFor(() => expect(commit).toHaveBeenCalled())
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const closed = indexer.close()
    const hasRef = setTimer.mock.results.map(({ value }) => value.hasRef())
    await closed
    expect(hasRef).toEqual([true])
  })
})

it('the indexing of a store ends with it: once it is closed, no further item is looked at', async () => {
  vi.useRealTimers()
  const file = await createDatabaseFile()
  const store = sqliteStore(file.open(), { sweepInterval: 0 })
  for (let n = 0; n < 500; n++) await store.write(`/tasks/${n}`, contentOf({ status: 'open', n }), { expect: 'any' })
  let seen = 0
  const index = indexByStatus()
  const slow: CollectionIndex = {
    ...index,
    valuesOf: async (item) => {
      seen++
      await new Promise((resolve) => setTimeout(resolve, 2))
      return index.valuesOf(item)
    },
  }
  const listed = Promise.resolve(store.list('/tasks', { query: queryByStatus('open', slow), limit: 10 })).catch(
    () => {},
  )
  await expect.poll(() => seen).toBeGreaterThan(0)
  await store.close?.()
  const before = seen
  await listed
  await new Promise((resolve) => setTimeout(resolve, 200))
  expect([before < 500, seen]).toEqual([true, before])
  await file.remove()
})
