import { Buffer } from 'node:buffer'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { CollectionIndex } from '../lists.ts'
import {
  createResource,
  createVersions,
  type Description,
  decideChange,
  isResource,
  isStaged,
  readAsText,
  type StoredContent,
} from '../rules.ts'
import { collectBlocks, untilAborted } from '../streams.ts'
import type {
  Abortable,
  Content,
  CreateResult,
  ReadOptions,
  RelatedWrite,
  RemoveOptions,
  StagedBody,
  StoredResource,
  StoredState,
} from '../types.ts'
import { createExpiringStates, createTombstones } from './expiring.ts'
import { createMemberIndex, type Entry, type MemberIndex, type Place } from './member-index.ts'

/** A reason to write nothing. */
type Conflict = Exclude<CreateResult, { readonly outcome: 'created' }>

/** What stands at which path. Nothing here waits: a step of several calls is atomic. */
interface States {
  readonly members: MemberIndex
  readonly nextVersion: () => string
  /** As the store's own: at once, so the signal, which costs as much, is not looked at. */
  read(path: string, options?: Pick<ReadOptions, 'hidden'>): StoredState
  /**
   * The conflict with a path that must be present and is not, or with a related path that must be absent and is not.
   * @param path that is to be written
   */
  findConflict(path: string, related: readonly RelatedWrite[], requires: string | undefined): Conflict | undefined
  /**
   * Shows a new state of a path.
   * @param place where a path stands that is known to be new
   */
  put(path: string, content: Description, body: StoredContent, version?: string, place?: Place): StoredResource
  /** Writes related paths. @param held their bodies, after that of the path itself */
  putRelated(related: readonly RelatedWrite[], held: readonly StoredContent[]): void
  /** @param keep milliseconds for which a tombstone is kept */
  drop(path: string, mode: RemoveOptions['mode'], keep: number): void
  /** Removes everything below a path, without a trace. */
  dropBelow(path: string): void
}

/** @param now milliseconds since the epoch, never back */
export function createStates(maxTombstones: number, now: () => number): States {
  const entries = new Map<string, Entry>()
  const tombstones = createTombstones(maxTombstones)
  const members = createMemberIndex()
  const nextVersion = createVersions()
  const expiring = createExpiringStates((entry) => {
    // It may have been removed and written anew.
    if (entries.get(entry.path) === entry) drop(entry.path, 'erase', 0)
  })
  let hasRecords = false

  function read(path: string, options?: Pick<ReadOptions, 'hidden'>): StoredState {
    const state = entries.get(path)?.state
    if (state === undefined) return tombstones.find(path, now())
    if (state.hidden !== true || options?.hidden === true) return state
    return { removed: true, path, removedAt: state.lastModified! }
  }

  function put(
    path: string,
    content: Description,
    body: StoredContent,
    version: string = nextVersion(),
    place?: Place,
  ): StoredResource {
    const entry = entries.get(path)
    const before = entry === undefined ? tombstones.unbury(path) : entry.state.lastModified
    const state = createResource(path, version, content, body, decideChange(before, now()))
    show(entry, state, content.indexed?.index, place)
    return state
  }

  /** @param index the rules of the values that the state was written with */
  function show(entry: Entry | undefined, state: StoredResource, index?: CollectionIndex, place?: Place): void {
    const shown = entry ?? { path: state.path, state, isListed: true }
    if (entry === undefined) {
      entries.set(state.path, shown)
      members.add(shown, place)
    } else {
      const { hidden } = entry.state
      entry.state = state
      if (hidden !== state.hidden || !entry.isListed) members.add(entry)
      entry.isListed = true
    }
    members.index(shown, index, entry === undefined)
    if (hasRecords) expiring.sweep(state.lastModified!)
  }

  /** Shows a state that no listing shows, for a time. */
  function putRecord(path: string, content: Description, body: StoredContent, retention: number): void {
    if (entries.has(path)) return void put(path, content, body)
    const change = decideChange(tombstones.unbury(path), now())
    const added = { path, state: createResource(path, nextVersion(), content, body, change), isListed: false }
    entries.set(path, added)
    hasRecords = true
    expiring.add(added, retention, change.changed)
    expiring.sweep(change.changed)
  }

  function findConflict(
    path: string,
    related: readonly RelatedWrite[],
    requires: string | undefined,
  ): Conflict | undefined {
    if (requires !== undefined && !isResource(read(requires))) {
      return { outcome: 'conflict', current: undefined, missing: requires }
    }
    for (const write of related) {
      const other = write.expect === 'absent' ? read(write.path) : undefined
      if (isResource(other)) return { outcome: 'conflict', current: read(path), related: other }
    }
    return undefined
  }

  function putRelated(related: readonly RelatedWrite[], held: readonly StoredContent[]): void {
    for (let i = 0; i < related.length; i++) {
      const { path, content, retention } = related[i]!
      if (retention === undefined) put(path, content, held[i + 1]!)
      else putRecord(path, content, held[i + 1]!, retention)
    }
  }

  function drop(path: string, mode: RemoveOptions['mode'], keep: number): void {
    const entry = entries.get(path)
    if (entry === undefined) return
    const { state } = entry
    if (mode === 'hide') {
      // A new object: what callers have kept on the old one belongs to the state before.
      const hidden = createResource(path, nextVersion(), state, state, decideChange(state.lastModified, now()))
      hidden.hidden = true
      show(entry, hidden)
      return
    }
    entries.delete(path)
    if (entry.isListed) members.remove(path)
    const removedAt = now()
    if (mode === 'erase') tombstones.forget(path, removedAt)
    else tombstones.bury({ removed: true, path, removedAt }, removedAt + keep)
  }

  function dropBelow(path: string): void {
    for (const other of members.below(path)) drop(other, 'erase', 0)
    tombstones.forgetBelow(`${path}/`)
  }

  return { members, nextVersion, read, findConflict, put, putRelated, drop, dropBelow }
}

