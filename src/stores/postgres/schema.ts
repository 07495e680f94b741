import { randomBytes } from 'node:crypto'
import { findMigrations } from '../sql/rows.ts'
import { type PostgresConnection, unnamed } from './connection.ts'
import { createUnavailableError, isRelationMissing, isSchemaRace } from './errors.ts'
import { createIndexTables } from './index-schema.ts'

/** Bytes of one chunk of large content. Part of the schema: chunks are found by it. */
export const CHUNK_SIZE = 262_144

type Migration = (prefix: string) => readonly string[]

/**
 * What leads from each version of the schema to the next. Released steps never change. Every statement may run again,
 * because not every database undoes them with their transaction.
 *
 * Keys are bytes: text is ordered, and thus found, by rules that change with the system's libraries.
 */
const MIGRATIONS: readonly Migration[] = [
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
 * Brings the tables to the version that this release works with. Several processes may do so at the same time; a role
 * that may not create tables does well when they are there already.
 * @throws Error when the tables were made by a newer release
 */
async function migratePostgres(connection: PostgresConnection, prefix: string): Promise<void> {
  const table = `${prefix}schema`
  const readVersion = unnamed(`SELECT version FROM ${table} WHERE id = 1`)

  async function findVersion(): Promise<number> {
    try {
      const [row] = await connection.read<{ version: number }>(readVersion, [])
      return row?.version ?? 0
    } catch (error) {
      if (isRelationMissing(error)) return 0
      throw error
    }
  }

  async function migrate(): Promise<void> {
    await connection.run(
      unnamed(`CREATE TABLE IF NOT EXISTS ${table} (id integer NOT NULL PRIMARY KEY, version integer NOT NULL)`),
      [],
    )
    await connection.run(unnamed(`INSERT INTO ${table} VALUES (1, 0) ON CONFLICT (id) DO NOTHING`), [])
    await connection.transact(async (run) => {
      // The lock on this row keeps other processes out until the migration is complete.
      const [row] = await run<{ version: number }>(unnamed(`${readVersion.text} FOR UPDATE`), [])
      // A newer release was faster: the next look at the version refuses the tables.
      if (row!.version > MIGRATIONS.length) return
      for (const migration of MIGRATIONS.slice(row!.version)) {
        for (const text of migration(prefix)) await run(unnamed(text), [])
      }
      await run(unnamed(`UPDATE ${table} SET version = ${MIGRATIONS.length} WHERE id = 1`), [])
    })
  }

  for (let attempt = 1; ; attempt++) {
    if (findMigrations(MIGRATIONS, await findVersion(), prefix).length === 0) return
    try {
      await migrate()
    } catch (error) {
      // "IF NOT EXISTS" fails when another process creates the same table at the same moment.
      if (!isSchemaRace(error) || attempt === MAX_ATTEMPTS) throw error
      await new Promise((resolve) => setTimeout(resolve, 10 + Math.random() * 40))
    }
  }
}

/**
 * A connection whose first statement waits until the tables are there; after a failure the next one tries again.
 * @param maxWaiting calls that may wait for the tables at the same time
 * @param onReady called once, when the tables are there
 */
export function connectWhenMigrated(
  connection: PostgresConnection,
  prefix: string,
  maxWaiting: number,
  onReady: () => void,
): PostgresConnection {
  let waiting = 0
  let migration: Promise<void> | undefined

  async function migrate(): Promise<void> {
    try {
      await migratePostgres(connection, prefix)
      // Later calls need no look at this.
      Object.assign(own, connection)
    } catch (error) {
      migration = undefined
      throw error
    }
    onReady()
  }

  async function waitForTables(): Promise<void> {
    if (waiting >= maxWaiting)
      throw createUnavailableError(new Error(`${maxWaiting} calls wait for the tables already.`))
    waiting++
    try {
      await (migration ??= migrate())
    } finally {
      waiting--
    }
  }

  const own: PostgresConnection = {
    read: (statement, values, call) => waitForTables().then(() => connection.read(statement, values, call)),
    run: (statement, values, call) => waitForTables().then(() => connection.run(statement, values, call)),
    transact: (work, call) => waitForTables().then(() => connection.transact(work, call)),
    view: (work, call) => waitForTables().then(() => connection.view(work, call)),
  }
  return own
}
