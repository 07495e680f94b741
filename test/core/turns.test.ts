import { afterEach, describe, expect, it, vi } from 'vitest'
import { RequestAborted } from '../../src/core/errors.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import { createTurns } from '../../src/core/turns.ts'
import { createLeavingClient } from '../support/leaving-client.ts'

const LIMITS = { perKey: 2, total: 3, patience: 10_000 }

/** A task that ends when the test says so. */
function createTask() {
  const entries: string[] = []
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const run = (entry: string): Promise<string> => {
    entries.push(entry)
    return ended.then(() => 'done')
  }
  return { entries, run, end }
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

afterEach(() => {
  vi.useRealTimers()
})

describe('turns (issue 17.6)', () => {
  it('come at once, and without a promise, where no other task is under way', () => {
    const turns = createTurns(LIMITS)
    expect(turns.take('/a', (entry) => entry, 'refuse')).toBe('at-once')
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('come one after the other at one key, in order, and side by side at two', async () => {
    const turns = createTurns(LIMITS)
    const tasks = [createTask(), createTask(), createTask()]
    const other = createTask()
    const results = [...tasks.map(({ run }) => turns.take('/a', run, 'refuse')), turns.take('/b', other.run, 'refuse')]
    expect(turns.isTaken('/a')).toBe(true)
    await settle()
    expect(other.entries).toEqual(['at-once'])
    for (const [index, task] of tasks.entries()) {
      expect(task.entries).toEqual([index === 0 ? 'at-once' : 'waited'])
      expect(tasks[index + 1]?.entries ?? []).toEqual([])
      task.end()
      await settle()
    }
    other.end()
    expect(await Promise.all(results)).toEqual(['done', 'done', 'done', 'done'])
    expect([turns.isTaken('/a'), turns.isTaken('/b')]).toEqual([false, false])
  })

  it('are given up by a client that leaves while it waits: its place is free at once', async () => {
    const turns = createTurns(LIMITS)
    const first = createTask()
    const left = createTask()
    let leave = (): void => {}
    const exchange = {
      onClose(listener: () => void) {
        leave = listener
        return () => {}
      },
    } as Exchange
    const results = [
      turns.take('/a', first.run, 'refuse'),
      turns.take('/a', left.run, 'refuse', exchange),
      turns.take('/a', () => 'next', 'refuse'),
    ]
    expect(() => turns.take('/a', left.run, 'refuse')).toThrow(expect.objectContaining({ status: 503 }))
    leave()
    results.push(turns.take('/a', () => 'last', 'refuse'))
    await expect(results[1]).rejects.toThrow(RequestAborted)
    first.end()
    expect(await Promise.all(results.toSpliced(1, 1))).toEqual(['done', 'next', 'last'])
    expect(left.entries).toEqual([])
  })

  it('hold while a task has not returned: what it asks for at its own key waits, and at another goes on', async () => {
    const turns = createTurns(LIMITS)
    let inner: unknown
    const outer = turns.take(
      '/a',
      () => {
        inner = turns.take('/a', (entry) => entry, 'refuse')
        const other = turns.take('/b', () => [turns.isTaken('/a'), turns.isTaken('/b')], 'refuse')
        return [turns.isTaken('/a'), turns.isTaken('/b'), other]
      },
      'refuse',
    )
    expect(outer).toEqual([true, false, [true, true]])
    expect(turns.isTaken('/a')).toBe(true)
    expect(await inner).toBe('waited')
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('hold while a task is interrupted by one at another key, which finds the first key taken', async () => {
    const turns = createTurns(LIMITS)
    let inner: unknown
    const interrupt = () => {
      inner = turns.take('/a', (entry) => entry, 'refuse')
      return turns.isTaken('/a')
    }
    expect(turns.take('/a', () => turns.take('/b', () => turns.isTaken('/a'), 'refuse'), 'refuse')).toBe(true)
    expect(turns.isTaken('/a')).toBe(false)
    expect(turns.take('/a', () => turns.take('/b', interrupt, 'refuse'), 'refuse')).toBe(true)
    expect(await inner).toBe('waited')
    expect([turns.isTaken('/a'), turns.isTaken('/b')]).toEqual([false, false])
  })

  it('go on to those that wait where a task fails that others interrupted', async () => {
    const turns = createTurns(LIMITS)
    let inner: unknown
    const fail = (): never => {
      inner = turns.take('/a', (entry) => entry, 'refuse')
      turns.take('/b', () => 'done', 'refuse')
      throw new Error('failed')
    }
    expect(() => turns.take('/a', fail, 'refuse')).toThrow('failed')
    expect(await inner).toBe('waited')
    expect([turns.isTaken('/a'), turns.isTaken('/b')]).toEqual([false, false])
  })

  it('pass on from a task that throws, at once or later', async () => {
    const turns = createTurns(LIMITS)
    const fail = () => {
      throw new Error('at once')
    }
    expect(() => turns.take('/a', fail, 'refuse')).toThrow('at once')
    const failing = turns.take('/a', () => Promise.reject(new Error('later')), 'refuse')
    const next = turns.take('/a', (entry) => entry, 'refuse')
    await expect(failing).rejects.toThrow('later')
    expect(await next).toBe('waited')
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('are refused with 503 and Retry-After, or not waited for, when too many wait', async () => {
    const turns = createTurns(LIMITS)
    const tasks = Array.from({ length: 5 }, createTask)
    const waiting = tasks.slice(0, 3).map(({ run }) => turns.take('/a', run, 'refuse'))
    const unavailable = expect.objectContaining({ status: 503, headers: { 'Retry-After': '1' } })
    expect(() => turns.take('/a', () => 'x', 'refuse')).toThrow(unavailable)
    expect(turns.take('/a', (entry) => entry, 'go-on')).toBe('at-once')
    // One more may wait at another key, and that is all.
    waiting.push(...tasks.slice(3).map(({ run }) => turns.take('/b', run, 'refuse')))
    expect(() => turns.take('/b', () => 'x', 'refuse')).toThrow(unavailable)
    for (const { end } of tasks) end()
    expect(await Promise.all(waiting)).toHaveLength(5)
    expect(turns.take('/a', (entry) => entry, 'refuse')).toBe('at-once')
  })

  it('have 256 tasks wait at one key, and 4096 in all, by default', async () => {
    const turns = createTurns()
    const { run, end } = createTask()
    const refused = expect.objectContaining({ status: 503 })
    const results: unknown[] = []
    for (let key = 0; key < 16; key++) {
      results.push(turns.take(`/${key}`, run, 'refuse'))
      for (let i = 0; i < 256; i++) results.push(turns.take(`/${key}`, run, 'refuse'))
      expect(() => turns.take(`/${key}`, run, 'refuse')).toThrow(refused)
    }
    results.push(turns.take('/another', run, 'refuse'))
    expect(() => turns.take('/another', run, 'refuse')).toThrow(refused)
    end()
    expect(new Set(await Promise.all(results))).toEqual(new Set(['done']))
  })

  it('wait for 10 s, by default', async () => {
    vi.useFakeTimers()
    const turns = createTurns()
    const [hanging, waiting] = [createTask(), createTask()]
    void turns.take('/a', hanging.run, 'refuse')
    void turns.take('/a', waiting.run, 'refuse')
    await vi.advanceTimersByTimeAsync(9999)
    expect(waiting.entries).toEqual([])
    await vi.advanceTimersByTimeAsync(1)
    expect(waiting.entries).toEqual(['waited'])
  })

  it('are not waited for without an end: a task that hangs stops no other', async () => {
    const turns = createTurns({ ...LIMITS, patience: 20 })
    const hanging = createTask()
    const held = turns.take('/a', hanging.run, 'refuse')
    expect(await turns.take('/a', (entry) => entry, 'refuse')).toBe('waited')
    expect(turns.isTaken('/a')).toBe(true)
    hanging.end()
    await held
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('are waited for no longer where a task has hung for two minutes: those that follow come at once', async () => {
    vi.useFakeTimers()
    const turns = createTurns()
    const hanging = createTask()
    const held = turns.take('/a', hanging.run, 'refuse')
    const waits: unknown[] = []
    for (let i = 0; i < 13; i++) {
      const waiting = turns.take('/a', (entry) => entry, 'refuse')
      await vi.advanceTimersByTimeAsync(10_000)
      waits.push(await waiting)
    }
    expect(waits).toEqual(Array.from({ length: 13 }, () => 'waited'))
    expect(turns.isTaken('/a')).toBe(false)
    const next = createTask()
    const started = turns.take('/a', next.run, 'refuse')
    expect(next.entries).toEqual(['at-once'])
    hanging.end()
    await held
    next.end()
    await started
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('are waited for where another task has had its turn meanwhile: how long that one hangs counts anew', async () => {
    vi.useFakeTimers()
    const turns = createTurns()
    const [first, second] = [createTask(), createTask()]
    const loseNinePatiences = async (): Promise<void> => {
      for (let i = 0; i < 9; i++) {
        const waiting = turns.take('/a', (entry) => entry, 'refuse')
        await vi.advanceTimersByTimeAsync(10_000)
        expect(await waiting).toBe('waited')
      }
    }
    const held = [turns.take('/a', first.run, 'refuse')]
    await loseNinePatiences()
    held.push(turns.take('/a', second.run, 'refuse'))
    first.end()
    await held[0]
    await loseNinePatiences()
    expect([second.entries, turns.isTaken('/a')]).toEqual([['waited'], true])
    second.end()
    await held[1]
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('are refused with 503 after their patience where others have had theirs meanwhile: they would all be under way at once', async () => {
    const turns = createTurns({ perKey: 4, total: 4, patience: 20 })
    const [first, second] = [createTask(), createTask()]
    const held = [turns.take('/a', first.run, 'refuse'), turns.take('/a', second.run, 'refuse')]
    const waiting = [turns.take('/a', (entry) => entry, 'refuse'), turns.take('/a', (entry) => entry, 'go-on')]
    first.end()
    const unavailable = expect.objectContaining({ status: 503, headers: { 'Retry-After': '1' } })
    await expect(waiting[0]).rejects.toEqual(unavailable)
    expect(await waiting[1]).toBe('waited')
    expect(second.entries).toEqual(['waited'])
    second.end()
    await Promise.all(held)
    expect(turns.isTaken('/a')).toBe(false)
  })

  it('count a task that got its turn once: after its patience no more tasks wait than before', async () => {
    const turns = createTurns({ ...LIMITS, total: 1, patience: 20 })
    const first = createTask()
    const all = [turns.take('/a', first.run, 'refuse'), turns.take('/a', (entry) => entry, 'refuse')]
    first.end()
    await Promise.all(all)
    await new Promise((resolve) => setTimeout(resolve, 40))
    const hanging = createTask()
    const held = [turns.take('/a', hanging.run, 'refuse'), turns.take('/a', (entry) => entry, 'refuse')]
    expect(() => turns.take('/a', () => 'x', 'refuse')).toThrow(expect.objectContaining({ status: 503 }))
    hanging.end()
    await Promise.all(held)
  })

  it('count a task that got its turn once: where its client leaves afterwards no more tasks wait than before', async () => {
    const turns = createTurns({ ...LIMITS, total: 1 })
    const { exchange, leave } = createLeavingClient()
    const first = createTask()
    const all = [turns.take('/a', first.run, 'refuse'), turns.take('/a', (entry) => entry, 'refuse', exchange)]
    first.end()
    await Promise.all(all)
    leave()
    const hanging = createTask()
    const held = [turns.take('/a', hanging.run, 'refuse'), turns.take('/a', (entry) => entry, 'refuse')]
    expect(() => turns.take('/a', () => 'x', 'refuse')).toThrow(expect.objectContaining({ status: 503 }))
    hanging.end()
    await Promise.all(held)
  })

  it('counts a task that has gone on without its turn no more: another may wait in its place', async () => {
    const turns = createTurns({ ...LIMITS, total: 1, patience: 20 })
    const hanging = createTask()
    const held = turns.take('/a', hanging.run, 'refuse')
    for (let i = 0; i < 3; i++) expect(await turns.take('/a', (entry) => entry, 'refuse')).toBe('waited')
    hanging.end()
    await held
  })
})
