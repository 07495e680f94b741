import { isLargeBody, isResource } from '../../../src/stores/rules.ts'
import type { Page, StoredResource } from '../../../src/stores/types.ts'
import { mutate } from './mutate.ts'

export const keepsCallersBytes = mutate((sound) => {
  const given = new Map<string, Uint8Array>()
  return {
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      if (result.outcome !== 'conflict') {
        if (content.body instanceof Uint8Array) given.set(path, content.body)
        else given.delete(path)
      }
      return result
    },
    async read(path, options) {
      const state = await sound.read(path, options)
      const body = given.get(path)
      return isResource(state) && body !== undefined ? { ...state, body } : state
    },
  }
})
/** Shows the bytes of now at a state of before. */
export const livingBody = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    if (!isResource(state) || !isLargeBody(state.body)) return state
    return {
      ...state,
      body: {
        async *open(first, last) {
          const now = await sound.read(path, { hidden: true })
          if (!isResource(now) || !isLargeBody(now.body)) throw new Error('It is gone.')
          yield* now.body.open(first, last)
        },
      },
    }
  },
}))
export const reusedChunk = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    if (!isResource(state) || !isLargeBody(state.body)) return state
    const { body } = state
    return {
      ...state,
      body: {
        ...body,
        async *open(first, last) {
          for await (const chunk of body.open(first, last)) yield chunk.subarray(0, Math.max(1, chunk.length - 1))
        },
      },
    }
  },
}))
export const namesDescendInCollections = mutate((sound) => ({
  async list(collection, options): Promise<Page> {
    const page = await sound.list(collection, options)
    return { ...page, items: page.items.toReversed() }
  },
}))
export const cursorAlways = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    const last = page.items.at(-1)
    return last === undefined || page.items.length < options.limit
      ? page
      : { ...page, next: last.path.slice(collection.length + 1) }
  },
}))
export const failsForStrangeCursors = mutate((sound) => ({
  list(collection, options) {
    if (options.after?.includes('\u0000')) throw new Error('invalid byte sequence')
    return sound.list(collection, options)
  },
}))
export const staleMembers = mutate((sound) => {
  const kept = new Map<string, StoredResource>()
  return {
    async list(collection, options) {
      const page = await sound.list(collection, options)
      return {
        ...page,
        items: page.items.map((item) => {
          if (!kept.has(item.path)) kept.set(item.path, item)
          return kept.get(item.path)!
        }),
      }
    },
  }
})
export const retentionInSeconds = mutate((sound) => ({
  remove: (path, options) =>
    sound.remove(path, options.retention === undefined ? options : { ...options, retention: options.retention * 1000 }),
}))
export const mixesNames = mutate((sound) => ({
  create: (collection, content, options) =>
    sound.create(collection, typeof content === 'function' ? content('1') : content, options),
}))
/** Looks at the signal only before the call. */
export const waitsForSilentSources = mutate((sound) => ({
  write(path, content, { signal, ...options }) {
    signal?.throwIfAborted()
    return sound.write(path, content, options)
  },
}))
export const relatedExpectsAny = mutate((sound) => ({
  async write(path, content, { relatedTo, ...options }) {
    const result = await sound.write(path, content, options)
    if (result.outcome !== 'conflict')
      for (const write of relatedTo?.(result.resource) ?? [])
        await sound.write(write.path, write.content, { expect: 'any' })
    return result
  },
}))
export const relatedWithoutFacts = mutate((sound) => ({
  write: (path, content, { related, ...options }) =>
    sound.write(path, content, {
      ...options,
      ...(related && {
        related: related.map((write) => ({
          ...write,
          content: { contentType: write.content.contentType, body: write.content.body },
        })),
      }),
    }),
}))
export const writesRelatedTwice = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    if (result.outcome !== 'conflict' && options.related === undefined && options.relatedTo === undefined)
      await sound.write(
        `${path}/shadow`,
        content.body instanceof Uint8Array || typeof content.body === 'string'
          ? content
          : { contentType: 'a/b', body: '' },
        { expect: 'any' },
      )
    return result
  },
}))
export const presentIsAny = mutate((sound) => ({
  write: (path, content, options) =>
    sound.write(path, content, options.expect === 'present' ? { ...options, expect: 'any' } : options),
}))
export const removesAnyVersion = mutate((sound) => ({
  remove: (path, options) =>
    sound.remove(path, typeof options.expect === 'object' ? { ...options, expect: 'present' } : options),
}))
export const emptyVersionIsAny = mutate((sound) => ({
  write: (path, content, options) =>
    sound.write(
      path,
      content,
      typeof options.expect === 'object' && options.expect.version === '' ? { ...options, expect: 'any' } : options,
    ),
}))
/** A version of another path is good for this one. */
export const versionsOfOthers = mutate((sound) => {
  const all = new Set<string>()
  return {
    async write(path, content, options) {
      const current = await sound.read(path)
      const { expect } = options
      const isKnown =
        typeof expect === 'object' &&
        isResource(current) &&
        all.has(`!${path} ${expect.version}`) === false &&
        all.has(expect.version)
      const result = await sound.write(path, content, isKnown ? { ...options, expect: 'any' } : options)
      if (result.outcome !== 'conflict') {
        all.add(result.resource.version)
        all.add(`!${path} ${result.resource.version}`)
      }
      return result
    },
  }
})
