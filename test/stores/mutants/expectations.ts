import { isResource } from '../../../src/stores/rules.ts'
import type { RelatedWrite } from '../../../src/stores/types.ts'
import { mutate, pause } from './mutate.ts'

const forget = (writes: readonly RelatedWrite[]): readonly RelatedWrite[] =>
  writes.map(({ path, content }) => ({ path, content }))

/** Writes related paths whatever they expect. */
export const deafToExpectations = mutate((sound) => ({
  write: (path, content, { related = [], ...options }) =>
    sound.write(path, content, { ...options, related: forget(related) }),
  create: (collection, content, { related, ...options } = {}) =>
    sound.create(collection, content, { ...options, related: (name, state) => forget(related?.(name, state) ?? []) }),
}))

/** The same in creations only. */
export const deafInCreations = mutate((sound) => ({
  create: (collection, content, { related, ...options } = {}) =>
    sound.create(collection, content, { ...options, related: (name, state) => forget(related?.(name, state) ?? []) }),
}))

/** Looks at related paths first and writes later: others come between. */
export const looksThenWrites = mutate((sound) => ({
  async write(path, content, { related = [], ...options }) {
    for (const write of related) {
      const state = write.expect === 'absent' ? await sound.read(write.path) : undefined
      if (isResource(state)) return { outcome: 'conflict', current: await sound.read(path), related: state }
    }
    await pause()
    return sound.write(path, content, { ...options, related: forget(related) })
  },
}))

/** Does not say which related path was there. */
export const silentConflict = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    return result.outcome === 'conflict' ? { outcome: 'conflict', current: result.current } : result
  },
}))

/** Takes what was removed or hidden for something that is there. */
export const ghostly = mutate((sound) => ({
  async write(path, content, options) {
    for (const write of options.related ?? []) {
      const state = write.expect === 'absent' ? await sound.read(write.path) : undefined
      if (state !== undefined && !isResource(state)) return { outcome: 'conflict', current: await sound.read(path) }
    }
    return sound.write(path, content, options)
  },
}))

/** Keeps the records of steps that met a conflict at the path itself. */
export const leavesRecords = mutate((sound) => ({
  async write(path, content, { related = [], ...options }) {
    const result = await sound.write(path, content, { ...options, related })
    if (result.outcome === 'conflict' && result.related === undefined) {
      for (const write of related) await sound.write(write.path, write.content, { expect: 'absent' })
    }
    return result
  },
}))

/** Tells the version of another state. */
export const wrongVersion = mutate((sound) => ({
  write: (path, content, { relatedTo, ...options }) =>
    sound.write(path, content, {
      ...options,
      ...(relatedTo && { relatedTo: ({ version }) => relatedTo({ version: `${version}0` }) }),
    }),
}))

/** Tells creations nothing of the new state. */
export const tellsNoState = mutate((sound) => ({
  create: (collection, content, { related, ...options } = {}) =>
    sound.create(collection, content, { ...options, ...(related && { related: (name) => related(name) }) }),
}))

/** Gives the state that the loser wanted to write in place of that which is there. */
export const showsTheLoser = mutate((sound) => ({
  async write(path, content, options) {
    const result = await sound.write(path, content, options)
    if (result.outcome !== 'conflict' || result.related === undefined) return result
    const { related } = result
    const own = options.related?.find((write) => write.path === related.path)?.content.body
    return { ...result, related: { ...related, body: String(own), size: String(own).length } }
  },
}))
