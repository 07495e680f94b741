import { isLargeBody, isResource, nameOf } from '../../../src/stores/rules.ts'
import type { Content, Page, StoredResource, StoredState } from '../../../src/stores/types.ts'
import { mutate, pause } from './mutate.ts'
import { naive } from './naive-queries.ts'

/** Stores that are right in what they keep, and careless in what they return, remember, or leave to others. */

/** A store whose cursor of a list is made, and read, by others. */
const cursors = (format: (last: string, next: string) => string, parse: (cursor: string) => string) =>
  mutate((sound) => ({
    async list(collection, options) {
      const { after, query } = options
      if (query !== undefined) return sound.list(collection, options)
      const page = await sound.list(collection, { ...options, after: after && parse(after) })
      if (page.next === undefined) return page
      const behind = await sound.list(collection, { limit: 1, after: page.next })
      return { ...page, next: format(page.next, nameOf(behind.items[0]!.path)) }
    },
  }))
const before = (cursor: string): string => String(Number(cursor) - 1)
export const namesTheNext = cursors((_, next) => next, before)
export const namesBoth = cursors(
  (last, next) => Buffer.from(`${last} ${next}`).toString('base64url'),
  (cursor) => Buffer.from(cursor, 'base64url').toString().split(' ')[0]!,
)
const SHIFT = 77
export const hidesTheNext = cursors(
  (_, next) => String(Number(next) + SHIFT),
  (cursor) => before(String(Number(cursor) - SHIFT)),
)
export const namesTheNextOfQuery = naive(({ format, parse }) => ({
  page: (_, rest, { limit, query }) => {
    const [last, next] = [rest[limit - 1], rest[limit]]
    const items = rest.slice(0, limit).map(({ item }) => item)
    if (last === undefined || next === undefined) return { items }
    const keysOf = ({ values }: typeof last) => query!.orderBy.map(({ property }) => values[property] ?? null)
    const told = format({ keys: keysOf(next), name: next.name }, query!)
    return { items, next: `${format({ keys: keysOf(last), name: last.name }, query!)}\n${told}` }
  },
  parse: (cursor, query) => parse(cursor.split('\n')[0]!, query),
}))

export const failsForLongPaths = mutate((sound) => ({
  write(path, content, options) {
    if (path.length > 1024) throw new Error('Data too long for column.')
    return sound.write(path, content, options)
  },
}))

export const sharesItems = mutate((sound) => {
  const items: StoredResource[] = []
  return {
    async list(collection, options) {
      const page = await sound.list(collection, options)
      items.splice(0, Number.POSITIVE_INFINITY, ...page.items)
      return { ...page, items }
    },
  }
})
export const sharesABuffer = mutate((sound) => {
  const buffer = Buffer.alloc(100_000)
  return {
    async read(path, options) {
      const state = await sound.read(path, options)
      if (!isResource(state) || isLargeBody(state.body)) return state
      const bytes = Buffer.from(state.body)
      bytes.copy(buffer)
      return { ...state, body: buffer.subarray(0, bytes.length) }
    },
  }
})

export const createsWithoutSize = mutate((sound) => ({
  async create(collection, content, options) {
    const result = await sound.create(collection, content, options)
    return result.outcome === 'created' ? { ...result, resource: { ...result.resource, size: 0, body: '' } } : result
  },
}))
export const removesTheHidden = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    return result.outcome === 'removed' ? { ...result, resource: { ...result.resource, hidden: true } } : result
  },
}))
const emptied = <State extends StoredState>(state: State): State =>
  isResource(state) ? { ...state, body: '', size: 0 } : state
export const refusesWithoutContent = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' ? { ...result, current: emptied(result.current) } : result
  },
  async remove(path, options) {
    const result = await sound.remove(path, options)
    return result.outcome === 'conflict' ? { ...result, current: emptied(result.current) } : result
  },
}))
export const refusesWithTheStateBefore = mutate((sound) => ({
  async write(path, content, options) {
    const current = await sound.read(path)
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' ? { ...result, current } : result
  },
}))

