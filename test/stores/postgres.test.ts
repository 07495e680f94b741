import { createHash } from 'node:crypto'
import { PassThrough } from 'node:stream'
import type { Pool, PoolConfig } from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type PostgresPool, type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres.ts'
import { isLargeBody, isResource } from '../../src/stores/rules.ts'
import type { LargeBody, ResourceStore } from '../../src/stores/types.ts'
import { testStore } from '../../src/testing.ts'
import { createMember } from '../support/create-member.ts'
import { interceptQueries } from '../support/intercepted-pool.ts'
import { createPlainPool } from '../support/plain-pool.ts'
import { type PostgresServer, startPostgres, untilHeldUp } from '../support/postgres.ts'
import { contentOf, listWhenIndexed, namesOf, queryByStatus } from '../support/statuses.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = server.createPool({ max: 10 })
})
afterAll(() => server.stop())

let prefixes = 0
const createPrefix = (): string => `test_${++prefixes}_`

const text = (body: string) => ({ contentType: 'text/plain', body })
const binary = (body: Uint8Array | AsyncIterable<Uint8Array>) => ({ contentType: 'application/octet-stream', body })

testStore(
  'postgresStore',
  () => {
    const tablePrefix = createPrefix()
    const open = () => postgresStore({ pool, tablePrefix })
    return { store: open(), reopen: open }
  },
  { describe, it, digests: true },
)

/** A pool that tells of every statement that passes through it. */
function watchPool(pool: Pool): { pool: PostgresPool; statements: string[] } {
  const statements: string[] = []
  return { statements, pool: createPlainPool(pool, async ({ text }) => statements.push(text)) }
}

/** The statements of an action, once the store has settled. */
async function countStatements(
  options: Partial<PostgresStoreOptions>,
  prepare: (store: ResourceStore) => unknown,
  action: (store: ResourceStore) => unknown,
): Promise<number> {
  const watched = watchPool(pool)
  const store = postgresStore({ tablePrefix: createPrefix(), sweepInterval: 0, ...options, pool: watched.pool })
  await prepare(store)
  watched.statements.length = 0
  await action(store)
  await store.close?.()
  return watched.statements.length
}

async function countRows(table: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(`SELECT count(*) FROM ${table}`)
  return Number(rows[0]!.count)
}

describe('postgresStore, round trips', () => {
  const big = Buffer.alloc(600_000, 'x')

  it.each<[string, number, (store: ResourceStore) => unknown]>([
    ['reads', 1, (store) => store.read('/a/1')],
    ['lists', 1, (store) => store.list('/a', { limit: 10 })],
    ['replaces', 1, (store) => store.write('/a/1', text('b'), { expect: 'any' })],
    ['creates at a path', 1, (store) => store.write('/a/name', text('b'), { expect: 'absent' })],
    ['creates at a path that is counted', 1, (store) => store.write('/a/100', text('b'), { expect: 'absent' })],
    ['replaces what is present', 1, (store) => store.write('/a/1', text('b'), { expect: 'present' })],
    ['replaces large content by small', 1, (store) => store.write('/a/big', text('b'), { expect: 'any' })],
    ['removes', 1, (store) => store.remove('/a/1', { expect: 'any', mode: 'tombstone' })],
    ['hides', 1, (store) => store.remove('/a/1', { expect: 'present', mode: 'hide' })],
    ['finds a conflict, and the state', 2, (store) => store.write('/a/1', text('b'), { expect: 'absent' })],
    ['assigns a name, and creates', 2, (store) => store.create('/a', text('b'))],
  ])('%s small content in %i', async (_, count, action) => {
    const prepare = async (store: ResourceStore) => {
      await store.write('/a/1', text('a'), { expect: 'any' })
      await store.write('/a/big', binary(big), { expect: 'any' })
    }
    expect(await countStatements({}, prepare, action)).toBe(count)
  })

  it('assigns more names at once the faster they are asked for', async () => {
    const count = await countStatements(
      {},
      (store) => store.create('/a', text('first')),
      async (store) => {
        for (let i = 0; i < 500; i++) await store.create('/a', text(String(i)))
      },
    )
    expect(count - 500).toBeLessThan(10)
  })

  it('assigns names in a row while creations are rare', async () => {
    const store = postgresStore({ pool, tablePrefix: createPrefix() })
    await store.write('/a/7', text('client'), { expect: 'any' })
    const resource = await createMember(store, '/a', text('server'))
    expect(resource.path).toBe('/a/8')
    // One that must be absent raises the counter of its collection as well.
    const related = () => [{ path: '/b/7', content: text('related'), expect: 'absent' as const }]
    await store.create('/a', text('own'), { related })
    expect((await createMember(store, '/b', text('server'))).path).toBe('/b/8')
    await store.close?.()
  })
})

