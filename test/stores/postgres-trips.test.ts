import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createGate } from '../../src/conformance/samples.ts'
import { createWaitingCalls, LOOK_PERIOD } from '../../src/stores/postgres/checkout.ts'
import type { PostgresClient } from '../../src/stores/postgres/connection.ts'
import { createSharedTrips } from '../../src/stores/postgres/shared-trips.ts'
import { type PostgresPool, type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { interceptQueries } from '../support/intercepted-pool.ts'
import { createPlainPool } from '../support/plain-pool.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let server: PostgresServer
let pool: pg.Pool
let prefixes = 0
beforeAll(async () => {
  server = await startPostgres()
  pool = server.createPool({ max: 4 })
})
afterAll(() => server.stop())

const text = (body: string) => ({ contentType: 'text/plain', body })

/** A store, and how many queries its connections have been sent. */
async function open(options: Partial<PostgresStoreOptions> & { readonly from?: PostgresPool } = {}) {
  const { from, ...own } = options
  const sent: string[] = []
  const watched = interceptQueries(pool, (query, send) => {
    sent.push(query.text)
    return send()
  })
  const tablePrefix = `trips_${++prefixes}_`
  const store = postgresStore({ pool: from ?? watched, tablePrefix, sweepInterval: 0, ...own })
  for (const name of ['a', 'b', 'c', 'd']) await store.write(`/${name}`, text(name), { expect: 'any' })
  sent.length = 0
  return { store, sent }
}

const readAll = (store: ResourceStore, paths: readonly string[]) => Promise.all(paths.map((path) => store.read(path)))

describe('postgresStore, calls that share a round trip', () => {
  it('sends four reads of one turn together, each with its own result', async () => {
    const { store, sent } = await open()
    const found = await readAll(store, ['/a', '/none', '/b', '/c'])
    expect(found.map((state) => state && 'body' in state && state.body)).toEqual(['a', undefined, 'b', 'c'])
    expect(sent).toHaveLength(1)
    await readAll(store, ['/a', '/b', '/c', '/d', '/a'])
    expect(sent).toHaveLength(3)
    await store.close?.()
  })

  it('sees what was written before the call, also while others wait in the same turn', async () => {
    const { store } = await open()
    for (let i = 0; i < 20; i++) {
      await store.write('/a', text(`${i}`), { expect: 'any' })
      const found = await readAll(store, ['/a', '/b', '/a', '/a', '/a'])
      for (const at of [0, 2, 3, 4]) expect(found[at]).toMatchObject({ body: `${i}` })
    }
    await store.close?.()
  })

  it('creates the others where one of them fails', async () => {
    const { store } = await open()
    await store.create('/x', text('first'))
    // Its counter has a place in an index; a member, whose name comes on top, has none.
    const long = `/${randomBytes(2016).toString('base64url')}`
    const made = await Promise.allSettled([
      ...['1', '2', '3'].map((body) => store.create('/x', text(body))),
      store.create(long, text('4')),
      ...['5', '6'].map((body) => store.create('/x', text(body))),
    ])
    expect(made.map(({ status }) => status)).toEqual([
      ...['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
    ])
    expect(made[3]).toMatchObject({ reason: { status: 414 } })
    const { items } = await store.list('/x', { limit: 20 })
    expect(items.map(({ body }) => body).sort()).toEqual(['1', '2', '3', '5', '6', 'first'])
    await store.close?.()
  })

  it('does not run a call again that fails alone', async () => {
    const { store, sent } = await open()
    const long = `/${randomBytes(2016).toString('base64url')}`
    await expect(store.create(long, text('1'))).rejects.toMatchObject({ status: 414 })
    expect(sent).toHaveLength(new Set(sent).size)
    await store.close?.()
  })

  it('never assigns a name that a client has taken, beside creations that succeed', async () => {
    const { store } = await open()
    const { items: none } = await store.list('/x', { limit: 20 })
    expect(none).toEqual([])
    await Promise.all(['1', '2', '3', '4'].map((name) => store.write(`/x/${name}`, text('own'), { expect: 'absent' })))
    const made = await Promise.all(Array.from({ length: 12 }, (_, i) => store.create('/x', text(`${i}`))))
    const paths = made.map((result) => result.outcome === 'created' && result.resource.path)
    expect(new Set(paths).size).toBe(12)
    const { items } = await store.list('/x', { limit: 50 })
    expect(items.filter(({ body }) => body === 'own')).toHaveLength(4)
    expect(items).toHaveLength(16)
    await store.close?.()
  })

  it('replaces each of several versions, or none, for two processes that take them in opposite orders', async () => {
    const tablePrefix = `trips_${++prefixes}_`
    const stores = [0, 1].map(() =>
      postgresStore({ pool: server.createPool({ max: 2 }), tablePrefix, sweepInterval: 0 }),
    )
    const paths = Array.from({ length: 4 }, (_, i) => `/p${i}`)
    for (const path of paths) await stores[0]!.write(path, text('0'), { expect: 'any' })
    const deadlocks = 'SELECT deadlocks::integer AS count FROM pg_stat_database WHERE datname = current_database()'
    const before = (await pool.query<{ count: number }>(deadlocks)).rows[0]!.count
    const found = (await readAll(stores[0]!, paths)) as StoredResource[]
    // Both begin, and wait for a row between those that they have and those that they want.
    const blocker = await pool.connect()
    await blocker.query('BEGIN')
    await blocker.query(`SELECT 1 FROM ${tablePrefix}states WHERE path = '/p1' FOR UPDATE`)
    const racing = stores.map((store, i) => {
      const order = i === 0 ? found : [...found].reverse()
      return Promise.all(
        order.map(async ({ path, version }) => {
          const { outcome } = await store.write(path, text(`by ${i}`), { expect: { version } })
          return { path, outcome }
        }),
      )
    })
    const waiting = "SELECT count(*)::integer AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while ((await pool.query<{ count: number }>(waiting)).rows[0]!.count < 2);
    await blocker.query('COMMIT')
    blocker.release()
    const results = (await Promise.all(racing)).flat()
    for (const path of paths) {
      const outcomes = results.filter((result) => result.path === path).map(({ outcome }) => outcome)
      expect(outcomes.sort()).toEqual(['conflict', 'replaced'])
    }
    expect((await pool.query<{ count: number }>(deadlocks)).rows[0]!.count).toBe(before)
    for (const store of stores) await store.close?.()
  })

  it.each(['write', 'remove'] as const)(
    'gives content to the sweep in the statement itself that replaces it, also where it came while that waited: %s',
    async (method) => {
      const { store, sent } = await open()
      const prefix = `trips_${prefixes}_`
      const blocker = await pool.connect()
      await blocker.query('BEGIN')
      await blocker.query(`SELECT 1 FROM ${prefix}states WHERE path = '/a' FOR UPDATE`)
      const call =
        method === 'write'
          ? store.write('/a', text('small'), { expect: 'any' })
          : store.remove('/a', { expect: 'any', mode: 'tombstone' })
      const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
      while ((await pool.query(waiting)).rowCount === 0);
      // As a write of large content does, of which nothing was there when the statement saw the database.
      await blocker.query(`INSERT INTO ${prefix}contents VALUES ('late', NULL)`)
      await blocker.query(`UPDATE ${prefix}states SET content = NULL, content_id = 'late' WHERE path = '/a'`)
      await blocker.query('COMMIT')
      blocker.release()
      await call
      expect(sent).toHaveLength(1)
      const { rows } = await pool.query(`SELECT id, expires > 0 AS is_released FROM ${prefix}contents`)
      expect(rows).toEqual([{ id: 'late', is_released: true }])
      await store.close?.()
    },
  )

  it('ends the wait of one caller without the others', async () => {
    const narrow = server.createPool({ max: 1 })
    const { store } = await open({ from: narrow as unknown as PostgresPool, maxWaiting: 3 })
    const blocker = await narrow.connect()
    const controller = new AbortController()
    const reason = new Error('The client has left.')
    const calls = [store.read('/a'), store.read('/b', { signal: controller.signal }), store.read('/c')]
    const settled = Promise.allSettled(calls)
    setTimeout(() => controller.abort(reason), 20)
    const left = await Promise.resolve(calls[1]).catch((error: unknown) => error)
    expect(left).toBe(reason)
    // It does not count any more: another one may wait.
    const last = store.read('/d')
    blocker.release()
    expect((await settled).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await last).toMatchObject({ path: '/d' })
    await store.close?.()
  })

  it('bounds the calls that wait, however many share a trip', async () => {
    const narrow = server.createPool({ max: 1 })
    const { store } = await open({ from: narrow as unknown as PostgresPool, maxWaiting: 10, connectTimeout: 2000 })
    const blocker = await narrow.connect()
    const calls = Array.from({ length: 30 }, async () => store.read('/a'))
    const refused = await Promise.allSettled(calls.slice(10))
    for (const call of refused) expect(call).toMatchObject({ status: 'rejected', reason: { status: 503 } })
    blocker.release()
    for (const call of await Promise.allSettled(calls.slice(0, 10))) expect(call.status).toBe('fulfilled')
    // None of them counts any more.
    await readAll(
      store,
      Array.from({ length: 10 }, () => '/a'),
    )
    await store.close?.()
  })

  it('reads once more where the connection that they share turns out to be dead', async () => {
    const own = server.createPool({ max: 1 })
    const { store } = await open({ from: own as unknown as PostgresPool })
    const { rows } = await own.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    await pool.query('SELECT pg_terminate_backend($1)', [rows[0]!.pid])
    const found = await readAll(store, ['/a', '/b', '/c'])
    expect(found).toMatchObject([{ body: 'a' }, { body: 'b' }, { body: 'c' }])
    await store.close?.()
  })

  it.each([
    ['connections keep no statements', {}, { preparedStatements: false }],
    ['the pool has a limit of time of its own', { query_timeout: 5000 }, {}],
    ['clients are pipelines', { pipeline: true }, {}],
  ])('works where %s', async (_, config, options) => {
    const own = server.createPool({ max: 2, ...config } as pg.PoolConfig)
    const { store } = await open({ from: own as unknown as PostgresPool, ...options })
    for (let round = 0; round < 3; round++) {
      const found = await readAll(store, ['/a', '/b', '/c', '/d', '/none'])
      expect(found).toMatchObject([{ body: 'a' }, { body: 'b' }, { body: 'c' }, { body: 'd' }, undefined as never])
    }
    const made = await Promise.all(['1', '2', '3'].map((body) => store.create('/x', text(body))))
    expect(made.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
    await store.close?.()
  })

  it('works with clients that are not those of pg', async () => {
    const { store, sent } = await open()
    await store.close?.()
    const other = (await open({ from: createPlainPool(pool) })).store
    for (let round = 0; round < 2; round++) {
      const found = await readAll(other, ['/a', '/b', '/none'])
      expect(found.map((state) => state && 'body' in state && state.body)).toEqual(['a', 'b', undefined])
    }
    expect(sent).toEqual([])
    await other.close?.()
  })

  it('runs each call once where a pool has clients of both kinds', async () => {
    const direct = { connection: { parsedStatements: {}, stream: { write: () => true } } }
    const clients: object[] = [direct, {}]
    let answer = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    const alone: string[] = []
    const runShared = createSharedTrips({
      checkOut: (use) => use(() => answered.then(() => []), clients.shift() as PostgresClient),
      waiting: createWaitingCalls(10),
      runAlone: async ({ text }) => [alone.push(text)],
      preparedStatements: true,
    })
    const statement = (text: string) => ({ name: text, text, decode: () => undefined })
    const sent = runShared(statement('direct'), [], {})
    await runShared(statement('plain'), [], {})
    answer()
    await sent
    await new Promise((resolve) => setImmediate(resolve))
    expect(alone).toEqual(['plain'])
  })

  it('lets calls join the last trip, also where the one before it begins meanwhile', async () => {
    const direct = { connection: { parsedStatements: {}, stream: { write: () => true } } }
    const begin: (() => void)[] = []
    const runShared = createSharedTrips({
      checkOut: async (use) => {
        await new Promise<void>((resolve) => begin.push(resolve))
        return use(async () => [], direct as unknown as PostgresClient)
      },
      waiting: createWaitingCalls(10),
      runAlone: async () => [],
      preparedStatements: true,
    })
    const statement = { name: 'get', text: 'get', decode: () => undefined }
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    const call = (path: string) => runShared(statement, [Buffer.from(path)], {})
    const calls = ['a', 'b', 'c', 'd', 'e'].map(call)
    await turn()
    begin[0]!()
    await turn()
    calls.push(call('f'))
    await turn()
    expect(begin).toHaveLength(2)
    begin[1]!()
    await Promise.all(calls)
  })

  describe('given up', () => {
    const direct = { connection: { parsedStatements: {}, stream: { write: () => true } } }
    const statement = { name: 'get', text: 'get', decode: () => undefined }
    const reason = new Error('The client has left.')

    /** Trips with a connection that is given, and whose query ends, when it is said. */
    function openTrips() {
      let sent = 0
      const connected = createGate()
      const queried = createGate()
      const share = createSharedTrips({
        async checkOut(use) {
          await connected.opened
          const send = async () => {
            sent++
            await queried.opened
            return []
          }
          return use(send, direct as unknown as PostgresClient)
        },
        waiting: createWaitingCalls(10),
        runAlone: async () => [],
        preparedStatements: true,
      })
      const call = (signal: AbortSignal) => share(statement, [Buffer.from('a')], { signal })
      return { call, connected, queried, sent: () => sent }
    }

    it('before they are sent, they are not sent', async () => {
      const { call, connected, queried, sent } = openTrips()
      const controller = new AbortController()
      const left = call(controller.signal)
      await new Promise(setImmediate)
      controller.abort(reason)
      connected.open()
      queried.open()
      await expect(left).rejects.toBe(reason)
      expect(sent()).toBe(0)
    })

    it('after they were sent, they run to their end', async () => {
      const { call, connected, queried } = openTrips()
      const controller = new AbortController()
      const sent = call(controller.signal)
      connected.open()
      await new Promise(setImmediate)
      controller.abort(reason)
      // Twice as long as it takes to look whether a caller that waits has left.
      await new Promise((resolve) => setTimeout(resolve, 2 * LOOK_PERIOD))
      queried.open()
      await sent
    })
  })

  it('leaves nothing to be looked at where no connection could be had', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    const share = createSharedTrips({
      checkOut: () => Promise.reject(new Error('away')),
      waiting: createWaitingCalls(10),
      runAlone: async () => [],
      preparedStatements: true,
    })
    const statement = { name: 'get', text: 'get', decode: () => undefined }
    await expect(share(statement, [Buffer.from('a')], {})).rejects.toThrow('away')
    vi.advanceTimersByTime(10 * LOOK_PERIOD)
    expect(vi.getTimerCount()).toBe(0)
    vi.useRealTimers()
  })

  it('runs nothing a second time where the connection was lost: it may have happened', async () => {
    const direct = { connection: { parsedStatements: {}, stream: { write: () => true } } }
    const lost = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
    const alone: unknown[] = []
    const runShared = createSharedTrips({
      checkOut: (use) => use(() => Promise.reject(lost), direct as unknown as PostgresClient),
      waiting: createWaitingCalls(10),
      runAlone: async (_, values) => [alone.push(values)],
      preparedStatements: true,
    })
    const statement = { name: 'put', text: 'put', decode: () => undefined }
    const calls = ['a', 'b', 'c'].map((path) => runShared(statement, [Buffer.from(path)], {}))
    expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: 'rejected', reason: lost })))
    expect(alone).toEqual([])
  })

  it('keeps every kind of value on its way: text beyond ASCII, nothing, empty content', async () => {
    const { store } = await open()
    const contents = [
      { contentType: 'text/plain;charset=utf-8', body: 'ä€😀', filename: 'ß€😀.txt', contentLanguage: 'de' },
      { contentType: 'application/octet-stream', body: Uint8Array.of(0, 1, 127, 128, 255), contentEncoding: 'gzip' },
      { contentType: 'text/plain', body: '' },
    ]
    for (const [i, content] of contents.entries()) {
      const path = `/ü/${i}`
      await store.write(path, content, { expect: 'absent' })
      const { body, ...facts } = (await store.read(path)) as StoredResource
      const { body: given, ...described } = content
      expect(facts).toMatchObject({ path, ...described })
      expect(Buffer.from(body as string)).toEqual(Buffer.from(given as string))
    }
    await store.close?.()
  })
})
