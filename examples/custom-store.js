// examples/custom-store.js
// A store of your own: the rows of a table that exists already, served as /users.
//   DATABASE_URL=postgres://... node examples/custom-store.js
// test/stores/custom-store.test.ts runs the conformance kit against it.
import { HttpError } from 'http-resource-service'

/**
 * What the table needs beside the columns that it has: a version that is new for every state, whichever program changes the row,
 * and never comes back. A sequence only ever goes forward; so it is right also after a rollback and for a row that is
 * deleted and inserted again.
 */
export const preparation = `
  CREATE TABLE IF NOT EXISTS users (
    id bigserial PRIMARY KEY, name text NOT NULL, email text NOT NULL, role text
  );
  CREATE SEQUENCE IF NOT EXISTS users_versions;
  ALTER TABLE users ADD COLUMN IF NOT EXISTS version bigint NOT NULL DEFAULT nextval('users_versions');
  CREATE OR REPLACE FUNCTION set_user_version() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.version := nextval('users_versions'); RETURN NEW; END $$;
  CREATE OR REPLACE TRIGGER users_version BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION set_user_version();
`

const COLUMNS = 'id, name, email, role, version'
const LOCK = 2_071_723

/**
 * @param {import('pg').Pool} pool
 * @returns {import('http-resource-service').ResourceStore}
 */
export function userStore(pool) {
  pool.on('error', () => {}) // an idle connection that is lost

  /** @param {string} text @param {unknown[]} [values] */
  async function query(text, values) {
    try {
      return (await pool.query(text, values)).rows
    } catch (/** @type {any} */ error) {
      // Postgres is there and refuses the statement. Classes 08, 40, 53 and 57: it is away or busy. E...: a code of Node, as EPIPE.
      if (/^(?!08|40|53|57|E)[0-9A-Z]{5}$/.test(error.code ?? '')) throw error
      throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause: error })
    }
  }

  async function read(path) {
    const id = parseId(path)
    if (id === undefined) return undefined
    const [row] = await query(`SELECT ${COLUMNS} FROM users WHERE id = $1`, [id])
    return row && toResource(row)
  }

  /** A name that a client has chosen must not be assigned later. Other creations take names meanwhile: leave room. */
  async function raiseSequence(id) {
    const [{ last_value: last }] = await query('SELECT last_value FROM users_id_seq')
    if (Number(last) > id) return
    // One message is one transaction: the lock holds until its end.
    await query(`SELECT pg_advisory_xact_lock(${LOCK});
      SELECT setval('users_id_seq', ${id}::bigint + 100) FROM users_id_seq WHERE last_value <= ${id}`)
  }

  return {
    read,

    async write(path, content, { expect, signal }) {
      signal?.throwIfAborted()
      const id = parseId(path)
      if (id === undefined) throw new HttpError(404, 'ERR_NOT_FOUND')
      const user = await readUser(content)
      signal?.throwIfAborted()
      const values = [id, user.name, user.email, user.role]
      let rows
      // Each is one statement, and so the comparison and the change are one step.
      if (expect === 'any' || expect === 'absent') {
        await raiseSequence(id)
        const change = expect === 'absent' ? 'NOTHING' : 'UPDATE SET name = $2, email = $3, role = $4'
        rows = await query(
          `INSERT INTO users (id, name, email, role) VALUES ($1, $2, $3, $4)
           ON CONFLICT (id) DO ${change} RETURNING ${COLUMNS}, xmax = 0 AS created`,
          values,
        )
      } else {
        const version = expect === 'present' ? null : expect.version
        rows = await query(
          `UPDATE users SET name = $2, email = $3, role = $4
           WHERE id = $1 AND ($5::text IS NULL OR version::text = $5) RETURNING ${COLUMNS}, false AS created`,
          [...values, version],
        )
      }
      if (rows.length === 0) return { outcome: 'conflict', current: await read(path) }
      return { outcome: rows[0].created ? 'created' : 'replaced', resource: toResource(rows[0]) }
    },

    async create(_collection, content, { signal } = {}) {
      signal?.throwIfAborted()
      for (;;) {
        const [{ id }] = await query("SELECT nextval('users_id_seq') AS id")
        const user = await readUser(typeof content === 'function' ? content(id) : content)
        signal?.throwIfAborted()
        const [row] = await query(
          `INSERT INTO users (id, name, email, role) VALUES ($1, $2, $3, $4)
           ON CONFLICT (id) DO NOTHING RETURNING ${COLUMNS}`,
          [id, user.name, user.email, user.role],
        )
        if (row !== undefined) return { outcome: 'created', resource: toResource(row) }
      }
    },

    async remove(path, { expect, signal }) {
      signal?.throwIfAborted()
      const version = typeof expect === 'object' ? expect.version : null
      const [row] = await query(
        `DELETE FROM users WHERE id = $1 AND ($2::text IS NULL OR version::text = $2) RETURNING ${COLUMNS}`,
        [parseId(path) ?? -1, version],
      )
      if (row !== undefined) return { outcome: 'removed', resource: toResource(row) }
      return expect === 'any'
        ? { outcome: 'absent', current: undefined }
        : { outcome: 'conflict', current: await read(path) }
    },

    async list(collection, { after, limit }) {
      if (collection !== '/users') return { items: [] }
      const from = after === undefined ? -1 : (parseId(`/users/${after}`) ?? Number.MAX_SAFE_INTEGER)
      const rows = await query(`SELECT ${COLUMNS} FROM users WHERE id > $1 ORDER BY id LIMIT $2`, [from, limit + 1])
      const items = rows.slice(0, limit).map(toResource)
      return rows.length > limit ? { items, next: String(rows[limit - 1].id) } : { items }
    },
  }
}

function parseId(path) {
  const [, id] = /^\/users\/(0|[1-9][0-9]{0,15})$/.exec(path) ?? []
  return id !== undefined && Number.isSafeInteger(Number(id)) ? Number(id) : undefined
}

async function readUser({ body }) {
  const chunks = []
  if (typeof body === 'string' || body instanceof Uint8Array) chunks.push(Buffer.from(body))
  else for await (const chunk of body) chunks.push(Buffer.from(chunk))
  let user
  try {
    user = JSON.parse(Buffer.concat(chunks).toString())
  } catch (cause) {
    throw new HttpError(400, 'ERR_MALFORMED_BODY', { cause })
  }
  if (typeof user?.name !== 'string' || typeof user.email !== 'string') {
    throw new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'A user has a name and an email.' })
  }
  return { name: user.name, email: user.email, role: user.role ?? null }
}

function toResource({ id, name, email, role, version }) {
  const body = JSON.stringify({ id: Number(id), name, email, ...(role === null ? {} : { role }) })
  const size = Buffer.byteLength(body)
  return { path: `/users/${id}`, version: String(version), contentType: 'application/json', size, body }
}

if (process.argv[1]?.endsWith('custom-store.js')) {
  const [{ createServer }, { default: pg }, { collection, createResourceService }] = await Promise.all([
    import('node:http'),
    import('pg'),
    import('http-resource-service'),
  ])
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
  await pool.query(preparation)
  const service = createResourceService(userStore(pool), { resources: { '/users': collection({ deletion: 'hard' }) } })
  createServer(service).listen(8080, '127.0.0.1', () => console.log('listening on http://127.0.0.1:8080'))
}
