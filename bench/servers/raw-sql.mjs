// Hand-written node:http over a database: one statement for a request, the version compared in SQL, every write durable.
// BENCH_RAW_DB: "sqlite" (libsql, WAL, synchronous FULL, one commit for each write) or a postgres:// URL (pg, named
// statements). GET, conditional GET, POST and PUT of /users, with the same fields as raw-fields.
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { SEED_TIME, userData } from '../lib/data.mjs'
import { env, etagMatches, ready } from './_lib.mjs'

const kind = process.env.BENCH_RAW_DB ?? 'sqlite'
const db = kind === 'sqlite' ? await openSqlite() : await openPostgres(kind)

async function openSqlite() {
  const { default: Database } = await import('libsql')
  const folder = fs.mkdtempSync(path.join(process.env.TMPDIR ?? os.tmpdir(), 'bench-raw-'))
  process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }))
  const db = new Database(path.join(folder, 'raw.db'))
  db.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE items (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, changed INTEGER NOT NULL, body TEXT NOT NULL)',
  )
  const read = db.prepare('SELECT version, changed, body FROM items WHERE id = ?')
  const swap = db.prepare('UPDATE items SET version = version + 1, changed = ?, body = ? WHERE id = ? AND version = ?')
  const add = db.prepare('INSERT INTO items (version, changed, body) VALUES (1, ?, ?) RETURNING id')
  const name = db.prepare('UPDATE items SET body = ? WHERE id = ?')
  return {
    read: (id) => read.get(id),
    swap: (id, version, now, body) => swap.run(now, body, id, version).changes === 1,
    // The id stands in the body: two statements, one commit.
    create(now, data) {
      db.exec('BEGIN IMMEDIATE')
      const { id } = add.get(now, '')
      const body = JSON.stringify({ ...data, id })
      name.run(body, id)
      db.exec('COMMIT')
      return { id, body }
    },
    seed(rows) {
      db.exec('BEGIN')
      for (const data of rows) {
        const { id } = add.get(SEED_TIME, '')
        name.run(JSON.stringify({ ...data, id }), id)
      }
      db.exec('COMMIT')
    },
  }
}

async function openPostgres(connectionString) {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString, max: 10 })
  await pool.query(
    'DROP SCHEMA IF EXISTS bench_raw CASCADE; CREATE SCHEMA bench_raw; CREATE TABLE bench_raw.items (id bigserial PRIMARY KEY, version int NOT NULL, changed bigint NOT NULL, body text NOT NULL)',
  )
  const run = (name, text, values) => pool.query({ name, text, values })
  return {
    read: async (id) => {
      const { rows } = await run('r', 'SELECT version, changed, body FROM bench_raw.items WHERE id = $1', [id])
      return rows[0] && { ...rows[0], changed: Number(rows[0].changed) }
    },
    swap: async (id, version, now, body) =>
      (
        await run(
          's',
          'UPDATE bench_raw.items SET version = version + 1, changed = $1, body = $2 WHERE id = $3 AND version = $4',
          [now, body, id, version],
        )
      ).rowCount === 1,
    async create(now, data) {
      const { rows } = await run(
        'c',
        "WITH n AS (SELECT nextval('bench_raw.items_id_seq') AS id) INSERT INTO bench_raw.items (id, version, changed, body) SELECT id, 1, $1, (jsonb_set($2::jsonb, '{id}', to_jsonb(id)))::text FROM n RETURNING id, body",
        [now, JSON.stringify(data)],
      )
      return { id: Number(rows[0].id), body: rows[0].body }
    },
    async seed(rows) {
      for (const data of rows) await this.create(SEED_TIME, data)
    },
  }
}

process.on('SIGUSR2', () => {}) // a database does not mind what is in it already
await db.seed(Array.from({ length: env.users }, (_, i) => userData(i + 1)))

const PLUS = ['Vary', 'Origin', 'Cache-Control', 'no-cache', 'X-Content-Type-Options', 'nosniff']
const fail = (res, status) => {
  res.writeHead(status, ['Content-Length', '0'])
  res.end()
}
const tagOf = (version) => `"v${version}"`
const dateOf = (ms) => new Date(Number(ms)).toUTCString()
const validators = (version, changed) => ['ETag', tagOf(version), 'Last-Modified', dateOf(changed)]

function get(req, res, row) {
  if (row === undefined) return fail(res, 404)
  const condition = req.headers['if-none-match']
  if (condition !== undefined && etagMatches(condition, tagOf(row.version), true)) {
    res.writeHead(304, [...validators(row.version, row.changed), ...PLUS])
    return res.end()
  }
  res.writeHead(200, [
    'Content-Type',
    'application/json',
    'Content-Length',
    String(Buffer.byteLength(row.body)),
    ...validators(row.version, row.changed),
    ...PLUS,
    'Accept-Ranges',
    'bytes',
  ])
  res.end(row.body)
}

function readBody(req, done) {
  let text = ''
  req.setEncoding('utf8')
  req.on('data', (chunk) => {
    text += chunk
  })
  req.on('end', () => {
    let data
    try {
      data = JSON.parse(text)
    } catch {
      return done(undefined)
    }
    done(data)
  })
}

async function put(req, res, id) {
  readBody(req, async (data) => {
    if (data === undefined) return fail(res, 400)
    const row = await db.read(id)
    if (row === undefined) return fail(res, 404)
    const condition = req.headers['if-match']
    if (condition !== undefined && !etagMatches(condition, tagOf(row.version))) return fail(res, 412)
    const now = Date.now()
    if (!(await db.swap(id, row.version, now, JSON.stringify(data)))) return fail(res, 412)
    res.writeHead(204, [...validators(row.version + 1, now), ...PLUS])
    res.end()
  })
}

function post(req, res) {
  readBody(req, async (data) => {
    if (data === undefined) return fail(res, 400)
    const now = Date.now()
    const { id, body } = await db.create(now, data)
    res.writeHead(201, [
      'Location',
      `/users/${id}`,
      'Content-Type',
      'application/json',
      'Content-Length',
      String(Buffer.byteLength(body)),
      ...validators(1, now),
      'Vary',
      'Origin',
      'Cache-Control',
      'no-store',
      'X-Content-Type-Options',
      'nosniff',
    ])
    res.end(body)
  })
}

const handle = async (req, res) => {
  const id = Number(/^\/users\/(\d+)$/.exec(req.url)?.[1])
  if (req.method === 'POST' && req.url === '/users') return post(req, res)
  if (!(id > 0)) return fail(res, 404)
  if (req.method === 'GET') {
    const row = db.read(id)
    return get(req, res, row instanceof Promise ? await row : row)
  }
  if (req.method === 'PUT') return put(req, res, id)
  return fail(res, 405)
}
ready(
  http.createServer((req, res) => {
    handle(req, res).catch((error) => {
      console.error(error)
      fail(res, 500)
    })
  }),
)
