// Runs the conformance kit against a database and prints a report:
//   npm run kit -- postgres://user:password@host:5432/database
//   npm run kit -- sqlite:/path/of/a/new/file.db
// Uses the built package, as an application does. Ends with 1 when a case has failed, with 2 when the kit could not run.
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { testStore } from 'http-resource-service/testing'

const USAGE = `usage: npm run kit -- postgres://... | sqlite:FILE [options]

  --connections N   connections of the pool (default 10; 1 for PGlite through its socket)
  --unprepared      no prepared statements: behind a pooler in transaction mode
  --only TEXT       only the cases whose title contains TEXT
`

/** The tables that hold data, as docs/stores.md names them. */
const TABLES = ['states', 'counters', 'contents', 'chunks', 'entries', 'pending', 'places']
/** The tables that are made once. */
const FIXED_TABLES = ['schema', 'identity']

let database
try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { connections: { type: 'string' }, unprepared: { type: 'boolean' }, only: { type: 'string' } },
  })
  if (positionals.length !== 1) throw new TypeError(USAGE)
  database = await openDatabase(positionals[0], values)
  const isPassed = await runKit(database, values.only ?? '')
  process.exitCode = isPassed ? 0 : 1
} catch (error) {
  console.error(error instanceof TypeError ? error.message : `The kit could not run: ${describeError(error)}`)
  process.exitCode = 2
} finally {
  await database?.close()
}

function openDatabase(place, options) {
  if (/^postgres(?:ql)?:\/\//.test(place)) return openPostgres(place, options)
  if (place.startsWith('sqlite:')) return openSqlite(place.slice('sqlite:'.length))
  throw new TypeError(USAGE)
}

/**
 * One set of tables for all cases, emptied after each: distributed databases take seconds to create a table. Its name is
 * new in each run, and it is dropped at the end.
 */
async function openPostgres(connectionString, { connections = '10', unprepared = false }) {
  const max = Number(connections)
  if (!Number.isInteger(max) || max < 1) throw new TypeError(`--connections is a number from 1, not "${connections}".`)
  const [{ default: pg }, { postgresStore }] = await Promise.all([
    import('pg'),
    import('http-resource-service/stores/postgres'),
  ])
  const pool = new pg.Pool({ connectionString, max, connectionTimeoutMillis: 10_000 })
  pool.on('error', () => {})
  const tablePrefix = `kit_${randomBytes(4).toString('hex')}_`
  const open = () => postgresStore({ pool, tablePrefix, preparedStatements: !unprepared })

  async function changeTables(statement, tables) {
    for (const table of tables) await pool.query(`${statement} ${tablePrefix}${table}`)
  }

  async function clear() {
    try {
      await changeTables('DELETE FROM', TABLES)
    } catch (error) {
      // The case that could not make the tables says why.
      if (error.code !== '42P01') throw error
    }
  }

  try {
    const { rows } = await pool.query('SELECT version() AS version')
    return {
      name: 'postgresStore',
      version: rows[0].version,
      create: () => ({ store: open(), reopen: open, close: clear }),
      async close() {
        await changeTables('DROP TABLE IF EXISTS', [...TABLES, ...FIXED_TABLES]).catch((error) => {
          console.error(`The tables ${tablePrefix}* were not dropped: ${describeError(error)}`)
        })
        await pool.end()
      },
    }
  } catch (error) {
    await pool.end()
    throw error
  }
}

/** A file that is made for each case and removed afterwards. */
async function openSqlite(file) {
  if (file === '') throw new TypeError(USAGE)
  if (existsSync(file)) throw new TypeError(`${file} exists. The kit makes the file for each case and removes it.`)
  const [{ default: Database }, { sqliteStore }] = await Promise.all([
    import('libsql'),
    import('http-resource-service/stores/sqlite'),
  ])
  const handles = []

  function openHandle() {
    const handle = new Database(file)
    handles.push(handle)
    return handle
  }

  function remove() {
    for (const handle of handles.splice(0)) handle.close()
    for (const ending of ['', '-wal', '-shm', '-reserve']) rmSync(`${file}${ending}`, { force: true })
  }

  const { version } = openHandle().prepare('SELECT sqlite_version() AS version').get()
  remove()
  return {
    name: 'sqliteStore',
    version: `SQLite ${version}, libsql`,
    create: () => ({ store: sqliteStore(openHandle()), reopen: () => sqliteStore(openHandle()), close: remove }),
    close: remove,
  }
}

/** @returns whether no case has failed */
async function runKit({ name, version, create }, only) {
  const cases = listCases(create).filter(({ title }) => title.includes(only))
  if (cases.length === 0) throw new TypeError(`No case has "${only}" in its title.`)
  console.log(`${name}, ${cases.length} cases, against ${version}`)
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const start = performance.now()
  let group
  for (const one of cases) {
    if (one.group !== group) console.log(`\n${(group = one.group)}`)
    const { result, time, note } = await runCase(one)
    counts[result]++
    console.log(`  ${result.padEnd(7)} ${one.title} (${time} ms)${note === undefined ? '' : `\n          ${note}`}`)
  }
  const seconds = ((performance.now() - start) / 1000).toFixed(1)
  console.log(`\n${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped in ${seconds} s`)
  return counts.failed === 0
}

/** The cases of the kit, with the group that each stands in. */
function listCases(create) {
  const cases = []
  const groups = []
  testStore('kit', create, {
    describe(group, define) {
      groups.push(group)
      define()
      groups.pop()
    },
    it: (title, run) => cases.push({ group: groups.at(-1), title, run }),
  })
  return cases
}

async function runCase({ run }) {
  const start = performance.now()
  const timeSince = () => Math.round(performance.now() - start)
  let note
  try {
    await run({
      skip(text) {
        note = text
      },
    })
    return { result: note === undefined ? 'passed' : 'skipped', time: timeSince(), note }
  } catch (error) {
    return { result: 'failed', time: timeSince(), note: describeError(error) }
  }
}

/** What went wrong, with what the database has said about it. */
function describeError(error) {
  const texts = []
  for (let current = error; current instanceof Error && texts.length < 5; current = current.cause) {
    const code = typeof current.code === 'string' ? `${current.code}: ` : ''
    const text = `${code}${current.message || current.errors?.[0]?.message || current.name}`
    if (!texts.includes(text)) texts.push(text)
  }
  return (texts.length > 0 ? texts.join(' < ') : String(error)).replaceAll('\n', '\n          ')
}
