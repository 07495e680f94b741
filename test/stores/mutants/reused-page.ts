import { isResource, splitPath } from '../../../src/stores/rules.ts'
import type { ListOptions, Page, ResourceStore, StoredState } from '../../../src/stores/types.ts'
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

type Clear = (collection: string) => void

/**
 * A store that keeps pages.
 * @param keyOf tells pages of one collection apart
 * @param change makes calls that clear what is kept of some collections
 */
const keepsPages = (
  keyOf: (options: ListOptions) => unknown,
  change: (sound: ResourceStore, clear: Clear) => Partial<ResourceStore>,
) =>
  mutate((sound) => {
    const kept = new Map<string, Map<string, Page>>()
    return {
      async list(collection, options) {
        if (options.query !== undefined) return sound.list(collection, options)
        const pages = kept.get(collection) ?? new Map<string, Page>()
        kept.set(collection, pages)
        const key = JSON.stringify(keyOf(options))
        const page = pages.get(key) ?? (await sound.list(collection, options))
        pages.set(key, page)
        return page
      },
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        for (const { path: other } of [{ path }, ...(options.related ?? [])]) kept.delete(splitPath(other).collection)
        return result
      },
      async create(collection, content, options) {
        const result = await sound.create(collection, content, options)
        kept.clear()
        return result
      },
      async remove(path, options) {
        const result = await sound.remove(path, options)
        kept.clear()
        return result
      },
      ...change(sound, (collection) => kept.delete(collection)),
    }
  })

const PAGE = ({ limit, after, hidden = false }: ListOptions) => [limit, after, hidden]

export const pagesWithoutHidden = keepsPages(
  ({ limit, after }) => [limit, after],
  () => ({}),
)
export const pagesAfterCreation = keepsPages(PAGE, (sound) => ({ create: sound.create }))
export const pagesAfterHiding = keepsPages(PAGE, (sound, clear) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    if (options.mode !== 'hide') clear(splitPath(path).collection)
    return result
  },
}))
export const pagesAfterRelated = keepsPages(PAGE, (sound, clear) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    if (!options.related?.length) clear(splitPath(path).collection)
    return result
  },
}))
/** Keeps states, and clears those of the paths that a call names. */
export const statesBelow = mutate((sound) => {
  const kept = new Map<string, StoredState>()
  return {
    async read(path, options) {
      if (options !== undefined && (options.hidden || options.metadataOnly)) return sound.read(path, options)
      const state = kept.get(path) ?? (await sound.read(path, options))
      if (isResource(state)) kept.set(path, state)
      return state
    },
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      for (const other of [path, ...(options.related ?? []).map((write) => write.path)]) kept.delete(other)
      return result
    },
    async remove(path, options) {
      const result = await sound.remove(path, options)
      for (const other of [path, ...(options.related ?? [])]) kept.delete(other)
      return result
    },
  }
})
