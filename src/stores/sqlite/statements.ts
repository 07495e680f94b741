import { KEY_COLUMNS, tablesOf } from '../sql/queries/index-tables.ts'
import { HIDDEN, KEPT_AFTER_EXPIRY, LIVE, REMOVED } from '../sql/rows.ts'
import type { SqliteDatabase, SqliteStatement } from './handle.ts'

const HEAD_COLUMNS = 'path, state, version, changed, content_id'

/** The columns of a row, without the content. */
const FACTS: string =
  'path, state, version, changed, strong, expires, size, content_type, content_encoding, content_language, filename, ' +
  'content_id, sha256, indexed_by, indexed'

/** The content stands last: SQLite then finds the other columns without passing over it. */
export const FACTS_AND_CONTENT: string = `${FACTS}, content`

/** The columns that a write sets, in the order of its values. */
const REPLACED = ['revision', 'changed', 'strong', 'size', 'content_type', 'content', 'indexed_by', 'indexed']
const DESCRIBED = ['content_encoding', 'content_language', 'filename', 'content_id', 'sha256']
const PUT = ['collection', 'sort_key', 'expires', ...REPLACED, ...DESCRIBED]

/** Chunks of one content that are removed in one step: 8 MiB. Of all contents together they are less than twice as many. */
export const MOST_CHUNKS = 64

type StatementName = keyof ReturnType<typeof writeStatements> | keyof ReturnType<typeof writeIndexStatements>

export interface SqliteStatements extends Readonly<Record<StatementName, SqliteStatement>> {
  /** The place, the sort key and so many keys of an entry, from that of the scope on. */
  putEntry(count: number): SqliteStatement
}

/** Every statement of the store but those of the queries, prepared once. */
export function prepareStatements(handle: SqliteDatabase, prefix: string): SqliteStatements {
  const statements: Record<string, SqliteStatement> = {}
  const texts = { ...writeStatements(prefix), ...writeIndexStatements(prefix) }
  for (const [name, sql] of Object.entries(texts)) {
    const statement = handle.prepare(sql)
    // The row comes as a list where the driver can give one: to make an object for it takes an eighth of the time.
    if (name === 'readVersion') statement.raw?.(true)
    statements[name] = statement
  }
  const entries: SqliteStatement[] = []
  const putEntry = (count: number) => (entries[count] ??= handle.prepare(writeEntry(`${prefix}entries`, count)))
  return { ...(statements as Record<StatementName, SqliteStatement>), putEntry }
}

