// What lists with a query cost among a million items: node bench/queries.mjs sqlite|postgres://... [items] [runs] [indexed]
// With a fourth argument the items are there before their collection has its index, and the first figure is what it takes
// to index them. Without, the entries are written in bulk.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const [kind = 'sqlite', size = '1000000', count = '300', isIndexed] = process.argv.slice(2)
const items = Number(size)
const runs = Number(count)
const COLLECTION = '/tasks'
const START = Date.UTC(2026, 0, 1)

/** Ten owners, five statuses, three priorities; ten items have a rare tag, three a small owner. */
function createItem(i) {
  return {
    due: new Date(START + ((i * 7919) % items) * 1000).toISOString(),
    even: i % 2 === 0,
    odd: i % 2 === 1,
    owner: i < 3 ? 'small' : `owner-${i % 10}`,
    priority: Math.floor(i / 50) % 3,
    status: `status-${Math.floor(i / 10) % 5}`,
    tag: i % (items / 10) === 7 ? 'rare' : `tag-${i % 1000}`,
  }
}

const index = {
  version: 'bench',
  properties: ['due', 'even', 'odd', 'owner', 'priority', 'status', 'tag'],
  scope: ['owner'],
  valuesOf: ({ body }) => JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString()),
}

const is = (property, ...values) => ({ property, operator: 'in', values })
const by = (property, direction = 'ascending') => ({ property, direction })
const mine = is('owner', 'owner-7')
const open = is('status', 'status-2')

const queries = [
  ['scope, one equality, one order', [mine, open], [by('due')]],
  ['scope, one equality, one order, descending', [mine, open], [by('due', 'descending')]],
  ['scope, no order', [mine], []],
  ['no scope, one equality, one order', [open], [by('due', 'descending')]],
  ['a list of 50', [mine, open], [by('due')], { limit: 50, pages: [1] }],
  ['ten of all items', [is('tag', 'rare')], [by('due')], { pages: [1] }],
  ['none of all items', [is('tag', 'nobody')], [by('due')], { pages: [1] }],
  ['a scope with three items', [is('owner', 'small')], [by('due')], { pages: [1] }],
  ['order of three different values', [mine], [by('priority', 'descending')]],
  ['two keys, few values each', [mine], [by('status'), by('priority', 'descending')]],
  ['two keys, the second of many values', [mine], [by('priority', 'descending'), by('due', 'descending')]],
  [
    'a range of dates',
    [mine, { property: 'due', operator: 'gte', value: new Date(START + items * 500).toISOString() }],
    [by('due')],
  ],
  ['worst: two halves that do not meet', [is('even', true), is('odd', true)], [by('due')], { pages: [1], runs: 5 }],
  ['worst: the same within a scope', [mine, is('even', true), is('odd', true)], [by('due')], { pages: [1], runs: 5 }],
  ['scope, one equality, one order, with a count', [mine, open], [by('due')], { count: true, pages: [1] }],
  ['all items, with a count', [], [by('due')], { count: true, pages: [1], runs: 5 }],
]

const { store, fill, putEntries, close } = kind === 'sqlite' ? await openSqlite() : await openPostgres()
try {
  await fill()
  if (isIndexed === undefined) await putEntries(createEntries())
  await listAll()
  for (const [name, where, orderBy, options = {}] of queries) {
    const { limit = 20, pages = [1, 900, 1000], count = false } = options
    const query = { index, where, orderBy, count }
    for (const page of pages) {
      const after = await findCursor(query, limit, page)
      if (page > 1 && after === undefined) continue
      await measure(`${name}, page ${page}`, query, limit, after, options.runs ?? runs)
    }
  }
} finally {
  await close()
}

/** The rows of the entries: scope, then a key for each property. */
function* createEntries() {
  for (let i = 0; i < items; i++) {
    const item = createItem(i)
    const keys = index.properties.map((property) => encodeKey(item[property]))
    yield [sortKeyOf(i + 1), keys[index.properties.indexOf('owner')], ...keys]
  }
}

function sortKeyOf(id) {
  const name = String(id)
  return String.fromCharCode(0x60 + name.length) + name
}

/** As encodeValue of the library has it. */
function encodeKey(value) {
  if (typeof value === 'boolean') return Buffer.of(1, value ? 1 : 0)
  if (typeof value === 'string') return Buffer.from(`\x03${value}\0`)
  const key = Buffer.alloc(9, 2)
  key.writeDoubleBE(value, 1)
  // No number here is negative.
  key[1] ^= 0x80
  return key
}

async function listAll() {
  const start = performance.now()
  const before = process.cpuUsage()
  const query = { index, where: [], orderBy: [], count: false }
  for (;;) {
    try {
      await store.list(COLLECTION, { query, limit: 1 })
      break
    } catch (error) {
      if (error.status !== 503) throw error
      await sleep(200)
    }
  }
  const { user, system } = process.cpuUsage(before)
  const seconds = ((performance.now() - start) / 1000).toFixed(0)
  console.log(
    `indexed ${items} items in ${seconds} s, ${((user + system) / items).toFixed(0)} µs of the process an item`,
  )
}

async function findCursor(query, limit, page) {
  let after
  for (let left = (page - 1) * limit; left > 0; ) {
    const step = Math.min(left, 1000)
    const { next } = await store.list(COLLECTION, { query: { ...query, count: false }, limit: step, after })
    if (next === undefined) return undefined
    after = next
    left -= step
  }
  return after
}

