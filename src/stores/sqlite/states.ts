import type { MaybePromise } from '../../core/maybe-promise.ts'
import type { KnownState, KnownStates } from '../recent-cache.ts'
import type { Taken } from '../sql/intake.ts'
import {
  createWrittenResource,
  decideChange,
  encodeFields,
  encodeIndexed,
  encodeText,
  formatSortKey,
  placeOf,
  type Shown,
  toState,
} from '../sql/rows.ts'
import { LIVE, type RowHead, type StateRow } from '../sql/tables.ts'
import type { SqliteClock } from '../stamps.ts'
import {
  type Content,
  type CreateResult,
  type ReadOptions,
  type RelatedWrite,
  type RemoveOptions,
  readAsText,
  type StoredResource,
  type StoredState,
  splitPath,
} from '../types.ts'
import type { SqliteConnection } from './connection.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteIndexes } from './indexes.ts'
import type { SqliteNames } from './names.ts'
import type { SqliteStatements } from './statements.ts'

type RelatedConflict = Extract<CreateResult, { related: StoredResource }>

/** What is to stand at a path. */
interface OwnWrite {
  readonly path: string
  readonly row: RowHead | undefined
  readonly content: Omit<Content, 'body'>
  /** Default: a new one. */
  readonly version?: string | undefined
  /** Milliseconds after which the sweep may take the row, which is not listed. Default: it stays. */
  readonly retention?: number | undefined
}

/** The rows of the paths. Whatever changes them runs within a transaction. */
export interface SqliteStates {
  /** As the store's own: waits, without blocking the process, while another process writes. */
  read(path: string, options?: ReadOptions): MaybePromise<StoredState>
  /** The state that a reader finds. With `without-content` its body may be empty. */
  find(path: string, hidden: Shown, content?: 'with-content' | 'without-content'): StoredState
  readHead(path: string): RowHead | undefined
  /** The conflict with a related path that must be absent and is not. */
  findConflict(path: string, related: readonly RelatedWrite[]): RelatedConflict | undefined
  /** Writes a path whose row, if any, has been read in the same transaction, and those that go with it. */
  put(own: OwnWrite, related: readonly RelatedWrite[], taken: readonly Taken[]): StoredResource | RelatedConflict
  /** @param keep milliseconds for which a tombstone stays */
  drop(row: RowHead, mode: RemoveOptions['mode'], keep: number): void
}

export interface SqliteStatesOptions {
  readonly contents: SqliteContents
  readonly known: KnownStates
  readonly clock: SqliteClock
  readonly names: SqliteNames
  readonly indexes: SqliteIndexes
  readonly nextVersion: () => string
}

