import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { MaybePromise } from '../../src/core/maybe-promise.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createWorkQueue, LEASE } from '../../src/work/queue.ts'
import { createWorkRunner } from '../../src/work/runner.ts'
import { inTime, PATIENCE } from '../../src/work/store-calls.ts'

afterEach(() => vi.useRealTimers())

const never = new Promise<never>(() => {})

/** A store with one piece of work. Of its calls, one is never answered. */
async function createWork(silent: number, isDone: boolean) {
  const plain = memoryStore()
  await plain.write('/jobs/1', { contentType: 'application/json', body: '{"state":"pending"}' }, { expect: 'absent' })
  const { path, content } = createWorkQueue(plain, Date.now).record('a', {
    ...{ kind: 'process', pattern: '/jobs', path: '/jobs/1' },
  })
  await plain.write(path, content, { expect: 'absent' })
  let calls = 0
  const answer = async <Value>(call: () => MaybePromise<Value>): Promise<Value> => {
    if (++calls !== silent) return call()
    if (isDone) await call()
    return never
  }
  const store: ResourceStore = {
    ...plain,
    read: (...args) => answer(() => plain.read(...args)),
    write: (...args) => answer(() => plain.write(...args)),
    remove: (...args) => answer(() => plain.remove(...args)),
  }
  return { plain, store, hasFallenSilent: () => calls >= silent }
}

describe('accepted work of a store that leaves a call without an answer', () => {
  const cases = [1, 2, 3, 4, 5, 6].flatMap((call) => [
    { call, isDone: false },
    { call, isDone: true },
  ])
  it.each(cases)(
    'gives its place back and is done later: call $call, carried out: $isDone',
    async ({ call, isDone }) => {
      const { plain, store, hasFallenSilent } = await createWork(call, isDone)
      let running = 0
      let most = 0
      const process = async () => {
        most = Math.max(most, ++running)
        await nextTurn()
        running--
        return { pages: 12 }
      }
      let time = Date.now()
      const service = createResourceService(store, {
        resources: { '/jobs': collection({ create: 'accepted', process }) },
        operations: { queue: { enqueue: () => {} } },
        now: () => time,
      })
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
      let isOver = false
      const first = service.runOperation('a').finally(() => {
        isOver = true
      })
      first.catch(() => {})
      await vi.waitFor(() => expect(hasFallenSilent()).toBe(true))
      expect(isOver).toBe(false)
      await vi.advanceTimersByTimeAsync(PATIENCE)
      expect(isOver).toBe(true)
      time += 2 * PATIENCE
      const second = service.runOperation('a')
      // It waits for its turn at the item, which a write of the first one may hold.
      await vi.advanceTimersByTimeAsync(PATIENCE)
      await second
      expect(JSON.parse(String(((await plain.read('/jobs/1')) as { body: string }).body))).toMatchObject({
        state: 'ready',
        pages: 12,
      })
      expect([most, await plain.read('work/a')]).toEqual([1, undefined])
      vi.useRealTimers()
      await service.close()
    },
  )
})

describe('the renewal of a lease', () => {
  it('is tried again where the store does not answer one before the lease has run out', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    for (const isDone of [false, true]) {
      const { store } = await createWork(3, isDone)
      const queue = createWorkQueue(store, Date.now)
      const renew = vi.spyOn(queue, 'renew')
      let end = (): void => {}
      const signals: AbortSignal[] = []
      const perform = (_: unknown, signal: AbortSignal) => {
        signals.push(signal)
        return new Promise<void>((resolve) => (end = resolve))
      }
      const runner = createWorkRunner({
        queue,
        handler: { perform, fail: async () => {} },
        announce: () => {},
        maxAttempts: 1,
      })
      const running = runner.run('a')
      await vi.waitFor(() => expect(signals).toHaveLength(1))
      const tick = async (milliseconds: number): Promise<number> => {
        vi.advanceTimersByTime(milliseconds)
        for (let turn = 0; turn < 5; turn++) await nextTurn()
        return renew.mock.calls.length
      }
      expect(await tick(LEASE)).toBe(1)
      expect(await tick(LEASE / 2)).toBe(2)
      expect(await tick(LEASE / 3)).toBe(3)
      // What the first one did, if it did anything, is its own doing.
      expect(signals[0]!.aborted).toBe(false)
      end()
      expect(await running).toBe(true)
    }
  })
})

describe('a step of the store', () => {
  it('has its time, and leaves no timer once it has answered', async () => {
    vi.useFakeTimers()
    expect(await inTime(Promise.resolve('done'))).toBe('done')
    await expect(inTime(Promise.reject(new Error('away')))).rejects.toThrow('away')
    expect(vi.getTimerCount()).toBe(0)
    const late = expect(inTime(never)).rejects.toThrow('ten minutes')
    vi.advanceTimersByTime(PATIENCE)
    await late
  })
})
