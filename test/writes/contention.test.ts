import { once } from 'node:events'
import { Agent, createServer, request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/core/json.ts'
import { patch } from '../../src/handlers/patch.ts'
import { collection } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { listenForTest } from '../support/listen.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { buildServiceProgram, type ServiceProgram } from '../support/processes.ts'
import type { StorePlace } from '../support/sql-stores.ts'
import { createDatabaseFile } from '../support/sqlite.ts'
import { startService } from './support.ts'

const CLIENTS = 32
const ROUNDS = 4
const JSON_TYPE = 'application/json'
const MERGE_PATCH = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'

let postgres: PostgresServer
let program: ServiceProgram
beforeAll(async () => {
  const [started, built] = await Promise.all([startPostgres(), buildServiceProgram()])
  postgres = started
  program = built
})
afterAll(async () => {
  program.remove()
  await postgres.stop()
})

interface Reply {
  readonly status: number
  readonly text: string
  /** Milliseconds. */
  readonly time: number
}

/** Clients that keep their connections, as those of a load test do. */
function createClient() {
  const agent = new Agent({ keepAlive: true })
  closeAfterTest(() => agent.destroy())
  return async (port: number, method: string, path: string, type?: string, body?: unknown): Promise<Reply> => {
    const begin = performance.now()
    const headers = type === undefined ? {} : { 'Content-Type': type }
    const req = request({ agent, port, host: '127.0.0.1', method, path, headers })
    req.end(body === undefined ? undefined : JSON.stringify(body))
    const [res] = await once(req, 'response')
    let text = ''
    for await (const chunk of res.setEncoding('utf8')) text += chunk
    return { status: res.statusCode, text, time: performance.now() - begin }
  }
}

type Ask = ReturnType<typeof createClient>

/** Every client adds its own values to one list, without a condition; none may be refused and none lost. */
async function claimNoneRefused(ask: Ask, ports: readonly number[], path: string): Promise<void> {
  const add = (value: unknown) => [{ op: 'add', path: '/list/-', value }]
  const patchOnce = (client: number, value: unknown) =>
    ask(ports[client % ports.length]!, 'PATCH', path, JSON_PATCH, add(value))
  const patchAlone = async (value: string) => {
    let slowest = 0
    for (let i = 0; i < 4; i++) slowest = Math.max(slowest, (await patchOnce(0, `${value}-${i}`)).time)
    return slowest
  }
  const before = await patchAlone('before')
  const replies = await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const own: Reply[] = []
      for (let round = 0; round < ROUNDS; round++) own.push(await patchOnce(client, `${client}-${round}`))
      return own
    }),
  )
  const all = replies.flat()
  expect(all.filter(({ status }) => status !== 200)).toEqual([])
  // Before and after: on a busy machine the one may be slower than the other, and both faster than what is between them. Five
  // seconds are half of what a turn may take.
  const lone = Math.max(before, await patchAlone('after'))
  const { list } = JSON.parse((await ask(ports[0]!, 'GET', path)).text)
  expect(new Set(list).size).toBe(CLIENTS * ROUNDS + 8)
  expect(list).toHaveLength(CLIENTS * ROUNDS + 8)
  const times = all.map(({ time }) => time).sort((a, b) => a - b)
  const p99 = times[Math.floor(times.length * 0.99)]!
  expect(p99).toBeLessThan(Math.max(5000, 40 * lone))
}

/** A store as far away as a database in another building. */
function createSlowStore(sound = memoryStore()): ResourceStore {
  const wait = () => new Promise((resolve) => setTimeout(resolve, 3))
  const later =
    <Call extends readonly unknown[], Result>(call: (...values: Call) => Result) =>
    async (...values: Call): Promise<Awaited<Result>> => {
      await wait()
      const result = await call(...values)
      await wait()
      return result
    }
  return {
    ...sound,
    read: later(sound.read),
    write: later(sound.write),
    create: later(sound.create),
    remove: later(sound.remove),
  }
}

let prefixes = 0
const stores: Readonly<Record<string, () => Promise<ResourceStore>>> = {
  memoryStore: async () => memoryStore(),
  'a store that is far away': async () => createSlowStore(),
  async sqliteStore() {
    const file = await createDatabaseFile()
    closeAfterTest(() => file.remove())
    return sqliteStore(file.open(), { sweepInterval: 0 })
  },
  async postgresStore() {
    return postgresStore({ pool: postgres.createPool(), tablePrefix: `contention_${++prefixes}_`, sweepInterval: 0 })
  },
}

