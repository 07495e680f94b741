import { mutate } from './mutate.ts'

/** Calls every date strong. */
export const alwaysStrong = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    if (result.outcome === 'conflict') return result
    return { ...result, resource: { ...result.resource, dateIsStrong: true } }
  },
}))
