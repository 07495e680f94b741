import { isLargeBody, isResource } from '../../../src/stores/rules.ts'
import type { Content, ReadOptions, StoredResource, StoredState } from '../../../src/stores/types.ts'
import { mutate } from './mutate.ts'

/** A store that changes every state which it returns. */
const showing = (change: (state: StoredResource) => StoredResource) =>
  mutate((sound) => {
    const show = <State extends StoredState>(state: State) => (isResource(state) ? change(state) : state) as State
    return {
      read: async (path, options) => show(await sound.read(path, options)),
      async list(collection, options) {
        const page = await sound.list(collection, options)
        return { ...page, items: page.items.map(show) }
      },
      async write(path, content, options) {
        const result = await sound.write(path, content, options)
        return result.outcome === 'conflict' ? result : { ...result, resource: show(result.resource) }
      },
    }
  })

export const forgetsCoding = showing(({ contentEncoding: _, ...state }) => state)
export const forgetsLanguage = showing(({ contentLanguage: _, ...state }) => state)
export const forgetsFilename = showing(({ filename: _, ...state }) => state)
/** Has columns of 255 bytes, of three bytes a character, or that refuse what is longer. */
export const shortFilenames = showing(({ filename, ...state }) =>
  filename === undefined ? state : { ...state, filename: Buffer.from(filename).toString('utf8', 0, 255) },
)
export const questionMarks = showing(({ filename, ...state }) =>
  filename === undefined ? state : { ...state, filename: filename.replace(/[\u{10000}-\u{10ffff}]/gu, '?') },
)
export const shortTypes = showing((state) => ({ ...state, contentType: state.contentType.slice(0, 255) }))
export const shortLanguages = showing(({ contentLanguage, ...state }) =>
  contentLanguage === undefined ? state : { ...state, contentLanguage: contentLanguage.slice(0, 255) },
)
export const failsForLongTypes = mutate((sound) => ({
  async write(path, content, options) {
    if (content.contentType.length > 255) throw new Error('Data too long for column "content_type"')
    return sound.write(path, content, options)
  },
}))
export const sizeInCharacters = showing((state) =>
  isLargeBody(state.body) ? state : { ...state, size: String(state.body).length },
)
export const longVersions = showing((state) => ({ ...state, version: state.version.padEnd(201, 'x') }))
/** Says that its versions are the tags, and has tags of its own. */
export const tagsBesideVersions = () => {
  const store = showing((state) => ({ ...state, entityTag: `"${state.size}"` }))()
  return { ...store, supports: { ...store.supports, tagsAreVersions: true } as const }
}
/** Forgets what describes the content when it is hidden. */
export const barelyHidden = showing(({ hidden, ...state }) =>
  hidden === true
    ? {
        path: state.path,
        version: state.version,
        contentType: 'application/octet-stream',
        size: state.size,
        body: state.body,
        hidden,
      }
    : state,
)
export const hidesWithoutFilename = showing((state) =>
  state.hidden === true ? { ...state, filename: undefined } : state,
)
export const unmarkedHidden = showing(({ hidden: _, ...state }) => state)
/** Has the date of the second only. */
export const dateGoesBack = showing((state) => ({
  ...state,
  lastModified: (state.lastModified ?? 0) - Number.parseInt(state.version.slice(-1), 36) * 1000,
}))
/** Gives one version to hidden and visible states. */
export const hidesWithoutVersion = mutate((sound) => {
  const last = new Map<string, string>()
  return {
    async read(path, options) {
      const state = await sound.read(path, options)
      if (!isResource(state)) return state
      if (state.hidden !== true) last.set(path, state.version)
      return { ...state, version: last.get(path) ?? state.version }
    },
  }
})
/** Gives related paths that are hidden with another one the version that they had. */
export const hidesRelatedWithoutVersion = mutate((sound) => {
  const last = new Map<string, string>()
  return {
    async remove(path, options) {
      for (const other of options.related ?? []) {
        const state = await sound.read(other)
        if (isResource(state)) last.set(other, state.version)
      }
      return sound.remove(path, options)
    },
    async read(path, options) {
      const state = await sound.read(path, options)
      return isResource(state) && state.hidden === true ? { ...state, version: last.get(path) ?? state.version } : state
    },
  }
})
/** Reads metadata without the values that describe the content. */
export const emptyMetadata = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    return isResource(state) && options?.metadataOnly === true ? { ...state, size: 0, body: '' } : state
  },
}))
export const metadataShowsHidden = mutate((sound) => ({
  read: (path, options) => sound.read(path, options?.metadataOnly === true ? { ...options, hidden: true } : options),
}))

