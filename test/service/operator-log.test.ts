import { spawn } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import pg from 'pg'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { jwt } from '../../src/auth-schemes/jwt.ts'
import type { FailureEvent } from '../../src/core/diagnostics.ts'
import { HttpError } from '../../src/core/errors.ts'
import { createAvailability, type LogEntry } from '../../src/core/operator-log.ts'
import { auth } from '../../src/handlers/auth.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { watchStore } from '../../src/service/operator-reports.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { serve as servePiece } from '../handlers/serve.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { serve } from './serve.ts'

const POINT = '(issue "the operator hears of it")'
const JSON_TYPE = 'Content-Type: application/json'

/** A log that keeps what it receives, without the errors themselves. */
function keep(): { entries: Omit<LogEntry, 'error'>[]; log: (entry: LogEntry) => void } {
  const entries: Omit<LogEntry, 'error'>[] = []
  return { entries, log: ({ error: _, ...entry }) => void entries.push(entry) }
}

const undo: (() => void)[] = []
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  for (const stop of undo.splice(0)) stop()
})

function recordFailures(): FailureEvent[] {
  const events: FailureEvent[] = []
  const onEvent = (event: unknown): void => void events.push(event as FailureEvent)
  subscribe('http-resource-service:failure', onEvent)
  undo.push(() => unsubscribe('http-resource-service:failure', onEvent))
  return events
}

/** A store that can be made to fail as a driver does whose database is away. */
function createFailingStore(): { store: ResourceStore; fails: (kinds: readonly string[]) => void } {
  let failing: readonly string[] = []
  const memory = memoryStore()
  const store = new Proxy(memory, {
    get: (target, name) => {
      const method = Reflect.get(target, name)
      if (!failing.includes(String(name))) return method
      return async () => {
        const cause = Object.assign(new Error('connect ECONNREFUSED\u001b[2J\n127.0.0.1:5432'), {
          code: 'ECONNREFUSED',
        })
        throw new HttpError(503, 'ERR_UNAVAILABLE', { cause })
      }
    },
  })
  return { store, fails: (kinds) => (failing = kinds) }
}

async function until(condition: () => boolean): Promise<void> {
  await vi.waitFor(() => expect(condition()).toBe(true), { timeout: 30_000, interval: 20 })
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closeAfterTest(() => new Promise((resolve) => server.close(resolve)))
  return (server.address() as AddressInfo).port
}

