import { type Change, createResource, type Description, decideChange } from '../new-state.ts'
import type { KnownStates } from '../recent-cache.ts'
import type { Taken } from '../sql/dialect.ts'
import { encodeFields, encodeIndexed, encodeText, formatSortKey, LIVE, placeOf, type RowHead } from '../sql/rows.ts'
import {
  type Content,
  type RelatedWrite,
  readAsText,
  type SmallBody,
  type StoredResource,
  splitPath,
} from '../types.ts'
import type { SqliteContents } from './contents.ts'
import type { SqliteStatement, SqliteValue } from './handle.ts'
import type { SqliteIndexes } from './indexes.ts'
import type { SqliteNames } from './names.ts'
import type { SqliteStatements } from './statements.ts'

/** A state to write at a path. */
export interface StateWrite {
  readonly path: string
  readonly content: Description
  /** Default: a new one. */
  readonly version?: string | undefined
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
  /** Gives the content of a row that is replaced or removed to the sweep. */
  release(row: RowHead | undefined): void
}

export interface SqliteRowsOptions {
  readonly contents: SqliteContents
  readonly known: KnownStates
  readonly names: SqliteNames
  readonly indexes: SqliteIndexes
  readonly nextVersion: () => string
}

export function createSqliteRows(
  statements: SqliteStatements,
  { contents, known, names, indexes, nextVersion }: SqliteRowsOptions,
): SqliteRows {
  function upsert(
    { path, content, version = nextVersion(), retention }: StateWrite,
    row: RowHead | undefined,
    taken: Taken,
    time: number,
  ): StoredResource {
    const change = decideChange(row === undefined ? undefined : Number(row.changed), time)
    const key = row?.path ?? encodeText(path)
    const id = taken.id ?? null
    const bytes = copyOf(taken)
    // The sweep takes rows, and no chunks.
    const expires = retention === undefined || id !== null ? null : expiryOf(time, retention)
    // The parts of an encoded path are the encoded parts.
    const place = expires === null ? placeOf(key) : undefined
    const sortKey = place === undefined ? null : formatSortKey(place.name)
    const indexed = place === undefined ? undefined : content.indexed
    const entry = prepareEntry(path, indexed)
    if (id !== null) contents.link(id)
    const [type, ...fields] = encodeFields(content)
    const written: Written = { version, key, change, taken, bytes }
    const values = [...valuesOf(written, type, indexed), ...fields, id, taken.sha256 ?? null]
    statements.putState.run(key, place?.collection ?? null, sortKey, expires, ...values)
    entry?.put(sortKey!, indexed!.values)
    release(row)
    // A path that has a row has raised the counter before.
    if (row === undefined && place !== undefined) names.raiseFor(place.collection, place.name)
    // A copy costs a write 3 % of its time.
    const description = content.indexed === indexed ? content : { ...content, indexed }
    return remember(path, description, written)
  }

  function replace(
    { path, content, version = nextVersion(), retention }: StateWrite,
    row: RowHead,
    taken: Taken,
    time: number,
  ): StoredResource | undefined {
    const [type, ...fields] = encodeFields(content)
    const place = retention === undefined ? placeOf(row.path) : undefined
    if (place === undefined || taken.id !== undefined || fields.some((value) => value !== null)) return undefined
    const { indexed } = content
    const entry = prepareEntry(path, indexed)
    const written = {
      version,
      key: row.path,
      change: decideChange(Number(row.changed), time),
      taken,
      bytes: copyOf(taken),
    }
    const values = [...valuesOf(written, type, indexed), row.path, row.version]
    if (countChanges(statements.replaceState, values) === 0) return undefined
    entry?.put(formatSortKey(place.name), indexed!.values)
    release(row)
    return remember(path, content, written)
  }

  /** Before the state is there: the first member of a collection needs no search for others. */
  function prepareEntry(path: string, indexed: Content['indexed']) {
    return indexed === undefined ? undefined : indexes.prepare(splitPath(path).collection, indexed.index)
  }

  function remember(path: string, content: StateWrite['content'], written: Written): StoredResource {
    const { version, key, change, taken, bytes } = written
    const { size, sha256 } = taken
    const body = taken.id === undefined ? (readAsText(bytes!) ?? bytes!) : contents.open(taken.id, size)
    const resource = createResource(path, version, content, { size, body, sha256 }, change)
    known.offer({ path: key, state: LIVE, version, changed: change.changed, content_id: taken.id ?? null }, resource)
    return resource
  }

  function addRecord(related: readonly RelatedWrite[], taken: readonly Taken[], time: number): number | undefined {
    const index = related.findIndex((write) => write.expect === 'absent')
    const write = related[index]
    if (write?.retention === undefined || related.findLastIndex(({ expect }) => expect === 'absent') > index) return
    const { id, body, size } = taken[index + 1]!
    const [type, ...others] = encodeFields(write.content)
    if (id !== undefined || others.some((value) => value !== null)) return
    const expires = expiryOf(time, write.retention)
    const bytes = Buffer.from(body as Uint8Array)
    const row = [encodeText(write.path), nextVersion(), time, expires, size, type, bytes]
    return countChanges(statements.addRecord, row) === 1 ? index : undefined
  }

  function release(row: RowHead | undefined): void {
    if (row !== undefined && row.content_id !== null) contents.release(row.content_id)
  }

  return {
    put: (own, row, taken, time) =>
      (row?.state === LIVE ? replace(own, row, taken, time) : undefined) ?? upsert(own, row, taken, time),

    replace,
    addRecord,
    release,
  }
}

/** A row as it was written. */
interface Written {
  readonly version: string
  readonly key: string
  readonly change: Change
  readonly taken: Taken
  /** `null` for content in chunks. */
  readonly bytes: Buffer | null
}

/** The values of the columns that every write sets. */
function valuesOf(
  { version, change, taken, bytes }: Written,
  type: string,
  indexed: Content['indexed'],
): readonly SqliteValue[] {
  return [version, change.changed, change.strong ? 1 : 0, taken.size, type, bytes, ...encodeIndexed(indexed)]
}

/** Copied: the buffer stays the caller's, and what was read or written again stays in memory. */
function copyOf({ id, body }: Taken): Buffer | null {
  return id === undefined ? Buffer.from(body as SmallBody) : null
}

/** Runs a statement. @returns how many rows it has changed */
function countChanges(statement: SqliteStatement, values: readonly SqliteValue[]): number {
  const { changes } = statement.run(...values) as { changes: number | bigint }
  return Number(changes)
}

/** @param keep milliseconds */
export function expiryOf(time: number, keep: number): number {
  return Math.min(time + keep, Number.MAX_SAFE_INTEGER)
}
