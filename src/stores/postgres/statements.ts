import { createHash } from 'node:crypto'
import { HIDDEN, KEPT_AFTER_EXPIRY, LIVE, REMOVED } from '../sql/rows.ts'
import type { PostgresStatement } from './connection.ts'

type StatementName =
  | 'readState'
  | 'readFacts'
  | 'listLive'
  | 'listAll'
  | 'putState'
  | 'putNamed'
  | 'replaceState'
  | 'createBeside'
  | 'hideState'
  | 'removeState'
  | 'leaseNames'
  | 'beginContent'
  | 'addChunk'
  | 'addTwoChunks'
  | 'linkContent'
  | 'releaseContent'
  | 'abandonContent'
  | 'readChunk'
  | 'readAcross'
  | 'sweepStates'
  | 'claimExpired'
  | 'sweepChunks'
  | 'sweepContent'
  | 'readIdentity'
  | 'touchContent'
  | 'claimKeys'
  | 'findKnown'
  | 'findChunked'
  | 'findContentOf'
  | 'moveContent'

/** Begins the id of content that lies in a content store; versions, which name chunks, never have it. */
export const KEY_MARK = '.'

export type PostgresStatements = Readonly<Record<StatementName, PostgresStatement>>

/** Every statement of the store. The name tells the text apart from that of any other release or prefix. */
export function nameStatements(prefix: string): PostgresStatements {
  const statements: Record<string, PostgresStatement> = {}
  for (const [key, text] of Object.entries(writeStatements(prefix))) {
    const digest = createHash('sha256').update(text).digest('base64url')
    statements[key] = { name: `http-resource-service ${key} ${digest.slice(0, 16)}`, text }
  }
  return statements as PostgresStatements
}

/** The clock of the database, in milliseconds: those of several machines differ. */
const NOW = '(extract(epoch from now()) * 1000)::bigint'

/**
 * When a row is written, maybe long after its transaction began: it may have waited for the lock. At least `NOW`, by which
 * a date is called strong.
 */
const WRITTEN = `GREATEST(${NOW}, (extract(epoch from clock_timestamp()) * 1000)::bigint)`

const FACTS =
  "convert_from(path, 'UTF8') AS path, state, version, changed, strong, expires, size, content_type, " +
  `content_encoding, content_language, filename, content_id, encode(sha256, 'base64') AS sha256, ${NOW} AS now`
const CONTENT = "encode(content, 'base64') AS content"

/** Which rows `putState` may replace: those whose state is at least this. */
export const REPLACE: Readonly<Record<'any' | 'absent' | 'vacant', number>> = {
  any: LIVE,
  absent: HIDDEN,
  vacant: REMOVED + 1,
}

const WRITTEN_COLUMNS =
  'path, version, size, content_type, content_encoding, content_language, filename, content, collection, sort_key, ' +
  'state, changed, strong'

/** The values of a new row. @param first number of the first parameter */
function written(first: number): string {
  const types = ['bytea', 'text', 'bigint', 'text', 'text', 'text', 'text', 'bytea', 'bytea', 'bytea']
  return [...types.map((type, i) => `$${first + i}::${type}`), LIVE, WRITTEN, 'true'].join(', ')
}

