import { describe, expect, it } from 'vitest'
import { stopWatch, watchIdle } from '../../src/core/idle-watch.ts'

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
})