describe('postgresStore, pool discipline', () => {
  const content = Buffer.alloc(2_000_000, 'abcdefghijklm')

  it('holds no connection while uploads are slow', async () => {
    const store = postgresStore({ pool: server.createPool({ max: 1 }), tablePrefix: createPrefix() })
    const sources = Array.from({ length: 5 }, () => new PassThrough())
    const writes = sources.map((source, i) => store.write(`/u/${i}`, binary(source), { expect: 'any' }))
    for (const source of sources) source.write(content)
    expect(await store.read('/u/1')).toBeUndefined()
    await store.write('/u/other', text('meanwhile'), { expect: 'any' })
    for (const source of sources) source.end(content)
    for (const written of await Promise.all(writes)) expect(written).toMatchObject({ resource: { size: 4_000_000 } })
    await store.close?.()
  })

  it('holds no connection while downloads are slow', async () => {
    const store = postgresStore({ pool: server.createPool({ max: 1 }), tablePrefix: createPrefix() })
    await store.write('/d', binary(content), { expect: 'any' })
    const readers = await Promise.all(
      [1, 2, 3].map(async () => {
        const state = await store.read('/d')
        if (!isResource(state) || !isLargeBody(state.body)) throw new Error('The content is not large.')
        const reader = state.body.open(0, content.length - 1)[Symbol.asyncIterator]()
        await reader.next()
        return reader
      }),
    )
    expect(await store.read('/none')).toBeUndefined()
    for (const reader of readers) await reader.return?.()
    await store.close?.()
  })

  it('answers 503 when no connection becomes free in time', async () => {
    const narrow = server.createPool({ max: 1 })
    const store = postgresStore({ pool: narrow, tablePrefix: createPrefix(), connectTimeout: 2000 })
    await store.read('/a')
    const client = await narrow.connect()
    await expect(store.read('/a')).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
    client.release()
    expect(await store.read('/a')).toBeUndefined()
    await store.close?.()
  })

  it('answers 503 when a statement takes too long, and goes on with another connection', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool: server.createPool({ max: 2 }), tablePrefix, statementTimeout: 1000 })
    await store.write('/a', text('a'), { expect: 'any' })
    const blocker = await pool.connect()
    await blocker.query(`BEGIN; SELECT 1 FROM ${tablePrefix}states FOR UPDATE`)
    await expect(store.write('/a', text('b'), { expect: 'any' })).rejects.toMatchObject({ status: 503 })
    const related = [{ path: '/b', content: text('b') }]
    await expect(store.write('/a', text('b'), { expect: 'any', related })).rejects.toMatchObject({ status: 503 })
    expect(await store.read('/a')).toMatchObject({ path: '/a' })
    await blocker.query('ROLLBACK')
    blocker.release()
    await store.close?.()
  })

  it('repeats what the database has rolled back for the sake of others (SQLSTATE 40001)', async () => {
    const options = '-c default_transaction_isolation=serializable'
    const store = postgresStore({ pool: server.createPool({ max: 8, options }), tablePrefix: createPrefix() })
    const steps = Array.from({ length: 60 }, async (_, i) => {
      for (;;) {
        const state = await store.read('/n')
        const value = isResource(state) ? Number(Buffer.from(state.body as Uint8Array).toString()) : 0
        const expect = isResource(state) ? { version: state.version } : 'absent'
        const related = [{ path: `/related/${i % 3}`, content: text(String(i)) }]
        const result = await store.write('/n', text(String(value + 1)), { expect, related })
        if (result.outcome !== 'conflict') return
      }
    })
    await Promise.all(steps)
    const state = await store.read('/n')
    expect(isResource(state) && Buffer.from(state.body as Uint8Array).toString()).toBe('60')
    await store.close?.()
  })
})

