import { findMigrations } from '../sql/rows.ts'
import type { SqliteDatabase } from './handle.ts'
import { createIndexTables } from './index-schema.ts'

/** Bytes of one chunk of large content. Part of the schema: chunks are found by it. */
export const CHUNK_SIZE = 131_072

type Migration = (prefix: string) => string

/** What leads from each version of the schema to the next. Released steps never change. */
const MIGRATIONS: readonly Migration[] = [
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
  // The key of content that lies in a content store, and what the keys of this database begin with.
  (prefix) => `
    ALTER TABLE ${prefix}contents ADD COLUMN key TEXT;
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
 * @throws Error when the tables were made by a newer release
 */
export function migrateSqlite(handle: SqliteDatabase, prefix: string): void {
  const readMissing = () => findMigrations(MIGRATIONS, readVersion(handle, prefix), prefix)
  if (readMissing().length === 0) return
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

function readVersion(handle: SqliteDatabase, prefix: string): number {
  const table = handle
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name = ?")
    .get(`${prefix}schema`)
  if (table === undefined) return 0
  const row = handle.prepare(`SELECT version FROM ${prefix}schema`).get() as { version: number } | undefined
  return row?.version ?? 0
}