const forgetDescription = ({ contentEncoding: _, contentLanguage: __, filename: ___, ...state }: StoredResource) =>
  state

export const listsNoDescription = mutate((sound) => ({
  async list(collection, options) {
    const page = await sound.list(collection, options)
    return { ...page, items: page.items.map(forgetDescription) }
  },
}))
export const createsWithoutDescription = mutate((sound) => ({
  async create(collection, content, options) {
    const bare = ({ contentType, body }: Content): Content => ({ contentType, body })
    const made = typeof content === 'function' ? (name: string) => bare(content(name)) : bare(content)
    return sound.create(collection, made, options)
  },
}))
/** Takes media types for lower case, as fields of HTTP are compared. */
export const lowerTypes = showing((state) => ({ ...state, contentType: state.contentType.toLowerCase() }))
/** Reads text as `TextDecoder` does. */
export const withoutMark = showing((state) => {
  const bytes = isLargeBody(state.body) ? Buffer.alloc(0) : Buffer.from(state.body)
  return bytes.indexOf('\ufeff') === 0 ? { ...state, body: bytes.subarray(3), size: bytes.length - 3 } : state
})
export const hiddenDateGoesBack = mutate((sound) => ({
  async read(path, options) {
    const state = await sound.read(path, options)
    return isResource(state) && state.hidden === true ? { ...state, lastModified: state.lastModified! - 5000 } : state
  },
}))
/** Says of what was written with another path that its date is strong. */
export const relatedAlwaysStrong = mutate((sound) => {
  const related = new Set<string>()
  return {
    write(path, content, options) {
      for (const write of options.related ?? []) related.add(write.path)
      return sound.write(path, content, options)
    },
    async read(path, options) {
      const state = await sound.read(path, options)
      return isResource(state) && related.has(path) ? { ...state, dateIsStrong: true } : state
    },
  }
})
/** Keeps equal content once for all paths, and removes it with the first of them. */
export const countsNoReferences = mutate((sound) => {
  const gone = new Set<unknown>()
  return {
    async remove(path, options) {
      const result = await sound.remove(path, options)
      if (result.outcome === 'removed') gone.add(result.resource.body)
      return result
    },
    async read(path, options) {
      const state = await sound.read(path, options)
      return isResource(state) && gone.has(state.body) ? { ...state, body: '', size: 0 } : state
    },
  }
})
/** Fills the object of a path anew. */
export const reusedState = mutate((sound) => {
  const objects = new Map<string, object>()
  return {
    async read(path, options) {
      const state = await sound.read(path, options)
      if (!isResource(state)) return state
      const object = objects.get(path) ?? {}
      objects.set(path, object)
      for (const name of Object.keys(object)) Reflect.deleteProperty(object, name)
      return Object.assign(object, state)
    },
  }
})

/** A store that keeps what a read has given, until there is another version. */
const keepsReads = (keyOf: (path: string, options: ReadOptions) => string) =>
  mutate((sound) => {
    const kept = new Map<string, StoredResource>()
    return {
      async read(path, options = {}) {
        const state = await sound.read(path, { hidden: true })
        const known = kept.get(keyOf(path, options))
        if (isResource(state) && known?.version === state.version) return known
        const found = await sound.read(path, options)
        if (!isResource(found)) return found
        const given = options.metadataOnly === true ? { ...found, body: '' } : found
        kept.set(keyOf(path, options), given)
        return given
      },
    }
  })
export const keepsMetadata = keepsReads((path, { hidden = false }) => `${hidden} ${path}`)
export const keepsHidden = keepsReads((path, { metadataOnly = false }) => `${metadataOnly} ${path}`)
export const hidesValues = showing((state) => (state.hidden === true ? { ...state, indexed: undefined } : state))
