import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ALL_SLOTS, KEY_COLUMNS, tablesOf } from '../sql/queries/index-tables.ts'
import { findMigrations, HIDDEN, REMOVED } from '../sql/rows.ts'
import { sqlStateOf } from './checkout.ts'
import type { PostgresConnection } from './connection.ts'

/** Bytes of one chunk of large content. Part of the schema: chunks are found by it. */
export const CHUNK_SIZE = 262_144

/**
 * What leads from each version of the schema to the next. Released steps never change. Every statement may run again,
 * because not every database undoes them with their transaction.
 *
 * Keys are bytes: text is ordered, and thus found, by rules that change with the system's libraries.
 */
const MIGRATIONS: readonly ((prefix: string) => readonly string[])[] = [
  (prefix) => [
    `CREATE TABLE IF NOT EXISTS ${prefix}states (
      path bytea NOT NULL PRIMARY KEY,
      collection bytea,
      sort_key bytea,
      state smallint NOT NULL,
      version text NOT NULL,
      changed bigint NOT NULL,
      strong boolean NOT NULL,
      expires bigint,
      size bigint NOT NULL,
      content_type text,
      content_encoding text,
      content_language text,
      filename text,
      content_id text,
      content bytea,
      was_state smallint,
      was_content_id text
    )`,
    `CREATE INDEX IF NOT EXISTS ${prefix}states_listed ON ${prefix}states (collection, state, sort_key)`,
    `CREATE INDEX IF NOT EXISTS ${prefix}states_expiring ON ${prefix}states (expires) WHERE expires IS NOT NULL`,
    `CREATE TABLE IF NOT EXISTS ${prefix}counters (collection bytea NOT NULL PRIMARY KEY, next bigint NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${prefix}contents (id text NOT NULL PRIMARY KEY, expires bigint)`,
    `CREATE INDEX IF NOT EXISTS ${prefix}contents_expiring ON ${prefix}contents (expires) WHERE expires IS NOT NULL`,
    `CREATE TABLE IF NOT EXISTS ${prefix}chunks (
      content_id text NOT NULL,
      chunk integer NOT NULL,
      bytes bytea NOT NULL,
      PRIMARY KEY (content_id, chunk)
    )`,
  ],
  (prefix) => [`ALTER TABLE ${prefix}states ADD COLUMN IF NOT EXISTS sha256 bytea`],
  // What the keys of content in a content store begin with.
  (prefix) => [
    `CREATE TABLE IF NOT EXISTS ${prefix}identity (one integer NOT NULL PRIMARY KEY, id text NOT NULL)`,
    `INSERT INTO ${prefix}identity VALUES (1, '${randomBytes(8).toString('hex')}') ON CONFLICT (one) DO NOTHING`,
  ],
  // Release 0.1 reads what it finds, and cannot write any more: it does not set `revision`, and would leave members
  // without entries. Rows of before are not looked at, however many they are.
  (prefix) => [
    `ALTER TABLE ${prefix}states ADD COLUMN IF NOT EXISTS revision text, ADD COLUMN IF NOT EXISTS indexed_by text, ` +
      'ADD COLUMN IF NOT EXISTS indexed text',
    `ALTER TABLE ${prefix}states DROP CONSTRAINT IF EXISTS ${prefix}states_revised`,
    `ALTER TABLE ${prefix}states ADD CONSTRAINT ${prefix}states_revised ` +
      'CHECK (revision IS NOT DISTINCT FROM version) NOT VALID',
    ...createIndexTables(prefix),
  ],
]

const MAX_ATTEMPTS = 20
/**
 * Milliseconds to wait for those who use the tables, such as `pg_dump`: all that comes later waits behind the migration. More
 * than `deadlock_timeout`, a second by default: after that, Postgres ends an autovacuum that is in the way.
 */
const LOCK_TIMEOUT = 1500
const RELATION_MISSING = '42P01'
const SCHEMA_RACES: readonly unknown[] = ['23505', '42P07', '42710', 'XX000']

/**
 * Brings the tables to the version that this release works with. Several processes may do so at the same time; a role
 * that may not create tables does well when they are there already.
 * @throws Error when the tables were made by a newer release, or the database has another encoding than UTF-8
 */
