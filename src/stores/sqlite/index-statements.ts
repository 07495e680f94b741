import { KEY_COLUMNS } from '../sql/queries/index-tables.ts'
import { FACTS_AND_CONTENT, HEAD_COLUMNS, HIDDEN, LIVE } from '../sql/rows.ts'
import type { SqliteDatabase, SqliteStatement } from './handle.ts'

type StatementName =
  | 'findPlace'
  | 'readPlace'
  | 'createPlace'
  | 'advancePlace'
  | 'usePlace'
  | 'findUnused'
  | 'dropPlace'
  | 'findDropped'
  | 'sweepEntries'
  | 'sweepPending'
  | 'sweepPlace'
  | 'hasMembers'
  | 'walkMembers'
  | 'readPending'
  | 'readMember'
  | 'readMemberHead'
  | 'donePending'

export interface SqliteIndexStatements extends Readonly<Record<StatementName, SqliteStatement>> {
  /** The place, the sort key and so many keys of an entry, from that of the scope on. */
  putEntry(count: number): SqliteStatement
}

/** Every statement of the indexes but those of the queries, prepared once. */
export function prepareIndexStatements(handle: SqliteDatabase, prefix: string): SqliteIndexStatements {
  const statements: Record<string, SqliteStatement> = {}
  for (const [name, sql] of Object.entries(writeStatements(prefix))) statements[name] = handle.prepare(sql)
  const entries: SqliteStatement[] = []
  const putEntry = (count: number) => (entries[count] ??= handle.prepare(writeEntry(`${prefix}entries`, count)))
  return { ...(statements as Record<StatementName, SqliteStatement>), putEntry }
}

/** Each parameter costs. An index never changes how many slots it uses: the columns of the others are null. */
function writeEntry(entries: string, count: number): string {
  const columns = KEY_COLUMNS.slice(0, count)
  return (
    `INSERT INTO ${entries} (place, sort_key, ${columns.join(', ')}) ` +
    `VALUES (?, ?, ${columns.map(() => '?').join(', ')}) ON CONFLICT (place, sort_key) DO UPDATE SET ` +
    `${columns.map((column) => `${column} = excluded.${column}`).join(', ')} ` +
    `WHERE (${columns.map((column) => `${entries}.${column}`).join(', ')}) IS NOT ` +
    `(${columns.map((column) => `excluded.${column}`).join(', ')})`
  )
}

function writeStatements(prefix: string): Readonly<Record<StatementName, string>> {
  const states = `${prefix}states`
  const entries = `${prefix}entries`
  const places = `${prefix}places`
  const pending = `${prefix}pending`
  const member = (state: number) =>
    `EXISTS (SELECT 1 FROM ${states} INDEXED BY ${states}_listed WHERE collection = ? AND state = ${state})`
  const isPending = `EXISTS (SELECT 1 FROM ${pending} WHERE place = id) AS is_pending`
  return {
    findPlace:
      `SELECT id, phase, walked, used, ${isPending} FROM ${places} INDEXED BY ${places}_named ` +
      'WHERE collection = ? AND index_version = ?',
    readPlace: `SELECT phase, walked, indexed FROM ${places} WHERE id = ? AND collection IS NOT NULL`,
    createPlace:
      `INSERT INTO ${places} (collection, index_version, phase, walked, indexed, used) VALUES (?, ?, ?, '', 0, ?) ` +
      'RETURNING id, phase',
    advancePlace: `UPDATE ${places} SET phase = ?, walked = ?, indexed = ? WHERE id = ?`,
    usePlace: `UPDATE ${places} SET used = ? WHERE id = ?`,
    // Not needed: its collection has another index that is used, or no member.
    findUnused:
      `SELECT id, EXISTS (SELECT 1 FROM ${places} AS q WHERE q.collection = p.collection AND q.used > p.used) ` +
      `OR NOT EXISTS (SELECT 1 FROM ${states} AS s INDEXED BY ${states}_listed WHERE s.collection = p.collection ` +
      `AND s.state IN (${LIVE}, ${HIDDEN})) AS is_needless FROM ${places} AS p INDEXED BY ${places}_used ` +
      'WHERE used < ? AND collection IS NOT NULL ORDER BY used LIMIT 20',
    dropPlace: `UPDATE ${places} SET collection = NULL WHERE id = ?`,
    findDropped: `SELECT id FROM ${places} INDEXED BY ${places}_dropped WHERE collection IS NULL LIMIT 1`,
    sweepEntries:
      `DELETE FROM ${entries} WHERE (place, sort_key) IN (SELECT place, sort_key FROM ${entries} ` +
      'WHERE place IN (?, ?) LIMIT 500) RETURNING 1',
    sweepPending:
      `DELETE FROM ${pending} WHERE (place, sort_key) IN (SELECT place, sort_key FROM ${pending} WHERE place = ? ` +
      'LIMIT 500) RETURNING 1',
    sweepPlace: `DELETE FROM ${places} WHERE id = ?`,
    hasMembers: `SELECT ${member(LIVE)} OR ${member(HIDDEN)} AS has`,
    walkMembers:
      `SELECT ${FACTS_AND_CONTENT}, sort_key FROM ${states} INDEXED BY ${states}_listed ` +
      'WHERE collection = ? AND state = ? AND sort_key > ? ORDER BY sort_key LIMIT ?',
    readPending: `SELECT sort_key FROM ${pending} WHERE place = ? ORDER BY sort_key LIMIT ?`,
    readMember: `SELECT ${FACTS_AND_CONTENT} FROM ${states} WHERE path = ?`,
    readMemberHead: `SELECT ${HEAD_COLUMNS} FROM ${states} WHERE path = ?`,
    donePending: `DELETE FROM ${pending} WHERE place = ? AND sort_key = ?`,
  }
}
