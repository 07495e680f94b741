import type { IndexedValues } from '../index-types.ts'
import {
  type Content,
  type ContentFields,
  type Expectation,
  type LargeBody,
  nameOf,
  type Page,
  type RemoveOptions,
  type RemoveResult,
  readAsText,
  type SmallBody,
  type StoredResource,
  type StoredState,
  splitPath,
  type Tombstone,
} from '../types.ts'
import { decodeText, encodeText } from './names.ts'

/** Anybody may read it. */
export const LIVE = 0
/** Kept, but shown only to reads that ask for hidden resources. */
export const HIDDEN = 1
/** A tombstone until it expires. After that it reads as if nothing had been there. */
export const REMOVED = 2

/**
 * How long the row of an expired tombstone stays, in milliseconds. It keeps a new state in the same second from being
 * given a strong date, and a name that lies in a leased block of ids from being assigned a second time.
 */
export const KEPT_AFTER_EXPIRY: number = 10 * 60 * 1000

/** What a write has to know of the row that it replaces. Drivers hand 64-bit integers over as numbers or strings. */
export interface RowHead {
  readonly path: string
  readonly state: number
  readonly version: string
  readonly changed: number | string
  /** Names the chunks of large content; null when the content lies in the row. */
  readonly content_id: number | string | null
}

/** The row of one path. Drivers hand truth values over as booleans or integers. */
export interface StateRow extends RowHead {
  readonly strong: number | boolean
  readonly expires: number | string | null
  readonly size: number | string
  readonly content_type: string | null
  readonly content_encoding: string | null
  readonly content_language: string | null
  readonly filename: string | null
  /** Of large content that was written since the column is there. */
  readonly sha256: unknown
  /** The version of the index that the values were made for. */
  readonly indexed_by: string | null
  /** The indexed values: as JSON in the table. */
  readonly indexed: string | IndexedValues | null
  readonly content?: unknown
}

/** The columns of a {@link RowHead}. */
export const HEAD_COLUMNS = 'path, state, version, changed, content_id'

/** The columns of a row, without the content. */
export const FACTS: string =
  'path, state, version, changed, strong, expires, size, content_type, content_encoding, content_language, filename, ' +
  'content_id, sha256, indexed_by, indexed'

/** The content stands last: SQLite then finds the other columns without passing over it. */
export const FACTS_AND_CONTENT: string = `${FACTS}, content`

/** Makes the object that opens large content. */
export type OpenContent = (id: number | string, size: number) => LargeBody

export function toResource(row: StateRow, open: OpenContent): StoredResource {
  const size = Number(row.size)
  const resource: { -readonly [Name in keyof StoredResource]: StoredResource[Name] } = {
    path: decodeText(row.path),
    version: row.version,
    contentType: decodeText(row.content_type ?? ''),
    size,
    body: row.content_id === null ? toSmallBody(row.content) : open(row.content_id, size),
    lastModified: Number(row.changed),
    dateIsStrong: Boolean(row.strong),
  }
  if (row.content_encoding !== null) resource.contentEncoding = decodeText(row.content_encoding)
  if (row.content_language !== null) resource.contentLanguage = decodeText(row.content_language)
  if (row.filename !== null) resource.filename = decodeText(row.filename)
  if (row.sha256 !== null) resource.sha256 = toDigest(row.sha256)
  if (row.indexed_by !== null) {
    const { indexed } = row
    const values = typeof indexed === 'string' ? (JSON.parse(indexed) as IndexedValues) : indexed!
    resource.indexed = { index: { version: row.indexed_by }, values }
  }
  if (row.state === HIDDEN) resource.hidden = true
  return resource
}

/** The columns `indexed_by` and `indexed`. */
export function encodeIndexed(indexed: Content['indexed']): readonly [string | null, string | null] {
  return indexed === undefined ? [null, null] : [indexed.index.version, JSON.stringify(indexed.values)]
}

/** A page of a collection. @param rows one more than the limit where another page follows */
export function toPage<Row extends StateRow>(
  rows: readonly Row[],
  limit: number,
  toMember: (row: Row) => StoredResource,
): Page {
  const items = rows.slice(0, limit).map(toMember)
  return rows.length > limit ? { items, next: nameOf(items[limit - 1]!.path) } : { items }
}

/** Whether a reader is shown what is hidden. */
export type Shown = 'shown' | 'not-shown'

