import { encodeEntry, padEntry } from '../sql/queries/index-tables.ts'
import { encodeText, type StateRow } from '../sql/rows.ts'
import type { Content } from '../types.ts'
import type { PostgresValue } from './connection.ts'
import type { Fields } from './direct-query.ts'

/** The clock of the database, in milliseconds: those of several machines differ. */
export const NOW = '(extract(epoch from now()) * 1000)::bigint'

/**
 * When a row is written, maybe long after its transaction began: it may have waited for the lock. At least `NOW`, by which
 * a date is called strong.
 */
export const WRITTEN: string = `GREATEST(${NOW}, (extract(epoch from clock_timestamp()) * 1000)::bigint)`

/** A row, and the time at which the database read it. */
export type DatedRow = StateRow & { readonly now: number }

/** The columns of a row, without the content. */
export const FACTS: string =
  "convert_from(path, 'UTF8') AS path, state, version, changed, strong, expires, size, content_type, " +
  "content_encoding, content_language, filename, content_id, encode(sha256, 'base64') AS sha256, indexed_by, indexed, " +
  `${NOW} AS now`

export const CONTENT = "encode(content, 'base64') AS content"

/** A row of {@link FACTS}, and of {@link CONTENT} behind them. */
export function decodeState(fields: Fields): DatedRow {
  return {
    path: fields[0]!,
    state: Number(fields[1]),
    version: fields[2]!,
    changed: Number(fields[3]),
    strong: fields[4] === 't',
    expires: fields[5]!,
    size: Number(fields[6]),
    content_type: fields[7]!,
    content_encoding: fields[8]!,
    content_language: fields[9]!,
    filename: fields[10]!,
    content_id: fields[11]!,
    sha256: fields[12],
    indexed_by: fields[13]!,
    indexed: fields[14]!,
    now: Number(fields[15]),
    content: fields[16],
  }
}

/** What a statement tells of the row that it wrote. */
export interface WrittenRow {
  readonly changed: number
  readonly strong: boolean
  readonly was_state: number | null
  readonly was_content_id: string | null
  readonly is_released: boolean
  readonly next: number | null
}

/** The columns of a {@link WrittenRow}, but the last two. */
export const WRITTEN_FACTS = 'changed, strong, was_state, was_content_id'

/** The date of a row that was written for the first time. */
export function decodeCreated([changed, strong]: Fields): Pick<WrittenRow, 'changed' | 'strong'> {
  return { changed: Number(changed), strong: strong === 't' }
}

/** A row of {@link WRITTEN_FACTS}, `is_released` and `next`. */
export function decodeWritten([changed, strong, was, content, isReleased, next]: Fields): WrittenRow {
  return {
    changed: Number(changed),
    strong: strong === 't',
    was_state: was === null ? null : Number(was),
    was_content_id: content!,
    is_released: isReleased === 't',
    next: next === null ? null : Number(next),
  }
}

/** What the index of a collection has of a row, in the order of the statements; nothing without values. */
export function listIndexed({ indexed }: Pick<Content, 'indexed'>): readonly PostgresValue[] {
  if (indexed === undefined) return []
  return [
    indexed.index.version,
    JSON.stringify(indexed.values),
    ...padEntry(encodeEntry(indexed.index, indexed.values)),
  ]
}

/** Keys are bytes. */
export function encodeKey(text: string): Uint8Array {
  return Buffer.from(encodeText(text), 'utf8')
}
