// Makes the files of this folder by the code of release 0.1.0: node test/stores/release-0.1/make.mjs <its checkout>
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import Libsql from 'libsql'
import pg from 'pg'

const folder = fileURLToPath(new URL('.', import.meta.url))
const checkout = resolve(process.argv[2])
const work = mkdtempSync(join(folder, 'work-'))

async function load(file, name) {
  const outfile = join(work, `${name}.mjs`)
  await build({ entryPoints: [file], outfile, bundle: true, format: 'esm', platform: 'node', packages: 'external' })
  return import(pathToFileURL(outfile).href)
}

/** Hidden and removed members, other collections, a file, a large content, names that are numbers and names that are not. */
async function fill(store) {
  const item = (status, i) => ({ contentType: 'application/json', body: JSON.stringify({ status, n: i }) })
  for (let i = 1; i <= 30; i++) await store.create('/tasks', item(i % 3 === 0 ? 'done' : 'open', i))
  await store.write('/tasks/other', item('open', 99), { expect: 'any' })
  await store.remove('/tasks/7', { expect: 'any', mode: 'hide' })
  await store.remove('/tasks/8', { expect: 'any', mode: 'tombstone', retention: 2 ** 50 })
  await store.remove('/tasks/9', { expect: 'any', mode: 'erase' })
  await store.write('/tasks/1/comments/1', item('open', 1), { expect: 'any' })
  await store.write('/about', { contentType: 'text/plain', body: 'about', filename: 'über.txt' }, { expect: 'any' })
  await store.write('/large', { contentType: 'text/plain', body: 'large '.repeat(500) }, { expect: 'any' })
  await store.close?.()
}

function literal(value) {
  if (value === null) return 'NULL'
  if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString('hex')}'`
  return typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)
}

const statements = { sqlite: {}, postgres: {} }

// SQLite: the file itself.
const file = join(folder, 'store.db')
rmSync(file, { force: true })
const { sqliteStore } = await load(join(checkout, 'src/stores/sqlite.ts'), 'sqlite')
const database = new Libsql(file)
await fill(sqliteStore(database, { sweepInterval: 0, inlineLimit: 1000 }))
database.exec('PRAGMA journal_mode = DELETE; VACUUM')
database.close()
const { prepareStatements } = await load(join(checkout, 'src/stores/sqlite/statements.ts'), 'sqlite-statements')
Object.assign(statements.sqlite, prepareStatements({ prepare: (text) => text }, 'resource_'))

// Postgres: the tables, as statements.
const { startPostgres } = await load(join(folder, '../../support/postgres.ts'), 'server')
const server = await startPostgres()
const { postgresStore } = await load(join(checkout, 'src/stores/postgres.ts'), 'postgres')
const pool = server.createPool()
await fill(postgresStore({ pool, sweepInterval: 0, inlineLimit: 1000 }))
pg.types.setTypeParser(20, String)
const dump = []
for (const table of ['schema', 'states', 'counters', 'contents', 'chunks']) {
  const name = `resource_${table}`
  const columns = await pool.query(
    `SELECT attname AS name, format_type(atttypid, atttypmod) AS type, attnotnull AS required FROM pg_attribute
     WHERE attrelid = '${name}'::regclass AND attnum > 0 ORDER BY attnum`,
  )
  const defined = columns.rows.map(({ name, type, required }) => `${name} ${type}${required ? ' NOT NULL' : ''}`)
  dump.push(`CREATE TABLE ${name} (${defined.join(', ')});`)
  const { rows } = await pool.query(`SELECT * FROM ${name}`)
  for (const row of rows) dump.push(`INSERT INTO ${name} VALUES (${Object.values(row).map(literal).join(', ')});`)
  const keys = await pool.query(
    `SELECT conname AS name, pg_get_constraintdef(oid) AS text FROM pg_constraint
     WHERE conrelid = '${name}'::regclass AND contype = 'p'`,
  )
  for (const key of keys.rows) dump.push(`ALTER TABLE ${name} ADD CONSTRAINT ${key.name} ${key.text};`)
  const indexes = await pool.query(
    `SELECT indexdef AS text FROM pg_indexes WHERE tablename = '${name}' AND indexname NOT LIKE '%_pkey'`,
  )
  for (const { text } of indexes.rows) dump.push(`${text.replace('public.', '')};`)
}
await server.stop()
writeFileSync(join(folder, 'postgres.sql'), `${dump.join('\n')}\n`)
const { nameStatements } = await load(join(checkout, 'src/stores/postgres/statements.ts'), 'postgres-statements')
for (const [name, { text }] of Object.entries(nameStatements('resource_'))) statements.postgres[name] = text
writeFileSync(join(folder, 'statements.json'), `${JSON.stringify(statements, null, 2)}\n`)
rmSync(work, { recursive: true, force: true })
