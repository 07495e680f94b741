import { isResource } from '../../../src/stores/rules.ts'
import { mutate } from './mutate.ts'

/** Remembers the last removal only. */
export const lastTombstone = mutate((sound) => {
  let last: string | undefined
  return {
    async read(path, options) {
      const state = await sound.read(path, options)
      return isResource(state) || path === last ? state : undefined
    },
    remove(path, options) {
      last = path
      return sound.remove(path, options)
    },
  }
})

/** Forgets a tombstone when half of its retention is over. */
export const halfRetention = mutate((sound) => ({
  remove(path, options) {
    const { retention } = options
    return sound.remove(path, retention === undefined ? options : { ...options, retention: retention / 2 })
  },
}))

/** Keeps no tombstone for longer than half a second. */
export const longestRetention = mutate((sound) => ({
  remove(path, options) {
    return sound.remove(path, { ...options, retention: Math.min(options.retention ?? Number.POSITIVE_INFINITY, 500) })
  },
}))

/** Keeps a retention in a column, or a timer, of 32 bits. */
export const shortIntegers = mutate((sound) => ({
  remove(path, options) {
    const { retention } = options
    return sound.remove(path, retention === undefined ? options : { ...options, retention: retention | 0 })
  },
}))

/** Takes whole numbers only. */
export const wholeRetention = mutate((sound) => ({
  remove(path, options) {
    if (!Number.isSafeInteger(options.retention ?? 0)) throw new Error('The value is not an integer or out of range.')
    return sound.remove(path, options)
  },
}))
