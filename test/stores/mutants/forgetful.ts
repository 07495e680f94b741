import { memoryStore } from '../../../src/stores/memory.ts'
import { isResource } from '../../../src/stores/rules.ts'
import type { ResourceStore } from '../../../src/stores/types.ts'
import type { StoreFixture } from '../../../src/testing.ts'

/** Says that it is durable, and begins with nothing every time. */
export function forgetful(): StoreFixture {
  return { store: memoryStore(), reopen: () => memoryStore() }
}

/** Dates every removal anew when it is opened again. */
export function datesRemovalsAnew(): StoreFixture {
  const store = memoryStore()
  const reopened: ResourceStore = {
    ...store,
    async read(path, options) {
      const state = await store.read(path, options)
      return state === undefined || isResource(state) ? state : { ...state, removedAt: state.removedAt + 1000 }
    },
  }
  return { store, reopen: () => reopened }
}
