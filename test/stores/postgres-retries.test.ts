import { describe, expect, it, vi } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import {
  connectWhenMigrated,
  createPostgresConnection,
  type PostgresConnection,
  type PostgresPool,
} from '../../src/stores/postgres/connection.ts'

/** A pool of one connection whose statements fail, each after a time. */
function createFailingPool(code: string, delay: number) {
  const counts = { attempts: 0, released: 0 }
  const client = {
    on() {},
    async query() {
      counts.attempts++
      await new Promise((resolve) => setTimeout(resolve, delay))
      throw Object.assign(new Error('The database has refused.'), { code })
    },
    release: () => void counts.released++,
  }
  const pool: PostgresPool = { on() {}, connect: async () => client }
  return { pool, counts }
}

const limits = { connectTimeout: 1000, maxWaiting: 10, preparedStatements: true }
const statement = { name: 'one', text: 'SELECT 1' }

describe('postgresStore, a serialization failure that does not end', () => {
  it.each(['40001', '40P01'])('is repeated eleven times, then 503 (SQLSTATE %s)', async (code) => {
    const { pool, counts } = createFailingPool(code, 0)
    const { run } = createPostgresConnection(pool, { ...limits, statementTimeout: 10_000 })
    await expect(run(statement, [])).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
    expect(counts).toEqual({ attempts: 12, released: 12 })
  })

  it('is not repeated once the time of one statement is over', async () => {
    const { pool, counts } = createFailingPool('40001', 60)
    const { run } = createPostgresConnection(pool, { ...limits, statementTimeout: 100 })
    await expect(run(statement, [])).rejects.toMatchObject({ status: 503 })
    expect(counts.attempts).toBeLessThanOrEqual(3)
  })
})

it('postgresStore waits for its tables again after more failures than calls may wait', async () => {
  let failures = 3
  const migrate = async () => {
    if (failures-- > 0) throw new Error('away')
  }
  const connection = connectWhenMigrated({ read: async () => [] } as unknown as PostgresConnection, 2, migrate)
  for (let i = 0; i < 3; i++) await expect(connection.read('', [])).rejects.toThrow('away')
  expect(await connection.read('', [])).toEqual([])
})

describe('postgresStore, a connection that is lost', () => {
  it('is replaced once by another one for a read, and not for a change', async () => {
    const { pool, counts } = createFailingPool('57P01', 0)
    const { read, run, transact, view } = createPostgresConnection(pool, {
      ...limits,
      connectTimeout: 10_000,
      statementTimeout: 10_000,
    })
    await expect(read(statement, [])).rejects.toMatchObject({ status: 503 })
    expect(counts.attempts).toBe(2)
    await expect(run(statement, [])).rejects.toMatchObject({ status: 503 })
    expect(counts.attempts).toBe(3)
    const work = (run: typeof read) => run(statement, [])
    await expect(view(work)).rejects.toMatchObject({ status: 503 })
    expect(counts.attempts).toBe(5)
    await expect(transact(work)).rejects.toMatchObject({ status: 503 })
    expect(counts.attempts).toBe(6)
  })
})

describe('postgresStore, a transaction whose connection is lost', () => {
  it('is not rolled back: nothing would answer', async () => {
    const sent: string[] = []
    const lost = new Error('Connection terminated unexpectedly')
    const client = {
      on() {},
      async query({ text }: { readonly text: string }) {
        sent.push(text.split(' ', 1)[0]!)
        if (text === statement.text) throw lost
        return { rows: [] }
      },
      release: () => {},
    }
    const pool: PostgresPool = { on() {}, connect: async () => client }
    const { transact } = createPostgresConnection(pool, { ...limits, statementTimeout: 1000 })
    await expect(transact(async (run) => run(statement, []))).rejects.toMatchObject({ status: 503, cause: lost })
    expect(sent).toEqual(['BEGIN;', 'SELECT'])
  })
})

describe('postgresStore, another failure of a statement', () => {
  it('is not repeated', async () => {
    const { pool, counts } = createFailingPool('23505', 0)
    const { run } = createPostgresConnection(pool, { ...limits, statementTimeout: 1000 })
    await expect(run(statement, [])).rejects.toMatchObject({ code: '23505' })
    expect(counts).toEqual({ attempts: 1, released: 1 })
  })
})

