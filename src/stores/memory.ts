import { andThen, isPromise, type MaybePromise } from '../core/handler.ts'
import { readOptions } from '../core/options.ts'
import { createContentHolder, type HeldBody, type TakenStreams } from './memory/held-content.ts'
import { createMemberIndex } from './memory/member-index.ts'
import { createTombstones } from './memory/tombstones.ts'
import {
  type Content,
  type ContentFields,
  type CreateOptions,
  type Expectation,
  isResource,
  memberPath,
  type ReadOptions,
  type RelatedWrite,
  type RemoveOptions,
  type ResourceStore,
  type StoredResource,
  type StoredState,
  type WriteResult,
} from './types.ts'
import { createVersions } from './versions.ts'

export interface MemoryStoreOptions {
  /** The most tombstones kept; the oldest go first, and their paths answer 404 again. Default 10 000. */
  readonly maxTombstones?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const NO_OPTIONS: ReadOptions = {}
const DAY = 24 * 60 * 60 * 1000

/** A new member whose name is reserved. */
interface Draft {
  readonly name: string
  readonly content: Content
  readonly related: readonly RelatedWrite[]
  readonly held: MaybePromise<readonly HeldBody[]>
}

type Created = WriteResult & { outcome: 'created' }

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
  const nextVersion = createVersions()

  function stateOf(path: string, hidden: boolean): StoredState {
    const resource = resources.get(path)
    if (resource === undefined) return tombstones.find(path, now())
    if (hidden || resource.hidden !== true) return resource
    return { removed: true, path, removedAt: resource.lastModified! }
  }

  /** Shows a new state of a path. */
  function put(path: string, fields: ContentFields, { body, size }: HeldBody, visibility?: 'hidden'): StoredResource {
    const previous = resources.get(path)?.lastModified ?? tombstones.lastRemoval(path)
    const time = now()
    const resource: { -readonly [Name in keyof StoredResource]: StoredResource[Name] } = {
      path,
      version: nextVersion(),
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
    if (visibility === 'hidden') resource.hidden = true
    resources.set(path, resource)
    members.add(resource)
    tombstones.unbury(path)
    return resource
  }

  function putRelated(related: readonly RelatedWrite[], held: readonly HeldBody[]): void {
    for (const [index, { path, content }] of related.entries()) put(path, content, held[index + 1]!)
  }

  function drop(path: string, mode: RemoveOptions['mode'], keep: number): void {
    const resource = resources.get(path)
    if (resource === undefined) return
    if (mode === 'hide') {
      // A new object: what callers have kept on the old one belongs to the state before.
      put(path, resource, resource, 'hidden')
      return
    }
    resources.delete(path)
    members.remove(path)
    const removedAt = Math.max(now(), resource.lastModified!)
    if (mode === 'erase') tombstones.forget(path, removedAt)
    else tombstones.bury({ removed: true, path, removedAt }, removedAt + keep)
  }

  /** Reserves a name and asks for what shall stand under it. */
  function draftMember(
    collection: string,
    content: Content | ((name: string) => Content),
    { related, signal }: CreateOptions,
    taken: TakenStreams,
  ): Draft {
    const name = members.reserve(collection)
    try {
      const own = typeof content === 'function' ? content(name) : content
      const others = related?.(name) ?? []
      return { name, content: own, related: others, held: holder.hold(contentsOf(own, others), signal, taken) }
    } catch (error) {
      members.release(collection, name)
      throw error
    }
  }

  function commitDraft(collection: string, draft: Draft, held: readonly HeldBody[]): Created {
    const resource = put(memberPath(collection, draft.name), draft.content, held[0]!)
    putRelated(draft.related, held)
    return { outcome: 'created', resource }
  }

  /** Commits once the content is there; under another name when a client has written this one meanwhile. */
  async function commitDraftLater(
    collection: string,
    draft: Draft,
    redraft: () => Draft,
    signal: AbortSignal | undefined,
  ): Promise<Created> {
    for (;;) {
      try {
        const held = await draft.held
        signal?.throwIfAborted()
        if (members.isReserved(collection, draft.name)) return commitDraft(collection, draft, held)
      } finally {
        members.release(collection, draft.name)
      }
      draft = redraft()
    }
  }

  return {
    read(path, options) {
      const { hidden = false, signal } = options ?? NO_OPTIONS
      if (signal?.aborted) return Promise.reject(signal.reason)
      return stateOf(path, hidden)
    },

    write(path, content, { expect, related = [], signal }) {
      if (signal?.aborted) return Promise.reject(signal.reason)
      const commit = (held: readonly HeldBody[]): WriteResult => {
        signal?.throwIfAborted()
        const current = stateOf(path, false)
        if (!isExpected(current, expect)) return { outcome: 'conflict', current }
        const resource = put(path, content, held[0]!)
        putRelated(related, held)
        return { outcome: isResource(current) ? 'replaced' : 'created', resource }
      }
      return andThen(holder.hold(contentsOf(content, related), signal), commit)
    },

    create(collection, content, options = {}) {
      const { signal } = options
      if (signal?.aborted) return Promise.reject(signal.reason)
      const taken: TakenStreams = {}
      const draft = draftMember(collection, content, options, taken)
      if (!isPromise(draft.held)) return commitDraft(collection, draft, draft.held)
      return commitDraftLater(collection, draft, () => draftMember(collection, content, options, taken), signal)
    },

    remove(path, { expect, mode, retention: keep = retention, related = [], signal }) {
      if (signal?.aborted) return Promise.reject(signal.reason)
      const current = stateOf(path, false)
      if (!isResource(current) && expect === 'any') return { outcome: 'absent', current }
      if (!isResource(current) || !isExpected(current, expect)) return { outcome: 'conflict', current }
      drop(path, mode, keep)
      for (const other of related) drop(other, mode, keep)
      return { outcome: 'removed', resource: current }
    },

    list(collection, options) {
      if (options.signal?.aborted) return Promise.reject(options.signal.reason)
      return members.page(collection, options)
    },

    stage(body, options) {
      return holder.stage(body, options?.signal)
    },
  }
}

function contentsOf(content: Content, related: readonly RelatedWrite[]): readonly Content[] {
  return related.length === 0 ? [content] : [content, ...related.map((write) => write.content)]
}

function isExpected(current: StoredState, expect: Expectation): boolean {
  if (expect === 'any') return true
  if (expect === 'absent') return !isResource(current)
  return isResource(current) && (expect === 'present' || current.version === expect.version)
}
