import { isResource, splitPath } from '../../../src/stores/rules.ts'
import type { StoredResource, StoredState, Tombstone } from '../../../src/stores/types.ts'
import { mutate } from './mutate.ts'

/** Removes nothing but the path itself. */
export const leavesRelated = mutate((sound) => ({
  remove: (path, { related: _, ...options }) => sound.remove(path, options),
}))
export const erasesRelated = mutate((sound) => ({
  async remove(path, { related = [], ...options }) {
    const result = await sound.remove(path, options)
    if (result.outcome === 'removed')
      for (const other of related) await sound.remove(other, { expect: 'any', mode: 'erase' })
    return result
  },
}))
export const removesRelatedAlways = mutate((sound) => ({
  async remove(path, { related = [], ...options }) {
    for (const other of related) await sound.remove(other, { expect: 'any', mode: options.mode })
    return sound.remove(path, options)
  },
}))
export const tombstonesForAll = mutate((sound) => ({
  remove: (path, options) =>
    sound.remove(path, { ...options, mode: options.mode === 'erase' ? 'tombstone' : options.mode }),
}))
export const hidesAsTombstone = mutate((sound) => ({
  remove: (path, options) =>
    sound.remove(path, { ...options, mode: options.mode === 'hide' ? 'tombstone' : options.mode }),
}))
export const returnsNewState = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    return result.outcome === 'removed' ? { ...result, resource: { ...result.resource, body: '', size: 0 } } : result
  },
}))
export const absentForConflict = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    return result.outcome === 'conflict' && !isResource(result.current)
      ? { outcome: 'absent', current: result.current }
      : result
  },
}))
export const forgetsTombstoneInConflict = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' && !isResource(result.current) ? { ...result, current: undefined } : result
  },
}))
export const forgetsTombstoneInRefusal = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    return result.outcome === 'conflict' && !isResource(result.current) ? { ...result, current: undefined } : result
  },
}))
/** Tells a client about a hidden state. */
export const tellsHidden = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' && result.current !== undefined
      ? { ...result, current: await sound.read(path, { hidden: true }) }
      : result
  },
}))
export const replacesHidden = mutate((sound) => ({
  async write(path, content, options) {
    const before = await sound.read(path, { hidden: true })
    const result = await sound.write(path, content, options)
    return result.outcome === 'created' && isResource(before) ? { ...result, outcome: 'replaced' } : result
  },
}))
export const staysHidden = mutate((sound) => ({
  async write(path, content, options) {
    const before = await sound.read(path, { hidden: true })
    const result = await sound.write(path, content, options)
    if (isResource(before) && before.hidden === true && result.outcome === 'created')
      await sound.remove(path, { expect: 'any', mode: 'hide' })
    return result
  },
}))
export const keepsTombstone = mutate((sound) => {
  const gone = new Map<string, StoredState>()
  return {
    async remove(path, options) {
      const result = await sound.remove(path, options)
      const state = await sound.read(path)
      if (options.mode === 'tombstone' && state !== undefined) gone.set(path, state)
      return result
    },
    async read(path, options) {
      return (await sound.read(path, options)) ?? gone.get(path)
    },
  }
})
/** Remembers when a tombstone ends, also when its path is written anew. */
export const timedTombstone = mutate((sound) => {
  const ends = new Map<string, number>()
  return {
    remove(path, options) {
      const { mode, retention } = options
      if (mode === 'tombstone' && retention !== undefined) ends.set(path, Date.now() + retention)
      return sound.remove(path, options)
    },
    read(path, options) {
      const end = ends.get(path) ?? Number.POSITIVE_INFINITY
      return Date.now() < end ? sound.read(path, options) : undefined
    },
  }
})
const timing = (unit: number) =>
  mutate((sound) => ({
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      for (const { path, retention } of options.related ?? []) {
        const end = () => sound.remove(path, { expect: 'any', mode: 'erase' })
        if (retention !== undefined && retention >= unit) setTimeout(end, Math.min(retention / unit, 60_000)).unref()
      }
      return result
    },
  }))