describe('postgresStore, a transaction that fails while it begins', () => {
  it('is rolled back before its connection is given back: the next call would fail in it', async () => {
    const sent: string[] = []
    let isRefused = true
    const client = {
      on() {},
      async query({ text }: { readonly text: string }) {
        sent.push(text.split(' ', 1)[0]!.replace(';', ''))
        if (isRefused && text.startsWith('BEGIN')) throw Object.assign(new Error('canceled'), { code: '57014' })
        return { rows: [] }
      },
      release: (isBroken: boolean) => void sent.push(isBroken ? 'destroyed' : 'released'),
    }
    const pool: PostgresPool = { on() {}, connect: async () => client }
    const { transact, view } = createPostgresConnection(pool, { ...limits, statementTimeout: 1000 })
    for (const begin of [transact, view]) {
      isRefused = true
      await expect(begin(async (run) => run(statement, []))).rejects.toMatchObject({ status: 503 })
      isRefused = false
      await begin(async (run) => run(statement, []))
      const whole = ['BEGIN', 'SELECT', 'COMMIT', 'released']
      expect(sent.splice(0)).toEqual(['BEGIN', 'ROLLBACK', 'released', ...whole])
    }
  })
})

describe('postgresStore, a transaction whose call is given up', () => {
  it('is rolled back, and its connection is kept', async () => {
    const sent: string[] = []
    const client = {
      on() {},
      async query({ text }: { readonly text: string }) {
        sent.push(text.split(' ', 1)[0]!.replace(';', ''))
        return { rows: [] }
      },
      release: (isBroken: boolean) => void sent.push(isBroken ? 'destroyed' : 'released'),
    }
    const pool: PostgresPool = { on() {}, connect: async () => client }
    const { transact, view } = createPostgresConnection(pool, { ...limits, statementTimeout: 1000 })
    for (const begin of [transact, view]) {
      const controller = new AbortController()
      const work = async () => {
        controller.abort(new Error('The client has left.'))
        controller.signal.throwIfAborted()
      }
      await expect(begin(work, { signal: controller.signal })).rejects.toThrow('The client has left.')
      expect(sent.splice(0)).toEqual(['BEGIN', 'ROLLBACK', 'released'])
    }
  })
})

async function expectUnavailable(code: string): Promise<void> {
  const { pool } = createFailingPool(code, 0)
  const { run } = createPostgresConnection(pool, { ...limits, statementTimeout: 1000 })
  await expect(run(statement, [])).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' } })
}

describe('postgresStore, a statement that may succeed on another connection', () => {
  it.each(['0A000', '25P02', '25P03', '25P04', '25006', '26000'])('is 503 (SQLSTATE %s)', expectUnavailable)
})

describe('postgresStore, a server that lacks open files, memory or connections', () => {
  it.each(['53000', '53200', '53300', '53400'])('is 503 (SQLSTATE %s)', expectUnavailable)
})

describe('postgresStore, a pool that gives no connection', () => {
  const fail = (error: unknown) => {
    const connect = vi.fn(() => Promise.reject(error))
    return { connect, ...createPostgresConnection({ on() {}, connect }, { ...limits, statementTimeout: 1000 }) }
  }

  it.each([
    ['of a role that may not log in', '28000'],
    ['of a password that was changed', '28P01'],
    ['of a database that was dropped', '3D000'],
    ['of a role without CONNECT', '42501'],
    ['of a database that takes no connections', '55000'],
    ['of a function of the program for the password', undefined],
  ])('is 503 with the cause %s (SQLSTATE %s)', async (_, code) => {
    const cause = Object.assign(new TypeError('refused'), { code })
    const { read, run, transact, view } = fail(cause)
    const work = (run: typeof read) => run(statement, [])
    const calls = [() => read(statement, []), () => run(statement, []), () => transact(work), () => view(work)]
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ status: 503, headers: { 'Retry-After': '1' }, cause })
    }
  })

  it('is asked once for calls that share a round trip', async () => {
    const { connect, run } = fail(Object.assign(new Error('too many connections'), { code: '53300' }))
    const shared = { ...statement, decode: () => undefined, isShared: true }
    const calls = await Promise.allSettled([1, 2, 3].map((value) => run(shared, [Buffer.of(value)])))
    for (const call of calls) expect(call).toMatchObject({ status: 'rejected', reason: { status: 503 } })
    expect(connect).toHaveBeenCalledTimes(1)
  })

  it.each([
    ['once where the database refuses one (28P01)', 1, '28P01'],
    ['once where the database has too many (53300)', 1, '53300'],
    ['twice where it breaks (ECONNREFUSED)', 2, 'ECONNREFUSED'],
  ])('is asked for the connection of a read %s', async (_, times, code) => {
    const { connect, read, view } = fail(Object.assign(new Error('refused'), { code }))
    await expect(read(statement, [])).rejects.toMatchObject({ status: 503 })
    expect(connect).toHaveBeenCalledTimes(times)
    await expect(view((run) => run(statement, []))).rejects.toMatchObject({ status: 503 })
    expect(connect).toHaveBeenCalledTimes(2 * times)
  })

  it('chooses the response by an HttpError of its own', async () => {
    const error = new HttpError(429, 'ERR_TOO_MANY_REQUESTS')
    await expect(fail(error).run(statement, [])).rejects.toBe(error)
  })
})