type Stream = AsyncIterable<Uint8Array>

/** Streams that one call of the store has been given, and what they came to. */
export interface TakenStreams {
  streams?: Map<Stream, Promise<StoredContent>>
}

/** Takes content into memory: what is kept is the store's own, and never a stream. */
export function createContentHolder() {
  const staged = new WeakMap<StagedBody, StoredContent>()

  /** Content that is there already; `undefined` for a stream. */
  function holdNow(body: Content['body']): StoredContent | undefined {
    if (typeof body === 'string') {
      const size = Buffer.byteLength(body)
      // Text beyond ASCII is encoded once, here, and not by every reader.
      return { body: size === body.length ? body : Buffer.from(body), size }
    }
    if (body instanceof Uint8Array) return holdBytes(body)
    if (!isStaged(body)) return undefined
    const held = staged.get(body)
    if (held === undefined) throw new TypeError('The staged content was given up or belongs to another store.')
    return held
  }

  return {
    /**
     * Holds the body of a content, and those of what is written with it; at once when none of them is a stream.
     * @param taken streams that one call of the store has been given; each is read once, however often it is asked for
     * @throws TypeError for staged content of another store, or content that was given up
     */
    hold(
      content: Content,
      related: readonly RelatedWrite[],
      options: Abortable,
      taken: TakenStreams = {},
    ): MaybePromise<readonly StoredContent[]> {
      const held = [holdNow(content.body)]
      for (const write of related) held.push(holdNow(write.content.body))
      if (!held.includes(undefined)) return held as StoredContent[]
      const streams = (taken.streams ??= new Map())
      const bodies = held.map((now, index) => {
        if (now !== undefined) return now
        const stream = (index === 0 ? content : related[index - 1]!.content).body as Stream
        const known = streams.get(stream) ?? collectBlocks(untilAborted(stream, options.signal))
        streams.set(stream, known)
        return known
      })
      return Promise.all(bodies)
    },

    async stage(stream: Stream, signal: AbortSignal | undefined): Promise<StagedBody> {
      const held = await collectBlocks(untilAborted(stream, signal))
      const body: StagedBody = { staged: true, size: held.size, discard: () => void staged.delete(body) }
      staged.set(body, held)
      return body
    },
  }
}

/** Copies: what the caller does with its buffer afterwards must not reach what is stored. */
function holdBytes(bytes: Uint8Array): StoredContent {
  const { length } = bytes
  const text = readAsText(bytes)
  if (text !== undefined) return { body: text, size: length }
  const copy = Buffer.allocUnsafeSlow(length)
  copy.set(bytes)
  return { body: copy, size: length }
}
