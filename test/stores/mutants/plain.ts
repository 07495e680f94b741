import { HttpError } from '../../../src/core/errors.ts'
import { isLargeBody, isResource, isStaged, nameOf } from '../../../src/stores/rules.ts'
import type { Content, ResourceStore, StagedBody, StoredResource } from '../../../src/stores/types.ts'
import { mutate, pause } from './mutate.ts'

type Stream = AsyncIterable<Uint8Array>

const isStream = (body: Content['body']): body is Stream => typeof body === 'object' && Symbol.asyncIterator in body

async function collect(body: Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks)
}

/** A store that writes other content than it was given. */
const writesContent = (change: (content: Content) => Content | Promise<Content>) =>
  mutate((sound) => ({ write: async (path, content, options) => sound.write(path, await change(content), options) }))

/** A store whose results of writes tell something else. */
const tellsOfWrites = (change: (resource: StoredResource) => Partial<StoredResource>) =>
  mutate((sound) => ({
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      if (result.outcome === 'conflict') return result
      return { ...result, resource: { ...result.resource, ...change(result.resource) } }
    },
  }))

/** A store whose lists have other items. */
const listsItems = (change: (items: readonly StoredResource[]) => readonly StoredResource[]) =>
  mutate((sound) => ({
    async list(collection, options) {
      const page = await sound.list(collection, options)
      return { ...page, items: change(page.items) }
    },
  }))

/** A store that names new members by itself. */
const names = (nameFor: (sound: ResourceStore, collection: string) => Promise<string>, expect: 'any' | 'absent') =>
  mutate((sound) => ({
    async create(collection, content) {
      for (;;) {
        const name = await nameFor(sound, collection)
        const own = typeof content === 'function' ? content(name) : content
        const whole = isStream(own.body) ? { ...own, body: await collect(own.body) } : own
        const result = await sound.write(`${collection}/${name}`, whole, { expect })
        if (result.outcome !== 'conflict') return { outcome: 'created', resource: result.resource }
      }
    },
  }))

const readNames = async (sound: ResourceStore, collection: string): Promise<number[]> =>
  (await sound.list(collection, { limit: 1000 })).items.map((item) => Number(nameOf(item.path)))

export const alwaysCreates = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'replaced' ? { ...result, outcome: 'created' } : result
  },
}))
export const tellsLaterDate = tellsOfWrites(({ lastModified }) => ({ lastModified: lastModified! + 1 }))
export const tellsSeconds = tellsOfWrites(({ lastModified }) => ({ lastModified: Math.floor(lastModified! / 1000) }))
export const tellsNoSize = tellsOfWrites(() => ({ size: 0 }))
export const overwrites = mutate((sound) => ({
  write: (path, content, { expect, ...options }) =>
    sound.write(path, content, { ...options, expect: expect === 'absent' ? 'any' : expect }),
}))
export const touchesNeighbours = mutate((sound) => ({
  async write(path, content, options) {
    const other = `${path.slice(0, -1)}1${path.slice(-1)}`
    const state = await sound.read(other)
    if (isResource(state)) await sound.write(other, state as Content, { expect: 'any' })
    return sound.write(path, content, options)
  },
}))
export const writesThenThrows = mutate((sound) => ({
  async write(path, content, { signal, ...options }) {
    const result = await sound.write(path, content, options)
    signal?.throwIfAborted()
    return result
  },
}))
export const tellsOtherVersion = mutate((sound) => ({
  async create(collection, content, options) {
    const result = await sound.create(collection, content, options)
    return result.outcome === 'created' ? { ...result, resource: { ...result.resource, version: 'x' } } : result
  },
}))
export const tellsCapitals = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    return isResource(state) ? { ...state, path: path.toUpperCase() } : state
  },
}))

const spells = (change: (path: string) => string) =>
  mutate((sound) => ({
    read: (path, options) => sound.read(change(path), options),
    write: (path, content, options) => sound.write(change(path), content, options),
  }))
export const ignoresCase = spells((path) => path.toLowerCase())
export const ignoresSlashes = spells((path) => path.replace(/(?<=.)\/+$/, ''))

