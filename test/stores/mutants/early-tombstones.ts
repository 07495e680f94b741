import { isResource } from '../../../src/stores/types.ts'
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
