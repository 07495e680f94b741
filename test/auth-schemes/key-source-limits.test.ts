import { once } from 'node:events'
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type JwtOptions, jwt } from '../../src/auth-schemes/jwt.ts'
import { fetchJson } from '../../src/auth-schemes/key-source.ts'
import { isHttpError } from '../../src/core/errors.ts'
import { MEASURED } from '../support/measured.ts'
import { createIssuer, issue } from './tokens.ts'

const issuer = createIssuer('ES256', 'first')
const REQUEST = {} as Parameters<ReturnType<typeof jwt>['verifyToken']>[1]

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
})

interface Fetched {
  /** The outcome, or the status of the error. */
  readonly outcome: string | number
  readonly requests: number
  /** Milliseconds until the outcome. */
  readonly time: number
  /** Fulfilled when the endpoint sees that its connection was closed. */
  readonly closed: Promise<unknown>
}

/** Verifies a good token with the keys of an endpoint. */
async function fetchKeysFrom(respond: RequestListener, times: JwtOptions['jwksTimes'] = {}): Promise<Fetched> {
  let requests = 0
  let closed: Promise<unknown> = Promise.resolve()
  const endpoint = createServer((req, res) => {
    requests++
    closed = new Promise((resolve) => req.socket.on('error', () => {}).on('close', resolve))
    respond(req, res)
  })
  server = endpoint
  endpoint.listen(0, '127.0.0.1')
  await once(endpoint, 'listening')
  const jwks = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/jwks`
  const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks, jwksTimes: times })
  const start = performance.now()
  const outcome = await Promise.resolve(verifier.verifyToken(issue(issuer), REQUEST)).then(
    (result) => result.outcome,
    (error: unknown) => (isHttpError(error) ? error.status : String(error)),
  )
  return { outcome, requests, time: performance.now() - start, closed }
}

/** Sends a piece again until the client has gone away. */
function sendForever(res: ServerResponse, piece: Uint8Array): void {
  if (res.destroyed || res.socket === null || res.socket.destroyed) return
  const again = (): void => sendForever(res, piece)
  if (res.write(piece)) setImmediate(again)
  else res.once('drain', again)
}

const setOf = (...keys: readonly unknown[]): string => JSON.stringify({ keys })
const others = (count: number): readonly unknown[] =>
  Array.from({ length: count }, (_, i) => ({ ...issuer.jwk, kid: `k${i}` }))

describe('the fetch of a key set', () => {
  it('takes what is sent in one coding, and in many small chunks', async () => {
    const coded = await fetchKeysFrom((_, res) => {
      res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(setOf(issuer.jwk)))
    })
    expect(coded.outcome).toBe('accepted')
    server!.close()
    const chunked = await fetchKeysFrom((_, res) => {
      res.writeHead(200)
      for (const character of setOf(issuer.jwk)) res.write(character)
      res.end()
    })
    expect(chunked.outcome).toBe('accepted')
  })

  it('ends at 1 MiB, and closes the connection', async () => {
    const space = Buffer.alloc(65_536, 0x20)
    const { outcome, closed } = await fetchKeysFrom((_, res) => sendForever(res.writeHead(200), space))
    expect(outcome).toBe(503)
    await closed
  })

  it('closes the connection of an answer that is not 200, whatever is still to come', async () => {
    const space = Buffer.alloc(65_536, 0x20)
    const { outcome, closed } = await fetchKeysFrom((_, res) => sendForever(res.writeHead(500), space))
    expect(outcome).toBe(503)
    await closed
  })

  it.each([
    [500, {}],
    [200, { 'Content-Encoding': 'gzip, br' }],
  ])('gives the content up of an answer that it does not take: %i %j', async (status, headers) => {
    let isCanceled = false
    const body = new ReadableStream({ cancel: () => void (isCanceled = true) })
    const fetch = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response(body, { status, headers }))
    try {
      await expect(fetchJson('https://issuer.test/jwks', new AbortController().signal)).rejects.toThrow('key endpoint')
    } finally {
      fetch.mockRestore()
    }
    expect(isCanceled).toBe(true)
  })

  it('aborts its signal only where it has taken too long', async () => {
    let given: AbortSignal | undefined
    const jwks = (signal: AbortSignal) => {
      given = signal
      return { keys: [issuer.jwk] }
    }
    const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks, jwksTimes: { timeout: 1000 } })
    expect(await verifier.verifyToken(issue(issuer), REQUEST)).toMatchObject({ outcome: 'accepted' })
    await new Promise((resolve) => setTimeout(resolve, 1200))
    expect(given?.aborted).toBe(false)
  })

  it('takes a key set of 1 MiB, and none of a byte more', async () => {
    const text = setOf(issuer.jwk)
    for (const [size, outcome] of [
      [1 << 20, 'accepted'],
      [(1 << 20) + 1, 503],
    ] as const) {
      expect((await fetchKeysFrom((_, res) => void res.end(text.padEnd(size)))).outcome).toBe(outcome)
      server!.close()
    }
  })

  it('counts what a coding expands to, and stops to decode there', MEASURED, async () => {
    const bomb = gzipSync(Buffer.alloc(64 << 20, 0x20))
    expect(bomb.length).toBeLessThan(1 << 17)
    const before = process.memoryUsage().arrayBuffers
    let peak = 0
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage().arrayBuffers - before)), 1)
    const { outcome } = await fetchKeysFrom((_, res) => {
      res.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb)
    })
    clearInterval(timer)
    expect(outcome).toBe(503)
    expect(peak).toBeLessThan(16 << 20)
  })

  it('refuses codings of codings, whose inner sizes nothing counts', MEASURED, async () => {
    const twice = gzipSync(gzipSync(setOf(issuer.jwk)))
    const { outcome, closed, time } = await fetchKeysFrom((_, res) => {
      res.writeHead(200, { 'Content-Encoding': 'gzip, gzip' }).write(twice)
    })
    expect(outcome).toBe(503)
    // Well before the time of a fetch: nothing was decoded.
    expect(time).toBeLessThan(2500)
    await closed
  })

  it('ends at its time where the endpoint drips, or falls silent', MEASURED, async () => {
    const endpoints: readonly RequestListener[] = [
      () => {},
      (_, res) => void res.writeHead(200).flushHeaders(),
      (_, res) => {
        res.writeHead(200).write('{')
        const timer = setInterval(() => res.write(' '), 5)
        res.on('close', () => clearInterval(timer))
      },
      (_, res) => {
        res.writeHead(500).write('{')
      },
    ]
    for (const [index, respond] of endpoints.entries()) {
      const { outcome, closed, time } = await fetchKeysFrom(respond, { timeout: 200 })
      expect([index, outcome]).toEqual([index, 503])
      expect(time).toBeLessThan(2000)
      await closed
      server!.close()
    }
  })

  it('follows no redirect, neither to itself nor elsewhere', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const { outcome, requests } = await fetchKeysFrom((_, res) => {
        res.writeHead(status, { Location: '/jwks' }).end(setOf(issuer.jwk))
      })
      expect([status, outcome, requests]).toEqual([status, 503, 1])
      server!.close()
    }
  })

  it('takes 1000 keys, and none of a set that has more', async () => {
    const most = await fetchKeysFrom((_, res) => void res.end(setOf(...others(999), issuer.jwk)))
    expect(most.outcome).toBe('accepted')
    server!.close()
    const more = await fetchKeysFrom((_, res) => void res.end(setOf(...others(1000), issuer.jwk)))
    expect(more.outcome).toBe(503)
    server!.close()
    const million = Array.from({ length: 1_000_000 }, () => issuer.jwk)
    const verifier = jwt({ issuer: 'https://issuer.test', audience: 'api', jwks: () => ({ keys: million }) })
    await expect(verifier.verifyToken(issue(issuer), REQUEST)).rejects.toMatchObject({ status: 503 })
  })

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2_147_483_648])(
    'is not made with a timeout of %d ms, which no timer can wait',
    (timeout) => {
      const make = () => jwt({ issuer: 'i', audience: 'a', jwks: 'https://issuer.test/', jwksTimes: { timeout } })
      expect(make).toThrow(TypeError)
    },
  )
})
