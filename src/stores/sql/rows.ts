/** The rows of the tables of states, in every database: their columns, and how values, paths and names are kept in them. */

import { viewOf } from '../../core/byte-blocks.ts'
import type { IndexedValues, Page } from '../lists.ts'
import { isExpected, type MutableResource, nameOf, parseIntegerName, readAsText, splitPath } from '../rules.ts'
import type {
  ContentFields,
  LargeBody,
  ReadOptions,
  RemoveOptions,
  RemoveResult,
  SmallBody,
  StoredResource,
  StoredState,
  Tombstone,
} from '../types.ts'

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
  /** The indexed values, as JSON. */
  readonly indexed: string | null
  readonly content?: unknown
}

/** @param version that of the state whose content it is */
export type OpenContent = (id: number | string, size: number, version: string) => LargeBody

export function toResource(row: StateRow, open: OpenContent): StoredResource {
  const size = Number(row.size)
  const resource: MutableResource = {
    path: unescapeText(row.path),
    version: row.version,
    contentType: unescapeText(row.content_type ?? ''),
    size,
    body: row.content_id === null ? toSmallBody(row.content) : open(row.content_id, size, row.version),
    lastModified: Number(row.changed),
    dateIsStrong: Boolean(row.strong),
  }
  if (row.content_encoding !== null) resource.contentEncoding = unescapeText(row.content_encoding)
  if (row.content_language !== null) resource.contentLanguage = unescapeText(row.content_language)
  if (row.filename !== null) resource.filename = unescapeText(row.filename)
  // The same value whether it was just made or comes from the database: not every driver returns a Buffer.
  if (row.sha256 !== null) resource.sha256 = viewOf(toBytes(row.sha256))
  if (row.indexed_by !== null) {
    resource.indexed = { index: { version: row.indexed_by }, values: JSON.parse(row.indexed!) as IndexedValues }
  }
  if (row.state === HIDDEN) resource.hidden = true
  return resource
}

/** A page of a collection. @param rows one more than the limit where another page follows */
export function toPage(rows: readonly StateRow[], limit: number, toMember: (row: StateRow) => StoredResource): Page {
  const items = rows.slice(0, limit).map(toMember)
  return rows.length > limit ? { items, next: nameOf(items[limit - 1]!.path) } : { items }
}

export function toState(row: StateRow | undefined, options: ReadOptions, now: number, open: OpenContent): StoredState {
  if (row === undefined) return undefined
  if (row.state === LIVE || (row.state === HIDDEN && options.hidden)) return toResource(row, open)
  if (row.state === REMOVED && Number(row.expires) <= now) return undefined
  return { removed: true, path: unescapeText(row.path), removedAt: Number(row.changed) }
}

/** The version that a reader finds at a path; `undefined` where none is shown. */
export function shownVersion(row: RowHead | undefined): string | undefined {
  return row?.state === LIVE ? row.version : undefined
}

/** Why a path cannot be removed; `undefined` where it can. @param current what a reader finds */
export function refuseRemoval(
  row: RowHead | undefined,
  expect: RemoveOptions['expect'],
  current: StoredState,
): Exclude<RemoveResult, { readonly outcome: 'removed' }> | undefined {
  if (expect === 'any' && row?.state !== LIVE) return { outcome: 'absent', current: current as Tombstone | undefined }
  return isExpected(shownVersion(row), expect) ? undefined : { outcome: 'conflict', current }
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
    escapeText(contentType),
    contentEncoding === undefined ? null : escapeText(contentEncoding),
    contentLanguage === undefined ? null : escapeText(contentLanguage),
    filename === undefined ? null : escapeText(filename),
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

function toSmallBody(value: unknown): SmallBody {
  const bytes = toBytes(value)
  return readAsText(bytes) ?? bytes
}

/** The bytes to store. Text is never kept as text: databases differ on U+0000 and on collations. */
export function encodeBody(body: SmallBody): Uint8Array {
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body
}

/**
 * The key under which a name is sorted, to be compared by bytes: integers by value, then all others.
 * The number of digits comes first, as one of the letters `a` to `p`.
 */
export function formatSortKey(name: string): string {
  if (parseIntegerName(name) === undefined) return `z${name}`
  return String.fromCharCode(0x60 + name.length) + name
}

/** The sort key of a path that is a member of a collection, as databases keep it. */
export function sortKeyOf(path: string): string {
  return escapeText(formatSortKey(nameOf(path)))
}

/** The path of a member, as databases keep it. @param sortKey as databases keep it */
export function memberKeyOf(collection: string, sortKey: string): string {
  return `${escapeText(collection)}/${sortKey.slice(1)}`
}

/** Where everything below a path stands, as databases keep it: from the first key up to the second, which is outside. */
export function rangeBelow(path: string): readonly [string, string] {
  const key = escapeText(path)
  // `0` is the character behind the slash.
  return [`${key}/`, `${key}0`]
}

const UNFIT = /[\0\u0001\ud800-\udfff]/u
const ALL_UNFIT = /[\0\u0001\ud800-\udfff]/gu

/** Text as databases keep it: some refuse U+0000, and lone surrogates would all become the same character. */
export function escapeText(text: string): string {
  if (!UNFIT.test(text)) return text
  return text.replace(ALL_UNFIT, (unit) => '\u0001' + unit.charCodeAt(0).toString(16).padStart(4, '0'))
}

export function unescapeText(text: string): string {
  if (!text.includes('\u0001')) return text
  return text.replace(/\u0001([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}

/**
 * The steps that lead from a version of the schema to the one that this release works with; none when it is that one.
 * @param steps one for each version, which leads to the next
 * @throws Error when the tables were made by a newer release
 */
export function findMigrations<Step>(steps: readonly Step[], version: number, prefix: string): readonly Step[] {
  if (version <= steps.length) return steps.slice(version)
  throw new Error(
    `The tables ${prefix}* have schema version ${version}, and this release knows versions up to ` +
      `${steps.length}. Run the release that made them, or a newer one.`,
  )
}
