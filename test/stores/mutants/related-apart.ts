import { mutate, pause } from './mutate.ts'

/** Writes related paths in steps of their own. */
export const relatedApart = mutate((sound) => ({
  async write(path, content, { related = [], ...options }) {
    const result = await sound.write(path, content, options)
    for (const other of related) {
      await pause()
      await sound.write(other.path, other.content, { expect: 'any' })
    }
    return result
  },
}))
