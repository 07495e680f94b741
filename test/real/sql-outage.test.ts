import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isHttpError } from '../../src/core/errors.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { isResource } from '../../src/stores/rules.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { MEASURED } from '../support/measured.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.stop())

/** A client of the store that goes on whatever happens, and keeps account of it. */
interface Client {
  readonly acknowledged: Map<string, number>
  readonly failures: unknown[]
  /** The longest that one call took, in milliseconds. */
  longest: number
  /** How often each of write, create, read, list has succeeded in turn. */
  rounds: number
}

function startClient(store: ResourceStore, id: number, isOver: () => boolean): Client & { done: Promise<void> } {
  const client: Client = { acknowledged: new Map(), failures: [], longest: 0, rounds: 0 }

  async function call(action: () => unknown): Promise<boolean> {
    const start = performance.now()
    try {
      await action()
      return true
    } catch (error) {
      client.failures.push(error)
      return false
    } finally {
      client.longest = Math.max(client.longest, performance.now() - start)
    }
  }

  async function run(): Promise<void> {
    for (let i = 0; !isOver(); i++) {
      const path = `/outage/${id}-${i % 5}`
      const content = { contentType: 'text/plain', body: String(i) }
      if (await call(() => store.write(path, content, { expect: 'any' }))) client.acknowledged.set(path, i)
      const isDone = [
        await call(() => store.create('/outage', content)),
        await call(() => store.read(path)),
        await call(() => store.list('/outage', { limit: 3 })),
      ]
      if (!isDone.includes(false)) client.rounds++
    }
  }

  return Object.assign(client, { done: run() })
}

async function until(condition: () => boolean): Promise<void> {
  for (const end = Date.now() + 30_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 5))) {
    if (Date.now() > end) throw new Error('The condition was not reached within 15 s.')
  }
}

describe('postgresStore', () => {
  it(
    'answers 503 with Retry-After while the database is away, never hangs, and works again once it is back',
    MEASURED,
    async () => {
      const store = postgresStore({ pool: server.createPool({ max: 4 }), tablePrefix: 'outage_', connectTimeout: 2000 })
      let isOver = false
      const clients = Array.from({ length: 8 }, (_, id) => startClient(store, id, () => isOver))
      await until(() => clients.every((client) => client.rounds > 3))

      await server.crash()
      await until(() => clients.every((client) => client.failures.length > 20))
      const before = clients.map((client) => client.rounds)
      await server.restart()
      await until(() => clients.every((client, id) => client.rounds > before[id]! + 3))
      isOver = true
      await Promise.all(clients.map((client) => client.done))

      for (const client of clients) {
        for (const error of client.failures) {
          if (!isHttpError(error)) throw error
          expect(error).toMatchObject({ status: 503, code: 'ERR_UNAVAILABLE', headers: { 'Retry-After': '1' } })
        }
        expect(client.longest).toBeLessThan(6000)
        for (const [path, number] of client.acknowledged) {
          const state = await store.read(path)
          if (!isResource(state)) throw new Error(`${path} was acknowledged and is gone.`)
          expect(Number(Buffer.from(state.body as Uint8Array).toString())).toBeGreaterThanOrEqual(number)
        }
      }
      await store.close?.()
    },
  )

  it('can be made before the database is there', async () => {
    await server.crash()
    const store = postgresStore({ pool: server.createPool(), tablePrefix: 'early_' })
    await expect(store.read('/a')).rejects.toMatchObject({ status: 503 })
    await server.restart()
    expect(await store.read('/a')).toBeUndefined()
    await store.close?.()
  })

  it('survives the loss of idle connections', async () => {
    const pool = server.createPool({ max: 3 })
    const store = postgresStore({ pool, tablePrefix: 'idle_' })
    // Reads of one turn would share a connection.
    await Promise.all([1, 2, 3].map((i) => store.list(`/${i}`, { limit: 1 })))
    expect(pool.idleCount).toBe(3)
    await server.crash()
    await until(() => pool.idleCount === 0)
    await server.restart()
    expect(await store.read('/1')).toBeUndefined()
    await store.close?.()
  })

  it.each([
    ['an administrator ends its connections', 'terminate'],
    ['the server shuts down fast', 'shutDown'],
  ] as const)('survives, under load, that %s repeatedly (issue 17.3)', async (_, how) => {
    const pool = server.createPool({ max: 4 })
    const store = postgresStore({ pool, tablePrefix: `${how.toLowerCase()}_`, connectTimeout: 2000 })
    const admin = server.createPool({ max: 1 })
    admin.on('error', () => {})
    let isOver = false
    const clients = Array.from({ length: 8 }, (_, id) => startClient(store, id, () => isOver))
    await until(() => clients.every((client) => client.rounds > 3))
    for (let round = 0; round < (how === 'terminate' ? 20 : 3); round++) {
      const before = clients.map((client) => client.rounds)
      if (how === 'terminate') {
        await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()')
      } else {
        await server.shutDown()
        await server.restart()
      }
      await until(() => clients.every((client, id) => client.rounds > before[id]! + 1))
    }
    isOver = true
    await Promise.all(clients.map((client) => client.done))
    const failures = clients.flatMap((client) => client.failures)
    expect(failures.length).toBeGreaterThan(0)
    for (const error of failures) expect(error).toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
    await store.close?.()
  })

  it(
    'answers 503 in bounded time while the host is paused, and works again by itself (issue 17.4)',
    MEASURED,
    async () => {
      const pool = server.createPool({ max: 4 })
      const limits = { statementTimeout: 800, connectTimeout: 500 }
      const store = postgresStore({ pool, tablePrefix: 'paused_', ...limits })
      let isOver = false
      const clients = Array.from({ length: 8 }, (_, id) => startClient(store, id, () => isOver))
      await until(() => clients.every((client) => client.rounds > 3))
      server.freeze()
      try {
        await until(() => clients.every((client) => client.failures.length > 5))
      } finally {
        server.thaw()
      }
      const before = clients.map((client) => client.rounds)
      await until(() => clients.every((client, id) => client.rounds > before[id]! + 3))
      isOver = true
      await Promise.all(clients.map((client) => client.done))
      for (const client of clients) {
        for (const error of client.failures) expect(error).toMatchObject({ status: 503, code: 'ERR_UNAVAILABLE' })
        expect(client.longest).toBeLessThan(limits.statementTimeout + limits.connectTimeout + 3000)
      }
      await store.close?.()
    },
  )
})
