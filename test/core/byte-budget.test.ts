import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Exchange } from '../../src/core/exchange.ts'
import { type BudgetLimits, createByteBudget } from '../../src/core/turns.ts'
import { createLeavingClient } from '../support/leaving-client.ts'

const MIB = 1024 * 1024
const LIMITS: BudgetLimits = { bytes: 4 * MIB, waiting: 3, patience: 60_000, longest: 60_000 }

/** Tasks that end when the test says so. */
function start(limits = LIMITS) {
  const budget = createByteBudget(limits)
  const started: string[] = []
  return {
    budget,
    started,
    hold(name: string, bytes: number, exchange = createLeavingClient().exchange) {
      let resolve!: (name: string) => void
      let reject!: (error: Error) => void
      const promise = new Promise<string>((...both) => ([resolve, reject] = both))
      const task = () => {
        started.push(name)
        return promise
      }
      const result = Promise.resolve(budget.hold(bytes, task, exchange))
      result.catch(() => {})
      return { result, end: () => resolve(name), fail: () => reject(new Error(name)) }
    },
  }
}

describe('createByteBudget', () => {
  it('runs what fits at once, and the rest in its order when there is room', async () => {
    const { hold, started } = start()
    const [a, b, c, d] = [hold('a', 3 * MIB), hold('b', 2 * MIB), hold('c', MIB), hold('tiny', 1)]
    expect(started).toEqual(['a', 'tiny'])
    a.end()
    await vi.waitFor(() => expect(started.slice(2)).toEqual(['b', 'c']))
    for (const task of [b, c, d]) task.end()
    expect(await Promise.all([b.result, c.result])).toEqual(['b', 'c'])
  })

  it('gives the room of a task that falls silent to others, once', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const { hold, started } = start()
    const silent = hold('silent', 4 * MIB)
    await vi.advanceTimersByTimeAsync(59_000)
    const [b, c] = [hold('b', 4 * MIB), hold('c', MIB)]
    expect(started).toEqual(['silent'])
    await vi.advanceTimersByTimeAsync(1000)
    expect(started).toEqual(['silent', 'b'])
    silent.end()
    expect(await silent.result).toBe('silent')
    await vi.advanceTimersByTimeAsync(1000)
    expect(started).toEqual(['silent', 'b'])
    b.end()
    await vi.advanceTimersByTimeAsync(0)
    expect(started).toEqual(['silent', 'b', 'c'])
    c.end()
  })

  it('runs one that is larger than all may be when it is alone', async () => {
    const { hold, started } = start()
    const [a, large] = [hold('a', MIB), hold('large', 100 * MIB)]
    expect(started).toEqual(['a'])
    a.fail()
    await expect(a.result).rejects.toThrow('a')
    await vi.waitFor(() => expect(started).toEqual(['a', 'large']))
    large.end()
    await large.result
  })

  it('gives back the bytes of a task that throws at once, and the result of one that returns', () => {
    const { budget } = start()
    const { exchange } = createLeavingClient()
    const broken = () => {
      throw new Error('broken')
    }
    expect(() => budget.hold(4 * MIB, broken, exchange)).toThrow('broken')
    expect(budget.hold(4 * MIB, () => 1, exchange)).toBe(1)
    expect(budget.hold(4 * MIB, () => 2, exchange)).toBe(2)
  })

  it('is 503 with Retry-After where too many wait, or one has waited for too long', async () => {
    const { hold, budget } = start({ ...LIMITS, patience: 20 })
    const a = hold('a', 4 * MIB)
    const waiting = [hold('b', MIB), hold('c', MIB), hold('d', MIB)]
    expect(() => budget.hold(MIB, () => 1, createLeavingClient().exchange)).toThrow(
      expect.objectContaining({ status: 503 }),
    )
    for (const { result } of waiting)
      await expect(result).rejects.toMatchObject({ status: 503, code: 'ERR_UNAVAILABLE' })
    a.end()
    await a.result
    expect(budget.hold(4 * MIB, () => 1, createLeavingClient().exchange)).toBe(1)
  })

  it('forgets a task whose client has left', async () => {
    const { hold, started } = start()
    const gone = createLeavingClient()
    const [a, b, c] = [hold('a', 4 * MIB), hold('b', 4 * MIB, gone.exchange), hold('c', MIB)]
    gone.leave()
    await expect(b.result).rejects.toMatchObject({ name: 'RequestAborted' })
    a.end()
    await a.result
    await vi.waitFor(() => expect(started).toEqual(['a', 'c']))
    c.end()
    await c.result
  })

  it('listens no more to the client of a task that has its turn: a connection has many requests', async () => {
    const { hold, started } = start()
    const { exchange, listeners } = createLeavingClient()
    const [a, b] = [hold('a', 4 * MIB), hold('b', 4 * MIB, exchange)]
    expect(listeners.size).toBe(1)
    a.end()
    await vi.waitFor(() => expect(started).toEqual(['a', 'b']))
    expect(listeners.size).toBe(0)
    b.end()
    await b.result
  })

  it('starts what fits when one that stood before it gives up', async () => {
    const { hold, started } = start()
    const gone = createLeavingClient()
    const [a, b, c, d] = [hold('a', 3 * MIB), hold('b', 2 * MIB, gone.exchange), hold('c', MIB), hold('d', MIB)]
    gone.leave()
    await expect(b.result).rejects.toMatchObject({ name: 'RequestAborted' })
    await vi.waitFor(() => expect(started).toEqual(['a', 'c']))
    for (const task of [a, c, d]) task.end()
    expect(await d.result).toBe('d')
  })

  it('lets no client wait that has left before: nothing would tell of it', async () => {
    const { hold, started } = start()
    const a = hold('a', 4 * MIB)
    const gone = { ...createLeavingClient().exchange, isClosed: true } as Exchange
    await expect(async () => hold('b', MIB, gone).result).rejects.toMatchObject({ name: 'RequestAborted' })
    const c = hold('c', MIB)
    a.end()
    await vi.waitFor(() => expect(started).toEqual(['a', 'c']))
    c.end()
    await c.result
  })
})
