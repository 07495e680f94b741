import { ALL_SLOTS, KEY_COLUMNS, tablesOf } from '../sql/queries/index-tables.ts'
import { findMigrations, HIDDEN, LIVE, REMOVED } from '../sql/rows.ts'
import type { SqliteDatabase } from './handle.ts'

/** Bytes of one chunk of large content. Part of the schema: chunks are found by it. */
export const CHUNK_SIZE = 131_072

/** What leads from each version of the schema to the next. Released steps never change. */
const MIGRATIONS: readonly ((prefix: string) => string)[] = [
  (prefix) => `
    CREATE TABLE ${prefix}states (
      path TEXT NOT NULL PRIMARY KEY,
      collection TEXT,
      sort_key TEXT,
      state INTEGER NOT NULL,
      version TEXT NOT NULL,
      changed INTEGER NOT NULL,
      strong INTEGER NOT NULL,
      expires INTEGER,
      size INTEGER NOT NULL,
      content_type TEXT,
      content_encoding TEXT,
      content_language TEXT,
      filename TEXT,
      content_id INTEGER,
      content BLOB
    );
    CREATE INDEX ${prefix}states_listed ON ${prefix}states (collection, state, sort_key);
    CREATE INDEX ${prefix}states_expiring ON ${prefix}states (expires) WHERE expires IS NOT NULL;
    CREATE TABLE ${prefix}counters (collection TEXT NOT NULL PRIMARY KEY, next INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE ${prefix}contents (id INTEGER PRIMARY KEY AUTOINCREMENT, expires INTEGER);
    CREATE INDEX ${prefix}contents_expiring ON ${prefix}contents (expires) WHERE expires IS NOT NULL;
    CREATE TABLE ${prefix}chunks (
      content_id INTEGER NOT NULL,
      chunk INTEGER NOT NULL,
      bytes BLOB NOT NULL,
      PRIMARY KEY (content_id, chunk)
    );`,
  // The latest second in which any process has written.
  (prefix) => `
    CREATE TABLE ${prefix}clock (second INTEGER NOT NULL);
    INSERT INTO ${prefix}clock SELECT COALESCE(MAX(changed), 0) / 1000 FROM ${prefix}states;`,
  // Behind the content, and yet read without passing over it: content that has a digest here lies in chunks.
  (prefix) => `ALTER TABLE ${prefix}states ADD COLUMN sha256 BLOB;`,
  // The key of content that lies in a content store, and what the keys of this database begin with. Each kind of content
  // is swept by an index of its own.
  (prefix) => `
    ALTER TABLE ${prefix}contents ADD COLUMN key TEXT;
    DROP INDEX ${prefix}contents_expiring;
    CREATE INDEX ${prefix}contents_expiring ON ${prefix}contents (expires) WHERE expires IS NOT NULL AND key IS NULL;
    CREATE INDEX ${prefix}contents_lost ON ${prefix}contents (expires) WHERE expires IS NOT NULL AND key IS NOT NULL;
    CREATE UNIQUE INDEX ${prefix}contents_keys ON ${prefix}contents (key) WHERE key IS NOT NULL;
    CREATE TABLE ${prefix}identity (id TEXT NOT NULL);
    INSERT INTO ${prefix}identity VALUES (lower(hex(randomblob(8))));`,
  // Release 0.1 reads what it finds, and cannot write any more: it would leave members without entries. Nothing is
  // written anew here, however large the tables are.
  (prefix) => `
    ALTER TABLE ${prefix}states RENAME COLUMN version TO revision;
    ALTER TABLE ${prefix}states ADD COLUMN version TEXT GENERATED ALWAYS AS (revision) VIRTUAL;
    ALTER TABLE ${prefix}states ADD COLUMN indexed_by TEXT;
    ALTER TABLE ${prefix}states ADD COLUMN indexed TEXT;
    ${createIndexTables(prefix)}`,
]

/**
 * Brings the tables to the version that this release works with. Several processes may do so at the same time.
 * @throws Error when the tables were made by a newer release, or cannot be made because the encoding is not UTF-8
 */
export function migrateSqlite(handle: SqliteDatabase, prefix: string): void {
  const readMissing = () => findMigrations(MIGRATIONS, readVersion(handle, prefix), prefix)
  const { length } = readMissing()
  if (length === 0) return
  if (length === MIGRATIONS.length) requireEncoding(handle)
  handle.exec('BEGIN IMMEDIATE')
  try {
    const missing = readMissing()
    if (missing.length > 0) {
      for (const migration of missing) handle.exec(migration(prefix))
      handle.exec(`
        CREATE TABLE IF NOT EXISTS ${prefix}schema (version INTEGER NOT NULL);
        DELETE FROM ${prefix}schema;
        INSERT INTO ${prefix}schema VALUES (${MIGRATIONS.length});`)
    }
    handle.exec('COMMIT')
  } catch (error) {
    try {
      handle.exec('ROLLBACK')
    } catch {}
    throw error
  }
}

/** Refuses UTF-16: SQLite would order names otherwise than this process does, and could not join bytes of two chunks. */
function requireEncoding(handle: SqliteDatabase): void {
  const { encoding } = handle.prepare('PRAGMA encoding').get() as { encoding: string }
  if (encoding !== 'UTF-8') throw new Error(`sqliteStore needs a database with the encoding UTF-8, not ${encoding}.`)
}

