import { isResource } from '../../../src/stores/rules.ts'
import type { ResourceStore, StoredResource, StoredState } from '../../../src/stores/types.ts'
import { mutate } from './mutate.ts'

function changeReads(
  change: (state: StoredResource) => StoredResource,
  sound: ResourceStore,
): Pick<ResourceStore, 'read'> {
  return {
    async read(path, options): Promise<StoredState> {
      const state = await sound.read(path, options)
      return isResource(state) ? change(state) : state
    },
  }
}

/** Keeps the digest that a path had first. */
export const firstDigest = mutate((sound) => {
  const first = new Map<string, Uint8Array>()
  return changeReads((state) => {
    if (state.sha256 === undefined) return state
    if (!first.has(state.path)) first.set(state.path, state.sha256)
    return { ...state, sha256: first.get(state.path) }
  }, sound)
})

/** Has no digest in listings. */
export const undigestedListing = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    return { ...page, items: page.items.map((item) => ({ ...item, sha256: undefined })) }
  },
}))

/** Gives the bytes of the digest in reverse. */
export const reversedDigest = mutate((sound) =>
  changeReads((state) => (state.sha256 === undefined ? state : { ...state, sha256: state.sha256.toReversed() }), sound),
)