export const paddedNames = mutate((sound) => ({
  async create(collection, content, options) {
    const result = await sound.create(collection, content, options)
    if (result.outcome !== 'created') return result
    return { ...result, resource: { ...result.resource, path: `${collection}/0${nameOf(result.resource.path)}` } }
  },
}))
export const passesOtherName = mutate((sound) => ({
  create: (collection, content, options) =>
    sound.create(collection, typeof content === 'function' ? () => content('77') : content, options),
}))
let next = 0
export const countsLate = names(async () => {
  const name = next
  await pause()
  next = name + 1
  return String(name + 1)
}, 'any')
export const countsAlone = mutate((sound) => {
  let last = 0
  return {
    async create(collection, content) {
      const name = String(++last)
      const own = typeof content === 'function' ? content(name) : content
      const result = await sound.write(`${collection}/${name}`, own, { expect: 'any' })
      return { outcome: 'created', resource: (result as { resource: StoredResource }).resource }
    },
  }
})
const maximum = async (sound: ResourceStore, collection: string): Promise<string> =>
  String(Math.max(0, ...(await readNames(sound, collection))) + 1)
export const namesBeforeContent = names(maximum, 'any')
export const namesOfTheRemoved = names(maximum, 'absent')
export const throwsAnother = mutate((sound) => ({
  async create(collection, content, options) {
    try {
      return await sound.create(collection, content, options)
    } catch (cause) {
      throw new Error('The creation failed.', { cause })
    }
  },
}))
export const emptyMembers = mutate((sound) => ({
  create: (collection, content, options) =>
    sound.create(collection, typeof content === 'function' ? content : { ...content, body: '' }, options),
}))

export const oneByteText = writesContent((content) =>
  typeof content.body === 'string' ? { ...content, body: Buffer.from(content.body, 'latin1') } : content,
)
export const endsAtEmptyChunk = writesContent((content) => {
  const { body } = content
  if (!isStream(body)) return content
  async function* cut(source: Stream) {
    for await (const chunk of source) {
      if (chunk.length === 0) return
      yield chunk
    }
  }
  return { ...content, body: cut(body) }
})
let shared: Buffer[] = []
export const sharesChunks = writesContent(async (content) => {
  if (!isStream(content.body)) return content
  for await (const chunk of content.body) shared.push(Buffer.from(chunk))
  const body = Buffer.concat(shared)
  shared = []
  return { ...content, body }
})
export const emptyForBroken = writesContent(async (content) => {
  if (!isStream(content.body)) return content
  try {
    return { ...content, body: await collect(content.body) }
  } catch {
    return { ...content, body: '' }
  }
})
export const showsTheBeginning = mutate((sound) => ({
  async write(path, content, options) {
    if (isStream(content.body)) await sound.write(path, { ...content, body: '' }, { expect: 'any' })
    return sound.write(path, content, options)
  },
}))

export const endlessNothing = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    return page.items.length === 0 ? { ...page, next: 'x' } : page
  },
}))
export const backwards = listsItems((items) => [...items].reverse())
export const listsNoContent = listsItems((items) => items.map((item) => ({ ...item, body: '', size: 0 })))
export const beginsAnew = mutate((sound) => ({
  async list(collection, options) {
    const { after } = options
    const isGone = after !== undefined && !isResource(await sound.read(`${collection}/${after}`))
    return sound.list(collection, { ...options, after: isGone ? undefined : after })
  },
}))
export const rootless = mutate((sound) => ({
  list: (collection, options) => (collection === '' ? { items: [] } : sound.list(collection, options)),
}))
/** Lists what was written last at the end: what changes is seen twice. */
export const inOrderOfWrites = mutate((sound) => {
  const order = new Map<string, number>()
  let count = 0
  return {
    async write(path, content, options) {
      order.set(path, ++count)
      return sound.write(path, content, options)
    },
    async list(collection, { after, limit }) {
      const all = [...(await sound.list(collection, { limit: 10_000 })).items]
      all.sort((a, b) => order.get(a.path)! - order.get(b.path)!)
      const rest = all.filter((item) => after === undefined || order.get(item.path)! > Number(after))
      const items = rest.slice(0, limit)
      return rest.length > limit ? { items, next: String(order.get(items.at(-1)!.path)) } : { items }
    },
  }
})

