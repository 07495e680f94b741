import { isResource } from '../../../src/stores/types.ts'
import { mutate, pause } from './mutate.ts'

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