function writeStatements(prefix: string): Readonly<Record<StatementName, string>> {
  const states = `${prefix}states`
  const counters = `${prefix}counters`
  const contents = `${prefix}contents`
  const chunks = `${prefix}chunks`

  // $1 path, $2 version, $3 size, $4 to $7 the four fields, $8 content id, $9 content, $10 grace, $11 SHA-256; in all of them.
  const replaced = (second: string) =>
    `state = ${LIVE}, version = $2, changed = GREATEST(s.changed, ${WRITTEN}), ` +
    `strong = floor(s.changed / 1000.0) < floor(${NOW} / 1000.0), expires = NULL, size = $3, content_type = $4, ` +
    'content_encoding = $5, content_language = $6, filename = $7, content_id = $8, content = $9, ' +
    'sha256 = $11, ' +
    `was_state = s.state, was_content_id = s.content_id ${second}`
  const insert =
    `INSERT INTO ${states} AS s (path, collection, sort_key, state, version, changed, strong, expires, size, ` +
    'content_type, content_encoding, content_language, filename, content_id, content, sha256) ' +
    `VALUES ($1::bytea, $12::bytea, $13::bytea, ${LIVE}, $2::text, ${WRITTEN}, true, NULL, $3::bigint, $4::text, ` +
    '$5::text, $6::text, $7::text, $8::text, $9::bytea, $11::bytea) ' +
    `ON CONFLICT (path) DO UPDATE SET ${replaced('WHERE s.state >= $14::smallint')} ` +
    'RETURNING changed, strong, was_state, was_content_id'
  const update =
    `UPDATE ${states} AS s SET ${replaced('')} ` +
    `WHERE s.path = $1::bytea AND s.state = ${LIVE} AND ($12::text IS NULL OR s.version = $12) ` +
    'RETURNING changed, strong, was_state, was_content_id'
  // The content that is not shown any more goes to the sweep in the same step.
  const released =
    `released AS (UPDATE ${contents} AS c SET expires = ${NOW} + $10::bigint FROM put ` +
    'WHERE c.id = put.was_content_id RETURNING 1)'
  // Content that was begun after this statement saw the database has escaped it.
  const isReleased = (id: string) => `(${id} IS NULL OR EXISTS (SELECT 1 FROM released)) AS is_released`
  const raised =
    `raised AS (INSERT INTO ${counters} AS c SELECT $12::bytea, $15::bigint FROM put WHERE was_state IS NULL ` +
    'ON CONFLICT (collection) DO UPDATE SET next = excluded.next WHERE c.next < excluded.next RETURNING next)'
  const listed = (state: number) =>
    `SELECT ${FACTS}, ${CONTENT}, sort_key FROM ${states} ` +
    `WHERE collection = $1::bytea AND state = ${state} AND sort_key > $2::bytea ORDER BY sort_key LIMIT $3::integer`

  const dropping = (changes: string) =>
    // FOR UPDATE reads the row as it is once the lock is held, and the update then changes that one.
    `WITH old AS (SELECT ${FACTS}, ${CONTENT}, path AS key FROM ${states} WHERE path = $1::bytea AND ` +
    'state <= $4::smallint AND ($2::text IS NULL OR version = $2) FOR UPDATE), ' +
    `dropped AS (UPDATE ${states} AS s SET ${changes} FROM old WHERE s.path = old.key RETURNING 1)`
  const dated =
    `version = $3::text, changed = GREATEST(s.changed, ${WRITTEN}), ` +
    `strong = floor(s.changed / 1000.0) < floor(${NOW} / 1000.0)`

  return {
    readState: `SELECT ${FACTS}, ${CONTENT} FROM ${states} WHERE path = $1::bytea`,
    readFacts: `SELECT ${FACTS} FROM ${states} WHERE path = $1::bytea`,
    listLive: listed(LIVE),
    listAll:
      `SELECT * FROM ((${listed(LIVE)}) UNION ALL (${listed(HIDDEN)})) AS members ` +
      'ORDER BY sort_key LIMIT $3::integer',

    /** $12 collection, $13 sort key, $14 which states may be replaced. */
    putState: `WITH put AS (${insert}), ${released} SELECT put.*, ${isReleased('was_content_id')}, NULL AS next FROM put`,
    /** $15 as well: the value to which the counter of the collection is raised. */
    putNamed:
      `WITH put AS (${insert}), ${released}, ${raised} SELECT put.*, ${isReleased('was_content_id')}, ` +
      `COALESCE((SELECT max(next) FROM raised), (SELECT next FROM ${counters} WHERE collection = $12::bytea)) AS next FROM put`,
    /** $12 the version to replace, or null. */
    replaceState: `WITH put AS (${update}), ${released} SELECT put.*, ${isReleased('was_content_id')}, NULL AS next FROM put`,

    /**
     * A new path beside one that must be absent, in one round trip. $1 path of the other, $2 version, $3 size, $4 to $7 the
     * four fields, $8 content, $9 collection, $10 sort key; $11 to $20 the same of the new path. No row where the other is
     * there or hidden, and an error that undoes all where the new path is.
     */
    createBeside:
      `WITH other AS (INSERT INTO ${states} AS s (${WRITTEN_COLUMNS}) VALUES (${written(1)}) ` +
      `ON CONFLICT (path) DO UPDATE SET state = ${LIVE}, version = $2, changed = GREATEST(s.changed, ${WRITTEN}), ` +
      `strong = floor(s.changed / 1000.0) < floor(${NOW} / 1000.0), expires = NULL, size = $3, content_type = $4, ` +
      'content_encoding = $5, content_language = $6, filename = $7, content = $8, was_state = s.state, ' +
      `was_content_id = NULL WHERE s.state = ${REMOVED} RETURNING 1), ` +
      `put AS (INSERT INTO ${states} (${WRITTEN_COLUMNS}) SELECT ${written(11)} FROM other ` +
      'ON CONFLICT (path) DO NOTHING RETURNING changed, strong) ' +
      'SELECT (SELECT changed FROM put) AS changed, (SELECT strong FROM put) AS strong, ' +
      '1 / (SELECT count(*)::integer FROM put) AS is_put FROM other',

    /** $1 path, $2 the version to remove, or null, $3 the new version, $4 the states to remove: up to this one. */
    hideState: `${dropping(`state = ${HIDDEN}, ${dated}`)} SELECT * FROM old`,
    /** $5 milliseconds until the tombstone is forgotten, $6 grace, as well. */
    removeState:
      dropping(
        `state = ${REMOVED}, ${dated}, expires = ${NOW} + $5::bigint, size = 0, content_type = NULL, ` +
          'content_encoding = NULL, content_language = NULL, filename = NULL, content_id = NULL, content = NULL, sha256 = NULL',
      ) +
      `, released AS (UPDATE ${contents} AS c SET expires = ${NOW} + $6::bigint FROM old ` +
      `WHERE c.id = old.content_id RETURNING 1) SELECT old.*, ${isReleased('old.content_id')} FROM old`,

    // Beyond 2^53 - 1 there is no row, and so no name.
    leaseNames:
      `INSERT INTO ${counters} AS c VALUES ($1::bytea, 1 + $2::bigint) ON CONFLICT (collection) DO UPDATE SET ` +
      `next = c.next + $2 WHERE c.next + $2 <= ${Number.MAX_SAFE_INTEGER + 1} RETURNING next`,

    // `expires` of content: null while a path shows it; otherwise the time from which the sweep may take it.
    beginContent: `INSERT INTO ${contents} VALUES ($1::text, ${NOW} + $2::bigint)`,
    addChunk:
      `WITH touched AS (UPDATE ${contents} SET expires = ${NOW} + $2::bigint WHERE id = $1::text AND expires > 0 ` +
      `RETURNING id) INSERT INTO ${chunks} SELECT id, $3::integer, $4::bytea FROM touched RETURNING 1`,
    addTwoChunks:
      `WITH touched AS (UPDATE ${contents} SET expires = ${NOW} + $2::bigint WHERE id = $1::text AND expires > 0 ` +
      `RETURNING id) INSERT INTO ${chunks} SELECT id, $3::integer, $4::bytea FROM touched ` +
      'UNION ALL SELECT id, $3::integer + 1, $5::bytea FROM touched RETURNING 1',
    linkContent: `UPDATE ${contents} SET expires = NULL WHERE id = $1::text AND expires > 0 RETURNING 1`,
    releaseContent: `UPDATE ${contents} SET expires = ${NOW} + $2::bigint WHERE id = $1::text`,
    abandonContent: `UPDATE ${contents} SET expires = 0 WHERE id = $1::text AND expires IS NOT NULL RETURNING 1`,
    readChunk:
      "SELECT encode(substring(bytes FROM $3::integer FOR $4::integer), 'base64') AS bytes " +
      `FROM ${chunks} WHERE content_id = $1::text AND chunk = $2::integer`,
    readAcross:
      "SELECT encode(substring(a.bytes FROM $3::integer) || substring(b.bytes FOR $4::integer), 'base64') AS bytes " +
      `FROM ${chunks} AS a, ${chunks} AS b ` +
      'WHERE a.content_id = $1::text AND a.chunk = $2::integer AND b.content_id = $1 AND b.chunk = $2 + 1',

    // The condition stands twice: a row found by the inner query may have been written anew meanwhile.
    sweepStates:
      `DELETE FROM ${states} WHERE path IN (SELECT path FROM ${states} WHERE expires < ${NOW} - ` +
      `${KEPT_AFTER_EXPIRY} LIMIT 500) AND expires < ${NOW} - ${KEPT_AFTER_EXPIRY} RETURNING 1`,
    // 0 marks content as lost: no write can link it any more, so its chunks can go in several steps.
    claimExpired:
      `UPDATE ${contents} SET expires = 0 WHERE id IN (SELECT id FROM ${contents} WHERE expires < ${NOW} ` +
      `AND left(id, 1) <> '${KEY_MARK}' ORDER BY expires LIMIT 1) AND expires < ${NOW} RETURNING id`,
    sweepChunks:
      `DELETE FROM ${chunks} WHERE content_id = $1::text AND chunk IN ` +
      `(SELECT chunk FROM ${chunks} WHERE content_id = $1 LIMIT 64) RETURNING 1`,
    sweepContent: `DELETE FROM ${contents} WHERE id = $1::text AND expires = 0`,

    // Content in a content store: its id is its key behind a mark.
    readIdentity: `SELECT id FROM ${prefix}identity`,
    touchContent: `UPDATE ${contents} SET expires = ${NOW} + $2::bigint WHERE id = $1::text AND expires > 0`,
    claimKeys:
      `UPDATE ${contents} SET expires = 0 WHERE id IN (SELECT id FROM ${contents} WHERE expires < ${NOW} ` +
      `AND left(id, 1) = '${KEY_MARK}' ORDER BY expires LIMIT 16) AND expires < ${NOW} RETURNING id`,
    findChunked:
      `SELECT encode(path, 'base64') AS path, content_id AS id, size FROM ${states} WHERE path > $1::bytea ` +
      `AND content_id IS NOT NULL AND left(content_id, 1) <> '${KEY_MARK}' ORDER BY path LIMIT 1`,
    findContentOf: `SELECT content_id AS id FROM ${states} WHERE path = $1::bytea`,
    /** The version stays: the bytes are the same. */
    moveContent: `UPDATE ${states} SET content_id = $3::text WHERE path = $1::bytea AND content_id = $2::text RETURNING 1`,
    /** $1 ids, with commas between them. */
    findKnown: `SELECT id FROM ${contents} WHERE id = ANY(string_to_array($1::text, ','))`,
  }
}