describe('postgresStore, the sweep', () => {
  it('clears uploads away that were given up or forgotten, and nothing that a path shows', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    const content = Buffer.alloc(1_000_000, 7)
    const stream = async function* () {
      yield content
    }
    await store.stage!(stream())
    await (await store.stage!(stream())).discard()
    await store.write('/kept', binary(content), { expect: 'any' })
    await store.write('/replaced', binary(content), { expect: 'any' })
    await store.write('/replaced', text('small'), { expect: 'any' })
    await store.write('/removed', binary(content), { expect: 'any' })
    await store.remove('/removed', { expect: 'any', mode: 'erase' })
    // As if the grace were over: a short one might be over before an upload on a busy machine is.
    await pool.query(`UPDATE ${tablePrefix}contents SET expires = 1 WHERE expires IS NOT NULL`)
    const options = { pool, tablePrefix, sweepInterval: 100 }
    const stores = [store, postgresStore(options), postgresStore(options), postgresStore(options)]
    // A store sweeps from its first use on.
    for (const one of stores) await one.read('/kept')
    for (const end = Date.now() + 30_000; (await countRows(`${tablePrefix}contents`)) > 1; ) {
      if (Date.now() > end) throw new Error('The sweep has left content that no state has.')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(await countRows(`${tablePrefix}chunks`)).toBe(4)
    const kept = await store.read('/kept')
    const chunks: Uint8Array[] = []
    for await (const chunk of (kept as { body: LargeBody }).body.open(0, content.length)) chunks.push(chunk)
    expect(Buffer.concat(chunks).equals(content)).toBe(true)
    for (const store of stores) await store.close?.()
  })

  /** The tables, with content that no state shows in chunks of a byte. */
  async function createLost(contents: number, chunks: number): Promise<string> {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    await store.read('/a')
    await store.close?.()
    await pool.query(`INSERT INTO ${tablePrefix}chunks SELECT 'lost' || i, n, decode('00', 'hex')
      FROM generate_series(1, ${contents}) i, generate_series(0, ${chunks - 1}) n`)
    await pool.query(`INSERT INTO ${tablePrefix}contents SELECT 'lost' || i, 1 FROM generate_series(1, ${contents}) i`)
    return tablePrefix
  }

  /** Sweeps while another process removes as many rows as one step takes, until a table is empty. */
  async function sweepBeside(tablePrefix: string, removal: string, table: string): Promise<void> {
    const other = await pool.connect()
    await other.query('BEGIN')
    await other.query(removal)
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 1 })
    await store.read('/a')
    await untilHeldUp(pool, new Promise(() => {}))
    await other.query('COMMIT')
    other.release()
    await vi.waitFor(async () => expect(await countRows(`${tablePrefix}${table}`)).toBe(0), 30_000)
    await store.close?.()
  }

  it('leaves no chunk where another process removes some of the same content at the same moment', async () => {
    const tablePrefix = await createLost(1, 100)
    await sweepBeside(tablePrefix, `DELETE FROM ${tablePrefix}chunks WHERE chunk < 64`, 'contents')
    expect(await countRows(`${tablePrefix}chunks`)).toBe(0)
  })

  it('leaves no entry of an unused index where another process removes some of them at the same moment', async () => {
    const tablePrefix = await createLost(0, 0)
    await pool.query(`INSERT INTO ${tablePrefix}places (collection, index_version, phase, walked, indexed, used)
      VALUES (NULL, 'v', 0, '', 0, 0)`)
    await pool.query(`INSERT INTO ${tablePrefix}entries (place, sort_key)
      SELECT 1, decode(lpad(to_hex(n), 4, '0'), 'hex') FROM generate_series(1, 800) n`)
    await sweepBeside(
      tablePrefix,
      `DELETE FROM ${tablePrefix}entries WHERE sort_key <= decode(lpad(to_hex(500), 4, '0'), 'hex')`,
      'places',
    )
    expect(await countRows(`${tablePrefix}entries`)).toBe(0)
  })

  it('takes several small contents in one step: those that are replaced all the time would outrun it', async () => {
    const tablePrefix = await createLost(192, 1)
    const watched = watchPool(pool)
    const store = postgresStore({ pool: watched.pool, tablePrefix, sweepInterval: 3_600_000 })
    await store.read('/a')
    await vi.waitFor(async () => expect(await countRows(`${tablePrefix}contents`)).toBe(0), 30_000)
    expect(await countRows(`${tablePrefix}chunks`)).toBe(0)
    const steps = watched.statements.filter((statement) => statement.startsWith(`DELETE FROM ${tablePrefix}chunks`))
    expect(steps).toHaveLength(3)
    await store.close?.()
  })

  it('looks at no more chunks in a step than it removes, however many are left', async () => {
    const tablePrefix = await createLost(16, 1000)
    await pool.query(`INSERT INTO ${tablePrefix}chunks SELECT 'live' || i, 0, decode('00', 'hex')
      FROM generate_series(1, 50000) i`)
    const watched = watchPool(pool)
    const store = postgresStore({ pool: watched.pool, tablePrefix, sweepInterval: 3_600_000 })
    await store.read('/a')
    const findStep = () =>
      watched.statements.find((statement) => statement.startsWith(`DELETE FROM ${tablePrefix}chunks`))
    await vi.waitFor(() => expect(findStep()).toBeDefined(), 30_000)
    await store.close?.()
    const ids = Array.from({ length: 16 }, (_, i) => `lost${i + 1}`).join(',')
    const client = await pool.connect()
    await client.query(`BEGIN; PREPARE step_of_sweep AS ${findStep()}`)
    const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE step_of_sweep('${ids}')`)
    await client.query('ROLLBACK; DEALLOCATE step_of_sweep')
    client.release()
    const found = JSON.stringify(rows).matchAll(/"Actual Rows":([\d.]+)/g)
    expect(Math.max(...Array.from(found, ([, count]) => Number(count)))).toBe(64)
  })

  it('leaves content of which it has taken a part to no write', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    // As the first step of a sweep in another process does.
    const lose = () => pool.query(`UPDATE ${tablePrefix}contents SET expires = 0`)
    await store.read('/a')
    async function* content() {
      yield Buffer.alloc(1_000_000)
    }
    const body = await store.stage!(content())
    await lose()
    await expect(store.write('/a', { contentType: 'text/plain', body }, { expect: 'any' })).rejects.toThrow()
    async function* interrupted() {
      yield Buffer.alloc(2_000_000)
      await lose()
      yield Buffer.alloc(2_000_000)
    }
    await expect(store.write('/a', binary(interrupted()), { expect: 'any' })).rejects.toThrow()
    expect(await store.read('/a')).toBeUndefined()
    await store.close?.()
  })

  it('clears expired tombstones away, but not a path that is written again meanwhile', async () => {
    const tablePrefix = createPrefix()
    const first = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    for (const path of ['/a', '/b', '/c']) {
      await first.write(path, text(path), { expect: 'any' })
      await first.remove(path, { expect: 'any', mode: path === '/a' ? 'erase' : 'tombstone', retention: 1 })
    }
    await pool.query(`UPDATE ${tablePrefix}states SET expires = expires - 3600000`)
    await first.write('/c', text('again'), { expect: 'any' })
    const second = postgresStore({ pool, tablePrefix, sweepInterval: 50 })
    await second.read('/c')
    for (const end = Date.now() + 30_000; (await countRows(`${tablePrefix}states`)) > 1; ) {
      if (Date.now() > end) throw new Error('The sweep has left tombstones.')
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    expect(await second.read('/c')).toMatchObject({ path: '/c' })
    await second.close?.()
  })

  it('ends with close', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 20 })
    await store.read('/a')
    const other = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    await other.stage!(
      (async function* () {
        yield Buffer.alloc(100_000)
      })(),
    )
    await store.close?.()
    await pool.query(`UPDATE ${tablePrefix}contents SET expires = 1`)
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await countRows(`${tablePrefix}contents`)).toBe(1)
  })
})

describe('postgresStore, its tables', () => {
  it('are made once by many processes at the same time', async () => {
    const tablePrefix = createPrefix()
    const stores = Array.from({ length: 8 }, () => postgresStore({ pool, tablePrefix }))
    const written = await Promise.all(stores.map((store, i) => store.write(`/a/${i}`, text('a'), { expect: 'absent' })))
    expect(written.map((result) => result.outcome)).toEqual(Array(8).fill('created'))
    expect((await stores[0]!.list('/a', { limit: 10 })).items).toHaveLength(8)
    for (const store of stores) await store.close?.()
  })

  it.each(['LATIN1', 'WIN1251', 'SQL_ASCII'])(
    'are made in a database with the encoding %s only if it keeps all paths',
    async (encoding) => {
      const name = encoding.toLowerCase()
      await pool.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`)
      const other = server.createPool({ connectionString: server.connectionString.replace(/postgres$/, name) })
      const store = postgresStore({ pool: other, sweepInterval: 0 })
      const write = () => store.write('/a/日', { ...text('b'), filename: '日' }, { expect: 'any' })
      if (encoding === 'SQL_ASCII') {
        await write()
        expect((await store.list('/a', { limit: 1 })).items).toMatchObject([{ path: '/a/日', filename: '日' }])
      } else
        await expect(write()).rejects.toThrow(`postgresStore needs a database with the encoding UTF8, not ${encoding}.`)
    },
  )

  it('are refused when a newer release has made them', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    await store.read('/a')
    await pool.query(`UPDATE ${tablePrefix}schema SET version = 99`)
    await expect(async () => postgresStore({ pool, tablePrefix, sweepInterval: 0 }).read('/a')).rejects.toThrow(
      /schema version 99, and this release knows versions up to 4/,
    )
  })

  it('are refused when a newer release makes them at the same moment, and keep its version', async () => {
    const tablePrefix = createPrefix()
    const racing = createPlainPool(pool, async ({ text }) => {
      if (text.endsWith('FOR UPDATE')) await pool.query(`UPDATE ${tablePrefix}schema SET version = 99`)
    })
    const store = postgresStore({ pool: racing, tablePrefix, sweepInterval: 0 })
    await expect(async () => store.read('/a')).rejects.toThrow(/schema version 99/)
    expect((await pool.query(`SELECT version FROM ${tablePrefix}schema`)).rows).toEqual([{ version: 99 }])
  })

  it('are brought from the version of the first release to that of this one; content of before has no digest', async () => {
    const tablePrefix = createPrefix()
    const large = Buffer.alloc(200_000, 1)
    await postgresStore({ pool, tablePrefix, sweepInterval: 0 }).write('/old', binary(large), { expect: 'any' })
    await pool.query(`ALTER TABLE ${tablePrefix}states DROP COLUMN sha256`)
    await pool.query(`UPDATE ${tablePrefix}schema SET version = 1`)
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    expect(await store.read('/old')).toEqual(expect.not.objectContaining({ sha256: expect.anything() }))
    await store.write('/new', binary(large), { expect: 'any' })
    expect(await store.read('/new')).toMatchObject({ sha256: createHash('sha256').update(large).digest() })
  })

  it('need no right to create anything once they exist', async () => {
    const tablePrefix = createPrefix()
    await postgresStore({ pool, tablePrefix, sweepInterval: 0 }).read('/a')
    const role = `${tablePrefix}role`
    await pool.query(`CREATE ROLE ${role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
    for (const table of ['schema', 'states', 'counters', 'contents', 'chunks']) {
      await pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${tablePrefix}${table} TO ${role}`)
    }
    const connectionString = server.connectionString.replace('postgres@', `${role}@`)
    const store = postgresStore({ pool: server.createPool({ connectionString }), tablePrefix, sweepInterval: 0 })
    await store.write('/a', binary(Buffer.alloc(300_000)), { expect: 'any' })
    expect(await store.read('/a')).toMatchObject({ size: 300_000 })
  })

  it('need no more than the rights to read and write them for queries', async () => {
    const tablePrefix = createPrefix()
    const owner = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    for (const n of [1, 2]) await owner.write(`/old/${n}`, contentOf({ status: 'open', n }), { expect: 'any' })
    const role = `${tablePrefix}role`
    await pool.query(`CREATE ROLE ${role} LOGIN`)
    const grant = (tables: readonly string[]) =>
      pool.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${tables.map((name) => tablePrefix + name)} TO ${role}`)
    await grant(['schema', 'states', 'counters', 'contents', 'chunks'])
    const connectionString = server.connectionString.replace('postgres@', `${role}@`)
    const store = postgresStore({ pool: server.createPool({ connectionString }), tablePrefix, sweepInterval: 20 })
    const query = queryByStatus('open')
    await expect(store.list('/old', { limit: 5, query })).rejects.toThrow(/permission denied/)
    await grant(['entries', 'places', 'pending'])
    const found = async (collection: string) => namesOf(await listWhenIndexed(store, collection, query))
    expect(await found('/old')).toEqual(['2', '1'])
    for (const n of [1, 2, 3]) await store.create('/new', contentOf({ status: 'open', n }, query.index))
    await store.write('/new/1', contentOf({ status: 'done', n: 1 }), { expect: 'any' })
    await store.remove('/new/2', { expect: 'any', mode: 'erase' })
    expect(await found('/new')).toEqual(['3'])
    await store.close?.()
  })

  it('make the first write to a collection wait two seconds for a dump, and others behind it, and then refuse it', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    const { index } = queryByStatus('open')
    await store.create('/a', contentOf({ status: 'open', n: 1 }, index))
    const dump = await pool.connect()
    await dump.query('BEGIN')
    await dump.query(`LOCK TABLE ${tablePrefix}places IN ACCESS SHARE MODE`)
    const start = performance.now()
    const first = expect(store.create('/b', contentOf({ status: 'open', n: 1 }, index))).rejects.toMatchObject({
      status: 503,
      headers: { 'Retry-After': '1' },
    })
    await untilHeldUp(pool, first)
    const behind = await store.create('/a', contentOf({ status: 'open', n: 2 }, index))
    await first
    expect(behind.outcome).toBe('created')
    expect(performance.now() - start).toBeGreaterThan(1900)
    await dump.query('COMMIT')
    dump.release()
    expect(await store.create('/b', contentOf({ status: 'open', n: 1 }, index))).toMatchObject({ outcome: 'created' })
    await store.close?.()
  })
})

it('who may write the states of postgresStore runs nothing as the owner of its tables', async () => {
  const [tablePrefix, role] = [createPrefix(), `writer_${prefixes}`]
  await postgresStore({ pool, tablePrefix, sweepInterval: 0 }).write('/docs/1', text('x'), { expect: 'any' })
  await pool.query(`CREATE ROLE ${role} LOGIN; GRANT SELECT, UPDATE ON ${tablePrefix}states TO ${role}`)
  const connectionString = server.connectionString.replace('postgres@', `${role}@`)
  const writer = server.createPool({ connectionString, max: 1 })
  await writer.query(`
    CREATE TEMP TABLE ${tablePrefix}places AS SELECT 1 AS id, collection, 'v' AS index_version FROM ${tablePrefix}states;
    CREATE TEMP TABLE ${tablePrefix}entries (place integer, sort_key bytea);
    CREATE TEMP TABLE ${tablePrefix}pending (place integer, sort_key bytea, PRIMARY KEY (place, sort_key));
    GRANT ALL ON ${tablePrefix}places, ${tablePrefix}entries, ${tablePrefix}pending TO PUBLIC;
    CREATE FUNCTION pg_temp.note() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM set_config('test.user', current_user, false); RETURN NEW; END $$;
    CREATE TRIGGER note BEFORE INSERT ON ${tablePrefix}pending FOR EACH ROW EXECUTE FUNCTION pg_temp.note()`)
  await writer.query(`UPDATE ${tablePrefix}states SET version = 'x', revision = 'x'`)
  const { rows } = await writer.query("SELECT current_setting('test.user', true) AS name")
  expect(rows).toEqual([{ name: null }])
})

describe('postgresStore, beside a transaction of another process', () => {
  it.each([
    ['child', '/tasks/1'],
    ['grandchild', '/tasks/1/comments/1'],
  ])('removes a parent only once the %s is there whose write has found what it is below', async (_, requires) => {
    const tablePrefix = createPrefix()
    const other = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    await other.write('/tasks/1', text('a'), { expect: 'any' })
    await other.write(requires, text('a'), { expect: 'any' })
    let removal: Promise<unknown> | undefined
    const slow = interceptQueries(pool, async ({ text: sent }, send) => {
      const result = await send()
      if (sent.startsWith(`SELECT 1 FROM ${tablePrefix}states WHERE path`)) {
        removal = Promise.resolve(other.remove('/tasks/1', { expect: 'any', mode: 'erase', below: true }))
        await untilHeldUp(pool, removal)
      }
      return result
    })
    const store = postgresStore({ pool: slow, tablePrefix, sweepInterval: 0 })
    const child = { expect: 'any', requires } as const
    expect(await store.write(`${requires}/below/1`, text('b'), child)).toMatchObject({ outcome: 'created' })
    expect(await removal).toMatchObject({ outcome: 'removed' })
    expect(await other.list(`${requires}/below`, { limit: 9 })).toEqual({ items: [] })
  })

  it('sweeps no tombstone whose path is being written again', async () => {
    const tablePrefix = createPrefix()
    const first = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    await first.write('/a', text('a'), { expect: 'any' })
    await first.remove('/a', { expect: 'any', mode: 'erase' })
    await pool.query(`UPDATE ${tablePrefix}states SET expires = 0`)
    const sweeping = postgresStore({ pool, tablePrefix, sweepInterval: 1 })
    let isWriting = false
    const slow = interceptQueries(pool, async ({ text: sent }, send) => {
      if (isWriting && sent === 'COMMIT') {
        await sweeping.read('/a')
        await untilHeldUp(pool, new Promise(() => {}))
      }
      return send()
    })
    const store = postgresStore({ pool: slow, tablePrefix, sweepInterval: 0 })
    await store.read('/a')
    isWriting = true
    const related = [{ path: '/b', content: text('b') }]
    await store.write('/a', text('again'), { expect: 'any', related })
    await sweeping.close?.()
    expect(await first.read('/a')).toMatchObject({ path: '/a', size: 5 })
  })
})

describe('postgresStore, its clock', () => {
  it('dates no state before the one that it follows, also where the clock of the database was put back', async () => {
    const tablePrefix = createPrefix()
    const store = postgresStore({ pool, tablePrefix, sweepInterval: 0 })
    for (const path of ['/a', '/b']) await store.write(path, text('before'), { expect: 'any' })
    const ahead = Math.floor(Date.now() / 1000) * 1000 + 3_600_000
    await pool.query(`UPDATE ${tablePrefix}states SET changed = ${ahead}`)
    await store.write('/a', text('after'), { expect: 'any' })
    await store.remove('/b', { expect: 'any', mode: 'tombstone' })
    expect(await store.read('/a')).toMatchObject({ body: 'after', lastModified: ahead })
    expect(await store.read('/b')).toMatchObject({ removed: true, removedAt: ahead })
  })

  it('is that of the database where a tombstone is kept, whatever that of the process says', async () => {
    const store = postgresStore({ pool, tablePrefix: createPrefix(), sweepInterval: 0 })
    await store.write('/a', text('before'), { expect: 'any' })
    await store.remove('/a', { expect: 'any', mode: 'tombstone', retention: 60_000 })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    try {
      expect(await store.read('/a')).toMatchObject({ removed: true })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('postgresStore, values', () => {
  it('keeps paths and file names with U+0000 and lone surrogates apart', async () => {
    const store = postgresStore({ pool, tablePrefix: createPrefix() })
    const names = ['a\0b', 'a\u0001b', 'a\u00010000b', '\ud800', '\udc00', '\ufffd', '😀']
    for (const name of names) await store.write(`/n/${name}`, { ...text(name), filename: name }, { expect: 'absent' })
    const { items } = await store.list('/n', { limit: 20 })
    expect(items.map((item) => item.path.slice(3)).sort()).toEqual([...names].sort())
    for (const name of names)
      expect(await store.read(`/n/${name}`)).toMatchObject({ path: `/n/${name}`, filename: name })
    await store.close?.()
  })

  it.each([
    ['parsers', { types: { getTypeParser: () => () => 'not what the store expects' } }],
    ['format', { binary: true }],
  ])('does not depend on the %s that the program has set for its own queries', async (_, options) => {
    const store = postgresStore({ pool: server.createPool(options as PoolConfig), tablePrefix: createPrefix() })
    await store.write('/a', text('a'), { expect: 'any' })
    const state = { path: '/a', size: 1, dateIsStrong: true, lastModified: expect.any(Number) }
    expect(await store.read('/a')).toMatchObject(state)
    expect(await store.remove('/a', { mode: 'erase', expect: 'any' })).toMatchObject({ resource: state })
    expect(await store.create('/a', text('b'))).toMatchObject({ resource: { path: '/a/1' } })
    await store.close?.()
  })

  it('takes a path of 2048 bytes, and answers 414 to one that no index holds', async () => {
    const store = postgresStore({ pool, tablePrefix: createPrefix() })
    let state = 1
    const noise = (length: number): string =>
      Array.from({ length }, () => String.fromCharCode(97 + ((state = (state * 48271) % 2147483647) % 26))).join('')
    const path = `/${noise(2047)}`
    expect(await store.write(path, text('a'), { expect: 'any' })).toMatchObject({ outcome: 'created' })
    const tooLong = store.write(`/${noise(12_000)}`, text('a'), { expect: 'any' })
    await expect(tooLong).rejects.toMatchObject({ status: 414 })
    // Nor is anything written of a step that ends with such a path.
    const related = ['/a', '/b', `/${noise(12_000)}`].map((path) => ({ path, content: text('b') }))
    const step = store.write('/c', text('c'), { expect: 'any', related })
    await expect(step).rejects.toMatchObject({ status: 414 })
    for (const path of ['/a', '/b', '/c']) expect(await store.read(path)).toBeUndefined()
    await store.close?.()
  })

  it('works without statements kept prepared', async () => {
    const store = postgresStore({ pool, tablePrefix: createPrefix(), preparedStatements: false })
    await store.write('/a/1', text('a'), { expect: 'absent' })
    expect(await store.create('/a', text('b'))).toMatchObject({ resource: { path: '/a/2' } })
    await store.close?.()
  })

  it('takes a pool of pg and nothing else that it needs to know the type of', () => {
    expect(() => postgresStore({} as never)).toThrow(TypeError)
    expect(() => postgresStore({ pool, tablePrefix: 'x; DROP TABLE y' })).toThrow(TypeError)
    expect(() => postgresStore({ pool, prefix: 'x' } as never)).toThrow(/no option "prefix"/)
  })
})
