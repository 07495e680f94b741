import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { CLOCK, PERIOD, SIZE, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { createForwardClock } from '../core/time.ts'
import type { MemberPlace } from './memory/member-index.ts'
import { createContentHolder, createStates, type TakenStreams } from './memory/states.ts'
import { isAborted, isExpected, isResource, memberPath, type StoredContent, throwIfAborted } from './rules.ts'
import type {
  Content,
  CreateOptions,
  CreateResult,
  RelatedWrite,
  RemoveResult,
  ResourceStore,
  WriteOptions,
  WriteResult,
} from './types.ts'

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** The most tombstones kept; the oldest go first, and their paths answer 404 again. Default 10 000. */
  readonly maxTombstones?: number
  /** Milliseconds after which a tombstone is forgotten. Default 30 days. */
  readonly retention?: number
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const OPTIONS = {
  maxTombstones: withDefault(SIZE, 10_000),
  retention: withDefault(PERIOD, 30 * 24 * 60 * 60 * 1000),
  now: CLOCK,
} satisfies OptionTable<MemoryStoreOptions>

const NOTHING: readonly RelatedWrite[] = []
const EMPTY: Content = { contentType: '', body: '' }

/** A new member that has its name. */
interface Draft {
  readonly place: MemberPlace
  readonly path: string
  readonly version: string
  readonly content: Content
  readonly related: readonly RelatedWrite[]
  readonly held: MaybePromise<readonly StoredContent[]>
}

/**
 * Keeps resources in the memory of this process: the default store, for tests, caches and demos.
 * All calls are synchronous, except those that take a stream in. A restart forgets everything, versions included: none is used again.
 * @throws TypeError for an unknown option, or one that is not a number of 0 or more
 * @example createResourceService(memoryStore(), { resources: { '/users': collection() } })
 */
export function memoryStore(options?: MemoryStoreOptions): ResourceStore {
  const { maxTombstones, retention, now } = resolveOptions('memoryStore', options, OPTIONS)
  const states = createStates(maxTombstones, createForwardClock(now).now)
  const { members, nextVersion, read, findConflict, put, putRelated, drop, dropBelow } = states
  const holder = createContentHolder()

  /** Takes a name and asks for what shall stand under it. */
  function draftMember(
    collection: string,
    content: Content | ((name: string) => Content),
    options: CreateOptions,
    taken: TakenStreams,
  ): Draft {
    let place: MemberPlace
    let path: string
    do {
      place = members.take(collection)
      path = memberPath(collection, String(place.integer))
    } while (isResource(read(path))) // a state that no listing shows may have the name
    try {
      const name = String(place.integer)
      const own = typeof content === 'function' ? content(name) : content
      const version = nextVersion()
      const others = options.related?.(name, { version }) ?? NOTHING
      const held = holder.hold(own, others, options, taken)
      return { place, path, version, content: own, related: others, held }
    } catch (error) {
      members.release(place)
      throw error
    }
  }

  function commitDraft(draft: Draft, held: readonly StoredContent[], requires: string | undefined): CreateResult {
    const { place, path, version, content, related } = draft
    const conflict = findConflict(path, related, requires)
    if (conflict !== undefined) {
      members.release(place)
      return conflict
    }
    const resource = put(path, content, held[0]!, version, place)
    putRelated(related, held)
    return { outcome: 'created', resource }
  }

  /** Commits once the content is there; under another name when a client has written this one meanwhile. */
  async function commitDraftLater(draft: Draft, redraft: () => Draft, options: CreateOptions): Promise<CreateResult> {
    const { requires, signal } = options
    for (;;) {
      members.reserve(draft.place)
      try {
        const held = await draft.held
        signal?.throwIfAborted()
        if (members.isReserved(draft.place)) return commitDraft(draft, held, requires)
      } finally {
        members.release(draft.place)
      }
      draft = redraft()
    }
  }

  function commitWrite(
    path: string,
    content: Content,
    options: WriteOptions,
    version: string | undefined,
    related: readonly RelatedWrite[],
    held: readonly StoredContent[],
  ): WriteResult {
    throwIfAborted(options)
    const conflict = findConflict(path, related, options.requires)
    if (conflict !== undefined) return conflict
    const current = read(path)
    const replaced = isResource(current) ? current.version : undefined
    if (!isExpected(replaced, options.expect)) return { outcome: 'conflict', current }
    const resource = put(path, content, held[0]!, version)
    putRelated(related, held)
    return { outcome: replaced === undefined ? 'created' : 'replaced', resource }
  }

  return {
    supports: { relatedExpect: true, queries: true, parents: true },

    read,

    write(path, content, options) {
      if (isAborted(options)) return Promise.reject(options.signal!.reason)
      const { relatedTo } = options
      const version = relatedTo === undefined ? undefined : nextVersion()
      const related = version === undefined ? (options.related ?? NOTHING) : relatedTo!({ version })
      const held = holder.hold(content, related, options)
      // Not by `andThen`: its function would be made for each write, which takes 70 ns more.
      if (isPromise(held)) return held.then((held) => commitWrite(path, content, options, version, related, held))
      return commitWrite(path, content, options, version, related, held)
    },

    create(collection, content, options = {}) {
      if (isAborted(options)) return Promise.reject(options.signal!.reason)
      const taken: TakenStreams = {}
      const draft = draftMember(collection, content, options, taken)
      if (!isPromise(draft.held)) return commitDraft(draft, draft.held, options.requires)
      return commitDraftLater(draft, () => draftMember(collection, content, options, taken), options)
    },

    remove(path, options) {
      if (isAborted(options)) return Promise.reject(options.signal!.reason)
      const { expect, mode, related = [], relatedWrites = NOTHING, below = false } = options
      const { retention: keep = retention } = options
      const taking = relatedWrites.length === 0 ? [] : holder.hold(EMPTY, relatedWrites, options)
      return andThen(taking, (held): RemoveResult => {
        throwIfAborted(options)
        const conflict = findConflict(path, relatedWrites, undefined)
        if (conflict !== undefined) return conflict
        const current = read(path)
        if (!isResource(current)) return { outcome: expect === 'any' ? 'absent' : 'conflict', current }
        if (!isExpected(current.version, expect)) return { outcome: 'conflict', current }
        drop(path, mode, keep)
        for (const other of related) drop(other, mode, keep)
        if (below) dropBelow(path)
        putRelated(relatedWrites, held)
        return { outcome: 'removed', resource: current }
      })
    },

    list: members.page,

    stage: (body, options) => holder.stage(body, options?.signal),
  }
}