/** Removes a record by a timer that the next write does not stop. */
export const timedRecords = timing(1)
/** Takes the milliseconds of a retention for microseconds. */
export const forgetsRecords = timing(1000)
/** Keeps a retention in a column of whole numbers. */
export const wholeRecords = mutate((sound) => ({
  async write(path, content, options) {
    for (const { retention = 0 } of options.related ?? []) {
      if (!Number.isSafeInteger(retention)) throw new Error(`${retention} is not an integer, or is out of range.`)
    }
    return sound.write(path, content, options)
  },
}))
/** Keeps a retention in a column, or a timer, of 32 bits. */
export const shortRecords = mutate((sound) => ({
  write(path, content, options) {
    const related = options.related?.map(({ retention, ...write }) =>
      retention === undefined ? write : { ...write, retention: retention | 0 },
    )
    return sound.write(path, content, { ...options, ...(related && { related }) })
  },
}))
export const removesByPrefix = mutate((sound) => ({
  async remove(path, options) {
    const { expect } = options
    const state = await sound.read(path)
    const isSame = typeof expect === 'object' && isResource(state) && state.version.startsWith(expect.version)
    return sound.remove(path, isSame ? { ...options, expect: 'present' } : options)
  },
}))
export const noTombstoneWithHidden = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    return options?.hidden === true && !isResource(state) ? undefined : state
  },
}))
export const hiddenSinceEver = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    const isHidden = isResource(await sound.read(path, { hidden: true }))
    return isHidden && state !== undefined && !isResource(state) ? { ...state, removedAt: 0 } : state
  },
}))
/** Leaves hidden members out of a page that they have had a place on. */
export const hidesAfterLimit = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, { ...options, hidden: true })
    return { ...page, items: page.items.filter(({ hidden }) => options.hidden === true || hidden !== true) }
  },
}))
/** Looks at the signal of a stage only while content comes in. */
export const stagesAfterAbort = mutate((sound) => ({
  stage: (body, options) => sound.stage!(body, options?.signal?.aborted === true ? {} : options),
}))
/** Takes every expectation for a version. */
export const removesVersionsOnly = mutate((sound) => ({
  remove: (path, { expect, ...options }) =>
    sound.remove(path, { ...options, expect: expect === 'present' ? { version: expect } : expect }),
}))
/** Keeps the row of a tombstone, and replaces it. */
export const replacesTombstone = mutate((sound) => ({
  async write(path, content, options) {
    const before = await sound.read(path)
    const result = await sound.write(path, content, options)
    const isReplaced = options.expect === 'any' && before !== undefined
    return isReplaced && result.outcome === 'created' ? { ...result, outcome: 'replaced' } : result
  },
}))
/** Lists all that is not live as hidden. */
export const listsTombstones = mutate((sound) => {
  const gone = new Map<string, StoredResource>()
  return {
    async remove(path, options) {
      const result = await sound.remove(path, options)
      if (result.outcome === 'removed' && options.mode === 'tombstone') gone.set(path, result.resource)
      return result
    },
    async list(collection, options) {
      const page = await sound.list(collection, options)
      const others = [...gone.values()].filter(({ path }) => splitPath(path).collection === collection)
      if (options.hidden !== true) return page
      return { ...page, items: [...page.items, ...others.map((state) => ({ ...state, hidden: true }))] }
    },
  }
})
export const tellsHiddenWhereNothingIs = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    const current = (await sound.read(path, { hidden: true })) as Tombstone | undefined
    return result.outcome === 'absent' ? { ...result, current } : result
  },
}))
/** Has a row of a removed record in the way of a new item. */
export const createsBesideNoRow = mutate((sound) => ({
  async create(collection, content, options) {
    for (const { path } of options?.related?.('1', { version: '1' }) ?? []) {
      const related = await sound.read(path)
      if (related !== undefined && !isResource(related))
        return { outcome: 'conflict', current: undefined, related: related as never }
    }
    return sound.create(collection, content, options)
  },
}))
export const hidesTwice = mutate((sound) => ({
  async remove(path, options) {
    const state = await sound.read(path, { hidden: true })
    const isAgain = options.mode === 'hide' && options.expect === 'any' && isResource(state) && state.hidden === true
    return isAgain ? { outcome: 'removed', resource: state } : sound.remove(path, options)
  },
}))
/** Knows the versions of the paths themselves that were removed, and not those of the paths beside them. */
export const repeatsVersionsOfRelated = mutate((sound) => {
  const before = new Map<string, string>()
  const repeat = <State extends StoredState>(path: string, state: State): State => {
    const version = before.get(path)
    return version !== undefined && isResource(state) ? { ...state, version } : state
  }
  return {
    read: async (path, options) => repeat(path, await sound.read(path, options)),
    async write(path, content, options) {
      const result = await sound.write(path, content, options)
      return result.outcome === 'conflict' ? result : { ...result, resource: repeat(path, result.resource) }
    },
    async remove(path, options) {
      for (const other of options.related ?? []) {
        const state = await sound.read(other)
        if (isResource(state)) before.set(other, state.version)
      }
      return sound.remove(path, options)
    },
  }
})
