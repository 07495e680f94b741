import { createRecentCache } from '../../core/caches.ts'
import type { Page } from '../lists.ts'
import {
  type Change,
  createResource,
  type Description,
  decideChange,
  isLargeBody,
  nameOf,
  parseIntegerName,
  readAsText,
  splitPath,
} from '../rules.ts'
import type { Taken } from '../sql/dialect.ts'
import { encodeFields, escapeText, formatSortKey, LIVE, placeOf, type RowHead } from '../sql/rows.ts'
import type { RelatedWrite, RemoveOptions, StoredResource } from '../types.ts'
import type { SqliteNames } from './changes.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteStatement, SqliteValue } from './handle.ts'
import type { SqliteIndexes } from './indexes.ts'
import type { SqliteStatements } from './statements.ts'

/** How rows are written, and the states that stay in memory of those that were written or read. */

export interface StateWrite {
  readonly path: string
  readonly content: Description
  readonly version: string
  /** Milliseconds after which the sweep may take the row, which is not listed. Default: it stays. */
  readonly retention?: number | undefined
}

/** Writes rows, within a transaction. */
export interface SqliteRows {
  /** Writes a path whose row, if any, has been read in the same transaction. */
  put(own: StateWrite, row: RowHead | undefined, taken: Taken, time: number): StoredResource
  /**
   * Replaces a live member whose row still has the version of `row`, by content that has no field but its type. Takes three
   * quarters of the time of `put`: it writes no entry of the list.
   * @returns `undefined` where nothing was written
   */
  replace(own: StateWrite, row: RowHead, taken: Taken, time: number): StoredResource | undefined
  /**
   * Adds the one related path that must be absent, without a look at it first, which would cost as much again. Not where
   * there are several: the conflict with one would leave the others behind.
   * @returns its index; `undefined` where it is left to `put`, as one whose path has a row
   */
  addRecord(related: readonly RelatedWrite[], taken: readonly Taken[], time: number): number | undefined
  /** Hides a path, or leaves a tombstone. @param keep milliseconds for which it stays */
  drop(row: RowHead, mode: RemoveOptions['mode'], keep: number, time: number): void
}

export function createSqliteRows(
  statements: SqliteStatements,
  contents: SqliteContents,
  indexes: SqliteIndexes,
  known: KnownStates,
  names: SqliteNames,
  nextVersion: () => string,
): SqliteRows {
  function upsert(own: StateWrite, row: RowHead | undefined, taken: Taken, time: number): StoredResource {
    const { path, content, version, retention } = own
    const { id, size, sha256 } = taken
    const change = decideChange(row === undefined ? undefined : Number(row.changed), time)
    const key = row?.path ?? escapeText(path)
    // Copied: the buffer stays the caller's, and what was read or written again stays in memory.
    const bytes = id === undefined ? Buffer.from(taken.body as Uint8Array) : null
    // The sweep takes rows, and no chunks.
    const expires = retention === undefined || id !== undefined ? null : expiryOf(time, retention)
    // The parts of an encoded path are the encoded parts.
    const named = placeOf(key)
    const place = expires === null ? named : undefined
    const sortKey = place === undefined ? null : formatSortKey(place.name)
    const indexed = place === undefined ? undefined : content.indexed
    const putEntry = indexed && indexes.prepare(splitPath(path).collection, indexed.index)
    if (id !== undefined) contents.link(id)
    const [type, ...fields] = encodeFields(content)
    const values = [...valuesOf(version, change, size, type, bytes, indexed), ...fields, id ?? null, sha256 ?? null]
    statements.putState.run(key, place?.collection ?? null, sortKey, expires, ...values)
    putEntry?.(sortKey!, indexed!.values)
    release(row)
    // A path that has a row has raised the counter before.
    if (row === undefined && named !== undefined) names.raiseFor(named.collection, named.name)
    const body = id === undefined ? (readAsText(bytes!) ?? bytes!) : contents.open(id, size, version)
    // A copy costs a write 3 % of its time.
    const description = content.indexed === indexed ? content : { ...content, indexed }
    const resource = createResource(path, version, description, { size, body, sha256 }, change)
    known.offer({ path: key, state: LIVE, content_id: id ?? null }, resource)
    return resource
  }

  function replace(own: StateWrite, row: RowHead, taken: Taken, time: number): StoredResource | undefined {
    const { path, content, version, retention } = own
    const { id, size, body } = taken
    if (retention !== undefined || id !== undefined || !hasTypeOnly(content)) return undefined
    const { indexed } = content
    // Before the state is there: the first member of a collection needs no search for others.
    const place = indexed && placeOf(row.path)
    const putEntry = place && indexes.prepare(splitPath(path).collection, indexed.index)
    const change = decideChange(Number(row.changed), time)
    const bytes = Buffer.from(body as Uint8Array)
    const values = valuesOf(version, change, size, escapeText(content.contentType), bytes, indexed)
    if (countChanges(statements.replaceState, [...values, row.path, row.version]) === 0) return undefined
    putEntry?.(formatSortKey(place!.name), indexed!.values)
    release(row)
    const resource = createResource(path, version, content, { size, body: readAsText(bytes) ?? bytes }, change)
    known.offer({ path: row.path, state: LIVE, content_id: null }, resource)
    return resource
  }

  /** Gives the content of a row that is replaced or removed to the sweep. */
  function release(row: RowHead | undefined): void {
    if (row !== undefined && row.content_id !== null) contents.release(row.content_id)
  }

  return {
    put: (own, row, taken, time) =>
      (row?.state === LIVE ? replace(own, row, taken, time) : undefined) ?? upsert(own, row, taken, time),

    replace,

    addRecord(related, taken, time) {
      const index = related.findIndex((write) => write.expect === 'absent')
      const write = related[index]
      if (write?.retention === undefined || related.findLastIndex(({ expect }) => expect === 'absent') > index) return
      const { id, body, size } = taken[index + 1]!
      const { path, content, retention } = write
      // A name that is an integer raises the counter of its collection.
      if (id !== undefined || !hasTypeOnly(content) || parseIntegerName(nameOf(path)) !== undefined) return
      const facts = [escapeText(path), nextVersion(), time, expiryOf(time, retention), size]
      const row = [...facts, escapeText(content.contentType), Buffer.from(body as Uint8Array)]
      return countChanges(statements.addRecord, row) === 1 ? index : undefined
    },

    drop(row, mode, keep, time) {
      const { changed, strong } = decideChange(Number(row.changed), time)
      const date = [nextVersion(), changed, strong ? 1 : 0] as const
      if (mode === 'hide') return void statements.hideState.run(...date, row.path)
      statements.removeState.run(...date, mode === 'erase' ? time : expiryOf(time, keep), row.path)
      release(row)
    },
  }
}

