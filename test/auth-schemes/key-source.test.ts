import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { type JwtOptions, jwt } from '../../src/auth-schemes/jwt.ts'
import { isPromise } from '../../src/core/maybe-promise.ts'
import type { FailureEvent, LogEntry } from '../../src/index.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { type GuardedServer, serveGuarded } from './guarded-server.ts'
import { bearerHeader, claims, createIssuer, issue, signToken } from './tokens.ts'

const first = createIssuer('ES256', 'first')
const second = createIssuer('ES256', 'second')
const third = createIssuer('ES256', 'third')
const REQUEST = {} as Parameters<ReturnType<typeof jwt>['verifyToken']>[1]

/** The key endpoint of an issuer, which can be made to misbehave. */
interface Endpoint {
  readonly url: string
  fetches: number
  respond: RequestListener
  stop(): Promise<void>
}

const sendKeys =
  (...keys: readonly unknown[]): RequestListener =>
  (_, res) =>
    void res.setHeader('Content-Type', 'application/json').end(JSON.stringify({ keys }))

let endpoint: Endpoint
let guarded: GuardedServer | undefined

async function startEndpoint(): Promise<Endpoint> {
  const server: Server = createServer((req, res) => {
    endpoint.fetches++
    endpoint.respond(req, res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`,
    fetches: 0,
    respond: sendKeys(first.jwk),
    async stop() {
      if (!server.listening) return
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function serve(options: Partial<JwtOptions> = {}): Promise<GuardedServer> {
  const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks: endpoint.url, ...options })
  guarded = await serveGuarded({ schemes: [bearer(verifier)] })
  return guarded
}

const ask = async (token: string) => (await guarded!.send(bearerHeader(token))).status
const pass = (seconds: number) => void vi.setSystemTime(Date.now() + seconds * 1000)
/** A token that outlives every test. */
const make = (issuer = first) => issue(issuer, { exp: 4_000_000_000 })

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
  endpoint = await startEndpoint()
})

afterEach(async () => {
  vi.useRealTimers()
  await guarded?.close()
  guarded = undefined
  await endpoint.stop()
})

describe('jwt with jwks', () => {
  it('fetches the keys with the first token, once for all who wait', async () => {
    await serve()
    const statuses = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(issue(first, { jti: i }))))
    expect([new Set(statuses), endpoint.fetches]).toEqual([new Set([200]), 1])
  })

  it('fetches none at construction', async () => {
    const { send } = await serve()
    expect((await send()).status).toBe(401)
    expect(endpoint.fetches).toBe(0)
  })

  it('fetches them again after their time, in the background', async () => {
    await serve()
    const token = make()
    expect(await ask(token)).toBe(200)
    pass(599)
    expect([await ask(token), endpoint.fetches]).toEqual([200, 1])
    pass(1)
    expect(await ask(token)).toBe(200)
    await vi.waitFor(() => expect(endpoint.fetches).toBe(2), 30_000)
    expect([await ask(token), endpoint.fetches]).toEqual([200, 2])
  })

  it('remembers tokens without a promise, while the keys are fresh', async () => {
    const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks: endpoint.url })
    const token = make()
    await verifier.verifyToken(token, REQUEST)
    expect(isPromise(verifier.verifyToken(token, REQUEST))).toBe(false)
    pass(600)
    // Stale keys: the fetch goes on in the background, and no request waits for it.
    expect(isPromise(verifier.verifyToken(token, REQUEST))).toBe(false)
  })

  it('remembers tokens also where keys are fetched again that are the same', async () => {
    const jwks = vi.fn(async () => ({ keys: [first.jwk] }))
    const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks })
    const token = make()
    await verifier.verifyToken(token, REQUEST)
    pass(600)
    await verifier.verifyToken(make(second), REQUEST)
    expect([jwks.mock.calls.length, isPromise(verifier.verifyToken(token, REQUEST))]).toEqual([2, false])
  })

  it('imports a key once, however many tokens it has signed and however often it is fetched', async () => {
    const { subtle } = globalThis.crypto
    const imports = vi.spyOn(subtle, 'importKey')
    const jwks = async () => ({ keys: [first.jwk] })
    const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks })
    const verify = async (jti: number) => verifier.verifyToken(issue(first, { jti, exp: 4_000_000_000 }), REQUEST)
    expect(await verify(1)).toMatchObject({ outcome: 'accepted' })
    const { length } = imports.mock.calls
    expect(length).toBeGreaterThan(0)
    await verify(2)
    pass(601)
    await verify(3)
    expect(imports).toHaveBeenCalledTimes(length)
    imports.mockRestore()
  })

  it('finds a new key as soon as the cooldown is over, and keeps the old one', async () => {
    await serve()
    expect(await ask(make())).toBe(200)
    endpoint.respond = sendKeys(first.jwk, second.jwk)
    pass(29)
    expect([await ask(make(second)), endpoint.fetches]).toEqual([401, 1])
    pass(1)
    expect([await ask(make(second)), endpoint.fetches]).toEqual([200, 2])
    expect(await ask(make())).toBe(200)
  })

  it('knows a token no more once its key was removed', async () => {
    await serve()
    const token = make()
    expect(await ask(token)).toBe(200)
    endpoint.respond = sendKeys(second.jwk)
    pass(30)
    expect(await ask(make(second))).toBe(200)
    expect(await ask(token)).toBe(401)
  })

  it('knows a token no more whose key was removed while its bearer was looked up', async () => {
    let lookups = 0
    await serve({
      async principal() {
        if (++lookups > 1) return true
        endpoint.respond = sendKeys(second.jwk)
        pass(31)
        expect(await ask(make(second))).toBe(200)
        return true
      },
    })
    const token = make(first)
    expect([await ask(token), await ask(token)]).toEqual([200, 401])
  })

  it('knows a token no more when its key was replaced by another of the same name', async () => {
    await serve()
    const token = make()
    expect(await ask(token)).toBe(200)
    endpoint.respond = sendKeys({ ...third.jwk, kid: 'first' })
    pass(600)
    expect(await ask(token)).toBe(200)
    await vi.waitFor(async () => expect(await ask(token)).toBe(401), 30_000)
    expect(await ask(signToken(third.privateKey, { alg: 'ES256', kid: 'first' }, claims()))).toBe(200)
  })

  it('makes one fetch for a hundred unknown keys (threat 106)', async () => {
    await serve()
    expect(await ask(make())).toBe(200)
    pass(30)
    const forged = Array.from({ length: 100 }, (_, i) => issue(first, {}, { kid: `k${i}` }))
    const statuses = await Promise.all(forged.map(ask))
    expect([new Set(statuses), endpoint.fetches]).toEqual([new Set([401]), 2])
    expect([await ask(make(third)), endpoint.fetches]).toEqual([401, 2])
  })

  it('makes no fetch for what can be no token, or has an algorithm that is not accepted', async () => {
    await serve({ algorithms: ['ES256'] })
    for (const token of ['x', 'a.b.c', signToken(undefined, { alg: 'none' }, claims()), `${make()}=`]) {
      expect(await ask(token)).toBe(401)
    }
    expect(endpoint.fetches).toBeLessThanOrEqual(1)
  })

  it.each<[string, RequestListener]>([
    ['500', (_, res) => void res.writeHead(500).end()],
    ['404', (_, res) => void res.writeHead(404).end('{"keys":[]}')],
    ['204', (_, res) => void res.writeHead(204).end()],
    ['HTML', (_, res) => void res.end('<!doctype html>')],
    ['half a document', (_, res) => void res.end('{"keys":[')],
    ['no keys', (_, res) => void res.end('{}')],
    ['keys that are not a list', (_, res) => void res.end('{"keys":{}}')],
    ['null', (_, res) => void res.end('null')],
    ['a redirect', (_, res) => void res.writeHead(302, { Location: '/elsewhere' }).end()],
    ['a connection that breaks off', (_, res) => void res.destroy()],
    [
      'content that breaks off',
      (_, res) => {
        res.writeHead(200, { 'Content-Length': 1000 })
        res.write('{"keys":[', () => res.destroy())
      },
    ],
    ['two megabytes', (_, res) => void res.end(`{"keys":[]${' '.repeat(2 << 20)}}`)],
  ])('answers 503 and Retry-After where the endpoint sends %s (threat 106)', async (_, respond) => {
    const { send, failures } = await serve()
    endpoint.respond = respond
    const { status, headers, challenges } = await send(bearerHeader(make()))
    expect([status, headers['retry-after'], challenges]).toEqual([503, '5', []])
    const statuses = await Promise.all(Array.from({ length: 50 }, () => ask(make())))
    expect([new Set(statuses), endpoint.fetches]).toEqual([new Set([503]), 1])
    endpoint.respond = sendKeys(first.jwk)
    pass(4.999)
    expect([await ask(make()), endpoint.fetches]).toEqual([503, 1])
    pass(0.001)
    expect([await ask(make()), endpoint.fetches]).toEqual([200, 2])
    expect(failures).toEqual([])
  })

  it('answers 503 where the endpoint refuses the connection', async () => {
    await serve()
    await endpoint.stop()
    expect(await ask(make())).toBe(503)
  })

  it('answers 503 where the endpoint never answers', async () => {
    await serve({ jwksTimes: { timeout: 50 } })
    endpoint.respond = () => {}
    expect(await ask(make())).toBe(503)
  })

  it('answers 503 where the endpoint never ends its answer', async () => {
    await serve({ jwksTimes: { timeout: 50 } })
    endpoint.respond = (_, res) => void res.write('{"keys":[')
    expect(await ask(make())).toBe(503)
  })

  it('answers 503 where a function of the user never answers, throws or rejects', async () => {
    for (const jwks of [
      () => new Promise(() => {}),
      () => {
        throw new Error('no')
      },
      () => Promise.reject(new Error('no')),
    ]) {
      const { close } = await serve({ jwks, jwksTimes: { timeout: 50 } })
      expect(await ask(make())).toBe(503)
      await close()
    }
    await serve({ jwks: () => ({ keys: [first.jwk] }) })
    expect(await ask(make())).toBe(200)
  })

  it('uses stale keys for a bounded time while the endpoint is away (threat 106)', async () => {
    await serve()
    const token = make()
    expect(await ask(token)).toBe(200)
    endpoint.respond = (_, res) => void res.writeHead(500).end()
    pass(600)
    expect([await ask(token), await ask(issue(first, { jti: 2 }))]).toEqual([200, 200])
    pass(3599.999)
    expect([await ask(token), await ask(issue(first, { jti: 3 }))]).toEqual([200, 200])
    await vi.waitFor(() => expect(endpoint.fetches).toBeGreaterThan(1), 30_000)
    pass(5.001)
    expect([await ask(token), await ask(issue(first, { jti: 4 }))]).toEqual([503, 503])
    pass(5)
    endpoint.respond = sendKeys(first.jwk)
    expect(await ask(token)).toBe(200)
  })

  it('tells the operator of each failure, and whether the keys of before are used meanwhile', async () => {
    const events: FailureEvent[] = []
    const publish = (event: unknown) => void events.push(event as FailureEvent)
    subscribe('http-resource-service:failure', publish)
    closeAfterTest(() => unsubscribe('http-resource-service:failure', publish))
    const countFailures = () => events.filter(({ stage }) => stage === 'background').length
    const jwksTimes = { retryAfter: 0 }
    const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks: endpoint.url, jwksTimes })
    const entries: LogEntry[] = []
    const end = verifier.watch!((entry) => entries.push(entry))
    guarded = await serveGuarded({ schemes: [bearer(verifier)] })
    const token = make()
    expect(await ask(token)).toBe(200)
    endpoint.respond = (_, res) => void res.writeHead(500).end()
    pass(601)
    expect(await ask(token)).toBe(200)
    await vi.waitFor(() => expect([countFailures(), entries.length]).toEqual([1, 1]), 30_000)
    expect(entries[0]!.message).toContain('the keys fetched before are used for now.')
    // Verifiers of the tests before may tell now that theirs are there again.
    expect(events.map(({ entry }) => entry)).toContain(entries[0])
    pass(3600)
    const { status, headers } = await guarded.send(bearerHeader(token))
    // A time of less than a second is one: with 0 a client would ask without a pause.
    expect([status, headers['retry-after'], countFailures()]).toEqual([503, '1', 2])
    end()
  })

  it('fetches again after a failure though the clock has gone back', async () => {
    await serve({ jwksTimes: { retryAfter: 10_000 } })
    const { respond } = endpoint
    endpoint.respond = (_, res) => void res.writeHead(500).end()
    expect(await ask(make())).toBe(503)
    endpoint.respond = respond
    pass(-3600)
    expect(await ask(make())).toBe(200)
  })

  it('fetches keys for an unknown one though the clock has gone back', async () => {
    await serve()
    expect(await ask(make())).toBe(200)
    endpoint.respond = sendKeys(first.jwk, second.jwk)
    pass(-3600)
    expect(await ask(make(second))).toBe(200)
  })

  it('answers 503 for an unknown key while keys cannot be fetched, and 200 for a known one', async () => {
    await serve()
    expect(await ask(make())).toBe(200)
    endpoint.respond = (_, res) => void res.writeHead(500).end()
    pass(30)
    expect([await ask(make(second)), await ask(make())]).toEqual([503, 200])
  })

  it('leaves out keys that are not for signatures, secrets, and what it does not understand (threat 102)', async () => {
    const secret = Buffer.alloc(32, 1)
    endpoint.respond = sendKeys(
      { kty: 'oct', k: secret.toString('base64url'), kid: 'first' },
      { kty: 'new', kid: 'first' },
      { ...second.jwk, use: 'enc' },
      { ...third.jwk, key_ops: ['sign'] },
      null,
      7,
      [],
      { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA', kid: 'first' },
      first.jwk,
    )
    await serve()
    expect(await ask(signToken(secret, { alg: 'HS256', kid: 'first' }, claims()))).toBe(401)
    expect([await ask(make(second)), await ask(make(third)), await ask(make())]).toEqual([401, 401, 200])
  })
})

it('a key whose declared algorithm the issuer corrects is another key', async () => {
  endpoint.respond = sendKeys({ ...first.jwk, alg: 'ES384' })
  await serve()
  expect(await ask(make())).toBe(401)
  endpoint.respond = sendKeys({ ...first.jwk, alg: 'ES256' })
  pass(31)
  expect(await ask(make())).toBe(200)
})

it('one key under two names is known by both, also when it has been fetched again', async () => {
  endpoint.respond = sendKeys({ ...first.jwk, kid: 'a' }, { ...first.jwk, kid: 'b' })
  await serve()
  const token = (kid: string) => issue(first, { exp: 4_000_000_000, jti: `${kid} ${endpoint.fetches}` }, { kid })
  for (const fetches of [1, 2]) {
    for (const kid of ['a', 'b']) expect(await ask(token(kid))).toBe(200)
    expect(endpoint.fetches).toBe(fetches)
    pass(601)
    await ask(token('a'))
    await expect.poll(() => endpoint.fetches).toBe(fetches + 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
})