export const replacesTheHidden = mutate((sound) => ({
  async write(path, content, options) {
    const state = await sound.read(path, { hidden: true })
    const isHidden = isResource(state) && state.hidden === true && options.expect !== 'absent'
    return sound.write(path, content, isHidden ? { expect: 'any' } : options)
  },
}))
export const hidesContent = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    return isResource(state) && state.hidden === true ? { ...state, body: '', size: 0 } : state
  },
}))
export const removesAnyVersion = mutate((sound) => ({
  remove: (path, { expect, ...options }) =>
    sound.remove(path, { ...options, expect: typeof expect === 'object' ? 'present' : expect }),
}))
export const forgetsAll = mutate((sound) => ({
  remove: (path, { retention, ...options }) => sound.remove(path, { ...options, ...(retention && { retention: 20 }) }),
}))
export const removesTwice = mutate((sound) => ({
  async remove(path, options) {
    const before = await sound.read(path)
    await pause()
    await sound.remove(path, options)
    return isResource(before) ? { outcome: 'removed', resource: before } : { outcome: 'absent', current: undefined }
  },
}))

export const keepsRelated = mutate((sound) => ({
  async write(path, content, { related = [], ...options }) {
    const states = await Promise.all(related.map((write) => sound.read(write.path)))
    return sound.write(path, content, { ...options, related: related.filter((_, i) => !isResource(states[i])) })
  },
}))
export const createsAlone = mutate((sound) => ({ create: (collection, content) => sound.create(collection, content) }))
export const relatesLater = mutate((sound) => ({
  async write(path, content, { related = [], ...options }) {
    const result = await sound.write(path, content, options)
    await pause()
    await pause()
    for (const write of related) await sound.write(write.path, write.content, { expect: 'any' })
    return result
  },
}))

const stages = (change: (staged: StagedBody) => StagedBody) =>
  mutate((sound) => ({ stage: async (body, options) => change(await sound.stage!(body, options)) }))
export const stagesMore = stages((staged) => Object.assign(staged, { size: staged.size + 1 }))
export const stagesTheBeginning = mutate((sound) => ({
  async stage(body, options) {
    const whole = await collect(body)
    async function* half() {
      yield whole.subarray(0, whole.length >> 1)
    }
    return sound.stage!(half(), options)
  },
}))
export const discardsWhatWasWritten = mutate((sound) => {
  const paths = new Map<unknown, string>()
  return {
    async write(path, content, options) {
      if (isStaged(content.body)) paths.set(content.body, path)
      return sound.write(path, content, options)
    },
    async stage(body, options) {
      const staged = await sound.stage!(body, options)
      const discard = async (): Promise<void> => {
        const path = paths.get(staged)
        if (path !== undefined) await sound.remove(path, { expect: 'any', mode: 'erase' })
      }
      return Object.assign(staged, { discard })
    },
  }
})
export const takesForeign = mutate((sound) => ({
  async write(path, content, options) {
    try {
      return await sound.write(path, content, options)
    } catch {
      return sound.write(path, { ...content, body: '' }, options)
    }
  },
}))
export const failsOtherwise = mutate((sound) => ({
  async stage(body, options) {
    try {
      return await sound.stage!(body, options)
    } catch (cause) {
      throw new HttpError(500, 'ERR_INTERNAL', { cause })
    }
  },
  async write(path, content, options) {
    try {
      return await sound.write(path, content, options)
    } catch (cause) {
      throw new HttpError(500, 'ERR_INTERNAL', { cause })
    }
  },
}))
export const ignoresSignals = mutate((sound) => ({
  write: (path, content, { signal: _, ...options }) => sound.write(path, content, options),
}))
export const keepsListening = mutate((sound) => ({
  write(path, content, options) {
    options.signal?.addEventListener('abort', () => {})
    return sound.write(path, content, options)
  },
}))

type Open = (first: number, last: number) => AsyncIterable<Uint8Array>
const opens = (change: (open: Open) => Open) =>
  mutate((sound) => ({
    async read(path, options) {
      const state = await sound.read(path, options)
      if (!isResource(state) || typeof state.body === 'string') return state
      const { body } = state
      const open: Open = isLargeBody(body)
        ? (first, last) => body.open(first, last)
        : async function* slice(first, last) {
            yield body.subarray(first, last + 1)
          }
      return { ...state, body: { open: change(open) } }
    },
  }))