function readVersion(handle: SqliteDatabase, prefix: string): number {
  const table = handle
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?")
    .get(`${prefix}schema`)
  if (table === undefined) return 0
  const row = handle.prepare(`SELECT version FROM ${prefix}schema`).get() as { version: number } | undefined
  return row?.version ?? 0
}

/** The tables by which members are selected, and the triggers that keep them; see `sql/queries/index-tables.ts`. */
function createIndexTables(prefix: string): string {
  const { entries, places, pending, states } = tablesOf(prefix)
  const indexes = ALL_SLOTS.map(
    (slot) => `
    CREATE INDEX ${entries}_v${slot} ON ${entries} (place, v${slot}, sort_key) WHERE v${slot} IS NOT NULL;
    CREATE INDEX ${entries}_s${slot} ON ${entries} (place, scope, v${slot}, sort_key)
      WHERE scope IS NOT NULL AND v${slot} IS NOT NULL;`,
  )
  const placesOf = (row: 'NEW' | 'OLD', id: string, condition = '') =>
    `SELECT ${id} FROM ${places} WHERE collection = ${row}.collection${condition}`
  const of = (row: 'NEW' | 'OLD', id: string, condition = '') =>
    `sort_key = ${row}.sort_key AND place IN (${placesOf(row, id, condition)})`
  const byThis = ' AND index_version IS NEW.indexed_by'
  const byOthers = ' AND index_version IS NOT NEW.indexed_by'
  // The table of entries has 32 indexes, and a statement opens them all, also where no entry matches. That takes longer than
  // the write itself, so a trigger looks for places or pending members first.
  const isIndexed = (row: 'NEW' | 'OLD', condition = '') =>
    `${row}.collection IS NOT NULL AND EXISTS (${placesOf(row, '1', condition)})`
  // Not "OR IGNORE": the clause for conflicts of the statement that fires a trigger holds for the trigger as well.
  const becomesPending = `INSERT INTO ${pending} SELECT id, NEW.sort_key FROM ${places} AS p
        WHERE collection = NEW.collection${byOthers}
        AND NOT EXISTS (SELECT 1 FROM ${pending} WHERE place = p.id AND sort_key = NEW.sort_key);`
  const forget = (row: 'NEW' | 'OLD') => `
      DELETE FROM ${entries} WHERE ${of(row, 'id')};
      DELETE FROM ${entries} WHERE ${of(row, '-id')};
      DELETE FROM ${pending} WHERE ${of(row, 'id')};`
  return `
    CREATE TABLE ${places} (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      collection TEXT,
      index_version TEXT NOT NULL,
      phase INTEGER NOT NULL,
      walked TEXT NOT NULL,
      indexed INTEGER NOT NULL,
      used INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX ${places}_named ON ${places} (collection, index_version) WHERE collection IS NOT NULL;
    CREATE INDEX ${places}_used ON ${places} (used) WHERE collection IS NOT NULL;
    CREATE INDEX ${places}_dropped ON ${places} (id) WHERE collection IS NULL;
    CREATE TABLE ${entries} (
      place INTEGER NOT NULL,
      sort_key TEXT NOT NULL,
      ${KEY_COLUMNS.map((column) => `${column} BLOB`).join(', ')},
      PRIMARY KEY (place, sort_key)
    ) WITHOUT ROWID;${indexes.join('')}
    CREATE TABLE ${pending} (place INTEGER NOT NULL, sort_key TEXT NOT NULL, PRIMARY KEY (place, sort_key)) WITHOUT ROWID;
    CREATE TRIGGER ${states}_created AFTER INSERT ON ${states}
      WHEN NEW.state <> ${REMOVED} AND ${isIndexed('NEW', byOthers)}
    BEGIN
      ${becomesPending}
    END;
    CREATE TRIGGER ${states}_outdated AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${LIVE} AND ${isIndexed('NEW', byOthers)}
    BEGIN
      DELETE FROM ${entries} WHERE ${of('NEW', 'id', byOthers)};
      ${becomesPending}
    END;
    CREATE TRIGGER ${states}_indexed AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${LIVE} AND EXISTS (SELECT 1 FROM ${pending} WHERE ${of('NEW', 'id', byThis)})
    BEGIN
      DELETE FROM ${pending} WHERE ${of('NEW', 'id', byThis)};
    END;
    CREATE TRIGGER ${states}_shown AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${LIVE} AND OLD.state = ${HIDDEN} AND ${isIndexed('NEW')}
    BEGIN
      DELETE FROM ${entries} WHERE ${of('NEW', '-id')};
    END;
    CREATE TRIGGER ${states}_hidden AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${HIDDEN} AND ${isIndexed('NEW')}
    BEGIN
      UPDATE ${entries} SET place = -place WHERE ${of('NEW', 'id')};
    END;
    CREATE TRIGGER ${states}_removed AFTER UPDATE OF revision ON ${states}
      WHEN NEW.state = ${REMOVED} AND ${isIndexed('NEW')}
    BEGIN${forget('NEW')}
    END;
    CREATE TRIGGER ${states}_unlisted AFTER UPDATE OF collection ON ${states}
      WHEN NEW.collection IS NULL AND ${isIndexed('OLD')}
    BEGIN${forget('OLD')}
    END;
    CREATE TRIGGER ${states}_erased AFTER DELETE ON ${states}
      WHEN OLD.state <> ${REMOVED} AND ${isIndexed('OLD')}
    BEGIN${forget('OLD')}
    END;`
}