async function measure(name, query, limit, after, runs) {
  const times = []
  let page
  const before = process.cpuUsage()
  for (let i = 0; i < runs; i++) {
    const start = performance.now()
    page = await store.list(COLLECTION, { query, limit, after })
    times.push(performance.now() - start)
  }
  const { user, system } = process.cpuUsage(before)
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.min(times.length - 1, Math.floor(times.length * share))].toFixed(2)
  const total = page.total === undefined ? '' : `, total ${page.total}`
  console.log(
    `${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, process ${((user + system) / runs / 1000).toFixed(2)} ms, ` +
      `${page.items.length} items${page.next === undefined ? ', last page' : ''}${total}`,
  )
}

async function openSqlite() {
  const [{ sqliteStore }, { default: Database }] = await Promise.all([
    import('../dist/stores/sqlite.js'),
    import('libsql'),
  ])
  const folder = fs.mkdtempSync(path.join(process.env.TMPDIR ?? os.tmpdir(), 'bench-queries-'))
  const database = new Database(path.join(folder, 'bench.db'))
  const store = sqliteStore(database, { sweepInterval: 0 })
  return {
    store,
    async fill() {
      const insert = database.prepare(
        'INSERT INTO resource_states (path, collection, sort_key, state, revision, changed, strong, size, content_type, ' +
          "content) VALUES (?, ?, ?, 0, ?, 0, 1, ?, 'application/json', ?)",
      )
      database.exec('BEGIN')
      for (let i = 0; i < items; i++) {
        const name = String(i + 1)
        const body = Buffer.from(JSON.stringify(createItem(i)))
        insert.run(`${COLLECTION}/${name}`, COLLECTION, sortKeyOf(name), `v${i}`, body.length, body)
      }
      database.exec('COMMIT')
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    },
    async putEntries(entries) {
      const indexes = database
        .prepare(
          "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = 'resource_entries' AND sql IS NOT NULL",
        )
        .all()
      database.exec('BEGIN')
      for (const { name } of indexes) database.exec(`DROP INDEX ${name}`)
      database
        .prepare(
          "INSERT INTO resource_places (id, collection, index_version, phase, walked, indexed, used) VALUES (1, ?, ?, 2, '', 0, ?)",
        )
        .run(COLLECTION, index.version, Date.now())
      const columns = ['sort_key', 'scope', ...index.properties.map((_, i) => `v${i + 1}`)]
      const insert = database.prepare(
        `INSERT INTO resource_entries (place, ${columns.join(', ')}) VALUES (1, ${columns.map(() => '?').join(', ')})`,
      )
      for (const entry of entries) insert.run(...entry)
      for (const { sql } of indexes) database.exec(sql)
      database.exec('COMMIT')
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    },
    async close() {
      await store.close()
      database.close()
      fs.rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function openPostgres() {
  const [{ postgresStore }, { default: pg }] = await Promise.all([import('../dist/stores/postgres.js'), import('pg')])
  const pool = new pg.Pool({ connectionString: kind })
  const tablePrefix = `bench_${process.pid}_`
  const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
  return {
    store,
    async fill() {
      await store.read('/')
      for (let from = 0; from < items; from += 5000) {
        const rows = []
        for (let i = from; i < Math.min(from + 5000, items); i++) rows.push([i + 1, JSON.stringify(createItem(i))])
        await pool.query(
          `INSERT INTO ${tablePrefix}states (path, collection, sort_key, state, version, revision, changed, strong, size, ` +
            `content_type, content) SELECT convert_to('${COLLECTION}/' || n, 'UTF8'), '${COLLECTION}'::bytea, ` +
            "convert_to(chr(96 + length(n)) || n, 'UTF8'), 0, 'v' || n, 'v' || n, 0, true, length(b), 'application/json', " +
            "convert_to(b, 'UTF8') FROM unnest($1::text[], $2::text[]) AS t (n, b)",
          [rows.map(([n]) => String(n)), rows.map(([, body]) => body)],
        )
      }
      await pool.query(`ANALYZE ${tablePrefix}states`)
    },
    async putEntries(entries) {
      const { rows: indexes } = await pool.query(
        "SELECT indexname AS name, indexdef AS sql FROM pg_indexes WHERE tablename = $1 AND indexname NOT LIKE '%_pkey'",
        [`${tablePrefix}entries`],
      )
      for (const { name } of indexes) await pool.query(`DROP INDEX ${name}`)
      await pool.query(
        `INSERT INTO ${tablePrefix}places (collection, index_version, phase, walked, indexed, used) ` +
          "VALUES ($1::bytea, $2, 2, '', 0, 4102444800000)",
        [Buffer.from(COLLECTION), index.version],
      )
      const columns = ['sort_key', 'scope', ...index.properties.map((_, i) => `v${i + 1}`)]
      const put = (rows) =>
        pool.query(
          `INSERT INTO ${tablePrefix}entries (place, ${columns.join(', ')}) SELECT 1, ` +
            `${columns.map((_, i) => `decode(c${i}, 'hex')`).join(', ')} FROM unnest(${columns.map((_, i) => `$${i + 1}::text[]`).join(', ')}) ` +
            `AS t (${columns.map((_, i) => `c${i}`).join(', ')})`,
          columns.map((_, i) => rows.map((row) => Buffer.from(row[i]).toString('hex'))),
        )
      let rows = []
      for (const entry of entries) {
        if (rows.push(entry) < 5000) continue
        await put(rows)
        rows = []
      }
      if (rows.length > 0) await put(rows)
      for (const { sql } of indexes) await pool.query(sql)
      await pool.query(`ANALYZE ${tablePrefix}entries`)
    },
    async close() {
      await store.close()
      const { rows } = await pool.query('SELECT tablename AS name FROM pg_tables WHERE starts_with(tablename, $1)', [
        tablePrefix,
      ])
      for (const { name } of rows) await pool.query(`DROP TABLE ${name} CASCADE`)
      await pool.end()
    },
  }
}
