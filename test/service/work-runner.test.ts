import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, expect, it, vi } from 'vitest'
import { createWorkQueue, LEASE } from '../../src/service/work-queue.ts'
import { createWorkRunner } from '../../src/service/work-runner.ts'
import { memoryStore } from '../../src/stores/memory.ts'

afterEach(() => {
  vi.useRealTimers()
})

it('renews the lease of work while the work lasts, and no longer', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const store = memoryStore()
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
  await nextTurn()
  for (let i = 0; i < 3; i++) {
    vi.advanceTimersToNextTimer()
    await nextTurn()
  }
  expect(renew).toHaveBeenCalledTimes(3)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false])
  end()
  expect(await running).toBe(true)
  vi.advanceTimersByTime(10 * LEASE)
  expect(renew).toHaveBeenCalledTimes(3)
  await runner.close()
})
