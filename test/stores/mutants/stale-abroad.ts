import { memoryStore } from '../../../src/stores/memory.ts'
import type { Page, ResourceStore } from '../../../src/stores/types.ts'
import type { StoreFixture } from '../../../src/testing.ts'

/** A process that keeps pages until it writes itself. */
function openStale(sound: ResourceStore, isFresh: (page: Page, current: Page) => boolean): ResourceStore {
  const pages = new Map<string, Page>()
  const forget = (): void => pages.clear()
  return {
    ...sound,
    async list(collection, options) {
      const key = JSON.stringify([collection, options])
      const known = pages.get(key)
      const current = await sound.list(collection, options)
      if (known !== undefined && isFresh(known, current)) return known
      pages.set(key, current)
      return current
    },
    write(...call) {
      forget()
      return sound.write(...call)
    },
    create(...call) {
      forget()
      return sound.create(...call)
    },
    remove(...call) {
      forget()
      return sound.remove(...call)
    },
  }
}

function createStale(isFresh: (page: Page, current: Page) => boolean): StoreFixture {
  const sound = memoryStore()
  return { store: openStale(sound, isFresh), reopen: () => openStale(sound, isFresh) }
}

/** Shows a page of before what another process has written. */
export const staleAbroad = (): StoreFixture => createStale(() => true)

/** Takes a page for current while it has as many members as before. */
export const staleWhileAsMany = (): StoreFixture =>
  createStale((page, current) => page.items.length === current.items.length)
