import type { IndexedValues } from '../lists.ts'

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
