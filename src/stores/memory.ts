import { randomBytes } from 'node:crypto'
import { isPromise, type MaybePromise } from '../core/handler.ts'
import { readOptions } from '../core/options.ts'
import { createContentHolder, type HeldBody } from './held-content.ts'
import { createMemberIndex } from './member-index.ts'
import { createTombstones } from './tombstones.ts'
import {
  type Content,
  type ContentFields,
  type CreateOptions,
  type Expectation,
  isResource,
  memberPath,
  type RelatedWrite,
  type RemoveOptions,
  type RemoveResult,
  type ResourceStore,
  type StoredResource,
  type StoredState,
  type WriteResult,
} from './types.ts'

export interface MemoryStoreOptions {
  /** The most tombstones kept; the oldest go first, and their paths answer 404 again. Default 10 000. */
  readonly maxTombstones?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const DAY = 24 * 60 * 60 * 1000

/** A new member whose name is reserved. */
interface Draft {
  readonly name: string
  readonly content: Content
  readonly related: readonly RelatedWrite[]
}

type Created = WriteResult & { outcome: 'created' }
type NewResource = { -readonly [Name in keyof StoredResource]: StoredResource[Name] }

/**
 * Keeps resources in the memory of this process: the default store, for tests, caches and demos.
 * All is synchronous but taking in streams. A restart forgets everything, versions included: none is used again.
 * @throws TypeError for an unknown option, or one that is not a number of 0 or more
 */
export function memoryStore(options?: MemoryStoreOptions): ResourceStore {
  const {
    maxTombstones = 10_000,
    retention = 30 * DAY,
    now = Date.now,
  } = readOptions('memoryStore', options, ['maxTombstones', 'retention', 'now'])
  if (!(maxTombstones >= 0)) throw new TypeError('memoryStore: maxTombstones must be a number of 0 or more.')
  if (!(retention >= 0)) throw new TypeError('memoryStore: retention must be a number of milliseconds, 0 or more.')

  const resources = new Map<string, StoredResource>()
  const tombstones = createTombstones(maxTombstones)
  const members = createMemberIndex()
  const holder = createContentHolder()
  // Random per store and counted within it: no version of an earlier process can come back.
  const incarnation = randomBytes(9).toString('base64url')
  let versions = 0

  function stateOf(path: string, hidden: boolean): StoredState {
    const resource = resources.get(path)
    if (resource === undefined) return tombstones.find(path, now())
    if (hidden || resource.hidden !== true) return resource
    return { removed: true, path, removedAt: resource.lastModified! }
  }

  /** Shows a new state of a path. */
  function put(path: string, fields: ContentFields, { body, size }: HeldBody): NewResource {
    const previous = resources.get(path)?.lastModified ?? tombstones.lastRemoval(path)
    const time = now()
    const resource: NewResource = {
      path,
      version: incarnation + (++versions).toString(36),
      contentType: fields.contentType,
      size,
      body,
      // Never back, whatever the clock does.
      lastModified: previous === undefined || previous < time ? time : previous,
      dateIsStrong: previous === undefined || Math.floor(previous / 1000) < Math.floor(time / 1000),
    }
    if (fields.contentEncoding !== undefined) resource.contentEncoding = fields.contentEncoding
    if (fields.contentLanguage !== undefined) resource.contentLanguage = fields.contentLanguage
    if (fields.filename !== undefined) resource.filename = fields.filename
    resources.set(path, resource)
    return resource
  }

  function write(path: string, content: Content, held: HeldBody): StoredResource {
    const resource = put(path, content, held)
    tombstones.unbury(path)
    members.add(resource)
    return resource
  }

  function writeRelated(related: readonly RelatedWrite[], held: readonly HeldBody[]): void {
    for (const [index, { path, content }] of related.entries()) write(path, content, held[index + 1]!)
  }

  function drop(path: string, mode: RemoveOptions['mode'], keep: number): void {
    const resource = resources.get(path)
    if (resource === undefined) return
    if (mode === 'hide') {
      // Made anew: what callers have kept on the state before belongs to that state.
      const hidden = put(path, resource, resource)
      hidden.hidden = true
      members.add(hidden)
      return
    }
    resources.delete(path)
    members.remove(path)
    const removedAt = Math.max(now(), resource.lastModified!)
    if (mode === 'erase') tombstones.forget(path, removedAt)
    else tombstones.bury({ removed: true, path, removedAt }, removedAt + keep)
  }

  /** Takes a name and asks for what shall stand under it. */
  function createDraft(collection: string, content: Content | ((name: string) => Content), options: CreateOptions) {
    const name = members.reserve(collection)
    try {
      return {
        name,
        content: typeof content === 'function' ? content(name) : content,
        related: options.related?.(name) ?? [],
      }
    } catch (error) {
      members.release(collection, name)
      throw error
    }
  }

  function commitDraft(collection: string, draft: Draft, held: readonly HeldBody[]): Created {
    const resource = write(memberPath(collection, draft.name), draft.content, held[0]!)
    writeRelated(draft.related, held)
    return { outcome: 'created', resource }
  }

  return {
    read(path, options) {
      if (options?.signal?.aborted === true) return Promise.reject(options.signal.reason)
      return stateOf(path, options?.hidden === true)
    },

    write(path, content, { expect, related = [], signal }) {
      if (signal?.aborted === true) return Promise.reject(signal.reason)
      const commit = (held: readonly HeldBody[]): WriteResult => {
        const current = stateOf(path, false)
        if (!isExpected(current, expect)) return { outcome: 'conflict', current }
        const resource = write(path, content, held[0]!)
        writeRelated(related, held)
        return { outcome: isResource(current) ? 'replaced' : 'created', resource }
      }
      const held = holder.hold(contentsOf(content, related), signal)
      return isPromise(held) ? held.then(unlessAborted(signal, commit)) : commit(held)
    },

    create(collection, content, options = {}) {
      const { signal } = options
      if (signal?.aborted === true) return Promise.reject(signal.reason)
      throw new Error('see below')
    },

    remove(path, { expect, mode, retention: keep = retention, related = [], signal }): MaybePromise<RemoveResult> {
      if (signal?.aborted === true) return Promise.reject(signal.reason)
      const current = stateOf(path, false)
      if (!isResource(current) && expect === 'any') return { outcome: 'absent', current }
      if (!isResource(current) || !isExpected(current, expect)) return { outcome: 'conflict', current }
      drop(path, mode, keep)
      for (const other of related) drop(other, mode, keep)
      return { outcome: 'removed', resource: current }
    },

    list(collection, options) {
      if (options.signal?.aborted === true) return Promise.reject(options.signal.reason)
      return members.page(collection, options)
    },

    stage(body, options) {
      return holder.stage(body, options?.signal)
    },
  }
}
