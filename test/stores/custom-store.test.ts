import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
// @ts-expect-error the example is JavaScript, as its readers will write it
import { preparation, userStore } from '../../examples/custom-store.js'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { testStore } from '../../src/testing.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { runProgram } from '../support/run-program.ts'

let server: PostgresServer
let pool: Pool

beforeAll(async () => {
  server = await startPostgres()
  pool = server.createPool()
  pool.setMaxListeners(0)
  await pool.query(preparation)
})
afterAll(() => server.stop())

testStore(
  'the store of examples/custom-store.js',
  async () => {
    await pool.query('TRUNCATE users RESTART IDENTITY')
    return { store: userStore(pool), reopen: () => userStore(pool) }
  },
  {
    describe,
    it,
    collection: '/users',
    content: (seed, name) => ({
      contentType: 'application/json',
      body: JSON.stringify({ id: Number(name), name: `User ${seed}`, email: `${seed}@example.org` }),
    }),
    contents: false,
    paths: false,
    dates: false,
    tombstones: false,
    hiding: false,
    related: false,
  },
)

describe('examples/custom-store.test.mjs', () => {
  it('runs the conformance kit with node:test, against the same store', async () => {
    const program = runProgram('examples/custom-store.test.mjs', { DATABASE_URL: server.connectionString }, [
      '--test',
      '--test-reporter=tap',
    ])
    expect([await program.ended, /^# fail 0$/m.test(program.output())]).toEqual([0, true])
    expect(Number(/^# pass (\d+)$/m.exec(program.output())![1])).toBeGreaterThan(20)
  })
})

describe('the service over examples/custom-store.js', () => {
  it('is unavailable while Postgres is away or busy, and fails where it refuses a statement', async () => {
    const readWith = (code: string): Promise<unknown> => {
      const failing = { on: () => {}, query: () => Promise.reject(Object.assign(new Error(code), { code })) }
      return userStore(failing)
        .read('/users/1')
        .catch((error: { status?: number }) => error.status)
    }
    const codes = ['ECONNREFUSED', 'EPIPE', '57P01', '57014', '53300', '08006', '40P01', '42P01', '22001']
    expect(await Promise.all(codes.map(readWith))).toEqual([503, 503, 503, 503, 503, 503, 503, undefined, undefined])
  })

  it('is unavailable where Postgres ends the connection on which a name is reserved', async () => {
    const blocker = await pool.connect()
    const waiting = "FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    try {
      await blocker.query('SELECT pg_advisory_lock(2071723)')
      const body = '{"name":"Ada","email":"ada@example.org"}'
      const writing = userStore(pool)
        .write('/users/5000', { contentType: 'application/json', body }, { expect: 'any' })
        .catch((error: { status?: number }) => error.status)
      await expect.poll(async () => (await blocker.query(`SELECT pid ${waiting}`)).rows.length).toBe(1)
      await blocker.query(`SELECT pg_terminate_backend(pid) ${waiting}`)
      expect(await writing).toBe(503)
    } finally {
      await blocker.query('SELECT pg_advisory_unlock(2071723)')
      blocker.release()
    }
  })

  it('takes the largest name of 32 bits, and leaves room behind it', async () => {
    await pool.query('TRUNCATE users RESTART IDENTITY')
    const content = { contentType: 'application/json', body: '{"name":"Ada","email":"ada@example.org"}' }
    const { outcome } = await userStore(pool).write('/users/2147483647', content, { expect: 'any' })
    expect(outcome).toBe('created')
    expect((await userStore(pool).create('/users', content)).resource.path).toBe('/users/2147483748')
  })

  it('serves the rows, also those of other programs, and sees every change of them', async () => {
    await pool.query('TRUNCATE users RESTART IDENTITY')
    const service = createResourceService(userStore(pool), {
      resources: { '/users': collection({ deletion: 'hard' }) },
    })
    const http = createServer(service).listen(0, '127.0.0.1')
    await new Promise((resolve) => http.once('listening', resolve))
    const users = `http://127.0.0.1:${(http.address() as AddressInfo).port}/users`
    const headers = { 'Content-Type': 'application/json' }
    try {
      const created = await fetch(users, { method: 'POST', headers, body: '{"name":"Ada","email":"ada@example.org"}' })
      expect([created.status, created.headers.get('Location')]).toEqual([201, '/users/1'])
      const read = await fetch(`${users}/1`)
      const ETag = read.headers.get('ETag')!
      expect(await read.json()).toEqual({ id: 1, name: 'Ada', email: 'ada@example.org' })

      await pool.query("UPDATE users SET role = 'admin' WHERE id = 1")
      const body = '{"name":"Eve","email":"eve@example.org"}'
      const stale = await fetch(`${users}/1`, { method: 'PUT', headers: { ...headers, 'If-Match': ETag }, body })
      expect(stale.status).toBe(412)
      expect(await (await fetch(users)).json()).toEqual([
        { id: 1, name: 'Ada', email: 'ada@example.org', role: 'admin' },
      ])
      expect((await fetch(`${users}/1`, { method: 'DELETE' })).status).toBe(204)
      expect((await fetch(`${users}/1`)).status).toBe(404)
    } finally {
      http.closeAllConnections()
      http.close()
      await service.close()
    }
  })
})
