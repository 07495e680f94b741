import { DONE, KEY_COLUMNS, NOTE_USE_AFTER, UNUSED_AFTER } from '../sql/queries/index-tables.ts'
import { HIDDEN, LIVE } from '../sql/rows.ts'
import { CONTENT, FACTS, NOW } from './write-statements.ts'

/** Milliseconds that a new place waits for the writes that have begun before it. */
const LOCK_TIMEOUT = 2000
/** Members that are indexed in one transaction. */
const BATCH = 100

type PlaceName = 'findPlace' | 'lockPlaces' | 'createPlace' | 'holdPlace' | 'advancePlace' | 'usePlace' | 'dropUnused'
type SweepName = 'findDropped' | 'sweepEntries' | 'sweepPending' | 'sweepPlace'
type StatementName = PlaceName | SweepName | 'hasMembers' | 'limitLockTime' | 'walkMembers' | 'readPending'

interface PostgresIndexStatements extends Readonly<Record<StatementName, string>> {
  /** $1 and further ones: paths. */
  readMembers(count: number): string
  /** The same; no write of them goes on before the transaction ends. */
  holdMembers(count: number): string
  /** $1 place, $2 and further ones: sort keys. */
  donePending(count: number): string
  /** @param rows for each entry the text of its place, its sort key and its keys */
  putEntries(rows: readonly string[]): string
}

/**
 * Every statement of the indexes but those of the queries. Connections keep none of them prepared: they run once in a while,
 * or have many texts.
 */
export function writeIndexStatements(prefix: string): PostgresIndexStatements {
  const states = `${prefix}states`
  const entries = `${prefix}entries`
  const places = `${prefix}places`
  const pending = `${prefix}pending`
  const hasMembers = (collection: string) =>
    `(EXISTS (SELECT 1 FROM ${states} WHERE collection = ${collection} AND state = ${LIVE}) OR ` +
    `EXISTS (SELECT 1 FROM ${states} WHERE collection = ${collection} AND state = ${HIDDEN}))`
  const sweepOf = (table: string) =>
    `DELETE FROM ${table} WHERE (place, sort_key) IN (SELECT place, sort_key FROM ${table} ` +
    'WHERE place IN ($1::integer, -$1::integer) LIMIT 500) RETURNING 1'
  // Not needed: its collection has another index that is used, or no member.
  const isNeedless =
    `EXISTS (SELECT 1 FROM ${places} AS q WHERE q.collection = p.collection AND q.used > p.used) ` +
    `OR NOT ${hasMembers('p.collection')}`

  return {
    findPlace:
      `SELECT id, phase, convert_from(walked, 'UTF8') AS walked, used < ${NOW} - ${NOTE_USE_AFTER} AS is_stale, ` +
      `EXISTS (SELECT 1 FROM ${pending} WHERE place = p.id) AS is_pending FROM ${places} AS p ` +
      'WHERE collection = $1::bytea AND index_version = $2::text',
    hasMembers: `SELECT ${hasMembers('$1::bytea')} AS has`,
    limitLockTime: `SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`,
    lockPlaces: `LOCK TABLE ${places} IN ACCESS EXCLUSIVE MODE`,
    createPlace:
      `INSERT INTO ${places} (collection, index_version, phase, walked, indexed, used) VALUES ($1::bytea, $2::text, ` +
      `CASE WHEN ${hasMembers('$1::bytea')} THEN ${LIVE} ELSE ${DONE} END, ''::bytea, 0, ${NOW})`,
    /** The process that holds this row indexes; another process goes on from where it has come to. */
    holdPlace:
      `SELECT phase, convert_from(walked, 'UTF8') AS walked, indexed FROM ${places} ` +
      'WHERE id = $1::integer AND collection IS NOT NULL FOR UPDATE',
    advancePlace:
      `UPDATE ${places} SET phase = $2::smallint, walked = $3::bytea, indexed = $4::bigint ` + 'WHERE id = $1::integer',
    usePlace: `UPDATE ${places} SET used = ${NOW} WHERE id = $1::integer`,
    /** Drops places that are unused and not needed; other unused ones count as used now. */
    dropUnused:
      `WITH unused AS (SELECT id, ${isNeedless} AS is_needless FROM ${places} AS p ` +
      `WHERE used < ${NOW} - ${UNUSED_AFTER} AND collection IS NOT NULL ORDER BY used LIMIT 20) ` +
      `UPDATE ${places} AS p SET used = ${NOW}, collection = CASE WHEN is_needless THEN NULL ELSE collection END ` +
      `FROM unused WHERE p.id = unused.id AND p.used < ${NOW} - ${UNUSED_AFTER} RETURNING 1`,
    findDropped: `SELECT id FROM ${places} WHERE collection IS NULL LIMIT 1`,
    sweepEntries: sweepOf(entries),
    sweepPending: sweepOf(pending),
    sweepPlace: `DELETE FROM ${places} WHERE id = $1::integer`,
    walkMembers:
      `SELECT ${FACTS}, ${CONTENT}, convert_from(sort_key, 'UTF8') AS sort_key FROM ${states} WHERE collection = ` +
      `$1::bytea AND state = $2::smallint AND sort_key > $3::bytea ORDER BY ${states}.sort_key LIMIT ${BATCH}`,
    readPending:
      `SELECT convert_from(sort_key, 'UTF8') AS sort_key FROM ${pending} ` + `WHERE place = $1::integer LIMIT ${BATCH}`,

    readMembers: (count) => `SELECT ${FACTS}, ${CONTENT} FROM ${states} WHERE path IN (${list(count, 1)})`,
    holdMembers: (count) =>
      `SELECT convert_from(path, 'UTF8') AS path, version, state FROM ${states} ` +
      `WHERE path IN (${list(count, 1)}) ORDER BY ${states}.path FOR SHARE`,
    donePending: (count) => `DELETE FROM ${pending} WHERE place = $1::integer AND sort_key IN (${list(count, 2)})`,
    putEntries: (rows) =>
      `INSERT INTO ${entries} (place, sort_key, ${KEY_COLUMNS.join(', ')}) VALUES ${rows.join(', ')} ` +
      'ON CONFLICT (place, sort_key) DO UPDATE SET ' +
      KEY_COLUMNS.map((column) => `${column} = excluded.${column}`).join(', '),
  }
}

/** Places for keys in a statement. */
function list(count: number, first: number): string {
  return Array.from({ length: count }, (_, i) => `$${first + i}::bytea`).join(', ')
}
