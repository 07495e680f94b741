import { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PgliteDatabase, postgresStore } from '../../src/stores/postgres.ts'
import { isLargeBody, isResource } from '../../src/stores/rules.ts'
import type { StoredState } from '../../src/stores/types.ts'
import { testStore } from '../../src/testing.ts'

let database: PGlite
let prefixes = 0
const createPrefix = (): string => `test_${++prefixes}_`
const text = (body: string) => ({ contentType: 'text/plain', body })

beforeAll(async () => {
  database = await PGlite.create()
})
afterAll(() => database.close())

testStore(
  'postgresStore on PGlite',
  () => {
    const tablePrefix = createPrefix()
    const open = () => postgresStore({ pool: database, tablePrefix })
    return { store: open(), reopen: open }
  },
  { describe, it },
)

async function readBody(state: StoredState): Promise<string> {
  if (!isResource(state)) throw new Error('The resource is not there.')
  if (!isLargeBody(state.body)) return Buffer.from(state.body as Uint8Array).toString()
  const chunks: Uint8Array[] = []
  for await (const chunk of state.body.open(0, state.size - 1)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

describe('postgresStore on PGlite, its own ways (issue 22)', () => {
  const large = (letter: string) => text(letter.repeat(300_000))

  it('keeps the statements of the program that has made the instance out of its transactions', async () => {
    // On a busy machine a call waits long for the one connection.
    const store = postgresStore({ pool: database, tablePrefix: 'shared_', connectTimeout: 60_000 })
    await database.exec('DROP TABLE IF EXISTS own; CREATE TABLE own (n integer)')
    // Large content is written in a transaction.
    const writes = Array.from({ length: 10 }, (_, i) => store.write('/a/1', large(String(i)), { expect: 'any' }))
    const inserts = Array.from({ length: 10 }, (_, i) =>
      database.transaction(async (transaction) => {
        await transaction.query('INSERT INTO own VALUES ($1)', [i])
        if (i % 2 === 1) await transaction.rollback()
      }),
    )
    await Promise.all([...writes, ...inserts])
    const { rows } = await database.query<{ n: number }>('SELECT n FROM own ORDER BY n')
    expect(rows.map(({ n }) => n)).toEqual([0, 2, 4, 6, 8])
    expect(await readBody(await store.read('/a/1'))).toMatch(/^(\d)\1{299999}$/)
    await store.close?.()
  })

  it('answers 503 while the program keeps the connection, and works again afterwards', async () => {
    const store = postgresStore({
      ...{ pool: database, tablePrefix: 'kept_', statementTimeout: 100, connectTimeout: 300, sweepInterval: 0 },
    })
    await store.write('/a/1', text('before'), { expect: 'any' })
    let letGo = (): void => {}
    const kept = database.transaction(
      () =>
        new Promise<void>((resolve) => {
          letGo = resolve
        }),
    )
    const unavailable = { status: 503, code: 'ERR_UNAVAILABLE', headers: { 'Retry-After': '1' } }
    await expect(store.read('/a/1')).rejects.toMatchObject(unavailable)
    await expect(store.write('/a/2', large('x'), { expect: 'any' })).rejects.toMatchObject(unavailable)
    letGo()
    await kept
    expect(await readBody(await store.read('/a/1'))).toBe('before')
    // The transaction that came too late has been rolled back.
    expect(await store.read('/a/2')).toBeUndefined()
    await store.write('/a/2', large('y'), { expect: 'absent' })
    await store.close?.()
  })

  it('lets the event loop turn between two calls, so that a full queue keeps no connection waiting', async () => {
    const store = postgresStore({ pool: database, tablePrefix: 'fair_' })
    await store.write('/a/1', text('a'), { expect: 'any' })
    let turns = 0
    const count = (): void => {
      turns++
      immediate = setImmediate(count)
    }
    let immediate = setImmediate(count)
    await Promise.all(Array.from({ length: 50 }, () => store.read('/a/1')))
    clearImmediate(immediate)
    expect(turns).toBeGreaterThan(40)
    await store.close?.()
  })

  it('works again after a transaction that could not begin', async () => {
    let isFailing = false
    const pool = {
      query: database.query.bind(database),
      exec: database.exec.bind(database),
      async transaction<Result>(work: Parameters<typeof database.transaction<Result>>[0]): Promise<Result> {
        if (isFailing) throw new Error('There is no memory left.')
        return database.transaction(work)
      },
    } as PgliteDatabase
    const store = postgresStore({ pool, tablePrefix: createPrefix(), connectTimeout: 500, sweepInterval: 0 })
    await store.write('/a/1', text('before'), { expect: 'any' })
    isFailing = true
    const related = [{ path: '/a/2', content: text('beside') }]
    const write = async () => store.write('/a/1', text('after'), { expect: 'any', related })
    await expect(write()).rejects.toMatchObject({ status: 503 })
    isFailing = false
    expect(await readBody(await store.read('/a/1'))).toBe('before')
    await write()
    expect(await readBody(await store.read('/a/1'))).toBe('after')
    await store.close?.()
  })

  it('answers 503 once the instance is closed', async () => {
    const own = await PGlite.create()
    const store = postgresStore({ pool: own })
    await store.write('/a/1', text('a'), { expect: 'any' })
    await own.close()
    await expect(store.read('/a/1')).rejects.toMatchObject({ status: 503 })
    await expect(store.write('/a/2', large('x'), { expect: 'any' })).rejects.toMatchObject({ status: 503 })
    await store.close?.()
  })

  it('is refused when it is neither a pool nor an instance', () => {
    for (const pool of [{ query() {} }, {}, undefined, 'postgres://'] as never[])
      expect(() => postgresStore({ pool })).toThrow(/an instance of PGlite, or new Pool\(\) of pg; it is/)
  })
})