function hasTypeOnly({ contentEncoding, contentLanguage, filename }: Description): boolean {
  return contentEncoding === undefined && contentLanguage === undefined && filename === undefined
}

function valuesOf(
  version: string,
  { changed, strong }: Change,
  size: number,
  type: string,
  bytes: Uint8Array | null,
  indexed: Description['indexed'],
): SqliteValue[] {
  const values = indexed === undefined ? null : JSON.stringify(indexed.values)
  return [version, changed, strong ? 1 : 0, size, type, bytes, indexed?.index.version ?? null, values]
}

function countChanges(statement: SqliteStatement, values: readonly SqliteValue[]): number {
  return Number((statement.run(...values) as { changes: number | bigint }).changes)
}

/** @param keep milliseconds */
function expiryOf(time: number, keep: number): number {
  return Math.min(time + keep, Number.MAX_SAFE_INTEGER)
}

/** A live row, for those who replace it, and what its readers are given. */
export interface KnownState extends RowHead {
  readonly resource: StoredResource
}

/** A page of live members, and the versions that it was made of. */
interface KnownPage {
  readonly versions: string
  readonly page: Page
}

/**
 * States that are asked for repeatedly. Another process, or other code with the same handle, may have written
 * since, so a user of one asks the table for the version first, which costs a fraction of reading the row. No version
 * comes twice, so the same version is the same state.
 */
export interface KnownStates {
  find(path: string): KnownState | undefined
  /** The state of a path that has a version, where it is known. */
  resourceOf(path: string, version: string): StoredResource | undefined
  /** Keeps the state of a path that was offered before. */
  offer(row: Pick<RowHead, 'path' | 'state' | 'content_id'>, resource: StoredResource): void
  findPage(key: string): KnownPage | undefined
  /** Keeps a page that was offered before. */
  offerPage(key: string, rows: readonly RowHead[], page: Page): void
}

/** About what an entry takes beside its content: the objects, and the fields that are derived from them. */
const OVERHEAD = 1024

/** @param limit bytes for the states, and as many for the pages */
export function createKnownStates(limit: number): KnownStates {
  const states = createRecentCache<string, KnownState>(limit)
  const pages = createRecentCache<string, KnownPage>(limit)
  return {
    find: states.get,

    resourceOf(path, version) {
      const known = states.get(path)
      return known?.version === version ? known.resource : undefined
    },

    offer({ path, state, content_id }, resource) {
      const size = sizeInMemory(resource)
      if (!states.isWanted(resource.path, size)) return
      const { version, lastModified } = resource
      states.set(resource.path, { path, state, version, changed: lastModified!, content_id, resource }, size)
    },

    findPage: pages.get,

    offerPage(key, rows, page) {
      const size = page.items.reduce((sum, item) => sum + sizeInMemory(item), OVERHEAD)
      if (pages.isWanted(key, size)) pages.set(key, { versions: rows.map((row) => row.version).join(), page }, size)
    },
  }
}

function sizeInMemory({ body, size }: StoredResource): number {
  return isLargeBody(body) ? OVERHEAD : OVERHEAD + size
}
