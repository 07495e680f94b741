import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { type Pooler, type PostgresPair, startPgbouncer, startPostgresPair } from '../support/postgres-pair.ts'
import { findProgram } from './programs.ts'

const WRITERS = 6
const pgbouncer = findProgram('pgbouncer')

/** What the clients of a service have been promised, and what they were refused. */
interface Account {
  /** The last number that was acknowledged, by path. */
  readonly replaced: Map<string, number>
  readonly created: Set<string>
  /** Answers that are not successful, as status and Retry-After. */
  readonly refusals: string[]
  /** Rounds of each writer in which everything has succeeded. */
  readonly rounds: number[]
}

async function until(condition: () => boolean): Promise<void> {
  for (const end = Date.now() + 20_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 10))) {
    if (Date.now() > end) throw new Error('The condition was not reached within 20 s.')
  }
}

function startWriters(base: string, isOver: () => boolean): Account & { readonly done: Promise<unknown> } {
  const account: Account = { replaced: new Map(), created: new Set(), refusals: [], rounds: Array(WRITERS).fill(0) }

  async function send(method: string, path: string, body: string): Promise<Response | undefined> {
    const answer = await fetch(`${base}${path}`, { method, body, headers: { 'Content-Type': 'text/plain' } })
    await answer.arrayBuffer()
    if (answer.ok) return answer
    account.refusals.push(`${answer.status}, Retry-After: ${answer.headers.get('retry-after')}`)
    return undefined
  }

  async function run(id: number): Promise<void> {
    for (let i = 0; !isOver(); i++) {
      const path = `/counters/${id}-${i % 3}`
      const isReplaced = (await send('PUT', path, String(i))) !== undefined
      if (isReplaced) account.replaced.set(path, i)
      // Every fourth is large: a transaction of several statements.
      const created = await send('POST', '/notes', i % 4 === 0 ? 'x'.repeat(100_000) : 'x')
      if (created !== undefined) account.created.add(created.headers.get('location')!)
      if (isReplaced && created !== undefined) account.rounds[id]!++
    }
  }

  return Object.assign(account, { done: Promise.all(account.rounds.map((_, id) => run(id))) })
}

describe.each([
  ['at the address of the primary', undefined],
  ['through pgbouncer in transaction mode', pgbouncer],
])('postgresStore %s with a synchronous standby', (name, program) => {
  const isMissing = name.includes('pgbouncer') && program === undefined
  let pair: PostgresPair
  let pooler: Pooler | undefined
  let pool: pg.Pool
  let store: ResourceStore
  let server: Server
  let base: string

  beforeAll(async () => {
    if (isMissing) return
    pair = await startPostgresPair()
    pooler = program === undefined ? undefined : await startPgbouncer(program, pair.port)
    const port = pooler?.port ?? pair.port
    pool = new pg.Pool({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`, max: 4 })
    const limits = { statementTimeout: 1500, connectTimeout: 1500 }
    store = postgresStore({ pool, preparedStatements: pooler === undefined, ...limits })
    server = createServer(createResourceService(store)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    if (isMissing) return
    server.closeAllConnections()
    server.close()
    await store.close?.()
    await pool.end()
    await pooler?.stop()
    await pair.stop()
  })

  it.skipIf(isMissing)('acknowledges no write that the standby does not have (issue 22)', async () => {
    const put = () => fetch(`${base}/counters/probe`, { method: 'PUT', body: 'x' })
    expect((await put()).status).toBe(201)
    pair.standby.freeze()
    try {
      const answer = await put()
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
      expect((await fetch(`${base}/counters/probe`)).status).toBe(200)
    } finally {
      pair.standby.thaw()
    }
    await until(() => pool.waitingCount === 0)
    expect((await put()).status).toBe(204)
  })

  it.skipIf(isMissing)(
    'loses no acknowledged write when the primary is killed under load, and goes on with the standby without a restart (issue 22)',
    async () => {
      let isOver = false
      const account = startWriters(base, () => isOver)
      await until(() => account.rounds.every((count) => count > 5))
      await pair.primary.kill()
      await until(() => account.refusals.length > 10)
      await pair.promote()
      const before = [...account.rounds]
      await until(() => account.rounds.every((count, id) => count > before[id]! + 5))
      isOver = true
      await account.done

      expect(new Set(account.refusals)).toEqual(new Set(['503, Retry-After: 1']))
      for (const [path, number] of account.replaced) {
        const answer = await fetch(`${base}${path}`)
        expect(Number(await answer.text())).toBeGreaterThanOrEqual(number)
      }
      for (const path of account.created) {
        const answer = await fetch(new URL(path, base))
        expect([path, answer.status]).toEqual([path, 200])
        expect(await answer.text()).toMatch(/^x+$/)
      }
      expect(account.created.size).toBeGreaterThan(WRITERS * 10)
    },
  )
})