describe('the log option', () => {
  it(`reports once that the store fails, and once that it works again ${POINT}`, async () => {
    const { entries, log } = keep()
    const events = recordFailures()
    const { store, fails } = createFailingStore()
    const { send } = await serve(store, { log })
    await send('PUT', '/a', [JSON_TYPE], '{}')
    expect(entries).toEqual([])
    fails(['read', 'write'])
    for (let i = 0; i < 5; i++) expect((await send('GET', '/a')).status).toBe(503)
    const down = {
      level: 'error',
      part: 'store',
      state: 'down',
      message:
        'The store fails: connect ECONNREFUSED\\u{1b}[2J\\u{a}127.0.0.1:5432, ECONNREFUSED; requests that need it are answered 503.',
    }
    expect(entries).toEqual([down])
    fails([])
    for (let i = 0; i < 5; i++) expect((await send('GET', '/a')).status).toBe(200)
    await until(() => entries.length > 1)
    const up = { level: 'info', part: 'store', state: 'up', message: 'The store works again.' }
    expect(entries).toEqual([down, up])
    expect(events.map(({ stage, entry }) => [stage, entry?.part, entry?.state])).toEqual([
      ['state', 'store', 'down'],
      ['state', 'store', 'up'],
    ])
    expect((events[0]!.error as Error).message).toBe('Service Unavailable')
  })

  it(`is not called up again by reads while writes fail: a full disk, a read-only database ${POINT}`, async () => {
    const { entries, log } = keep()
    const { store, fails } = createFailingStore()
    const { send } = await serve(store, { log })
    fails(['write'])
    expect((await send('PUT', '/a', [JSON_TYPE], '{}')).status).toBe(503)
    for (let i = 0; i < 3; i++) await send('GET', '/a')
    fails([])
    expect((await send('PUT', '/a', [JSON_TYPE], '{}')).status).toBe(201)
    await until(() => entries.length > 1)
    expect(entries.map(({ state }) => state)).toEqual(['down', 'up'])
  })

  it(`is called for neither indexing nor reads beside writes that fail, however long they work ${POINT}`, async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    const { entries, log } = keep()
    let refusal: HttpError | undefined = new HttpError(503, 'ERR_INDEXING')
    const inner = memoryStore()
    const fail = () => {
      if (refusal !== undefined) throw refusal
    }
    const store = watchStore(
      {
        ...inner,
        list: (...args) => fail() ?? inner.list(...args),
        write: (...args) => fail() ?? inner.write(...args),
      },
      log,
    )
    expect(() => store.list('/a', { limit: 1 })).toThrow()
    await vi.advanceTimersByTimeAsync(60_000)
    expect(entries).toEqual([])
    refusal = new HttpError(507, 'ERR_OUT_OF_SPACE')
    expect(() => store.write('/a', { contentType: 'text/plain', body: '' }, { expect: 'any' })).toThrow()
    for (let i = 0; i < 3; i++) await store.read('/a')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(entries.map(({ state }) => state)).toEqual(['down'])
    refusal = undefined
    await store.write('/a', { contentType: 'text/plain', body: '' }, { expect: 'any' })
    await vi.advanceTimersByTimeAsync(60_000)
    expect(entries.map(({ state }) => state)).toEqual(['down', 'up'])
  })

  it(`is called by the first read that works, where a write had failed after the reads ${POINT}`, async () => {
    const { entries, log } = keep()
    const { store, fails } = createFailingStore()
    const { send } = await serve(store, { log })
    fails(['read', 'write'])
    expect((await send('GET', '/a')).status).toBe(503)
    expect((await send('PUT', '/a', [JSON_TYPE], '{}')).status).toBe(503)
    fails([])
    expect((await send('GET', '/a')).status).toBe(404)
    await until(() => entries.length > 1)
    expect(entries.map(({ state }) => state)).toEqual(['down', 'up'])
  })

  it(`reports that Postgres cannot be reached ${POINT}`, async () => {
    const { entries, log } = keep()
    const gone = createTcpServer()
    const port = await listen(gone)
    await new Promise((resolve) => gone.close(resolve))
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: 'a', database: 'a' })
    const store = postgresStore({ pool, sweepInterval: 0 })
    const { send } = await serve(store, { log })
    expect((await send('GET', '/a')).status).toBe(503)
    expect((await send('GET', '/b')).status).toBe(503)
    expect(entries).toEqual([expect.objectContaining({ part: 'store', state: 'down' })])
    expect(entries[0]!.message).toContain(`connect ECONNREFUSED 127.0.0.1:${port}`)
    await store.close?.()
    await pool.end()
  })

  it(`reports that cleartext is refused, naming the two options, and that https comes again ${POINT}`, async () => {
    const { entries, log } = keep()
    const { send } = await serve(memoryStore(), { log, trustProxy: 'loopback' })
    for (let i = 0; i < 3; i++) expect((await send('GET', '/a', ['X-Forwarded-Proto: http'])).status).toBe(403)
    // From this machine: says nothing about the requests of others.
    expect((await send('GET', '/a')).status).toBe(404)
    expect(entries).toEqual([expect.objectContaining({ level: 'error', part: 'transport', state: 'down' })])
    expect(entries[0]!.message).toMatch(
      /^A cleartext request from 127\.0\.0\.1 was refused with 403\..*trustProxy.*https: 'optional'\.$/,
    )
    expect((await send('GET', '/a', ['X-Forwarded-Proto: https'])).status).toBe(404)
    await until(() => entries.length > 1)
    expect(entries[1]).toMatchObject({ level: 'info', part: 'transport', state: 'up' })
  })

  it(`reports that requireHttps alone refuses cleartext ${POINT}`, async () => {
    const { entries, log } = keep()
    const send = await servePiece(requireHttps({ log }))
    await send('GET', '/', { 'X-Forwarded-For': '203.0.113.7' })
    expect(entries.map(({ part, state }) => [part, state])).toEqual([['transport', 'down']])
    expect(entries[0]!.message).toMatch(/trustProxy.*requireHttps/)
  })

  const token = `${[{ alg: 'RS256' }, {}].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.AAAA`
  const issuers: [string, () => unknown, number, RegExp][] = [
    [
      'away',
      () => Promise.reject(new Error('no route')),
      503,
      /^jwt cannot fetch the keys of "jwks": no route; .* 503\.$/,
    ],
    ['sending a web page', () => '<!doctype html>', 503, /not a JWK Set; .* 503\.$/],
    ['sending no key that can verify', () => ({ keys: [] }), 401, /^jwt found no key for .*RS256.* 401\.$/],
    [
      'sending a key that is too short',
      () => ({ keys: [{ kty: 'RSA', n: Buffer.alloc(128, 0xc5).toString('base64url'), e: 'AQAB' }] }),
      401,
      /^jwt found no key for .*RS256.* 401\.$/,
    ],
    [
      'sending a key that is none',
      () => ({ keys: [{ kty: 'EC', crv: 'P-256', x: 'AQAB', y: 'AQAB' }] }),
      401,
      /^jwt found no key for .*RS256.* 401\.$/,
    ],
  ]
  it.each(issuers)(`reports once that the issuer of keys is %s ${POINT}`, async (_, jwks, status, message) => {
    const { entries, log } = keep()
    let isGood = false
    const key = { kty: 'RSA', n: Buffer.alloc(256, 0xc5).toString('base64url'), e: 'AQAB', alg: 'RS256', use: 'sig' }
    const verifier = jwt({
      jwks: () => (isGood ? { keys: [key] } : jwks()),
      jwksTimes: { retryAfter: 0, cooldown: 0, freshFor: 0, staleFor: 0 },
      issuer: 'i',
      audience: 'a',
    })
    const { send } = await serve(memoryStore(), { log, auth: { schemes: [bearer(verifier)] } })
    const piece = keep()
    const sendToPiece = await servePiece(auth({ schemes: [bearer(verifier)], log: piece.log }))
    for (let i = 0; i < 3; i++) {
      expect((await send('GET', '/a', [`Authorization: Bearer ${token}`])).status).toBe(status)
    }
    expect(entries).toEqual([expect.objectContaining({ level: 'error', part: 'keys', state: 'down' })])
    expect(entries[0]!.message).toMatch(message)
    expect(piece.entries).toEqual(entries)
    isGood = true
    await sendToPiece('GET', '/a', { Authorization: `Bearer ${token}` })
    await until(() => entries.length > 1)
    expect(entries[1]).toMatchObject({ level: 'info', part: 'keys', state: 'up' })
  })

  it(`is not called any more once its service is closed ${POINT}`, async () => {
    const jwks = () => Promise.reject(new Error('no route'))
    const scheme = bearer(jwt({ jwks, jwksTimes: { retryAfter: 0 }, issuer: 'i', audience: 'a' }))
    const [closed, open] = [keep(), keep()]
    await createResourceService(memoryStore(), { log: closed.log, auth: { schemes: [scheme] } }).close()
    const { send } = await serve(memoryStore(), { log: open.log, auth: { schemes: [scheme] } })
    expect((await send('GET', '/a', [`Authorization: Bearer ${token}`])).status).toBe(503)
    expect(open.entries).toEqual([expect.objectContaining({ part: 'keys', state: 'down' })])
    expect(closed.entries).toEqual([])
  })

  it(`reports that the queue of the user's own fails, and that it takes work again ${POINT}`, async () => {
    const { entries, log } = keep()
    let isAway = true
    const enqueue = (): void => {
      if (isAway) throw new Error('redis is gone')
    }
    const { send } = await serve(memoryStore(), {
      log,
      resources: { '/jobs': collection({ create: 'accepted', process: () => {} }) },
      operations: { queue: { enqueue }, pollInterval: 60_000 },
    })
    for (let i = 0; i < 3; i++) expect((await send('POST', '/jobs', [JSON_TYPE], '{}')).status).toBe(202)
    expect(entries).toEqual([expect.objectContaining({ level: 'error', part: 'queue', state: 'down' })])
    expect(entries[0]!.message).toContain('redis is gone')
    isAway = false
    expect((await send('POST', '/jobs', [JSON_TYPE], '{}')).status).toBe(202)
    await until(() => entries.length > 1)
    expect(entries[1]).toMatchObject({ level: 'info', part: 'queue', state: 'up' })
  })

  it.each(['not JSON', 'null', '{"attempts":0,"notBefore":"now"}'])(
    `reports that recorded work cannot be read, and does all other ${POINT}: %s`,
    async (body) => {
      const { entries, log } = keep()
      const store = memoryStore()
      await store.write('work/a', { contentType: 'application/json', body }, { expect: 'absent' })
      await store.write(
        '/jobs/1',
        { contentType: 'application/json', body: '{"id":1,"state":"pending"}' },
        { expect: 'absent' },
      )
      const left = { kind: 'process', pattern: '/jobs', path: '/jobs/1', attempts: 0, notBefore: 0 }
      await store.write('work/b', { contentType: 'application/json', body: JSON.stringify(left) }, { expect: 'absent' })
      const done: string[] = []
      await serve(store, {
        log,
        resources: { '/jobs': collection({ create: 'accepted', process: ({ path }) => void done.push(path) }) },
        operations: { pollInterval: 20 },
      })
      await until(() => entries.length > 0 && done.length > 0)
      expect(entries[0]).toMatchObject({ level: 'error', part: 'queue', state: 'down' })
      expect(entries[0]!.message).toContain('work/a')
      expect(done).toEqual(['/jobs/1'])
    },
  )

  it(`is one line on the console by default, and nothing with false ${POINT}`, async () => {
    const write = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { send } = await serve(memoryStore(), {})
    await send('GET', '/a', ['X-Forwarded-Proto: http'])
    expect(write.mock.calls).toEqual([[expect.stringMatching(/^http-resource-service: A cleartext request .*$/)]])
    const silent = await serve(memoryStore(), { log: false })
    expect((await silent.send('GET', '/a', ['X-Forwarded-Proto: http'])).status).toBe(403)
    expect(write).toHaveBeenCalledTimes(1)
  })

  const throwing: [string, () => unknown][] = [
    [
      'throws',
      () => {
        throw new Error('the log is full')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('the log is full')
      },
    ],
  ]
  it.each(throwing)(`that %s breaks no answer ${POINT}`, async (_, log) => {
    const events = recordFailures()
    const { send } = await serve(memoryStore(), { log })
    expect((await send('GET', '/a', ['X-Forwarded-Proto: http'])).status).toBe(403)
    await until(() => events.length > 1)
    expect(events.map(({ error }) => (error as Error).message)).toContain('the log is full')
  })

  it(`answers when the console throws, also for an unexpected error ${POINT}`, async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {
      throw new Error('EPIPE')
    })
    const { send } = await serve(memoryStore(), {
      resources: {
        '/a': document({
          authorize: () => {
            throw new Error('a fault')
          },
        }),
      },
    })
    expect((await send('GET', '/a', ['X-Forwarded-Proto: http'])).status).toBe(403)
    expect((await send('GET', '/a')).status).toBe(500)
  })

  it(`answers when the console is not read any more ${POINT}`, async () => {
    const program = `
      import { createServer } from 'node:http'
      import { createResourceService, memoryStore } from 'http-resource-service'
      const service = createResourceService(memoryStore(), { fallthrough: false, trustProxy: 'loopback' })
      const server = createServer(service).listen(0, '127.0.0.1', async () => {
        const statuses = []
        for (const scheme of ['http', 'https', 'http']) {
          const headers = { 'X-Forwarded-Proto': scheme }
          statuses.push((await fetch('http://127.0.0.1:' + server.address().port, { headers })).status)
          await new Promise((resolve) => setTimeout(resolve, 1100))
        }
        console.log(statuses.join())
        process.exit()
      })
    `
    mkdirSync('.tmp', { recursive: true })
    writeFileSync('.tmp/broken-console.mjs', program)
    const child = spawn(process.execPath, ['.tmp/broken-console.mjs'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stderr.destroy()
    let output = ''
    for await (const chunk of child.stdout) output += chunk
    expect(output).toBe('403,404,403\n')
  })

  it(`makes few lines of many changes, and none that is no longer true ${POINT}`, () => {
    vi.useFakeTimers()
    const lines: string[] = []
    const availability = createAvailability('transport', 'again')
    availability.watch(({ state }) => lines.push(state))
    for (let minute = 0; minute < 60; minute++) {
      for (let i = 0; i < 600; i++) {
        if (i % 2 === 0) availability.fail(() => 'gone')
        else availability.succeed()
        vi.advanceTimersByTime(100)
      }
    }
    expect(lines.length).toBeGreaterThan(2)
    expect(lines.length).toBeLessThan(70)
    expect(lines.every((state, index) => state === (index % 2 === 0 ? 'down' : 'up'))).toBe(true)
    vi.advanceTimersByTime(200_000)
    expect(lines.at(-1)).toBe('up')
    // Once it has been quiet, a change is reported at once.
    availability.fail(() => 'gone')
    expect(lines.at(-1)).toBe('down')
    // The wait is short again as well.
    availability.succeed()
    vi.advanceTimersByTime(1001)
    expect(lines.at(-1)).toBe('up')
  })

  it(`calls a log that is watched twice twice, and makes a message for a change alone ${POINT}`, () => {
    vi.useFakeTimers()
    const lines: string[] = []
    const log = ({ message }: LogEntry): number => lines.push(message)
    const availability = createAvailability('store', 'again')
    const stops = [availability.watch(log), availability.watch(log)]
    availability.fail(() => 'first')
    availability.fail(() => {
      throw new Error('asked for a message')
    })
    expect(lines).toEqual(['first', 'first'])
    stops[0]!()
    availability.succeed()
    vi.advanceTimersByTime(2000)
    expect(lines).toEqual(['first', 'first', 'again'])
  })

  it(`calls no log with a change that is watched only while another log is called with it ${POINT}`, () => {
    const lines: string[] = []
    const availability = createAvailability('store', 'again')
    availability.watch(() => void availability.watch(({ message }) => lines.push(message)))
    availability.fail(() => 'gone')
    expect(lines).toEqual([])
  })
})