/** A store that keeps some buffers instead of their bytes. @param find those of a call that is done */
const keepsBuffers = (find: 'created' | 'related') =>
  mutate((sound) => {
    const kept = new Map<string, Uint8Array>()
    const keep = async (path: string, { body }: Content): Promise<void> => {
      const state = await sound.read(path)
      if (isResource(state) && body instanceof Uint8Array) kept.set(state.version, body)
    }
    return {
      async read(path, options) {
        const state = await sound.read(path, options)
        return isResource(state) ? { ...state, body: kept.get(state.version) ?? state.body } : state
      },
      async create(collection, content, options) {
        const result = await sound.create(collection, content, options)
        if (find === 'created' && result.outcome === 'created' && typeof content !== 'function')
          await keep(result.resource.path, content)
        return result
      },
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        if (find === 'related') for (const write of options.related ?? []) await keep(write.path, write.content)
        return result
      },
    }
  })
export const keepsBuffersOfMembers = keepsBuffers('created')
export const keepsBuffersOfRelated = keepsBuffers('related')
export const ordersTheGiven = mutate((sound) => ({
  write(path, content, options) {
    const related = options.related as { path: string }[] | undefined
    related?.sort((a, b) => (a.path < b.path ? -1 : 1))
    return sound.write(path, content, options)
  },
}))

export const createsToTheEnd = mutate((sound) => ({
  async create(collection, content, { signal, ...options } = {}) {
    signal?.throwIfAborted()
    return sound.create(collection, content, options)
  },
}))
export const stagesToTheEnd = mutate((sound) => ({
  async stage(body, options) {
    const staged = await sound.stage!(body)
    options?.signal?.throwIfAborted()
    return staged
  },
}))
export const relatesToTheEnd = mutate((sound) => ({
  write(path, content, { signal, ...options }) {
    return sound.write(path, content, { ...options, ...(options.related === undefined && signal && { signal }) })
  },
}))
export const listensWhereItStages = mutate((sound) => ({
  stage(body, options) {
    options?.signal?.addEventListener('abort', () => {})
    return sound.stage!(body, options)
  },
}))

export const removesFirst = mutate((sound) => ({
  async remove(path, options) {
    const { relatedWrites = [], ...own } = options
    if (relatedWrites.some(({ expect }) => expect === 'absent')) return sound.remove(path, options)
    const result = await sound.remove(path, own)
    if (result.outcome === 'removed')
      for (const write of relatedWrites) await sound.write(write.path, write.content, { expect: 'any' })
    return result
  },
}))
export const keepsVersionsOfRelated = mutate((sound) => {
  const versions = new Map<string, string>()
  const show = <State extends StoredState>(state: State): State =>
    isResource(state) ? { ...state, version: versions.get(state.version) ?? state.version } : state
  return {
    read: async (path, options) => show(await sound.read(path, options)),
    async write(path, content, options) {
      const { related = [] } = options
      const states = await Promise.all(related.map((write) => sound.read(write.path)))
      const result = await sound.write(path, content, options)
      for (const [at, before] of states.entries()) {
        const after = await sound.read(related[at]!.path)
        if (isResource(before) && isResource(after)) versions.set(after.version, show(before).version)
      }
      return result
    },
  }
})
export const swallowsFaults = mutate((sound) => ({
  create: (collection, content, options = {}) =>
    sound.create(collection, content, {
      ...options,
      related(name, state) {
        try {
          return options.related?.(name, state) ?? []
        } catch {
          return []
        }
      },
    }),
}))

export const erasesToTheTombstone = mutate((sound) => {
  const tombstones = new Map<string, StoredState>()
  return {
    async read(path, options) {
      return (await sound.read(path, options)) ?? tombstones.get(path)
    },
    async remove(path, options) {
      const before = await sound.read(path)
      const result = await sound.remove(path, options)
      const state = await sound.read(path)
      if (isResource(before) && state !== undefined && !isResource(state)) tombstones.set(path, state)
      return result
    },
  }
})
export const forgetsItsTombstone = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    if (options.below === true && options.mode === 'tombstone') {
      await sound.write(path, { contentType: 'text/plain', body: '' }, { expect: 'any' })
      await sound.remove(path, { expect: 'any', mode: 'erase' })
    }
    return result
  },
}))
export const keepsTheFirstRetention = mutate((sound) => {
  const retentions = new Map<string, number>()
  return {
    remove(path, options) {
      const { retention = 60_000 } = options
      if (!retentions.has(path)) retentions.set(path, retention)
      return sound.remove(path, { ...options, retention: retentions.get(path) })
    },
  }
})

