import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createSweeper } from '../../src/stores/sql/background.ts'
import type { Swept } from '../../src/stores/sql/dialect.ts'
import { closeAfterTest } from '../support/close-after-test.ts'

const HOUR = 3_600_000

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('createSweeper', () => {
  it.each([2 ** 31, 90 * 24 * 3_600_000, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY])(
    'does not sweep in a loop with an interval that no timer can hold: %d',
    async (interval) => {
      let sweeps = 0
      const sweeper = createSweeper(() => {
        sweeps++
        return 'all'
      }, interval)
      sweeper.start()
      await new Promise((resolve) => setTimeout(resolve, 500))
      await sweeper.close()
      expect(sweeps).toBe(1)
    },
  )

  it('sweeps in the asynchronous context of the program, whichever request starts it', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    const sweeper = createSweeper(() => {
      seen.push(context.getStore())
      return 'part'
    }, HOUR)
    context.run('request', sweeper.start)
    await vi.waitFor(() => expect(seen.length).toBeGreaterThan(1), 30_000)
    await sweeper.close()
    expect(new Set(seen)).toEqual(new Set([undefined]))
  })

  it('sweeps once more soon after a sweep during which something was given up', async () => {
    let sweeps = 0
    let end = (): void => {}
    const sweeper = createSweeper(async (): Promise<'all'> => {
      if (++sweeps > 1) return 'all'
      await new Promise<void>((resolve) => {
        end = resolve
      })
      return 'all'
    }, 3_600_000)
    sweeper.start()
    await vi.waitFor(() => expect(sweeps).toBe(1), 30_000)
    sweeper.hurry()
    // The time of the hurry comes while the first sweep runs.
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(sweeps).toBe(1)
    end()
    await vi.waitFor(() => expect(sweeps).toBe(2), 30_000)
    await sweeper.close()
  })

  it('sweeps at intervals, and goes on at once where something is left to do', async () => {
    vi.useFakeTimers()
    const found: Swept[] = ['part', 'part', 'all', 'all']
    const sweep = vi.fn(() => found.shift() ?? 'all')
    const sweeper = createSweeper(sweep, HOUR)
    sweeper.start()
    await vi.advanceTimersByTimeAsync(1000)
    expect(sweep).toHaveBeenCalledTimes(3)
    await vi.advanceTimersByTimeAsync(0.74 * HOUR)
    expect(sweep).toHaveBeenCalledTimes(3)
    await vi.advanceTimersByTimeAsync(0.52 * HOUR)
    expect(sweep).toHaveBeenCalledTimes(4)
    await sweeper.close()
  })

  it('takes several steps for at most 50 ms where it comes late: requests replace more in a turn than one step removes', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] })
    let time = 0
    vi.spyOn(performance, 'now').mockImplementation(() => time)
    let steps = 0
    const sweeper = createSweeper(() => {
      steps++
      time++
      return 'part'
    }, HOUR)
    /** How many steps it takes that much later than it wanted. */
    async function countSteps(delay: number): Promise<number> {
      const before = steps
      time += 5 + delay
      await vi.advanceTimersToNextTimerAsync()
      // The turn in which the next sweep is set off.
      await vi.advanceTimersByTimeAsync(0)
      return steps - before
    }
    sweeper.start()
    time = 195
    expect(await countSteps(0)).toBe(1)
    expect(await countSteps(0)).toBe(1)
    expect(await countSteps(40)).toBe(20)
    expect(await countSteps(HOUR)).toBe(50)
    expect(await countSteps(0)).toBe(1)
    await sweeper.close()
  })

  it('takes no further step for what the sweeps of other stores took', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] })
    let time = 0
    vi.spyOn(performance, 'now').mockImplementation(() => time)
    const steps = Array.from({ length: 8 }, () => 0)
    const sweepers = steps.map((_, index) =>
      createSweeper(() => {
        steps[index]!++
        time += 20
        return 'part'
      }, HOUR),
    )
    for (const { start } of sweepers) start()
    time = 200
    await vi.advanceTimersByTimeAsync(200)
    expect(steps).toEqual(steps.map(() => 1))
    for (const { close } of sweepers) await close()
  })

  it('lets the event loop turn between the sweeps of several stores, however long a step takes', async () => {
    let steps = 0
    let turn = 0
    const turns = new Set<number>()
    const sweepers = [1, 2].map(() =>
      createSweeper(() => {
        turns.add(turn)
        const end = performance.now() + 6
        while (performance.now() < end);
        return ++steps < 60 ? 'part' : 'all'
      }, HOUR),
    )
    for (const { start } of sweepers) start()
    for (; steps < 60; turn++) await nextTurn()
    // On a busy machine a sweep takes nine steps in 50 ms.
    expect(turns.size).toBeGreaterThan(2)
    for (const { close } of sweepers) await close()
  })

  it('reports a sweep that failed, and sweeps again', async () => {
    vi.useFakeTimers()
    const report = vi.fn()
    subscribe('http-resource-service:failure', report)
    closeAfterTest(() => unsubscribe('http-resource-service:failure', report))
    const sweep = vi.fn((): Swept => {
      throw new Error('The database is away.')
    })
    const sweeper = createSweeper(sweep, HOUR)
    sweeper.start()
    await vi.advanceTimersByTimeAsync(4 * HOUR)
    expect(sweep.mock.calls.length).toBeGreaterThanOrEqual(3)
    expect(report.mock.calls[0]![0]).toMatchObject({ stage: 'background', error: { message: 'The database is away.' } })
    await sweeper.close()
  })

  it('goes on after the interval where the second of several steps fails', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] })
    let time = 0
    vi.spyOn(performance, 'now').mockImplementation(() => time)
    let steps = 0
    const sweeper = createSweeper(() => {
      if (++steps === 2) throw new Error('The database is away.')
      return 'part'
    }, HOUR)
    sweeper.start()
    time = 300
    await vi.advanceTimersByTimeAsync(0.74 * HOUR)
    expect(steps).toBe(2)
    await vi.advanceTimersToNextTimerAsync()
    expect(steps).toBe(3)
    await sweeper.close()
  })

  it('sweeps soon after something was given up, and never with an interval of 0', async () => {
    vi.useFakeTimers()
    for (const [interval, sweeps] of [
      [HOUR, 2],
      [0, 0],
    ] as const) {
      const sweep = vi.fn((): Swept => 'all')
      const sweeper = createSweeper(sweep, interval)
      sweeper.start()
      await vi.advanceTimersByTimeAsync(1000)
      for (let count = 0; count < 5; count++) sweeper.hurry()
      await vi.advanceTimersByTimeAsync(1000)
      expect(sweep).toHaveBeenCalledTimes(sweeps)
      await sweeper.close()
    }
  })

  it('does not sweep once it is closed: the database may be closed by then', async () => {
    vi.useFakeTimers()
    const sweep = vi.fn((): Swept => 'all')
    const sweeper = createSweeper(sweep, HOUR)
    sweeper.start()
    await vi.advanceTimersByTimeAsync(1000)
    // In place of the sweep after the interval.
    sweeper.hurry()
    await sweeper.close()
    sweeper.hurry()
    await vi.advanceTimersByTimeAsync(4 * HOUR)
    expect(sweep).toHaveBeenCalledTimes(1)
  })

  it('is closed only when the step that is running is done, and begins no further one', async () => {
    vi.useFakeTimers()
    let end = (): void => {}
    const sweep = vi.fn(
      () =>
        new Promise<Swept>((resolve) => {
          end = () => resolve('part')
        }),
    )
    const sweeper = createSweeper(sweep, HOUR)
    sweeper.start()
    await vi.advanceTimersByTimeAsync(1000)
    let isClosed = false
    const closed = Promise.resolve(sweeper.close()).then(() => {
      isClosed = true
    })
    await vi.advanceTimersByTimeAsync(1000)
    expect(isClosed).toBe(false)
    end()
    await closed
    await vi.advanceTimersByTimeAsync(4 * HOUR)
    expect(sweep).toHaveBeenCalledTimes(1)
  })

  it('does not keep the process alive', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const sweeper = createSweeper(() => 'all', HOUR)
    sweeper.start()
    sweeper.hurry()
    expect(setTimer.mock.results.map(({ value }) => value.hasRef())).toEqual([false])
    setTimer.mockRestore()
    await sweeper.close()
  })
})
