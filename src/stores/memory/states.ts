import { createVersions } from '../stamps.ts'
import {
  type Content,
  type ContentFields,
  isResource,
  type ReadOptions,
  type RelatedWrite,
  type RemoveOptions,
  type StoredResource,
  type StoredState,
} from '../types.ts'
import { createExpiringStates } from './expiring.ts'
import type { HeldBody } from './held-content.ts'
import { createMemberIndex, type Entry, type MemberIndex, type Place } from './member-index.ts'
import { createTombstones } from './tombstones.ts'

/** What is kept of content beside its bytes. */
type KeptFields = ContentFields & Pick<Content, 'indexed'>

/** A reason to write nothing. */
export type Conflict =
  | { readonly outcome: 'conflict'; readonly current: StoredState; readonly related: StoredResource }
  | { readonly outcome: 'conflict'; readonly current: undefined; readonly missing: string }

/** What stands at which path. Nothing here waits: a step of several calls is atomic. */
export interface States {
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
  put(path: string, fields: KeptFields, body: HeldBody, version?: string, place?: Place): StoredResource
  /** Writes related paths. @param held their bodies, after that of the path itself */
  putRelated(related: readonly RelatedWrite[], held: readonly HeldBody[]): void
  /** @param keep milliseconds for which a tombstone is kept */
  drop(path: string, mode: RemoveOptions['mode'], keep: number): void
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
    fields: KeptFields,
    body: HeldBody,
    version: string = nextVersion(),
    place?: Place,
    isHidden = false,
  ): StoredResource {
    const time = now()
    const entry = entries.get(path)
    const previous = entry === undefined ? tombstones.unbury(path) : entry.state.lastModified
    const state = createState(path, fields, body, previous, time, isHidden, version)
    const current = entry ?? { path, state, isListed: true }
    if (entry === undefined) {
      entries.set(path, current)
      members.add(current, place)
    } else {
      const { hidden = false } = entry.state
      entry.state = state
      if (hidden !== isHidden || !entry.isListed) members.add(entry)
      entry.isListed = true
    }
    if (members.hasIndexes || fields.indexed !== undefined) {
      members.index(current, fields.indexed?.index, entry === undefined)
    }
    if (hasRecords) expiring.sweep(state.lastModified!)
    return state
  }

  /** Shows a state that no listing shows, for a time. */
  function putRecord(path: string, fields: KeptFields, body: HeldBody, retention: number): void {
    if (entries.has(path)) return void put(path, fields, body)
    const time = now()
    const state = createState(path, fields, body, tombstones.unbury(path), time, false, nextVersion())
    const added = { path, state, isListed: false }
    entries.set(path, added)
    hasRecords = true
    expiring.add(added, retention, state.lastModified!)
    expiring.sweep(state.lastModified!)
  }

  function createState(
    path: string,
    fields: KeptFields,
    { body, size, sha256 }: HeldBody,
    previous: number | undefined,
    time: number,
    isHidden: boolean,
    version: string,
  ): StoredResource {
    const state: { -readonly [Name in keyof StoredResource]: StoredResource[Name] } = {
      path,
      version,
      contentType: fields.contentType,
      size,
      body,
      // Never back, whatever the clock does.
      lastModified: previous === undefined || previous < time ? time : previous,
      dateIsStrong: previous === undefined || Math.floor(previous / 1000) < Math.floor(time / 1000),
    }
    if (fields.contentEncoding !== undefined) state.contentEncoding = fields.contentEncoding
    if (fields.contentLanguage !== undefined) state.contentLanguage = fields.contentLanguage
    if (fields.filename !== undefined) state.filename = fields.filename
    if (sha256 !== undefined) state.sha256 = sha256
    if (fields.indexed !== undefined) {
      const { index, values } = fields.indexed
      state.indexed = { index, values: { ...values } }
    }
    if (isHidden) state.hidden = true
    return state
  }

  function findConflict(
    path: string,
    related: readonly RelatedWrite[],
    requires: string | undefined,
  ): Conflict | undefined {
    if (requires !== undefined && !isResource(read(requires))) {
      return { outcome: 'conflict', current: undefined, missing: requires } as const
    }
    for (const write of related) {
      const other = write.expect === 'absent' ? read(write.path) : undefined
      if (isResource(other)) return { outcome: 'conflict', current: read(path), related: other } as const
    }
    return undefined
  }

  function putRelated(related: readonly RelatedWrite[], held: readonly HeldBody[]): void {
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
      put(path, state as KeptFields, state, undefined, undefined, true)
      return
    }
    entries.delete(path)
    if (entry.isListed) members.remove(path)
    const removedAt = Math.max(now(), state.lastModified!)
    if (mode === 'erase') tombstones.forget(path, removedAt)
    else tombstones.bury({ removed: true, path, removedAt }, removedAt + keep)
  }

  return { members, nextVersion, read, findConflict, put, putRelated, drop }
}
