import { once } from 'node:events'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createIndex } from '../../src/conformance/lists.ts'
import { collection, createResourceService } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { isLargeBody, isResource } from '../../src/stores/rules.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { type FakePostgres, startFakePostgres } from '../support/fake-postgres.ts'
import { MEASURED } from '../support/measured.ts'
import { type PausableProxy, startProxy } from '../support/pausable-proxy.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

const UNAVAILABLE = { status: 503, code: 'ERR_UNAVAILABLE', headers: { 'Retry-After': '1' } }
const text = (body: string) => ({ contentType: 'text/plain', body })
const binary = (body: Uint8Array | AsyncIterable<Uint8Array>) => ({ contentType: 'application/octet-stream', body })
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

async function until(condition: () => boolean, sentence: string): Promise<void> {
  for (const end = Date.now() + 30_000; !condition(); await sleep(5)) if (Date.now() > end) throw new Error(sentence)
}

/** How long a call takes, in milliseconds, and how it ended. */
async function time(call: () => unknown): Promise<{ readonly elapsed: number; readonly error: unknown }> {
  const start = performance.now()
  try {
    await call()
    return { elapsed: performance.now() - start, error: undefined }
  } catch (error) {
    return { elapsed: performance.now() - start, error }
  }
}

describe('postgresStore, connections that end', () => {
  let fake: FakePostgres
  const pools: pg.Pool[] = []
  const uncaught: unknown[] = []
  const onUncaught = (error: unknown): void => void uncaught.push(error)
  beforeEach(async () => {
    fake = await startFakePostgres()
    process.on('uncaughtException', onUncaught)
  })
  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.end()
    await fake.close()
    process.off('uncaughtException', onUncaught)
    expect(uncaught.splice(0)).toEqual([])
  })

  function createPool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: fake.connectionString, ...options })
    pools.push(pool)
    return pool
  }

  const openStore = (pool: pg.Pool) =>
    postgresStore({ pool, sweepInterval: 0, connectTimeout: 500, statementTimeout: 500 })

  it('survives 57P01 in the packet that opens the connection ("a connection that has just been opened", issue 17.3)', async () => {
    fake.opening = 'end-at-once'
    const store = openStore(createPool())
    const results = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => store.read(`/${i}`)))
    for (const result of results) expect(result).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
    expect(fake.accepted).toBeGreaterThan(0)
  })

  it.each(['with-error', 'reset'] as const)(
    'survives connections that end %s while they work (issue 17.3)',
    async (farewell) => {
      fake.isAnswering = false
      const store = openStore(createPool({ max: 3 }))
      const calls = Promise.allSettled(Array.from({ length: 3 }, (_, i) => store.read(`/${i}`)))
      await until(() => fake.open.size > 0, 'No connection was opened.')
      await sleep(50)
      fake.endAll(farewell)
      for (const result of await calls) expect(result).toMatchObject({ status: 'rejected', reason: UNAVAILABLE })
    },
  )

  it('survives connections that end between the checkout and the first query (issue 17.3)', async () => {
    const pool = createPool({ max: 1 })
    pool.on('acquire', (client) => {
      // The pool has nothing to listen with from here to the end of the turn.
      setImmediate(() => client.emit('error', new Error('late')))
    })
    const store = openStore(pool)
    await time(() => store.read('/a'))
  })

  it('survives connections that break while the pool removes them (issue 17.3)', async () => {
    fake.isAnswering = false
    const pool = createPool({ max: 2 })
    pool.on('release', (_, client) => {
      setImmediate(() => client.emit('error', new Error('while it is removed')))
    })
    const store = openStore(pool)
    expect((await time(() => store.read('/a'))).error).toMatchObject(UNAVAILABLE)
    await sleep(50)
  })

  it('guards connections that the pool had opened before the store was made (issue 17.3)', async () => {
    const pool = createPool({ max: 1 })
    ;(await pool.connect()).release()
    pool.on('acquire', () => process.nextTick(() => fake.endAll('with-error')))
    const store = openStore(pool)
    await time(() => store.read('/a'))
    await until(() => fake.open.size === 0, 'The connection is still open.')
  })
})

