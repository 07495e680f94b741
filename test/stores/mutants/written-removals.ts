import { isResource } from '../../../src/stores/rules.ts'
import { fits, mutate, pause } from './mutate.ts'

/** Judges the state of the path before the paths that must be absent. */
export const judgesItselfFirst = mutate((sound) => ({
  async remove(path, options) {
    const current = await sound.read(path)
    return fits(current, options.expect) ? sound.remove(path, options) : { outcome: 'conflict', current }
  },
}))
/** Removes, and leaves out what the removal is to write. */
export const removesOnly = mutate((sound) => ({
  remove: (path, { relatedWrites: _, ...options }) => sound.remove(path, options),
}))

/** Writes what a removal brings, also where it does not happen. */
export const writesAnyway = mutate((sound) => ({
  async remove(path, { relatedWrites = [], ...options }) {
    for (const { path, content } of relatedWrites) await sound.write(path, content, { expect: 'any' })
    return sound.remove(path, options)
  },
}))

/** Writes what a removal brings whatever must be absent. */
export const removesRegardless = mutate((sound) => ({
  remove: (path, { relatedWrites = [], ...options }) =>
    sound.remove(path, {
      ...options,
      relatedWrites: relatedWrites.map(({ path, content }) => ({ path, content })),
    }),
}))

/** Removes what is below a path before it looks whether the removal may happen. */
export const removesBelowFirst = mutate((sound) => ({
  async remove(path, { below, relatedWrites = [], ...options }) {
    if (below !== true || relatedWrites.length === 0)
      return sound.remove(path, { ...options, below: below === true, relatedWrites })
    for (const { path: own } of (await sound.list(`${path}/parts`, { limit: 10 })).items) {
      await sound.remove(own, { expect: 'any', mode: 'erase' })
    }
    return sound.remove(path, { ...options, below, relatedWrites })
  },
}))

/** Leaves what is below a path where the removal writes. */
export const keepsBelow = mutate((sound) => ({
  remove: (path, { below, relatedWrites = [], ...options }) =>
    sound.remove(
      path,
      relatedWrites.length > 0 ? { ...options, relatedWrites } : { ...options, below: below === true },
    ),
}))

/** Looks whether a path is absent first, and removes later. */
export const looksThenRemoves = mutate((sound) => ({
  async remove(path, { relatedWrites = [], ...options }) {
    for (const write of relatedWrites) {
      const state = write.expect === 'absent' ? await sound.read(write.path) : undefined
      if (isResource(state)) return { outcome: 'conflict', current: await sound.read(path), related: state }
    }
    await pause()
    const plain = relatedWrites.map(({ path, content }) => ({ path, content }))
    return sound.remove(path, { ...options, relatedWrites: plain })
  },
}))
