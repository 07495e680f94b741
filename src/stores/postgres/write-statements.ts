import { KEY_COLUMNS, tablesOf } from '../sql/queries/index-tables.ts'
import { HIDDEN, LIVE, REMOVED } from '../sql/rows.ts'

/** The clock of the database, in milliseconds: those of several machines differ. */
export const NOW = '(extract(epoch from now()) * 1000)::bigint'

/**
 * When a row is written, maybe long after its transaction began: it may have waited for the lock. At least `NOW`, by which
 * a date is called strong.
 */
const WRITTEN = `GREATEST(${NOW}, (extract(epoch from clock_timestamp()) * 1000)::bigint)`

/** The columns of a row, without the content. */
export const FACTS: string = `convert_from(path, 'UTF8') AS path, state, version, changed, strong, expires, size,
  content_type, content_encoding, content_language, filename, content_id, encode(sha256, 'base64') AS sha256,
  indexed_by, indexed, ${NOW} AS now`

export const CONTENT = "encode(content, 'base64') AS content"

/** The date of a state that follows another one. */
const DATED = `changed = GREATEST(s.changed, ${WRITTEN}), strong = floor(s.changed / 1000.0) < floor(${NOW} / 1000.0)`

/** The columns of a {@link WrittenRow}, but the last. */
const WRITTEN_FACTS = 'changed, strong, was_state'

/** Which rows `putState` may replace: those whose state is at least this. */
export const REPLACE: Readonly<Record<'any' | 'absent' | 'vacant', number>> = {
  any: LIVE,
  absent: HIDDEN,
  vacant: REMOVED + 1,
}

type PutStatementName = 'putState' | 'putNamed' | 'replaceState' | 'createState' | 'createBeside'
export type WriteStatementName =
  | PutStatementName
  | `${PutStatementName}Indexed`
  | keyof ReturnType<typeof writeRemovals>

const WRITTEN_COLUMNS = `path, version, size, content_type, content_encoding, content_language, filename, content,
  collection, sort_key, revision, state, changed, strong`

/** What a state that is written takes over from the one before. */
const REWRITTEN = `state = ${LIVE}, version = $2, revision = $2, ${DATED}, expires = NULL, size = $3, content_type = $4,
  content_encoding = $5, content_language = $6, filename = $7, was_state = s.state`

/** The values of a new row. @param first number of the first parameter */
function written(first: number): string {
  const types = ['bytea', 'text', 'bigint', 'text', 'text', 'text', 'text', 'bytea', 'bytea', 'bytea']
  const values = types.map((type, i) => `$${first + i}::${type}`)
  return [...values, values[1], LIVE, WRITTEN, 'true'].join(', ')
}

const NOT_INDEXED = { by: 'NULL', values: 'NULL' }

export function writeWriteStatements(prefix: string): Readonly<Record<WriteStatementName, string>> {
  // Behind the other parameters: the version of the index, the values as JSON, and the keys of the entry.
  const indexed = writePuts(prefix, { putState: 15, putNamed: 16, replaceState: 13, createState: 11, createBeside: 21 })
  const renamed = Object.entries(indexed).map(([name, text]) => [`${name}Indexed`, text])
  return { ...writePuts(prefix, undefined), ...Object.fromEntries(renamed), ...writeRemovals(prefix) }
}

