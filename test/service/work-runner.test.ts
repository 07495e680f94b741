import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, it, vi } from 'vitest'
import { createWorkQueue, LEASE } from '../../src/service/work-queue.ts'
import { createWorkRunner } from '../../src/service/work-runner.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** Starts work that lasts until it is ended. */
async function startWork(store: ResourceStore) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const queue = createWorkQueue(store, Date.now)
  const renew = vi.spyOn(queue, 'renew')
  const { path, content } = queue.record('1', { kind: 'process', pattern: '/jobs', path: '/jobs/1' })
  await store.write(path, content, { expect: 'absent' })
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const signals: AbortSignal[] = []
  const perform = (_: unknown, signal: AbortSignal): Promise<void> => {
    signals.push(signal)
    return ended
  }
  const handler = { perform, fail: async () => {} }
  const runner = createWorkRunner({ queue, handler, announce: () => {}, maxAttempts: 1 })
  const running = runner.run('1')
  await vi.waitFor(() => expect(signals).toHaveLength(1))
  return { runner, running, renew, end, signal: signals[0]! }
}

it('renews the lease of work while the work lasts, and no longer', async () => {
  const { runner, running, renew, end, signal } = await startWork(memoryStore())
  for (let i = 0; i < 3; i++) {
    vi.advanceTimersToNextTimer()
    await nextTurn()
  }
  expect([renew.mock.calls.length, signal.aborted]).toEqual([3, false])
  end()
  expect(await running).toBe(true)
  vi.advanceTimersByTime(10 * LEASE)
  expect(renew).toHaveBeenCalledTimes(3)
  await runner.close()
})

it('does not take the lease for lost where the store is slower than the renewals follow each other', async () => {
  const store = memoryStore()
  let answer = (): void => {}
  let answered = Promise.resolve()
  const slow: ResourceStore = { ...store, write: (...write) => answered.then(() => store.write(...write)) }
  const { runner, running, renew, end, signal } = await startWork(slow)
  answered = new Promise((resolve) => {
    answer = resolve
  })
  for (let i = 0; i < 2; i++) vi.advanceTimersToNextTimer()
  answer()
  await nextTurn()
  vi.advanceTimersToNextTimer()
  await nextTurn()
  expect([renew.mock.calls.length, signal.aborted]).toEqual([2, false])
  end()
  expect(await running).toBe(true)
  await runner.close()
})
