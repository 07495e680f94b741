import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import type { LogEntry } from '../../src/core/operator-log.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createPoll } from '../../src/work/poll.ts'
import { createWorkQueue, type WorkQueue } from '../../src/work/queue.ts'
import { createExternalScheduler, createLocalScheduler, type ExternalQueue } from '../../src/work/scheduler.ts'
import { losing } from './serve.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** What was reported as failed, and what was logged. */
const failures: string[] = []
const entries: Pick<LogEntry, 'part' | 'state'>[] = []
const log = ({ part, state }: LogEntry): void => void entries.push({ part, state })
const addFailure = (event: unknown): void => {
  const { stage, error } = event as { stage: string; error: Error }
  if (stage === 'background') failures.push(error.message)
}
beforeEach(() => subscribe('http-resource-service:failure', addFailure))

afterEach(() => {
  unsubscribe('http-resource-service:failure', addFailure)
  failures.length = 0
  entries.length = 0
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('createPoll', () => {
  it('does not look again at once with the longest interval of a timer', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1)
    const look = vi.fn(async () => undefined)
    const poll = createPoll(look, 2 ** 31 - 1)
    poll.start()
    await vi.waitFor(() => expect(look).toHaveBeenCalled(), 30_000)
    await new Promise((resolve) => setTimeout(resolve, 50))
    poll.close()
    expect(look).toHaveBeenCalledTimes(1)
  })

  it('looks at intervals however often it is started, also after a look that failed', async () => {
    vi.useFakeTimers()
    const look = vi.fn(() => Promise.reject(new Error('The store is away.')))
    const poll = createPoll(look, HOUR)
    for (let count = 0; count < 3; count++) poll.start()
    await vi.advanceTimersByTimeAsync(0.74 * HOUR)
    expect(look).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(4 * HOUR)
    expect(look.mock.calls.length).toBeGreaterThanOrEqual(4)
    expect(failures).toEqual(look.mock.calls.map(() => 'The store is away.'))
    poll.close()
  })

  it('looks no more where it is closed during a look', async () => {
    vi.useFakeTimers()
    let end: () => void = () => {}
    const look = vi.fn(() => new Promise<undefined>((resolve) => (end = () => resolve(undefined))))
    const poll = createPoll(look, HOUR)
    poll.start()
    await vi.advanceTimersByTimeAsync(1)
    poll.close()
    end()
    await vi.advanceTimersByTimeAsync(3 * HOUR)
    expect([look.mock.calls.length, vi.getTimerCount()]).toEqual([1, 0])
  })

  it('looks as soon as something is due', async () => {
    vi.useFakeTimers()
    const waits = [1000, 5 * HOUR]
    const look = vi.fn(async () => waits.shift())
    const poll = createPoll(look, HOUR)
    poll.start()
    await vi.advanceTimersByTimeAsync(1000)
    expect(look).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(look).toHaveBeenCalledTimes(2)
    // What is due later than the interval does not put the next look off.
    await vi.advanceTimersByTimeAsync(1.3 * HOUR)
    expect(look).toHaveBeenCalledTimes(3)
    poll.close()
  })

  it('looks again after a minute, or after its patience, where a look never ends', async () => {
    vi.useFakeTimers()
    for (const [patience, time] of [
      [undefined, MINUTE],
      [HOUR, HOUR],
    ] as const) {
      const look = vi.fn(async (): Promise<undefined> => undefined)
      let end!: () => void
      look.mockImplementationOnce(() => new Promise((resolve) => (end = () => resolve(undefined))))
      const poll = createPoll(look, 100, patience)
      poll.start()
      await vi.advanceTimersByTimeAsync(time - 1)
      expect(look).toHaveBeenCalledTimes(1)
      await vi.advanceTimersByTimeAsync(1)
      expect(look).toHaveBeenCalledTimes(2)
      // Its late end begins no look beside the others.
      end()
      await vi.advanceTimersByTimeAsync(1250)
      expect(look.mock.calls.length).toBeLessThanOrEqual(2 + 1250 / 75)
      expect(look.mock.calls.length).toBeGreaterThanOrEqual(2 + 10)
      expect(vi.getTimerCount()).toBe(1)
      poll.close()
      expect(vi.getTimerCount()).toBe(0)
    }
  })

  it('looks no more once it is closed, also in the midst of a look, and cannot be started again', async () => {
    vi.useFakeTimers()
    for (const closesWhileLooking of [false, true]) {
      const look = vi.fn(async () => {
        if (closesWhileLooking) poll.close()
        return 0
      })
      const poll = createPoll(look, HOUR)
      poll.start()
      await vi.advanceTimersByTimeAsync(0)
      poll.close()
      poll.start()
      await vi.advanceTimersByTimeAsync(5 * HOUR)
      expect(look).toHaveBeenCalledTimes(1)
    }
  })

  it('does not keep the process alive', () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const poll = createPoll(async () => undefined, HOUR)
    poll.start()
    expect(setTimer.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    poll.close()
  })
})

const idle = { due: async () => ({ ids: [], wait: undefined }) } as unknown as WorkQueue

