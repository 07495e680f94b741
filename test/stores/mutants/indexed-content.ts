import type { IndexedValues } from '../../../src/stores/lists.ts'
import { memoryStore } from '../../../src/stores/memory.ts'
import { isLargeBody, isResource } from '../../../src/stores/rules.ts'
import type { ResourceStore, StoredResource } from '../../../src/stores/types.ts'
import type { StoreFixture } from '../../../src/testing.ts'
import { mutate } from './mutate.ts'
import { naive, refuse, stripped } from './naive-queries.ts'

/** Finds members by the values that they were written with, and no others. */
export const onlyWrittenValues = naive(() => ({
  valuesOf: (item, index) => (item.indexed?.index.version === index.version ? item.indexed.values : {}),
}))
/** Leaves members out that were written without values. */
export const leavesOut = naive(({ isListed }) => ({
  isListed: (item, hidden) => item.indexed !== undefined && isListed(item, hidden),
}))
/** Takes values that were made by other rules. */
export const anyRules = naive(({ valuesOf }) => ({
  valuesOf: (item, index, sound) => item.indexed?.values ?? valuesOf(item, index, sound),
}))
export const smallContentOnly = naive(({ valuesOf }) => ({
  valuesOf: (item, index, sound) => (isLargeBody(item.body) ? {} : valuesOf(item, index, sound)),
}))
export const hiddenUnindexed = naive(({ valuesOf }) => ({
  valuesOf: (item, index, sound) => (item.hidden === true ? {} : valuesOf(item, index, sound)),
}))
/** Keeps the values that a path had when it was first looked at. */
export const firstValues = naive(({ valuesOf }) => {
  const known = new Map<string, IndexedValues | Promise<IndexedValues>>()
  return {
    valuesOf(item, index, sound) {
      const key = `${index.version} ${item.path}`
      if (!known.has(key) || item.indexed !== undefined) known.set(key, valuesOf(item, index, sound))
      return known.get(key)!
    },
  }
})
/** Keeps values by the name of the member only: collections share them. */
export const sharedAmongCollections = naive(({ valuesOf }) => {
  const known = new Map<
    string,
    { readonly item: StoredResource; readonly values: IndexedValues | Promise<IndexedValues> }
  >()
  return {
    valuesOf(item, index, sound) {
      const key = `${index.version} ${item.path.slice(item.path.lastIndexOf('/'))}`
      if (known.get(key)?.item.size !== item.size) known.set(key, { item, values: valuesOf(item, index, sound) })
      return known.get(key)!.values
    },
  }
})
export const forgetsRelatedValues = mutate((sound) => ({
  write: (path, content, { related = [], ...options }) =>
    sound.write(path, content, {
      ...options,
      ...(options.relatedTo === undefined && {
        related: related.map((write) => ({ ...write, content: stripped(write.content) })),
      }),
    }),
}))
export const forgetsValues = mutate((sound) => ({
  write: (path, content, options) => sound.write(path, stripped(content), options),
}))
export const forgetsCreatedValues = mutate((sound) => ({
  create: (collection, content, options) =>
    sound.create(collection, (name) => stripped(typeof content === 'function' ? content(name) : content), options),
}))
/** Lists states without the values that reads have. */
export const valuelessListing = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    return { ...page, items: page.items.map(({ indexed: _, ...item }) => item) }
  },
}))
/** Keeps the object that it was given. */
export const keptValues = mutate((sound) => {
  const given = new Map<string, IndexedValues>()
  return {
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      if (result.outcome !== 'conflict' && content.indexed !== undefined) given.set(path, content.indexed.values)
      return result
    },
    async read(path, options) {
      const state = await sound.read(path, options)
      const values = given.get(path)
      return isResource(state) && state.indexed && values ? { ...state, indexed: { ...state.indexed, values } } : state
    },
  }
})
/** Gives the values of the state before, where a new one has none. */
export const lastingValues = mutate((sound) => {
  const last = new Map<string, StoredResource['indexed']>()
  return {
    async read(path, options) {
      const state = await sound.read(path, options)
      if (!isResource(state)) return state
      if (state.indexed !== undefined) last.set(path, state.indexed)
      const indexed = state.indexed ?? last.get(path)
      return indexed === undefined ? state : { ...state, indexed }
    },
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      if (content.indexed !== undefined) last.set(path, content.indexed)
      return result
    },
  }
})
/** Answers queries from what was there when they were first asked. */
export const staleQueries = mutate((sound) => {
  const pages = new Map<string, Awaited<ReturnType<ResourceStore['list']>>>()
  return {
    async list(collection, options) {
      const key = JSON.stringify([collection, options])
      const page = pages.get(key) ?? (await sound.list(collection, options))
      if (options.query !== undefined && page.items.length > 0) pages.set(key, page)
      return page
    },
  }
})
export const indexesForever = mutate((sound) => ({
  list: (collection, options) => (options.query?.where.length === 0 ? refuse() : sound.list(collection, options)),
}))
export const refusesWithoutTime = mutate((sound) => {
  let refused = 0
  return {
    list: (collection, options) =>
      options.query !== undefined && refused++ === 0 ? refuse({}) : sound.list(collection, options),
  }
})
/** Fails every call while members are indexed. */
export const standsStill = mutate((sound) => {
  let until = 0
  const check = (): void => {
    if (Date.now() < until) refuse()
  }
  return {
    list(collection, options) {
      check()
      if (options.query !== undefined && until === 0) {
        until = Date.now() + 30
        refuse()
      }
      return sound.list(collection, options)
    },
    read(path, options) {
      check()
      return sound.read(path, options)
    },
  }
})
export const silentProgress = mutate((sound) => ({
  list: (collection, { query, ...options }) =>
    sound.list(
      collection,
      query === undefined ? options : { ...options, query: { ...query, index: { ...query.index, report: undefined } } },
    ),
}))
export const reportsTooEarly = mutate((sound) => {
  let hasReported = false
  return {
    list(collection, { query, ...options }) {
      if (query === undefined) return sound.list(collection, options)
      // Once: on a busy machine the kit asks again, and what is reported then would be the last.
      if (!hasReported) query.index.report?.({ indexed: 0, isDone: true })
      hasReported = true
      return sound.list(collection, { ...options, query })
    },
  }
})

/** Each process finds members by the values that it has seen itself first. */
export function processLocal(): StoreFixture {
  const sound = memoryStore()
  const open = (): ResourceStore => {
    const seen = new Map<string, Awaited<ReturnType<ResourceStore['list']>>>()
    return {
      ...sound,
      async list(collection, options) {
        const key = JSON.stringify([collection, options.query?.where, options.after, options.limit])
        const page = options.query === undefined ? undefined : seen.get(key)
        const current = page ?? (await sound.list(collection, options))
        if (options.query !== undefined) seen.set(key, current)
        return current
      },
      write(...call) {
        seen.clear()
        return sound.write(...call)
      },
      remove(...call) {
        seen.clear()
        return sound.remove(...call)
      },
    }
  }
  return { store: open(), reopen: open }
}

/** A process that opens the data begins with an index of what is written with values from then on. */
export function forgetsProgress(): StoreFixture {
  const sound = memoryStore()
  const unindexed = new Set<string>()
  const create = naive(
    ({ isListed }) => ({
      isListed: (item, hidden) => !unindexed.has(item.path) && isListed(item, hidden),
    }),
    () => sound,
  )
  return {
    store: sound,
    async reopen() {
      const { items } = await sound.list('/things', { limit: 1_000_000 })
      for (const item of items) if (item.indexed === undefined && item.path.endsWith('0')) unindexed.add(item.path)
      return create()
    },
  }
}