export function createSqliteStates(
  connection: SqliteConnection,
  statements: SqliteStatements,
  { contents, known, clock, names, indexes, nextVersion }: SqliteStatesOptions,
): SqliteStates {
  /** A state that is known and still there. */
  function recall(path: string): KnownState | undefined {
    const state = known.find(path)
    if (state === undefined) return undefined
    const current = statements.readVersion.get(state.head.path) as { version: string } | undefined
    return current?.version === state.head.version ? state : undefined
  }

  function readHead(path: string): RowHead | undefined {
    return recall(path)?.head ?? (statements.readHead.get(encodeText(path)) as RowHead | undefined)
  }

  function find(path: string, hidden: Shown, content = 'with-content'): StoredState {
    const state = recall(path)
    if (state !== undefined) return state.resource
    const isWhole = content === 'with-content'
    const row = (isWhole ? statements.readState : statements.readFacts).get(encodeText(path)) as StateRow | undefined
    const found = toState(row, hidden, clock.now(), contents.open)
    if (isWhole && row?.state === LIVE) known.offer(row, found as StoredResource)
    return found
  }

  function putRow(
    { path, row, content, version = nextVersion(), retention }: OwnWrite,
    taken: Taken,
    time: number,
  ): StoredResource {
    const change = decideChange(row, time)
    const key = row?.path ?? encodeText(path)
    const id = taken.id ?? null
    // Copied: the buffer stays the caller's, and what was read or written again stays in memory.
    const bytes = taken.id === undefined ? Buffer.from(taken.body) : null
    // The sweep takes rows, and no chunks.
    const expires = retention === undefined || id !== null ? null : expiryOf(time, retention)
    // The parts of an encoded path are the encoded parts.
    const place = expires === null ? placeOf(key) : undefined
    const sortKey = place === undefined ? null : formatSortKey(place.name)
    const indexed = place === undefined ? undefined : content.indexed
    // Before the state is there: the first member of a collection needs no search for others.
    const entry = indexed === undefined ? undefined : indexes.prepare(splitPath(path).collection, indexed.index)
    if (id !== null) contents.link(id)
    statements.putState.run(
      key,
      place === undefined ? null : place.collection,
      sortKey,
      version,
      change.changed,
      change.strong ? 1 : 0,
      expires,
      taken.size,
      ...encodeFields(content),
      id,
      bytes,
      taken.sha256 ?? null,
      ...encodeIndexed(indexed),
    )
    entry?.put(sortKey!, indexed!.values)
    release(row)
    // A path that has a row has raised the counter before.
    if (row === undefined && place !== undefined) names.raiseFor(place.collection, place.name)
    const body = bytes === null ? contents.open(id!, taken.size) : (readAsText(bytes) ?? bytes)
    const stored = { size: taken.size, body, sha256: taken.sha256 }
    // A copy costs a write 3 % of its time.
    const description = content.indexed === indexed ? content : { ...content, indexed }
    const resource = createWrittenResource(path, version, description, stored, change)
    known.offer({ path: key, state: LIVE, version, changed: change.changed, content_id: id }, resource)
    return resource
  }

  /**
   * The rows of related paths, in the order of their writes; or the conflict with one that must be absent and is not.
   * @param added one that need not be read
   */
  function readRelated(
    path: string,
    related: readonly RelatedWrite[],
    added?: number,
  ): RelatedConflict | readonly (RowHead | undefined)[] {
    const rows: (RowHead | undefined)[] = []
    for (const [index, write] of related.entries()) {
      const row = index === added ? undefined : readHead(write.path)
      if (write.expect === 'absent' && row?.state === LIVE) {
        const resource = find(write.path, 'not-shown') as StoredResource
        return { outcome: 'conflict', current: find(path, 'not-shown'), related: resource }
      }
      rows.push(row)
    }
    return rows
  }

  /**
   * Adds the one related path that must be absent, without a look at it first, which would cost as much again. Not where
   * there are several: the conflict with one would leave the others behind.
   * @returns its index; `undefined` where it is left to `putRow`, as one whose path has a row
   */
  function addRecord(related: readonly RelatedWrite[], taken: readonly Taken[], time: number): number | undefined {
    const index = related.findIndex((write) => write.expect === 'absent')
    const write = related[index]
    if (write?.retention === undefined || related.findLastIndex(({ expect }) => expect === 'absent') > index) return
    const { id, body, size } = taken[index + 1]!
    const [type, ...others] = encodeFields(write.content)
    if (id !== undefined || others.some((value) => value !== null)) return
    const expires = expiryOf(time, write.retention)
    const bytes = Buffer.from(body as Uint8Array)
    const { changes } = statements.addRecord.run(
      encodeText(write.path),
      nextVersion(),
      time,
      expires,
      size,
      type,
      bytes,
    ) as { changes: number | bigint }
    return Number(changes) === 1 ? index : undefined
  }

  function drop(row: RowHead, mode: RemoveOptions['mode'], keep: number): void {
    const time = clock.tick()
    const { changed, strong } = decideChange(row, time)
    if (mode === 'hide') {
      statements.hideState.run(nextVersion(), changed, strong ? 1 : 0, row.path)
      return
    }
    const expires = mode === 'erase' ? time : expiryOf(time, keep)
    statements.removeState.run(nextVersion(), changed, strong ? 1 : 0, expires, row.path)
    release(row)
  }

  function release(row: RowHead | undefined): void {
    if (row !== undefined && row.content_id !== null) contents.release(row.content_id)
  }

  return {
    read(path, { hidden = false, metadataOnly = false } = {}) {
      return connection.attempt(() =>
        find(path, hidden ? 'shown' : 'not-shown', metadataOnly ? 'without-content' : 'with-content'),
      )
    },

    find,
    readHead,

    findConflict(path, related) {
      const rows = readRelated(path, related)
      return 'outcome' in rows ? rows : undefined
    },

    put(own, related, taken) {
      let bytes = 0
      for (const { id, size } of taken) if (id === undefined) bytes += size
      connection.space.admit(bytes, taken.length, contents.reclaim)
      const time = clock.tick()
      if (related.length === 0) return putRow(own, taken[0]!, time)
      const added = addRecord(related, taken, time)
      const rows = readRelated(own.path, related, added)
      if ('outcome' in rows) return rows
      const resource = putRow(own, taken[0]!, time)
      for (const [index, write] of related.entries()) {
        if (index !== added) putRow({ ...write, row: rows[index] }, taken[index + 1]!, time)
      }
      return resource
    },

    drop,
  }
}

function expiryOf(time: number, keep: number): number {
  return Math.min(time + keep, Number.MAX_SAFE_INTEGER)
}
