import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { shareCall } from '../../src/core/time.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => void vi.useRealTimers())

describe('shareCall', () => {
  const calls: { readonly end: (value: string) => void; readonly fail: (error: Error) => void }[] = []
  const share = () => {
    calls.length = 0
    return shareCall(() => new Promise<string>((end, fail) => void calls.push({ end, fail })))
  }

  it('lets callers of the same time share one call, and makes a new one after its end or its failure', async () => {
    const call = share()
    const both = [call(), call()]
    expect(calls).toHaveLength(1)
    calls[0]!.end('a')
    expect(await Promise.all(both)).toEqual(['a', 'a'])
    const failed = call()
    calls[1]!.fail(new Error('away'))
    await expect(failed).rejects.toThrow('away')
    const last = call()
    calls[2]!.end('b')
    expect(await last).toBe('b')
  })

  it('joins no call that has been silent for long, and still shares the one after it when that answers late', async () => {
    const call = share()
    const first = call()
    vi.advanceTimersByTime(5000)
    const second = call()
    expect(calls).toHaveLength(2)
    calls[0]!.end('late')
    expect(await first).toBe('late')
    const third = call()
    expect(calls).toHaveLength(2)
    calls[1]!.end('b')
    expect(await Promise.all([second, third])).toEqual(['b', 'b'])
  })
})