let latest: readonly [number, number] = [0, 0]
export const opensTheLatest = opens(
  (open) =>
    async function* read(first, last) {
      latest = [first, last]
      await pause()
      yield* open(...latest)
    },
)
export const opensAtOnce = opens(
  (open) =>
    async function* read(first, last) {
      yield await collect(open(first, last))
    },
)
export const opensOneLess = opens((open) => (first, last) => open(first, first === last ? last : last - 1))

export const undigestedMembers = mutate((sound) => ({
  async create(collection, content, options) {
    const result = await sound.create(collection, content, options)
    if (result.outcome !== 'created') return result
    const { sha256: _, ...resource } = result.resource
    return { ...result, resource }
  },
}))

async function* pass(body: Stream) {
  yield* body
}
/** Reads a stream again for another name. */
export const readsAgain = mutate((sound) => ({
  create(collection, content, options) {
    if (typeof content !== 'function') return sound.create(collection, content, options)
    const makeContent = (name: string): Content => {
      const own = content(name)
      const { body } = own
      return isStream(body) ? { ...own, body: pass(body) } : own
    }
    return sound.create(collection, makeContent, options)
  },
}))

export const repeatsMembers = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    const isRepeated = options.query?.where.some(
      (one) => 'values' in one && new Set(one.values).size < one.values.length,
    )
    return isRepeated ? { ...page, items: [...page.items, ...page.items] } : page
  },
}))
export const ordersAllOrNothing = mutate((sound) => ({
  list(collection, options) {
    const { query } = options
    const isUnordered = query !== undefined && query.where.length > 0
    return sound.list(collection, isUnordered ? { ...options, query: { ...query, orderBy: [] } } : options)
  },
}))
export const showsFirstContent = mutate((sound) => {
  const first = new Map<string, StoredResource['body']>()
  return {
    write(path, content, options) {
      if (typeof content.body === 'string' && !first.has(path)) first.set(path, content.body)
      return sound.write(path, content, options)
    },
    async list(collection, options) {
      const page = await sound.list(collection, options)
      if (options.query === undefined) return page
      return { ...page, items: page.items.map((item) => ({ ...item, body: first.get(item.path) ?? item.body })) }
    },
  }
})
export const selectsAmongNeighbours = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    if (options.query === undefined) return page
    const others = await sound.list(`${collection}s`, options)
    return { ...page, items: [...page.items, ...others.items] }
  },
}))
/** The cursor of a query is the number of members before it. */
export const offsetsInQueries = mutate((sound) => ({
  async list(collection, options) {
    if (options.query === undefined) return sound.list(collection, options)
    const { after = '0', limit } = options
    const page = await sound.list(collection, { ...options, after: undefined, limit: 10_000 })
    const end = Number(after) + limit
    const items = page.items.slice(Number(after), end)
    return page.items.length > end ? { ...page, items, next: String(end) } : { ...page, items }
  },
}))
/** Finds by queries what it has found before, also once that is removed with the path above it. */
export const findsTheRemoved = mutate((sound) => {
  const found = new Map<string, readonly StoredResource[]>()
  return {
    async list(collection, options) {
      const page = await sound.list(collection, options)
      if (options.query === undefined) return page
      if (page.items.length > 0) found.set(collection, page.items)
      return { ...page, items: found.get(collection) ?? page.items }
    },
  }
})
export const returnsNoContent = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    return result.outcome === 'removed' ? { ...result, resource: { ...result.resource, body: '', size: 0 } } : result
  },
}))
export const forgetsRecords = mutate((sound) => ({
  write: (path, content, { related = [], ...options }) =>
    sound.write(path, content, {
      ...options,
      related: related.map(({ expect, retention, ...write }) =>
        retention === undefined ? { ...write, ...(expect && { expect }) } : write,
      ),
    }),
}))

export const countsTheRemoved = mutate((sound) => {
  let removed = 0
  return {
    async remove(path, options) {
      const result = await sound.remove(path, options)
      if (result.outcome === 'removed') removed++
      return result
    },
    async list(collection, options) {
      const page = await sound.list(collection, options)
      return page.total === undefined ? page : { ...page, total: page.total + removed }
    },
  }
})
