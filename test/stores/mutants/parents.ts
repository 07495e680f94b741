import { memoryStore } from '../../../src/stores/memory.ts'
import { isResource } from '../../../src/stores/rules.ts'
import type { ResourceStore, WriteConflict } from '../../../src/stores/types.ts'
import { mutate, pause } from './mutate.ts'

export const deafToRequirements = mutate((sound) => ({
  write: (path, content, { requires: _, ...options }) => sound.write(path, content, options),
}))
export const creationsWithoutParent = mutate((sound) => ({
  create: (collection, content, { requires: _, ...options } = {}) => sound.create(collection, content, options),
}))

/** A store that judges the required path itself, and passes the rest on. */
const judging = (judge: (sound: ResourceStore, requires: string) => Promise<boolean> | boolean) =>
  mutate((sound) => {
    const refuse = (missing: string): WriteConflict & { missing: string } => ({
      outcome: 'conflict',
      current: undefined,
      missing,
    })
    return {
      async write(path, content, { requires, ...options }) {
        if (requires !== undefined && !(await judge(sound, requires))) return refuse(requires)
        return sound.write(path, content, options)
      },
      async create(collection, content, { requires, ...options } = {}) {
        if (requires !== undefined && !(await judge(sound, requires))) return refuse(requires)
        return sound.create(collection, content, options)
      },
    }
  })

export const hiddenParents = judging(async (sound, path) => isResource(await sound.read(path, { hidden: true })))
export const tombstonesAsParents = judging(async (sound, path) => (await sound.read(path)) !== undefined)
export const looksAtParentFirst = judging(async (sound, path) => {
  const isThere = isResource(await sound.read(path))
  await pause()
  return isThere
})
export const unnamedParent = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' ? { outcome: 'conflict', current: result.current } : result
  },
}))
export const parentIsThePath = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' && result.missing !== undefined ? { ...result, missing: path } : result
  },
}))
/** Judges the path itself before the required one. */
export const parentLast = mutate((sound) => ({
  async write(path, content, { requires, ...options }) {
    for (const write of options.related ?? []) {
      const state = write.expect === 'absent' ? await sound.read(write.path) : undefined
      if (isResource(state)) return { outcome: 'conflict', current: await sound.read(path), related: state }
    }
    return sound.write(path, content, { ...options, requires })
  },
}))
/** Names the required path in every conflict. */
export const alwaysMissing = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    const { requires } = options
    return result.outcome === 'conflict' && requires !== undefined ? { ...result, missing: requires } : result
  },
}))
/** Keeps the related paths of a write whose parent is missing. */
export const orphanedRecords = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    if (result.outcome === 'conflict' && result.missing !== undefined) {
      for (const write of options.related ?? []) await sound.write(write.path, write.content, { expect: 'any' })
    }
    return result
  },
}))

/** A store that removes what is below a path by itself: the collections that are given, and what `choose` says of them. */
function removing(
  choose: (path: string, parent: string, isHidden: boolean) => 'erase' | 'tombstone' | undefined,
  isAlways = false,
) {
  return (): ResourceStore => {
    const sound = memoryStore()
    const paths = new Set<string>()
    const note = (path: string): void => void paths.add(path)
    return {
      ...sound,
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        if (result.outcome !== 'conflict') note(path)
        return result
      },
      async create(collection, content, options) {
        const result = await sound.create(collection, content, options)
        if (result.outcome !== 'conflict') note(result.resource.path)
        return result
      },
      async remove(path, { below, ...options }) {
        const result = await sound.remove(path, options)
        if (!isAlways && (below !== true || result.outcome !== 'removed')) return result
        for (const other of paths) {
          const state = other === path ? undefined : await sound.read(other, { hidden: true })
          const mode = isResource(state) ? choose(other, path, state.hidden === true) : undefined
          if (mode === undefined || !isResource(state)) continue
          if (state.hidden === true)
            await sound.write(other, { contentType: 'text/plain', body: '' }, { expect: 'any' })
          await sound.remove(other, { expect: 'any', mode })
        }
        return result
      },
    }
  }
}

const isBelow = (path: string, parent: string): boolean => path.startsWith(`${parent}/`)

export const leavesAllBelow = removing(() => undefined)
export const directMembersOnly = removing((path, parent) =>
  isBelow(path, parent) && !path.slice(parent.length + 1).includes('/') ? 'erase' : undefined,
)
export const leavesHiddenBelow = removing((path, parent, isHidden) =>
  isBelow(path, parent) && !isHidden ? 'erase' : undefined,
)
export const tombstonesBelow = removing((path, parent) => (isBelow(path, parent) ? 'tombstone' : undefined))
/** As a database that keeps U+0000 in another spelling, where the range is made of the path itself. */
export const unspeltParent = removing((path, parent) =>
  isBelow(path, parent) && !parent.includes('\0') ? 'erase' : undefined,
)
export const beyondSpeltParent = removing((path, parent) =>
  isBelow(path, parent) || (parent.includes('\0') && path.startsWith(parent)) ? 'erase' : undefined,
)
export const bareParentPrefix = removing((path, parent) => (path.startsWith(parent) ? 'erase' : undefined))
export const likeParent = removing((path, parent) => {
  const pattern = parent
    .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    .replaceAll('%', '.*')
    .replaceAll('_', '.')
  return new RegExp(`^${pattern}/`, 's').test(path) ? 'erase' : undefined
})
/** A range of the index that ends one character too late. */
export const rangeBeyondParent = removing((path, parent) =>
  path > `${parent}/` && path < `${parent}1` ? 'erase' : undefined,
)
export const caseInsensitiveParent = removing((path, parent) =>
  isBelow(path.toLowerCase(), parent.toLowerCase()) ? 'erase' : undefined,
)
export const alwaysRemovesBelow = removing((path, parent) => (isBelow(path, parent) ? 'erase' : undefined), true)
export const removesBelowNothing = mutate((sound) => ({
  async remove(path, options) {
    const result = await sound.remove(path, options)
    if (options.below !== true || result.outcome !== 'absent') return result
    await sound.write(path, { contentType: 'text/plain', body: '' }, { expect: 'any' })
    await sound.remove(path, options)
    return result
  },
}))
/** Removes what is below in steps of its own, after the path. */
export const removesBelowLater = mutate((sound) => ({
  async remove(path, { below, ...options }) {
    const result = await sound.remove(path, options)
    if (below !== true || result.outcome !== 'removed') return result
    for (const collection of [`${path}/parts`, `${path}/items`, path]) {
      const { items } = await sound.list(collection, { limit: 1000 })
      await pause()
      for (const item of items) await sound.remove(item.path, { expect: 'any', mode: 'erase' })
    }
    return result
  },
  write: (path, content, { requires: _, ...options }) => sound.write(path, content, options),
}))
/** Counts again from 1 below a path that is made again. */
export const countsAgainBelow = mutate((sound) => {
  const counts = new Map<string, number>()
  return {
    async create(collection, content, options) {
      const count = (counts.get(collection) ?? 0) + 1
      counts.set(collection, count)
      if (!collection.endsWith('/parts')) return sound.create(collection, content, options)
      const own = typeof content === 'function' ? content(String(count)) : content
      const result = await sound.write(`${collection}/${count}`, own, { expect: 'any' })
      if (result.outcome === 'conflict') throw new Error('A write without a condition was refused.')
      return { outcome: 'created', resource: result.resource }
    },
    async remove(path, options) {
      if (options.below === true) for (const known of counts.keys()) if (isBelow(known, path)) counts.delete(known)
      return sound.remove(path, options)
    },
  }
})