/** @param first the number of the first parameter that is about the index; left out for content without values */
function writePuts(
  prefix: string,
  first: Readonly<Record<PutStatementName, number>> | undefined,
): Readonly<Record<PutStatementName, string>> {
  const { states, counters, entries, places } = tablesOf(prefix)

  const indexedAt = (name: PutStatementName) =>
    first === undefined ? NOT_INDEXED : { by: `$${first[name]}::text`, values: `$${first[name] + 1}::text` }
  // A row may be there that this statement does not see yet, so it is the conflict that finds it.
  const entryAt = (name: PutStatementName) =>
    first === undefined
      ? ''
      : `, entry AS (INSERT INTO ${entries} AS e (place, sort_key, ${KEY_COLUMNS.join(', ')})
        SELECT p.id, put.sort_key, ${KEY_COLUMNS.map((_, i) => `$${first[name] + 2 + i}::bytea`).join(', ')}
        FROM put JOIN ${places} AS p ON p.collection = put.collection AND p.index_version = $${first[name]}
        ON CONFLICT (place, sort_key) DO UPDATE SET
        ${KEY_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', ')}
        WHERE (${KEY_COLUMNS.map((column) => `e.${column}`).join(', ')}) IS DISTINCT FROM
        (${KEY_COLUMNS.map((column) => `excluded.${column}`).join(', ')}))`

  // $1 path, $2 version, $3 size, $4 to $7 the four fields, $8 content id, $9 content, $10 grace, $11 SHA-256; in all of them.
  const replaced = (name: PutStatementName) => `${REWRITTEN}, content_id = $8, content = $9, sha256 = $11,
    indexed_by = ${indexedAt(name).by}, indexed = ${indexedAt(name).values}, was_content_id = s.content_id`
  const returned = `RETURNING ${WRITTEN_FACTS}, was_content_id, collection, sort_key`
  const insert = (name: PutStatementName) => `INSERT INTO ${states} AS s (path, collection, sort_key, state, version,
    revision, changed, strong, expires, size, content_type, content_encoding, content_language, filename, content_id,
    content, sha256, indexed_by, indexed) VALUES ($1::bytea, $12::bytea, $13::bytea, ${LIVE}, $2::text, $2::text,
    ${WRITTEN}, true, NULL, $3::bigint, $4::text, $5::text, $6::text, $7::text, $8::text, $9::bytea, $11::bytea,
    ${indexedAt(name).by}, ${indexedAt(name).values}) ON CONFLICT (path) DO UPDATE SET ${replaced(name)}
    WHERE s.state >= $14::smallint ${returned}`
  const update = `UPDATE ${states} AS s SET ${replaced('replaceState')}
    WHERE s.path = $1::bytea AND s.state = ${LIVE} AND ($12::text IS NULL OR s.version = $12) ${returned}`
  const released = releasing(prefix, 'was_content_id', 'put', '$10')
  const raised = `raised AS (INSERT INTO ${counters} AS c SELECT $12::bytea, $15::bigint FROM put WHERE was_state IS NULL
    ON CONFLICT (collection) DO UPDATE SET next = excluded.next WHERE c.next < excluded.next RETURNING next)`
  const insertNew = `INSERT INTO ${states} (${WRITTEN_COLUMNS}, indexed_by, indexed)`
  const unlessThere = 'ON CONFLICT (path) DO NOTHING RETURNING changed, strong, collection, sort_key'
  const alone = indexedAt('createState')
  const beside = indexedAt('createBeside')

  return {
    /** $12 collection, $13 sort key, $14 which states may be replaced. */
    putState: `WITH put AS (${insert('putState')}), ${released}${entryAt('putState')}
      SELECT ${WRITTEN_FACTS}, NULL AS next FROM put`,
    /** $15 as well: the value to which the counter of the collection is raised. */
    putNamed: `WITH put AS (${insert('putNamed')}), ${released}, ${raised}${entryAt('putNamed')}
      SELECT ${WRITTEN_FACTS}, COALESCE((SELECT max(next) FROM raised),
      (SELECT next FROM ${counters} WHERE collection = $12::bytea)) AS next FROM put`,
    /** $12 the version to replace, or null. */
    replaceState: `WITH put AS (${update}), ${released}${entryAt('replaceState')}
      SELECT ${WRITTEN_FACTS}, NULL AS next FROM put`,

    /** A new path of small content. $1 path, $2 version, $3 size, $4 to $7 the four fields, $8 content, $9 collection, $10 sort key. */
    createState: `WITH put AS (${insertNew} VALUES (${written(1)}, ${alone.by}, ${alone.values}) ${unlessThere})
      ${entryAt('createState')} SELECT changed, strong FROM put`,

    /**
     * A new path beside one that must be absent, in one round trip. $1 path of the other, $2 version, $3 size, $4 to $7 the
     * four fields, $8 content, $9 collection, $10 sort key; $11 to $20 the same of the new path. No row where the other is
     * there or hidden, and an error that undoes all where the new path is.
     */
    createBeside: `WITH other AS (INSERT INTO ${states} AS s (${WRITTEN_COLUMNS}) VALUES (${written(1)})
      ON CONFLICT (path) DO UPDATE SET ${REWRITTEN}, content = $8, indexed_by = NULL, indexed = NULL,
      was_content_id = NULL WHERE s.state = ${REMOVED} RETURNING 1),
      put AS (${insertNew} SELECT ${written(11)}, ${beside.by}, ${beside.values} FROM other ${unlessThere})
      ${entryAt('createBeside')} SELECT (SELECT changed FROM put) AS changed, (SELECT strong FROM put) AS strong,
      1 / (SELECT count(*)::integer FROM put) AS is_put FROM other`,
  }
}

/**
 * Gives content that is not shown any more to the sweep, in the same step. Its row may have been added after this statement saw
 * the database, so it is the conflict that finds it.
 */
function releasing(prefix: string, column: string, rows: string, grace: string): string {
  return `released AS (INSERT INTO ${prefix}contents SELECT DISTINCT ${column}, ${NOW} + ${grace}::bigint FROM ${rows}
    WHERE ${column} IS NOT NULL ON CONFLICT (id) DO UPDATE SET expires = excluded.expires)`
}

function writeRemovals(prefix: string) {
  const states = `${prefix}states`
  // FOR UPDATE reads the row as it is once the lock is held, and the update then changes that one.
  const dropping = (changes: string) => `WITH old AS (SELECT ${FACTS}, ${CONTENT}, path AS key FROM ${states}
    WHERE path = $1::bytea AND state <= $4::smallint AND ($2::text IS NULL OR version = $2) FOR UPDATE),
    dropped AS (UPDATE ${states} AS s SET ${changes} FROM old WHERE s.path = old.key RETURNING 1)`
  const dated = `version = $3::text, revision = $3::text, ${DATED}`
  const emptied = `state = ${REMOVED}, ${dated}, size = 0, content_type = NULL, content_encoding = NULL,
    content_language = NULL, filename = NULL, content_id = NULL, content = NULL, sha256 = NULL, indexed_by = NULL,
    indexed = NULL`
  return {
    /** $1 path, $2 the version to remove, or null, $3 the new version, $4 the states to remove: up to this one. */
    hideState: `${dropping(`state = ${HIDDEN}, ${dated}`)} SELECT * FROM old`,
    /** $5 milliseconds until the tombstone is forgotten, $6 grace, as well. */
    removeState: `${dropping(`${emptied}, expires = ${NOW} + $5::bigint`)},
      ${releasing(prefix, 'content_id', 'old', '$6')} SELECT * FROM old`,
    /** Between $1 and $2, without a trace; $3 the new version, $4 grace. Gives a row where some were there. */
    removeBelow: `WITH old AS (SELECT path AS key, content_id FROM ${states} WHERE path >= $1::bytea AND path < $2::bytea
      AND (state <> ${REMOVED} OR expires > ${NOW}) FOR UPDATE),
      dropped AS (UPDATE ${states} AS s SET ${emptied}, expires = ${NOW} FROM old WHERE s.path = old.key RETURNING 1),
      ${releasing(prefix, 'content_id', 'old', '$4')} SELECT 1 FROM old LIMIT 1`,
  }
}