/** Work that lasts until it is ended, and what is running. */
function createRuns() {
  const running = new Map<string, (error?: Error) => void>()
  const begun: string[] = []
  function run(id: string): Promise<void> {
    begun.push(id)
    return new Promise((resolve, reject) => {
      running.set(id, (error) => (error === undefined ? resolve() : reject(error)))
    })
  }
  return { run, begun, end: (id: string, error?: Error) => running.get(id)!(error) }
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

describe('createLocalScheduler', () => {
  function start(concurrency: number, queue = idle) {
    const runs = createRuns()
    const scheduler = createLocalScheduler({ queue, run: runs.run, concurrency, pollInterval: HOUR, log })
    return { ...runs, scheduler }
  }

  it('runs so many pieces of work at a time, each once, and the next as soon as one ends or fails', async () => {
    const { scheduler, begun, end } = start(2)
    for (const id of ['a', 'b', 'a', 'c', 'd', 'e']) scheduler.announce(id, 0)
    await settle()
    expect(begun).toEqual(['a', 'b'])
    scheduler.announce('a', 0)
    end('a', new Error('The store is away.'))
    await settle()
    expect(begun).toEqual(['a', 'b', 'c'])
    expect(failures).toEqual(['The store is away.'])
    end('b')
    await settle()
    end('c')
    end('d')
    await settle()
    expect(begun).toEqual(['a', 'b', 'c', 'd', 'e'])
    // It has ended: it may be announced anew.
    scheduler.announce('a', 0)
    await settle()
    expect(begun).toEqual(['a', 'b', 'c', 'd', 'e', 'a'])
    scheduler.close()
  })

  it('runs postponed work after its pause, and does not keep the process alive for it', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const { scheduler } = start(1)
    scheduler.announce('a', HOUR)
    expect(setTimer.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    vi.restoreAllMocks()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { begun, ...other } = start(1)
    other.scheduler.announce('b', 1000)
    vi.advanceTimersByTime(1000)
    await settle()
    expect(begun).toEqual([])
    vi.advanceTimersByTime(1)
    await settle()
    expect(begun).toEqual(['b'])
    other.scheduler.close()
    scheduler.close()
  })

  it('runs work in a context of its own, and not in that of the request which announces it', async () => {
    const user = new AsyncLocalStorage<string>()
    const users: unknown[] = []
    const run = async (): Promise<void> => void users.push(user.getStore())
    const scheduler = createLocalScheduler({ queue: idle, run, concurrency: 1, pollInterval: HOUR, log })
    user.run('ada', () => scheduler.announce('a', 0))
    await settle()
    expect(users).toEqual([undefined])
    scheduler.close()
  })

  it('runs nothing more once it is closed', async () => {
    const { scheduler, begun, end } = start(1)
    for (const id of ['a', 'b']) scheduler.announce(id, 0)
    await settle()
    scheduler.close()
    scheduler.announce('c', 0)
    end('a')
    await settle()
    expect(begun).toEqual(['a'])
  })

  it('finds work that was not announced, more than it can run at a time', async () => {
    const due = vi.fn(async (limit: number) => ({ ids: ['a', 'b', 'c', 'd'].slice(0, limit), wait: undefined }))
    const { scheduler, begun, end } = start(2, { due } as unknown as WorkQueue)
    scheduler.start()
    await vi.waitFor(() => expect(begun).toEqual(['a', 'b']), 30_000)
    end('a')
    await settle()
    end('b')
    await vi.waitFor(() => expect(begun).toEqual(['a', 'b', 'c', 'd']), 30_000)
    scheduler.close()
  })

  it('looks again soon where there is more than one look finds, once that has begun', async () => {
    const left = Array.from({ length: 20 }, (_, i) => String(i))
    const due = vi.fn(async (limit: number) => ({ ids: left.slice(0, limit), wait: undefined }))
    const { scheduler, begun, end } = start(1, { due } as unknown as WorkQueue)
    scheduler.start()
    await vi.waitFor(() => expect(begun).toEqual(['0']), 30_000)
    const before = due.mock.calls.length
    await sleep(350)
    expect(due.mock.calls.length).toBe(before)
    for (let i = 0; i < 20; i++) {
      await vi.waitFor(() => expect(begun).toContain(String(i)), 30_000)
      left.shift()
      end(String(i))
    }
    scheduler.close()
  })
})

describe('createExternalScheduler', () => {
  function start(enqueue: ExternalQueue['enqueue'], ids: string[]) {
    const queue = {
      due: async (limit: number) => ({ ids: ids.slice(0, limit), wait: undefined }),
    } as unknown as WorkQueue
    return createExternalScheduler({ enqueue }, { queue, pollInterval: 1000, log })
  }

  it('passes work on with its pause, and once more only when it is still there after a minute', async () => {
    vi.useFakeTimers()
    const enqueue = vi.fn()
    const ids = ['a', 'b']
    const scheduler = start(enqueue, ids)
    scheduler.start()
    scheduler.announce('a', 700)
    await vi.advanceTimersByTimeAsync(0.9 * MINUTE)
    expect(enqueue.mock.calls).toEqual([
      ['a', { delay: 700 }],
      ['b', { delay: 0 }],
    ])
    ids.shift()
    await vi.advanceTimersByTimeAsync(0.2 * MINUTE)
    expect(enqueue.mock.calls.slice(2)).toEqual([['b', { delay: 0 }]])
    // What is done is forgotten: work under the same id is new.
    ids.shift()
    await vi.advanceTimersByTimeAsync(3000)
    ids.push('b')
    await vi.advanceTimersByTimeAsync(3000)
    expect(enqueue.mock.calls.slice(3)).toEqual([['b', { delay: 0 }]])
    scheduler.close()
  })

  it('passes work on again at the next look where the queue has refused it', async () => {
    vi.useFakeTimers()
    const enqueue = vi.fn(() => Promise.reject(new Error('The queue is away.')))
    const scheduler = start(enqueue, ['a', 'b'])
    scheduler.start()
    await vi.advanceTimersByTimeAsync(5000)
    const count = (id: string) => enqueue.mock.calls.filter((call: unknown[]) => call[0] === id).length
    expect([count('a'), count('b')].every((times) => times >= 4)).toBe(true)
    expect(failures).toEqual(enqueue.mock.calls.map(() => 'The queue is away.'))
    expect(entries).toEqual([{ part: 'queue', state: 'down' }])
    enqueue.mockImplementation(() => Promise.resolve(undefined as never))
    await vi.advanceTimersByTimeAsync(2000)
    expect(entries.slice(1)).toEqual([{ part: 'queue', state: 'up' }])
    scheduler.close()
  })

  it.each(['cause', 'detail'])('goes on after an error of the queue whose "%s" cannot be read', async (name) => {
    vi.useFakeTimers()
    const get = (): never => {
      throw new Error('a getter')
    }
    const error = Object.defineProperty(new HttpError(503, 'ERR_UNAVAILABLE'), name, { get })
    const scheduler = start(() => Promise.reject(error), ['a'])
    scheduler.announce('a', 0)
    await vi.advanceTimersByTimeAsync(1000)
    expect(entries).toEqual([{ part: 'queue', state: 'down' }])
    scheduler.close()
  })

  it.each([
    [new Error('A record is malformed.'), [{ part: 'queue', state: 'down' }]],
    // The store reports that itself.
    [new HttpError(503, 'ERR_UNAVAILABLE'), []],
  ])('reports that accepted work cannot be read: %s', async (error, logged) => {
    vi.useFakeTimers()
    const due = vi.fn(() => Promise.reject(error))
    const queue = { due } as unknown as WorkQueue
    const scheduler = createExternalScheduler({ enqueue: vi.fn() }, { queue, pollInterval: 1000, log })
    scheduler.start()
    await vi.advanceTimersByTimeAsync(5000)
    expect(failures.length).toBeGreaterThanOrEqual(4)
    expect(entries).toEqual(logged)
    scheduler.close()
  })
})

describe('createWorkQueue', () => {
  it('says how long it is until the next work is due, whatever its place in the queue', async () => {
    const store = memoryStore()
    const queue = createWorkQueue(store, () => 1000)
    for (const [id, notBefore] of Object.entries({ a: 6000, b: 3000, c: 9000, d: 1000 })) {
      const body = JSON.stringify({ kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 1, notBefore })
      await store.write(`work/${id}`, { contentType: 'application/json', body }, { expect: 'absent' })
    }
    expect(await queue.due(10)).toEqual({ ids: ['d'], wait: 2000 })
  })

  it('finds the work behind a record whose content is lost, and why that one cannot be read', async () => {
    const store = memoryStore()
    const body = JSON.stringify({ kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 0, notBefore: 0 })
    for (const id of ['a', 'b']) {
      await store.write(`work/${id}`, { contentType: 'application/json', body }, { expect: 'absent' })
    }
    const { ids, unreadable } = await createWorkQueue(losing(store, 'work/a'), () => 1000).due(10)
    expect([ids, (unreadable as HttpError).detail]).toEqual([['b'], expect.stringContaining('was replaced or removed')])
  })

  it('asks for no more records where the store gives eleven in a row without their content', async () => {
    const store = memoryStore()
    const body = JSON.stringify({ kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 0, notBefore: 0 })
    const names = Array.from({ length: 20 }, (_, at) => String(at + 10))
    for (const id of names) {
      await store.write(`work/${id}`, { contentType: 'application/json', body }, { expect: 'absent' })
    }
    const away = names.slice(0, 11).reduce((inner, id) => losing(inner, `work/${id}`), store as ResourceStore)
    await expect(createWorkQueue(away, () => 1000).due(10)).rejects.toMatchObject({ status: 503 })
    const known = names.slice(0, 10).reduce((inner, id) => losing(inner, `work/${id}`), store as ResourceStore)
    expect((await createWorkQueue(known, () => 1000).due(10)).ids).toEqual(names.slice(10))
  })
})
