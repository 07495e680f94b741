import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createForwardClock } from '../../src/core/time.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

describe('createForwardClock', () => {
  it('goes on in whole seconds from where it was, until the local clock has caught up', () => {
    let local = 10_000
    const clock = createForwardClock(() => local)
    expect(clock.now()).toBe(10_000)
    local = 0
    expect(clock.now()).toBe(10_000)
    const times = [999, 1, 1999, 1].map((milliseconds) => {
      vi.advanceTimersByTime(milliseconds)
      return clock.now()
    })
    expect(times).toEqual([10_000, 11_000, 12_000, 13_000])
    local = 13_001
    expect(clock.now()).toBe(13_001)
    // Set back once more: the time of before does not count.
    vi.advanceTimersByTime(5000)
    local = 0
    expect(clock.now()).toBe(13_001)
  })

  it('gives whole milliseconds where the local clock has fractions', () => {
    let local = 10_000.9
    const clock = createForwardClock(() => local)
    expect(clock.now()).toBe(10_000)
    local = 10_000.1
    expect(clock.now()).toBe(10_000)
  })

  it('takes a later time over as it is, and no earlier one', () => {
    const clock = createForwardClock(() => 0)
    clock.raise(10_000)
    expect(clock.now()).toBe(10_000)
    vi.advanceTimersByTime(3000)
    clock.raise(20_000)
    clock.raise(15_000)
    expect(clock.now()).toBe(20_000)
  })
})
