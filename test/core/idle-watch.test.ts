import { afterEach, describe, expect, it, vi } from 'vitest'
import { stopWatch, sweep, watchIdle } from '../../src/core/time.ts'

afterEach(() => void vi.useRealTimers())

describe('watchIdle', () => {
  it.each([2 ** 31, 1e12, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
    'waits longer than a timer of Node can: %d ms (issue "One anonymous connection")',
    async (timeout) => {
      let isIdle = false
      const watch = watchIdle(timeout, () => {
        isIdle = true
      })
      await new Promise((resolve) => setTimeout(resolve, 60))
      stopWatch(watch)
      expect(isIdle).toBe(false)
    },
  )

  it('calls what has not moved, a quarter of the time late at most, and again after the same time', () => {
    vi.useFakeTimers()
    const calls: number[] = []
    const start = performance.now()
    const watch = watchIdle(400, () => calls.push(performance.now() - start))
    vi.advanceTimersByTime(250)
    watch.moved = true
    vi.advanceTimersByTime(950)
    stopWatch(watch)
    vi.advanceTimersByTime(1000)
    expect(calls).toEqual([700, 1100])
  })

  it('does not call what the call before it has stopped', () => {
    vi.useFakeTimers()
    const calls: string[] = []
    const first = watchIdle(404, () => {
      calls.push('first')
      stopWatch(second)
    })
    const second = watchIdle(404, () => calls.push('second'))
    vi.advanceTimersByTime(600)
    stopWatch(first)
    expect(calls).toEqual(['first'])
  })

  it('has no timer once nothing has been watched for a while', () => {
    vi.useFakeTimers()
    stopWatch(watchIdle(408, () => {}))
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(1000)
    expect(vi.getTimerCount()).toBe(0)
    const onIdle = vi.fn()
    const watch = watchIdle(408, onIdle)
    vi.advanceTimersByTime(600)
    stopWatch(watch)
    expect(onIdle).toHaveBeenCalledTimes(1)
  })
})

describe('sweep', () => {
  it('looks at each until it is over, and has no timer when all are', () => {
    vi.useFakeTimers()
    const looks = [0, 0]
    const watch = (index: number, most: number): void => sweep(400, { check: () => ++looks[index]! < most })
    watch(0, 2)
    watch(1, 4)
    vi.advanceTimersByTime(300)
    expect([...looks, vi.getTimerCount()]).toEqual([2, 3, 1])
    vi.advanceTimersByTime(300)
    expect([...looks, vi.getTimerCount()]).toEqual([2, 4, 0])
    watch(0, 5)
    vi.advanceTimersByTime(1000)
    expect([...looks, vi.getTimerCount()]).toEqual([5, 4, 0])
  })
})
