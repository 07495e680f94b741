import { mutate } from './mutate.ts'

/** Goes on whatever the signal says. */
export const deafToSignals = mutate((sound) => ({
  write: (path, content, { signal: _, ...options }) => sound.write(path, content, options),
  create: (collection, content, { signal: _, ...options } = {}) => sound.create(collection, content, options),
  remove: (path, { signal: _, ...options }) => sound.remove(path, options),
}))