export async function migratePostgres(connection: PostgresConnection, prefix: string): Promise<void> {
  const table = `${prefix}schema`
  const createTable = `CREATE TABLE IF NOT EXISTS ${table} (id integer NOT NULL PRIMARY KEY, version integer NOT NULL)`
  const readVersion = `SELECT version FROM ${table} WHERE id = 1`

  /** `undefined` where there are no tables. */
  async function findVersion(): Promise<number | undefined> {
    try {
      const [row] = await connection.read<{ version: number }>(readVersion, [])
      return row?.version ?? 0
    } catch (error) {
      if (sqlStateOf(error) !== RELATION_MISSING) throw error
      await requireEncoding(connection)
      return undefined
    }
  }

  async function migrate(): Promise<void> {
    await connection.run(`INSERT INTO ${table} VALUES (1, 0) ON CONFLICT (id) DO NOTHING`, [])
    await connection.transact(async (run) => {
      // The lock on this row keeps other processes out until the migration is complete.
      const [row] = await run<{ version: number }>(`${readVersion} FOR UPDATE`, [])
      // A newer release was faster: the next look at the version refuses the tables.
      if (row!.version > MIGRATIONS.length) return
      // New tables lie beside those that are there: in another schema, that comes first in the search path, they would hide
      // them. For the functions `pg_temp` is named: otherwise it comes first, and who may write states could let them run
      // other code, as the owner of the tables, by temporary tables with triggers.
      await run(
        "SELECT set_config('search_path', quote_ident(nspname) || ', pg_temp', true) FROM pg_namespace " +
          `WHERE oid = (SELECT relnamespace FROM pg_class WHERE oid = '${table}'::regclass)`,
        [],
      )
      await run(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`, [])
      for (const migration of MIGRATIONS.slice(row!.version)) {
        for (const text of migration(prefix)) await run(text, [])
      }
      await run(`UPDATE ${table} SET version = ${MIGRATIONS.length} WHERE id = 1`, [])
    })
  }

  for (let attempt = 1; ; attempt++) {
    const version = await findVersion()
    if (findMigrations(MIGRATIONS, version ?? 0, prefix).length === 0) return
    try {
      if (version === undefined) await connection.run(createTable, [])
      await migrate()
    } catch (error) {
      // "IF NOT EXISTS" fails when another process creates the same table or index at the same moment.
      if (!SCHEMA_RACES.includes(sqlStateOf(error)) || attempt === MAX_ATTEMPTS) throw error
      await sleep(10 + Math.random() * 40)
    }
  }
}

/** Refuses a database whose encoding lacks characters: a path could be written that can neither be read nor listed. */
async function requireEncoding(connection: PostgresConnection): Promise<void> {
  const text = "SELECT current_setting('server_encoding') AS encoding"
  const [row] = await connection.read<{ encoding: string }>(text, [])
  // `SQL_ASCII` keeps all bytes as they are.
  if (row?.encoding === 'UTF8' || row?.encoding === 'SQL_ASCII') return
  throw new Error(`postgresStore needs a database with the encoding UTF8, not ${row?.encoding}.`)
}

/**
 * The tables by which members are selected, and the triggers that keep them; see `sql/queries/index-tables.ts`. A trigger sees
 * what has been committed while its statement waited for the row; the statement itself does not. It needs no rights of the
 * role that writes, so roles that were given rights on the tables of release 0.1 go on writing.
 */
function createIndexTables(prefix: string): readonly string[] {
  const { entries, places, pending, states } = tablesOf(prefix)
  const indexes = ALL_SLOTS.flatMap((slot) => [
    `CREATE INDEX IF NOT EXISTS ${entries}_v${slot} ON ${entries} (place, v${slot}, sort_key) WHERE v${slot} IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS ${entries}_s${slot} ON ${entries} (place, scope, v${slot}, sort_key) ` +
      `WHERE scope IS NOT NULL AND v${slot} IS NOT NULL`,
  ])
  const forget = (row: 'NEW' | 'OLD') => `
        DELETE FROM ${entries} WHERE place IN (p.id, -p.id) AND sort_key = ${row}.sort_key;
        DELETE FROM ${pending} WHERE place = p.id AND sort_key = ${row}.sort_key;`
  const trigger = (name: string, event: string, condition: string, body: string) => [
    `CREATE OR REPLACE FUNCTION ${states}_${name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT AS $body$
    DECLARE
      p record;
    BEGIN${body}
      RETURN NULL;
    END
    $body$`,
    `DROP TRIGGER IF EXISTS ${states}_${name} ON ${states}`,
    `CREATE TRIGGER ${states}_${name} AFTER ${event} ON ${states} FOR EACH ROW WHEN (${condition}) ` +
      `EXECUTE FUNCTION ${states}_${name}()`,
  ]
  return [
    `CREATE TABLE IF NOT EXISTS ${places} (
      id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      collection bytea,
      index_version text NOT NULL,
      phase smallint NOT NULL,
      walked bytea NOT NULL,
      indexed bigint NOT NULL,
      used bigint NOT NULL
    )`,
    `CREATE UNIQUE INDEX IF NOT EXISTS ${places}_named ON ${places} (collection, index_version) WHERE collection IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS ${places}_used ON ${places} (used) WHERE collection IS NOT NULL`,
    `CREATE INDEX IF NOT EXISTS ${places}_dropped ON ${places} (id) WHERE collection IS NULL`,
    `CREATE TABLE IF NOT EXISTS ${entries} (
      place integer NOT NULL,
      sort_key bytea NOT NULL,
      ${KEY_COLUMNS.map((column) => `${column} bytea`).join(', ')},
      PRIMARY KEY (place, sort_key)
    )`,
    ...indexes,
    `CREATE TABLE IF NOT EXISTS ${pending} (place integer NOT NULL, sort_key bytea NOT NULL, PRIMARY KEY (place, sort_key))`,
    ...trigger(
      'written',
      'INSERT OR UPDATE OF version',
      'NEW.collection IS NOT NULL',
      `
      FOR p IN SELECT id, index_version FROM ${places} WHERE collection = NEW.collection LOOP
        IF NEW.state = ${REMOVED} THEN${forget('NEW')}
        ELSIF NEW.state = ${HIDDEN} THEN
          UPDATE ${entries} SET place = -p.id WHERE place = p.id AND sort_key = NEW.sort_key;
        ELSE
          DELETE FROM ${entries} WHERE place = -p.id AND sort_key = NEW.sort_key;
          IF p.index_version IS DISTINCT FROM NEW.indexed_by THEN
            DELETE FROM ${entries} WHERE place = p.id AND sort_key = NEW.sort_key;
            INSERT INTO ${pending} VALUES (p.id, NEW.sort_key) ON CONFLICT (place, sort_key) DO NOTHING;
          ELSE
            DELETE FROM ${pending} WHERE place = p.id AND sort_key = NEW.sort_key;
          END IF;
        END IF;
      END LOOP;`,
    ),
    ...trigger(
      'erased',
      'DELETE',
      `OLD.collection IS NOT NULL AND OLD.state <> ${REMOVED}`,
      `
      FOR p IN SELECT id FROM ${places} WHERE collection = OLD.collection LOOP${forget('OLD')}
      END LOOP;`,
    ),
  ]
}
