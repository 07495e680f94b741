/** The clock of the database, in milliseconds: those of several machines differ. */
export const NOW = '(extract(epoch from now()) * 1000)::bigint'

/**
 * When a row is written, maybe long after its transaction began: it may have waited for the lock. At least `NOW`, by which
 * a date is called strong.
 */
export const WRITTEN: string = `GREATEST(${NOW}, (extract(epoch from clock_timestamp()) * 1000)::bigint)`

/** The columns of a row, without the content. */
export const FACTS: string =
  "convert_from(path, 'UTF8') AS path, state, version, changed, strong, expires, size, content_type, " +
  "content_encoding, content_language, filename, content_id, encode(sha256, 'base64') AS sha256, indexed_by, indexed, " +
  `${NOW} AS now`

export const CONTENT = "encode(content, 'base64') AS content"
