import type { Page } from '../../../src/stores/types.ts'
import { mutate } from './mutate.ts'

/** Fills one page object repeatedly: what callers have kept on it belongs to what was on it before. */
export const reusedPage = mutate((sound) => {
  const page = {} as { -readonly [Name in keyof Page]: Page[Name] }
  return {
    async list(collection, options) {
      const { items, next } = await sound.list(collection, options)
      page.items = items
      page.next = next
      return page
    },
  }
})