describe.each(Object.keys(stores))('changes without a condition by 32 clients, on %s (issue 17.6)', (name) => {
  it('are none refused, by PATCH of one document', async () => {
    const target = await startService({}, await stores[name]!())
    closeAfterTest(() => target.close())
    const ask = createClient()
    await ask(target.port, 'PUT', '/doc', JSON_TYPE, { list: [] })
    await claimNoneRefused(ask, [target.port], '/doc')
  })

  it('are none refused where authorize has to see the state, and PUT and DELETE come between', async () => {
    const store = await stores[name]!()
    const target = await startService({ resources: { '/docs': collection({ authorize: () => true }) } }, store)
    closeAfterTest(() => target.close())
    const ask = createClient()
    await ask(target.port, 'PUT', '/docs/1', JSON_TYPE, { list: [] })
    const replies = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        const own: Reply[] = []
        for (let round = 0; round < ROUNDS; round++) {
          const kind = (client + round) % 4
          if (kind === 0) own.push(await ask(target.port, 'PUT', '/docs/1', JSON_TYPE, { list: [] }))
          else if (kind === 1) own.push(await ask(target.port, 'DELETE', '/docs/1'))
          else own.push(await ask(target.port, 'PATCH', '/docs/1', MERGE_PATCH, { [`m${client}`]: round }))
        }
        return own
      }),
    )
    // What was removed meanwhile is gone; nothing else stands in the way.
    const statuses = new Set(replies.flat().map(({ status }) => status))
    for (const status of statuses) expect([200, 201, 204, 410]).toContain(status)
  })

  it('are none refused, by POST to a collection with ids that count', async () => {
    const target = await startService({ resources: { '/items': collection() } }, await stores[name]!())
    closeAfterTest(() => target.close())
    const ask = createClient()
    const replies = await Promise.all(
      Array.from({ length: CLIENTS * ROUNDS }, (_, index) =>
        index % 8 === 7
          ? ask(target.port, 'PUT', `/items/${index}`, JSON_TYPE, { by: 'put' })
          : ask(target.port, 'POST', '/items', JSON_TYPE, { by: 'post' }),
      ),
    )
    const refused = replies.filter(({ status }) => status !== 200 && status !== 201 && status !== 204)
    expect(refused).toEqual([])
    const ids = replies.filter((_, index) => index % 8 !== 7).map(({ text }) => JSON.parse(text).id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe('changes by several processes (issue 17.6)', () => {
  const places: Readonly<Record<string, () => Promise<StorePlace>>> = {
    async sqliteStore() {
      const file = await createDatabaseFile()
      closeAfterTest(() => file.remove())
      return { kind: 'sqlite', file: file.path }
    },
    async postgresStore() {
      const { connectionString } = postgres
      return { kind: 'postgres', connectionString, tablePrefix: `contention_${++prefixes}_` }
    },
  }

  it.each(Object.keys(places))('of one document are none refused, by PATCH without a condition on %s', async (name) => {
    const place = await places[name]!()
    const processes = Array.from({ length: 4 }, () => program.start(place, 0))
    closeAfterTest(() => Promise.all(processes.map((process) => process.kill())))
    await Promise.all(processes.map((process) => process.told(1)))
    const ports = processes.map(({ lines }) => Number(lines[0]))
    const ask = createClient()
    await ask(ports[0]!, 'PUT', '/doc', JSON_TYPE, { list: [] })
    await claimNoneRefused(ask, ports, '/doc')
  })
})

describe('patch, the standalone middleware, with 32 clients (issue 17.6)', () => {
  it.each([0, 5])('refuses none of them where the store takes %i ms', async (delay) => {
    const wait = () => new Promise((resolve) => setTimeout(resolve, delay))
    let current = { document: { list: [] as string[] }, version: 1 }
    const piece = patch({
      async read() {
        await wait()
        return current
      },
      async write({ current: read, document }) {
        await wait()
        if (read.version !== current.version) return 'conflict'
        current = { document: document as typeof current.document, version: read.version + 1 }
        return {}
      },
    })
    const server = createServer((req, res) => {
      if (req.method === 'PATCH') piece(req, res)
      else res.end(JSON.stringify(current.document))
    })
    await claimNoneRefused(createClient(), [await listenForTest(server)], '/doc')
  })
})

describe('accepted work on an item that 32 clients change', () => {
  it('is done, and none of them is refused (issue 17.6)', async () => {
    const process = async ({ value }: { value: JsonValue }) => {
      await new Promise((resolve) => setTimeout(resolve, 100))
      return { size: JSON.stringify(value).length }
    }
    const resources = { '/jobs': collection({ create: 'accepted', process, memberMethods: ['GET', 'PATCH'] }) }
    const target = await startService({ resources }, createSlowStore())
    closeAfterTest(() => target.close())
    const ask = createClient()
    await ask(target.port, 'POST', '/jobs', JSON_TYPE, { name: 'job' })
    const replies = await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        const own: Reply[] = []
        for (let round = 0; round < ROUNDS; round++) {
          own.push(await ask(target.port, 'PATCH', '/jobs/1', MERGE_PATCH, { [`m${client}-${round}`]: true }))
        }
        return own
      }),
    )
    expect(replies.flat().filter(({ status }) => status !== 200)).toEqual([])
    const read = async () => JSON.parse((await ask(target.port, 'GET', '/jobs/1')).text)
    for (const end = Date.now() + 30_000; (await read()).state === 'pending' && Date.now() < end; );
    const { state, size, id, name, ...members } = await read()
    expect({ state, size, id, name }).toEqual({ state: 'ready', size: expect.any(Number), id: 1, name: 'job' })
    expect(Object.keys(members)).toHaveLength(CLIENTS * ROUNDS)
  })
})

describe('a client that sends slowly', () => {
  it('makes no other wait, by PATCH, PUT of a document, or PUT of a stream (issue 17.6)', async () => {
    const target = await startService({}, createSlowStore())
    closeAfterTest(() => target.close())
    const ask = createClient()
    await ask(target.port, 'PUT', '/doc', JSON_TYPE, { list: [] })
    const heads = [
      ['PATCH', MERGE_PATCH, 100],
      ['PUT', JSON_TYPE, 100],
      ['PUT', 'application/octet-stream', 10_000_000],
    ] as const
    const sockets = heads.map(([method, type, length]) => {
      const socket = connect(target.port, '127.0.0.1')
      const head = `${method} /doc HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n{`
      socket.on('error', () => {}).write(head)
      return socket
    })
    closeAfterTest(() => sockets.forEach((socket) => void socket.destroy()))
    await new Promise((resolve) => setTimeout(resolve, 100))
    await claimNoneRefused(ask, [target.port], '/doc')
  })
})
