import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { type RunningHost, runListener, sendHttp } from '../support/hosts.ts'
import { findProgram } from './programs.ts'
import { type RunningProxy, type StartProxy, startNginx, startSquid, startVarnish } from './proxies.ts'

const ORIGINS = ['https://a.example', 'https://b.example']
const text = { 'Content-Type': 'text/plain' }
const as = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` })
const ada = as('ada', 'lovelace')
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'

/** What the definitions below these prefixes say to caches. */
const SERVICES: Readonly<Record<string, ServiceOptions>> = {
  '/fresh': { cacheControl: 'max-age=600', cors: { origins: ORIGINS } },
  '/brief': { cacheControl: 'max-age=1' },
  '/default': {},
  '/private': {
    cacheControl: 'max-age=600',
    auth: { schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })], requireAuth: 'all' },
  },
  '/slices': { cacheControl: 'max-age=600' },
  '/gzip': {},
}

describe.each<[string, StartProxy, string | undefined]>([
  ['nginx', startNginx, findProgram('nginx')],
  ['Varnish', startVarnish, findProgram('varnishd')],
  ['Squid', startSquid, findProgram('squid')],
])('%s in front', (name, start, program) => {
  let origin: RunningHost
  let proxy: RunningProxy
  let seen: string[] = []

  beforeAll(async () => {
    if (program === undefined) return
    const services = Object.entries(SERVICES).map(([prefix, options]) => {
      const resources = { [`${prefix}/{name}`]: document() }
      // The proxy is on this machine, and its requests are marked as forwarded.
      const service = createResourceService(memoryStore(), {
        ...{ resources, https: 'optional' as const, ...options },
        explain: (line) => seen.push(/^\w+ \S+ \d+/.exec(line)![0]),
      })
      return [prefix, service] as const
    })
    origin = await runListener((req, res) => {
      const service = services.find(([prefix]) => req.url?.startsWith(`${prefix}/`))?.[1]
      // Squid asks whether there is another Squid.
      if (service === undefined) res.writeHead(404).end()
      else service(req, res)
    })
    proxy = await start(program, origin.port)
  })
  afterEach(() => {
    seen = []
  })
  afterAll(async () => {
    await proxy?.close()
    await origin?.close()
  })

  const send = (method: string, path: string, headers: Record<string, string> = {}, body?: string | Uint8Array) =>
    sendHttp(proxy.port, { method, path, headers, ...(body === undefined ? {} : { body }) })
  const summary = ({ status, body }: Answer) => `${status} ${body}`

  const test = it.runIf(program)

  test('keeps an answer while it is fresh, and cuts 304 and ranges out of it (RFC 9111 §4)', async () => {
    await send('PUT', '/fresh/a', text, ALPHABET)
    const { headers } = await send('GET', '/fresh/a')
    const tag = String(headers['etag'])
    expect(summary(await send('GET', '/fresh/a'))).toBe(`200 ${ALPHABET}`)
    expect(summary(await send('GET', '/fresh/a', { 'If-None-Match': tag }))).toBe('304 ')
    expect(summary(await send('GET', '/fresh/a', { Range: 'bytes=2-4' }))).toBe('206 cde')
    expect(summary(await send('GET', '/fresh/a', { Range: 'bytes=-3', 'If-Range': tag }))).toBe('206 xyz')
    expect(summary(await send('GET', '/fresh/a', { Range: 'bytes=-3', 'If-Range': '"x"' }))).toBe(`200 ${ALPHABET}`)
    expect((await send('HEAD', '/fresh/a')).headers['etag']).toBe(tag)
    expect(seen).toEqual(['PUT /fresh/a 201', 'GET /fresh/a 200'])
  })

  test('asks with the tag whether a stale answer still holds, and then whether a changed one does', async () => {
    await send('PUT', '/brief/a', text, 'one')
    const untilSeen = async (line: string) => {
      for (;;) {
        const last = await send('GET', '/brief/a')
        if (seen.includes(line)) return summary(last)
        await sleep(20)
      }
    }
    expect(await untilSeen('GET /brief/a 200')).toBe('200 one')
    expect(await untilSeen('GET /brief/a 304')).toBe('200 one')
    seen = []
    await sendHttp(origin.port, { method: 'PUT', path: '/brief/a', headers: text, body: 'two' })
    expect(await untilSeen('GET /brief/a 200')).toBe('200 two')
  })

  test('gives each origin its own answer (row X8)', async () => {
    await send('PUT', '/fresh/b', text, 'b')
    const allowed = async (headers: Record<string, string>) =>
      (await send('GET', '/fresh/b', headers)).headers['access-control-allow-origin']
    for (let round = 0; round < 2; round++) {
      expect(await allowed({})).toBeUndefined()
      for (const one of ORIGINS) expect(await allowed({ Origin: one })).toBe(one)
    }
    expect(seen.filter((line) => line.startsWith('GET'))).toHaveLength(3)
  })

  test('gives the answer for one user to no other (RFC 9111 §3.5, §4.1)', async () => {
    await send('PUT', '/private/a', { ...text, ...ada }, 'secret')
    for (let round = 0; round < 2; round++) {
      expect(summary(await send('GET', '/private/a', ada))).toBe('200 secret')
      expect((await send('GET', '/private/a')).status).toBe(401)
      expect((await send('GET', '/private/a', as('ada', 'wrong'))).status).toBe(401)
    }
    // nginx stores answers to requests with Authorization; Vary keeps those for other credentials apart.
    expect(seen).toHaveLength(name === 'nginx' ? 6 : 7)
  })

  test.each(['default', 'fresh'])('keeps no error (row H184): %s', async (service) => {
    const path = `/${service}/c`
    expect((await send('GET', path)).status).toBe(404)
    expect((await send('PUT', path, text, 'one')).status).toBe(201)
    expect(summary(await send('GET', path))).toBe('200 one')
  })

  test('sees each write at once, where the definition says no more than the default', async () => {
    const path = '/default/d'
    for (const content of ['one', 'two', 'three']) {
      await send('PUT', path, text, content)
      for (let i = 0; i < 2; i++) expect(summary(await send('GET', path))).toBe(`200 ${content}`)
    }
    await send('DELETE', path)
    expect((await send('GET', path)).status).toBe(410)
    await send('PUT', path, text, 'again')
    expect(summary(await send('GET', path))).toBe('200 again')
  })

  // nginx and Varnish leave RFC 9111 §4.4 to their configuration: docs/recipes/caching.md.
  const forgets = name === 'Squid'
  test('forgets what was written to, as Squid, or keeps it, as nginx and Varnish (RFC 9111 §4.4)', async () => {
    await send('PUT', '/fresh/e', text, 'one')
    expect(summary(await send('GET', '/fresh/e'))).toBe('200 one')
    await send('PUT', '/fresh/e', text, 'two')
    expect(summary(await send('GET', '/fresh/e'))).toBe(forgets ? '200 two' : '200 one')
    await send('DELETE', '/fresh/e')
    expect((await send('GET', '/fresh/e')).status).toBe(forgets ? 410 : 200)
  })

  let attempts = 0
  test('passes large content both ways', async () => {
    // What an attempt before has stored would be replaced: 204.
    const path = `/fresh/large-${++attempts}`
    const content = Buffer.alloc(8 * 1024 * 1024, ALPHABET)
    expect((await send('PUT', path, {}, content)).status).toBe(201)
    const tail = await send('GET', path, { Range: 'bytes=8388600-' })
    expect([tail.status, tail.headers['content-range']]).toEqual([206, 'bytes 8388600-8388607/8388608'])
    expect((await send('GET', path)).body.equals(content)).toBe(true)
  })

  // Varnish answers 503 by itself when it cannot send all of a request, whatever has come back by then.
  const sizes = name === 'Varnish' ? [400_000] : [400_000, 8_000_000]
  test.each(sizes)('passes a refusal of %i bytes while they are being sent (threat 14)', async (size) => {
    await send('PUT', '/default/f', {}, 'one')
    const content = new Uint8Array(size)
    expect((await send('PUT', '/default/f', { 'If-Match': '"x"' }, content)).status).toBe(412)
    expect((await send('PUT', '/default/f', { 'Content-Range': 'bytes 0-1/2' }, content)).status).toBe(400)
    expect(summary(await send('GET', '/default/f'))).toBe('200 one')
  })

  if (name === 'nginx') {
    test('is read in slices, and put together again', async () => {
      const content = Buffer.alloc(200_000, ALPHABET)
      await send('PUT', '/slices/a', {}, content)
      seen = []
      const part = await send('GET', '/slices/a', { Range: 'bytes=70000-70003' })
      expect([part.status, part.body.toString()]).toEqual([206, content.toString('latin1', 70_000, 70_004)])
      expect((await send('GET', '/slices/a')).body.equals(content)).toBe(true)
      expect(seen).toEqual(Array.from({ length: 4 }, () => 'GET /slices/a 206'))
    })

    test('has its tags weakened by compression: they still say that nothing changed, and change nothing', async () => {
      const content = ALPHABET.repeat(100)
      await send('PUT', '/gzip/a', text, content)
      const coded = await send('GET', '/gzip/a', { 'Accept-Encoding': 'gzip' })
      const tag = String(coded.headers['etag'])
      expect([coded.headers['content-encoding'], gunzipSync(coded.body).toString()]).toEqual(['gzip', content])
      expect(tag).toMatch(/^W\/"/)
      expect((await send('GET', '/gzip/a', { 'Accept-Encoding': 'gzip', 'If-None-Match': tag })).status).toBe(304)
      // RFC 9110 §13.1.1: strong comparison.
      expect((await send('PUT', '/gzip/a', { ...text, 'If-Match': tag }, 'x')).status).toBe(412)
      const strong = String((await send('HEAD', '/gzip/a')).headers['etag'])
      expect((await send('PUT', '/gzip/a', { ...text, 'If-Match': strong }, 'x')).status).toBe(204)
    })
  }
})