describe('postgresStore, a database that falls silent', () => {
  let server: PostgresServer
  let proxy: PausableProxy
  let pool: pg.Pool
  let store: ResourceStore
  let prefixes = 0
  const limits = { statementTimeout: 600, connectTimeout: 400, maxWaiting: 20, sweepInterval: 0 }
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    const url = new URL(server.connectionString)
    proxy = await startProxy(Number(url.port))
    url.port = String(proxy.port)
    pool = new pg.Pool({ connectionString: url.href, max: 4 })
    store = postgresStore({ pool, tablePrefix: `silent_${++prefixes}_`, ...limits })
    await store.write('/a', text('a'), { expect: 'any' })
  })
  afterEach(async () => {
    await store.close?.()
    await proxy.close()
    await pool.end()
  })

  /** Reads once the database is back: at most each connection of the pool turns out to be dead once more. */
  async function readAgain(path: string): Promise<unknown> {
    for (let attempt = 0; attempt < 4; attempt++) {
      const { error } = await time(() => store.read(path))
      if (error === undefined) break
    }
    return store.read(path)
  }

  it(
    'fails every call with 503 in bounded time and number, and works again by itself (issue 17.4)',
    MEASURED,
    async () => {
      await Promise.all([1, 2, 3, 4].map((i) => store.read(`/${i}`)))
      proxy.pause()
      for (let round = 0; round < 3; round++) {
        const calls = await Promise.all(
          Array.from({ length: 100 }, (_, i) =>
            time(() => (i % 2 === 0 ? store.read('/a') : store.write('/a', text('b'), { expect: 'any' }))),
          ),
        )
        for (const { elapsed, error } of calls) {
          expect(error).toMatchObject(UNAVAILABLE)
          expect(elapsed).toBeLessThan(limits.statementTimeout + limits.connectTimeout + 1500)
        }
        // More than may wait fail at once.
        expect(calls.filter(({ elapsed }) => elapsed < limits.connectTimeout / 2).length).toBeGreaterThanOrEqual(70)
        await until(() => pool.waitingCount === 0, 'Calls that are over wait in the pool.')
      }
      proxy.resume()
      expect(await readAgain('/a')).toMatchObject({ size: 1 })
    },
  )

  it('gives up hosts that accept connections and say nothing, also with a pool without a limit (issue 17.4)', async () => {
    const fake = await startFakePostgres()
    fake.opening = 'say-nothing'
    const own = new pg.Pool({ connectionString: fake.connectionString, max: 2 })
    const stuck = postgresStore({ pool: own, ...limits })
    const calls = await Promise.all(Array.from({ length: 10 }, () => time(() => stuck.read('/a'))))
    for (const { error } of calls) expect(error).toMatchObject(UNAVAILABLE)
    await until(() => own.totalCount === 0 && own.waitingCount === 0, 'The pool is still full.')
    await stuck.close?.()
    await own.end()
    await fake.close()
  })

  it('leaves the limit of a pool that has one, and sets the longest of several stores where it has none (issue 17.4)', async () => {
    const own = new pg.Pool({ connectionTimeoutMillis: 77 })
    postgresStore({ pool: own, ...limits })
    expect(own.options.connectionTimeoutMillis).toBe(77)
    const without = new pg.Pool()
    postgresStore({ pool: without, ...limits })
    for (const connectTimeout of [900, 300]) postgresStore({ pool: without, ...limits, connectTimeout })
    expect(without.options.connectionTimeoutMillis).toBe(900)
    await own.end()
    await without.end()
  })

  it('bounds the calls that wait in a pool that never answers (issue 17.4)', async () => {
    let waiting = 0
    const stuck = postgresStore({
      pool: {
        on() {},
        connect() {
          waiting++
          return new Promise(() => {})
        },
      },
      ...limits,
    })
    for (let round = 0; round < 3; round++) {
      const calls = await Promise.all(Array.from({ length: 50 }, () => time(() => stuck.read('/a'))))
      for (const { error } of calls) expect(error).toMatchObject(UNAVAILABLE)
    }
    expect(waiting).toBeLessThanOrEqual(limits.maxWaiting)
  })

  it('breaks off the answer in the middle of a large read in bounded time (issue 17.4)', MEASURED, async () => {
    await store.write('/files/1', binary(Buffer.alloc(6_000_000, 1)), { expect: 'any' })
    const service = createResourceService(store, { resources: { '/files': collection({ types: ['*/*'] }) } })
    const host = createServer(service).listen(0)
    await once(host, 'listening')
    const request = get({ port: (host.address() as AddressInfo).port, path: '/files/1' })
    const [response] = await once(request, 'response')
    proxy.pause()
    const start = performance.now()
    let size = 0
    const outcome = await new Promise((resolve) => {
      response.on('data', (chunk: Buffer) => (size += chunk.length))
      response.on('error', resolve)
      response.on('end', () => resolve('whole'))
    })
    expect(outcome).toMatchObject({ code: 'ECONNRESET' })
    expect(size).toBeLessThan(6_000_000)
    expect(performance.now() - start).toBeLessThan(limits.statementTimeout + limits.connectTimeout + 2000)
    host.close()
    await service.close()
  })

  it('fails a large read only where its reader goes on: what fails ahead of it ends no process', async () => {
    const content = Buffer.alloc(3_000_000, 1)
    await store.write('/big', binary(content), { expect: 'any' })
    let connections = Number.POSITIVE_INFINITY
    const away = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const tablePrefix = `silent_${prefixes}_`
    const own = postgresStore({
      pool: {
        on() {},
        connect: () => (connections-- > 0 ? pool.connect() : Promise.reject(away)),
      },
      tablePrefix,
      ...limits,
    })
    const unhandled: unknown[] = []
    const onUnhandled = (error: unknown): void => void unhandled.push(error)
    process.on('unhandledRejection', onUnhandled)
    try {
      const { body } = (await own.read('/big')) as StoredResource
      if (!isLargeBody(body)) throw new Error('The content is not large.')
      const reader = body.open(0, content.length - 1)[Symbol.asyncIterator]()
      connections = 1
      expect((await reader.next()).done).not.toBe(true)
      // Longer than the store tries to connect.
      await sleep(limits.connectTimeout)
      await expect(
        (async () => {
          while ((await reader.next()).done !== true);
        })(),
      ).rejects.toMatchObject(UNAVAILABLE)
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', onUnhandled)
      await own.close?.()
    }
  })

  it('ends an upload in bounded time, and closes its source (issue 17.4)', MEASURED, async () => {
    const source = new PassThrough()
    source.write(Buffer.alloc(600_000))
    const writing = time(() => store.write('/u', binary(source), { expect: 'any' }))
    await sleep(100)
    proxy.pause()
    const feeding = setInterval(() => source.destroyed || source.write(Buffer.alloc(200_000)), 10)
    const start = performance.now()
    expect((await writing).error).toMatchObject(UNAVAILABLE)
    expect(performance.now() - start).toBeLessThan(limits.statementTimeout + 1500)
    clearInterval(feeding)
    await until(() => source.destroyed, 'The source is still open.')
    proxy.resume()
    expect(await readAgain('/u')).toBeUndefined()
  })

  it('goes on with a large read after a pause that was shorter than the deadline', async () => {
    const content = Buffer.alloc(2_000_000, 'abc')
    await store.write('/big', binary(content), { expect: 'any' })
    const { body } = (await store.read('/big')) as StoredResource
    if (!isLargeBody(body)) throw new Error('The content is not large.')
    const chunks: Uint8Array[] = []
    for await (const chunk of body.open(0, content.length - 1)) {
      chunks.push(chunk)
      await sleep(20)
    }
    expect(Buffer.concat(chunks).equals(content)).toBe(true)
  })

  it('ends a wait for a connection when the signal aborts, with its reason', MEASURED, async () => {
    const clients = await Promise.all([1, 2, 3, 4].map(() => pool.connect()))
    const controller = new AbortController()
    const reason = new Error('The client has left.')
    const related = [{ path: '/b', content: text('b') }]
    const calls = [
      time(() => store.read('/a', { signal: controller.signal })),
      time(() => store.list('/a', { limit: 1, signal: controller.signal })),
      time(() => store.write('/a', text('b'), { expect: 'any', signal: controller.signal })),
      time(() => store.remove('/a', { expect: 'any', mode: 'erase', signal: controller.signal })),
      // In a transaction.
      time(() => store.write('/a', text('b'), { expect: 'any', related, signal: controller.signal })),
      time(() => store.remove('/a', { expect: 'any', mode: 'erase', below: true, signal: controller.signal })),
    ]
    setTimeout(() => controller.abort(reason), 30)
    for (const { elapsed, error } of await Promise.all(calls)) {
      expect(error).toBe(reason)
      expect(elapsed).toBeLessThan(limits.connectTimeout)
    }
    for (const client of clients) client.release()
    expect(isResource(await store.read('/a'))).toBe(true)
  })

  it('keeps its connections when clients send cursors that are none', async () => {
    let removed = 0
    pool.on('remove', () => removed++)
    const orderBy = [{ property: 'a', direction: 'ascending' as const }]
    const query = { index: createIndex('faults', ['a']), where: [], orderBy, count: false }
    await store.list('/a', { limit: 1, query })
    for (const after of ['', 'none', '1', 'none\0a']) {
      expect((await time(() => store.list('/a', { limit: 1, query, after }))).error).toMatchObject({ status: 400 })
    }
    expect(removed).toBe(0)
  })

  it.each([
    ['a transaction', 'BEGIN'],
    ['a transaction that has failed', 'BEGIN; SELECT 1 / 0'],
    ['no prepared statements', 'DISCARD ALL'],
    ['no right to write, as on a server that has become a standby', 'SET default_transaction_read_only = on'],
  ])('acknowledges nothing on a connection with %s, and writes on another one', async (_, left) => {
    const one = server.createPool({ max: 1 })
    const store = postgresStore({ pool: one, ...limits, sweepInterval: 0 })
    const write = () => store.write('/a', text('b'), { expect: 'any' })
    await write()
    const client = await one.connect()
    await client.query(left).catch(() => {})
    client.release()
    await expect(write()).rejects.toMatchObject({ status: 503 })
    expect(await write()).toMatchObject({ outcome: 'replaced' })
    expect(isResource(await store.read('/a'))).toBe(true)
  })

  it('refuses limits without effect', () => {
    expect(() => postgresStore({ pool, statementTimeout: 0 })).toThrow(/statementTimeout: milliseconds, 1 or more/)
    expect(() => postgresStore({ pool, connectTimeout: Number.NaN })).toThrow(/connectTimeout/)
    expect(() => postgresStore({ pool, maxWaiting: 0 })).toThrow(/maxWaiting: a positive integer/)
  })
})
