import { describe, expect, it } from 'vitest'
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
})