function writeStatements(prefix: string) {
  const { states, counters, contents, chunks } = tablesOf(prefix)
  const listed = (state: number) => `FROM ${states} INDEXED BY ${states}_listed
    WHERE collection = ? AND state = ${state} AND sort_key > ? ORDER BY sort_key LIMIT ?`
  const row = `${FACTS_AND_CONTENT}, sort_key`
  const removed = `state = ${REMOVED}, revision = ?, changed = MAX(changed, ?), strong = ?, expires = ?, size = 0,
    content_type = NULL, content_encoding = NULL, content_language = NULL, filename = NULL, content_id = NULL,
    content = NULL, sha256 = NULL, indexed_by = NULL, indexed = NULL`
  // Parameters are anonymous throughout: better-sqlite3 takes ?1 for a named one.
  return {
    readState: `SELECT ${FACTS_AND_CONTENT} FROM ${states} WHERE path = ?`,
    readFacts: `SELECT ${FACTS} FROM ${states} WHERE path = ?`,
    readVersion: `SELECT version FROM ${states} WHERE path = ?`,
    readHead: `SELECT ${HEAD_COLUMNS} FROM ${states} WHERE path = ?`,
    readClock: `SELECT second FROM ${prefix}clock`,
    setClock: `UPDATE ${prefix}clock SET second = ?`,
    // `revision` is the version, under the name that release 0.1 does not know.
    // Values: the path, and those of `PUT`.
    putState: `INSERT INTO ${states} (path, ${PUT.join(', ')}, state)
      VALUES (?, ${PUT.map(() => '?').join(', ')}, ${LIVE}) ON CONFLICT (path)
      DO UPDATE SET state = ${LIVE}, ${PUT.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    // Values: those of `REPLACED`, the path, and the version that is replaced.
    replaceState: `UPDATE ${states} SET ${REPLACED.map((name) => `${name} = ?`).join(', ')},
      ${DESCRIBED.map((name) => `${name} = NULL`).join(', ')}
      WHERE path = ? AND revision = ? AND state = ${LIVE} AND collection IS NOT NULL`,
    // Of what a record needs only, for each parameter costs: path, version, changed, expires, size, content_type, content.
    addRecord: `INSERT INTO ${states} (path, state, revision, changed, strong, expires, size, content_type, content)
      VALUES (?, ${LIVE}, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT (path) DO NOTHING`,
    hideState: `UPDATE ${states} SET state = ${HIDDEN}, revision = ?, changed = ?, strong = ? WHERE path = ?`,
    removeState: `UPDATE ${states} SET ${removed} WHERE path = ?`,
    // A tombstone that is not forgotten yet goes as well.
    // Below a path: between the path with a slash behind it and the path with the character that follows the slash.
    removeBelow: `UPDATE ${states} SET ${removed} WHERE path >= ? AND path < ? AND (state <> ${REMOVED} OR expires > ?)`,
    releaseBelow: `UPDATE ${contents} SET expires = ? WHERE id IN
      (SELECT content_id FROM ${states} WHERE path >= ? AND path < ? AND content_id IS NOT NULL)`,
    listLive: `SELECT ${row} ${listed(LIVE)}`,
    // In the order of the page, which a subquery with a limit keeps.
    listVersions: `SELECT group_concat(version) AS versions FROM (SELECT version ${listed(LIVE)})`,
    listAll: `SELECT * FROM (SELECT ${row} ${listed(LIVE)})
      UNION ALL SELECT * FROM (SELECT ${row} ${listed(HIDDEN)}) ORDER BY sort_key LIMIT ?`,

    // Beyond 2^53 - 1 there is no row, and so no name.
    nextName: `INSERT INTO ${counters} VALUES (?, 2) ON CONFLICT (collection) DO UPDATE SET next = next + 1
      WHERE next < ${Number.MAX_SAFE_INTEGER + 1} RETURNING next - 1 AS id`,
    raiseCounter: `INSERT INTO ${counters} VALUES (?, ?) ON CONFLICT (collection) DO UPDATE SET next = excluded.next
      WHERE next < excluded.next`,

    // `expires` of content: null while a path shows it; otherwise the time from which the sweep may take it.
    beginContent: `INSERT INTO ${contents} (expires) VALUES (?) RETURNING id`,
    touchContent: `UPDATE ${contents} SET expires = ? WHERE id = ? AND expires > 0 RETURNING id`,
    linkContent: `UPDATE ${contents} SET expires = NULL WHERE id = ? AND expires > 0 RETURNING id`,
    releaseContent: `UPDATE ${contents} SET expires = ? WHERE id = ?`,
    abandonContent: `UPDATE ${contents} SET expires = 0 WHERE id = ? AND expires IS NOT NULL`,
    findAbandoned: `SELECT key FROM ${contents} WHERE id = ? AND expires = 0`,
    addChunk: `INSERT INTO ${chunks} VALUES (?, ?, ?)`,
    readChunk: `SELECT bytes FROM ${chunks} WHERE content_id = ? AND chunk = ?`,
    readPart: `SELECT substr(bytes, ?, ?) AS bytes FROM ${chunks} WHERE content_id = ? AND chunk = ?`,

    // "||" makes text of them, byte by byte, and CAST makes bytes of it again.
    readAcross: `SELECT CAST(substr(a.bytes, ?) || substr(b.bytes, 1, ?) AS BLOB) AS bytes
      FROM ${chunks} AS a, ${chunks} AS b WHERE a.content_id = ? AND a.chunk = ? AND b.content_id = ? AND b.chunk = ?`,

    sweepStates: `DELETE FROM ${states} WHERE path IN (SELECT path FROM ${states}
      WHERE expires IS NOT NULL AND expires < ? - ${KEPT_AFTER_EXPIRY} LIMIT 500) RETURNING 1`,
    // 0 marks content as lost: no write can link it any more, so its chunks can go in several steps.
    findExpired: `SELECT id FROM ${contents} WHERE expires IS NOT NULL AND expires < ? AND key IS NULL
      ORDER BY expires LIMIT 16`,
    sweepChunks: `DELETE FROM ${chunks} WHERE content_id = ? AND chunk IN
      (SELECT chunk FROM ${chunks} WHERE content_id = ? LIMIT ${MOST_CHUNKS}) RETURNING 1`,
    sweepContent: `DELETE FROM ${contents} WHERE id = ?`,

    // Content with a key lies in a content store.
    readIdentity: `SELECT id FROM ${prefix}identity`,
    beginKey: `INSERT INTO ${contents} (expires, key) VALUES (?, ?) RETURNING id`,
    findKey: `SELECT key FROM ${contents} WHERE id = ?`,
    findRowOfKey: `SELECT 1 FROM ${contents} WHERE key = ?`,
    releaseAtOnce: `UPDATE ${contents} SET expires = 0 WHERE id = ? AND expires IS NOT NULL AND key IS NULL`,
    // Rows that were not claimed before come first: content that can never be removed keeps no other content waiting. Any
    // of those: many may have expired together, and to sort them would take time for each at every step.
    claimKeys: `UPDATE ${contents} SET expires = 0 WHERE id IN (SELECT id FROM (SELECT id FROM ${contents}
      WHERE expires > 0 AND expires < ? AND key IS NOT NULL LIMIT 64) UNION ALL
      SELECT id FROM (SELECT id FROM ${contents} WHERE expires = 0 AND key IS NOT NULL ORDER BY random() LIMIT 64)
      LIMIT 64) RETURNING id, key`,
    // Among a thousand states: one step for all others would take long. Text is less than bytes.
    findChunked: `WITH last AS (SELECT path FROM ${states} WHERE path > ? ORDER BY path LIMIT 1 OFFSET 999)
      SELECT * FROM (SELECT path, content_id AS id, size FROM ${states} AS s WHERE path > ? AND content_id IS NOT NULL
      AND path <= COALESCE((SELECT path FROM last), x'') AND (SELECT key FROM ${contents} WHERE id = s.content_id) IS NULL
      ORDER BY path LIMIT 1) UNION ALL SELECT path, NULL, NULL FROM last ORDER BY id DESC LIMIT 1`,
    findContentOf: `SELECT content_id AS id FROM ${states} WHERE path = ?`,
    findLeftChunks: `SELECT id FROM ${contents} AS c WHERE key IS NOT NULL
      AND EXISTS (SELECT 1 FROM ${chunks} WHERE content_id = c.id) LIMIT 1`,
    moveContent: `UPDATE ${contents} SET key = ? WHERE id = ? AND key IS NULL AND expires IS NULL RETURNING id`,
  }
}

/** The statements of the indexes; see `sql/queries/index-tables.ts`. */
function writeIndexStatements(prefix: string) {
  const { states, entries, places, pending } = tablesOf(prefix)
  const member = (state: number) =>
    `EXISTS (SELECT 1 FROM ${states} INDEXED BY ${states}_listed WHERE collection = ? AND state = ${state})`
  const isPending = `EXISTS (SELECT 1 FROM ${pending} WHERE place = id) AS is_pending`
  return {
    findPlace: `SELECT id, phase, walked, used, ${isPending} FROM ${places} INDEXED BY ${places}_named
      WHERE collection = ? AND index_version = ?`,
    readPlace: `SELECT phase, walked, indexed FROM ${places} WHERE id = ? AND collection IS NOT NULL`,
    createPlace: `INSERT INTO ${places} (collection, index_version, phase, walked, indexed, used)
      VALUES (?, ?, ?, '', 0, ?) RETURNING id, phase`,
    advancePlace: `UPDATE ${places} SET phase = ?, walked = ?, indexed = ? WHERE id = ?`,
    usePlace: `UPDATE ${places} SET used = ? WHERE id = ?`,
    // Not needed: its collection has another index that is used, or no member.
    findUnused: `SELECT id, EXISTS (SELECT 1 FROM ${places} AS q WHERE q.collection = p.collection AND q.used > p.used)
      OR NOT EXISTS (SELECT 1 FROM ${states} AS s INDEXED BY ${states}_listed WHERE s.collection = p.collection
      AND s.state IN (${LIVE}, ${HIDDEN})) AS is_needless FROM ${places} AS p INDEXED BY ${places}_used
      WHERE used < ? AND collection IS NOT NULL ORDER BY used LIMIT 20`,
    dropPlace: `UPDATE ${places} SET collection = NULL WHERE id = ?`,
    findDropped: `SELECT id FROM ${places} INDEXED BY ${places}_dropped WHERE collection IS NULL LIMIT 1`,
    sweepEntries: `DELETE FROM ${entries} WHERE (place, sort_key) IN (SELECT place, sort_key FROM ${entries}
      WHERE place IN (?, ?) LIMIT 500) RETURNING 1`,
    sweepPending: `DELETE FROM ${pending} WHERE (place, sort_key) IN (SELECT place, sort_key FROM ${pending}
      WHERE place = ? LIMIT 500) RETURNING 1`,
    sweepPlace: `DELETE FROM ${places} WHERE id = ?`,
    hasMembers: `SELECT ${member(LIVE)} OR ${member(HIDDEN)} AS has`,
    walkMembers: `SELECT ${FACTS_AND_CONTENT}, sort_key FROM ${states} INDEXED BY ${states}_listed
      WHERE collection = ? AND state = ? AND sort_key > ? ORDER BY sort_key LIMIT ?`,
    readPending: `SELECT sort_key FROM ${pending} WHERE place = ? ORDER BY sort_key LIMIT ?`,
    donePending: `DELETE FROM ${pending} WHERE place = ? AND sort_key = ?`,
  }
}

/** Each parameter costs. An index never changes how many slots it uses: the columns of the others are null. */
function writeEntry(entries: string, count: number): string {
  const columns = KEY_COLUMNS.slice(0, count)
  return `INSERT INTO ${entries} (place, sort_key, ${columns.join(', ')})
    VALUES (?, ?, ${columns.map(() => '?').join(', ')}) ON CONFLICT (place, sort_key)
    DO UPDATE SET ${columns.map((column) => `${column} = excluded.${column}`).join(', ')}
    WHERE (${columns.map((column) => `${entries}.${column}`).join(', ')}) IS NOT
    (${columns.map((column) => `excluded.${column}`).join(', ')})`
}