/** What a reader finds. */
export function toState(row: StateRow | undefined, hidden: Shown, now: number, open: OpenContent): StoredState {
  if (row === undefined) return undefined
  if (row.state === LIVE || (row.state === HIDDEN && hidden === 'shown')) return toResource(row, open)
  if (row.state === REMOVED && Number(row.expires) <= now) return undefined
  return { removed: true, path: decodeText(row.path), removedAt: Number(row.changed) }
}

export function isExpected(row: RowHead | undefined, expect: Expectation): boolean {
  if (expect === 'any') return true
  const isPresent = row !== undefined && row.state === LIVE
  if (expect === 'absent') return !isPresent
  return isPresent && (expect === 'present' || row.version === expect.version)
}

/** Why a path cannot be removed; `undefined` where it can. @param current what a reader finds */
export function refuseRemoval(
  row: RowHead | undefined,
  expect: RemoveOptions['expect'],
  current: StoredState,
): Exclude<RemoveResult, { readonly outcome: 'removed' }> | undefined {
  if (expect === 'any' && row?.state !== LIVE) return { outcome: 'absent', current: current as Tombstone | undefined }
  return isExpected(row, expect) ? undefined : { outcome: 'conflict', current }
}

/** When a new state begins, and whether its date names it alone. */
export interface Change {
  readonly changed: number
  readonly strong: boolean
}

/** The date of a resource never goes back, whatever the clocks of several processes say. */
export function decideChange(previous: RowHead | undefined, now: number): Change {
  if (previous === undefined) return { changed: now, strong: true }
  const before = Number(previous.changed)
  return { changed: Math.max(before, now), strong: Math.floor(before / 1000) < Math.floor(now / 1000) }
}

/** The state that a write leaves, for its result. */
export function createWrittenResource(
  path: string,
  version: string,
  content: Omit<Content, 'body'>,
  stored: { readonly size: number; readonly body: SmallBody | LargeBody; readonly sha256?: Uint8Array | undefined },
  change: Change,
): StoredResource {
  const resource: { -readonly [Name in keyof StoredResource]: StoredResource[Name] } = {
    path,
    version,
    contentType: content.contentType,
    size: stored.size,
    body: stored.body,
    lastModified: change.changed,
    dateIsStrong: change.strong,
  }
  if (content.contentEncoding !== undefined) resource.contentEncoding = content.contentEncoding
  if (content.contentLanguage !== undefined) resource.contentLanguage = content.contentLanguage
  if (content.filename !== undefined) resource.filename = content.filename
  if (stored.sha256 !== undefined) resource.sha256 = toDigest(stored.sha256)
  if (content.indexed !== undefined) {
    const { index, values } = content.indexed
    resource.indexed = { index: { version: index.version }, values: { ...values } }
  }
  return resource
}

/** Where a path is listed; `undefined` for paths that are members of nothing. */
export function placeOf(path: string): { readonly collection: string; readonly name: string } | undefined {
  if (!path.includes('/')) return undefined
  const place = splitPath(path)
  return place.name === '' ? undefined : place
}

/** The columns that describe content: its media type, coding, language and file name. */
export function encodeFields(content: ContentFields): [string, string | null, string | null, string | null] {
  const { contentType, contentEncoding, contentLanguage, filename } = content
  return [
    encodeText(contentType),
    contentEncoding === undefined ? null : encodeText(contentEncoding),
    contentLanguage === undefined ? null : encodeText(contentLanguage),
    filename === undefined ? null : encodeText(filename),
  ]
}

/**
 * Drivers give binary values as Buffer, Uint8Array or ArrayBuffer, and an empty one possibly as null; Postgres is asked
 * for Base64, which is decoded many times faster than its own notation.
 */
export function toBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value
  if (typeof value === 'string') return Buffer.from(value, 'base64')
  return value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(0)
}

/** A digest is the same value whether it was just made or comes from the database: not every driver returns a Buffer. */
function toDigest(value: unknown): Uint8Array {
  const { buffer, byteOffset, length } = toBytes(value)
  return Buffer.from(buffer, byteOffset, length)
}

export function toSmallBody(value: unknown): SmallBody {
  const bytes = toBytes(value)
  return readAsText(bytes) ?? bytes
}

/** The bytes to store. Text is never kept as text: databases differ on U+0000 and on collations. */
export function encodeBody(body: SmallBody): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body
}
