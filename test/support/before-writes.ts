import type { ResourceStore } from '../../src/stores/types.ts'

/** A store in which something else happens right before every write, creation and removal. */
export function beforeWrites(store: ResourceStore, action: () => unknown): ResourceStore {
  return {
    ...store,
    async create(...request) {
      await action()
      return store.create(...request)
    },
    async write(...request) {
      await action()
      return store.write(...request)
    },
    async remove(...request) {
      await action()
      return store.remove(...request)
    },
  }
}
