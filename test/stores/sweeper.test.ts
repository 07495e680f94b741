import { describe, expect, it, vi } from 'vitest'
import { createSweeper } from '../../src/stores/sql/sweeper.ts'

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
    await vi.waitFor(() => expect(sweeps).toBe(1), 10_000)
    sweeper.hurry()
    // The time of the hurry comes while the first sweep runs.
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(sweeps).toBe(1)
    end()
    await vi.waitFor(() => expect(sweeps).toBe(2), 10_000)
    await sweeper.close()
  })
})