/** A store that remembers where nothing is, and learns by some calls only that something is there now. */
const remembersNothing = (deaf: 'create' | 'write' | 'remove') =>
  mutate((sound) => {
    const absent = new Set<string>()
    const learn = (method: string): void => void (method === deaf || absent.clear())
    return {
      async read(path, options) {
        if (absent.has(path)) return undefined
        const state = await sound.read(path, options)
        if (state === undefined) absent.add(path)
        return state
      },
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        absent.delete(path)
        learn('write')
        return result
      },
      async create(collection, content, options) {
        const result = await sound.create(collection, content, options)
        learn('create')
        return result
      },
      async remove(path, options) {
        const result = await sound.remove(path, options)
        learn('remove')
        return result
      },
    }
  })
export const remembersNothingAtMembers = remembersNothing('create')
export const remembersNothingAtRelated = remembersNothing('write')
export const remembersNothingAtWritten = remembersNothing('remove')

type Call = readonly [
  name: 'write' | 'create' | 'remove',
  options: { related?: unknown; below?: boolean; mode?: string },
]
/** A store that remembers pages, and forgets them with some calls only. */
const remembersPages = (ofQueries: boolean, isDeaf: (...call: Call) => unknown) =>
  mutate((sound) => {
    const pages = new Map<string, Page>()
    const learn = (...call: Call): void => void (isDeaf(...call) || pages.clear())
    return {
      async list(collection, options) {
        const { query, signal: _, ...rest } = options
        if ((query !== undefined) !== ofQueries) return sound.list(collection, options)
        const key = JSON.stringify([collection, rest, query])
        const page = pages.get(key) ?? (await sound.list(collection, options))
        pages.set(key, page)
        return page
      },
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        learn('write', options)
        return result
      },
      async create(collection, content, options = {}) {
        const result = await sound.create(collection, content, options)
        learn('create', options)
        return result
      },
      async remove(path, options) {
        const result = await sound.remove(path, options)
        learn('remove', options)
        return result
      },
    }
  })
export const answersWithoutNewMembers = remembersPages(true, (name) => name === 'create')
export const answersWithTheErased = remembersPages(true, (_, { mode }) => mode === 'erase')
export const answersWithWhatWasBelow = remembersPages(true, (_, { below }) => below)
export const listsWhatWasBelow = remembersPages(false, (_, { below }) => below)
export const listsRemovedFiles = remembersPages(false, (name, { related }) => name === 'remove' && related)

export const comparesVersionsLoosely = mutate((sound) => ({
  async write(path, content, options) {
    const state = await sound.read(path)
    const { expect } = options
    const isLike =
      isResource(state) && typeof expect === 'object' && expect.version.toLowerCase() === state.version.toLowerCase()
    return sound.write(path, content, isLike ? { ...options, expect: { version: state.version } } : options)
  },
}))
/** A store that looks, and then writes, in some calls only. */
const looks = (isCareless: (options: { related?: readonly unknown[]; requires?: string | undefined }) => boolean) =>
  mutate((sound) => ({
    async write(path, content, options) {
      const { expect } = options
      if (!isCareless(options) || typeof expect !== 'object') return sound.write(path, content, options)
      const state = await sound.read(path)
      await pause()
      const isSame = isResource(state) && state.version === expect.version
      return sound.write(path, content, isSame ? { ...options, expect: 'any' } : options)
    },
  }))
export const looksWhereItRelates = looks(({ related = [] }) => related.length > 0)
const expectsLess = (isCareless: (state: StoredState, mode: string) => boolean) =>
  mutate((sound) => ({
    async remove(path, options) {
      const isVersion = typeof options.expect === 'object'
      const isLess = isVersion && isCareless(await sound.read(path), options.mode)
      return sound.remove(path, isLess ? { ...options, expect: 'present' } : options)
    },
  }))
export const hidesAnyVersion = expectsLess((_, mode) => mode === 'hide')
export const removesAnyLarge = expectsLess((state) => isResource(state) && state.size > 100_000)
export const requiresOnly = mutate((sound) => ({
  write: (path, content, options) =>
    sound.write(path, content, options.requires === undefined ? options : { ...options, expect: 'any' }),
}))
