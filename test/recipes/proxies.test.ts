import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findProgram } from '../real/programs.ts'
import { type StartProxy, startNginxWith, startVarnishConfigured } from '../real/proxies.ts'
import { Answer, pairFields } from '../support/answer.ts'
import { type Request, runListener, sendHttp } from '../support/hosts.ts'
import { startRecipe } from '../support/recipes.ts'
import { openRawClient } from '../wire/raw-client.ts'

const nginx = findProgram('nginx')
const varnish = findProgram('varnishd')
const ada = { Authorization: `Basic ${btoa('ada:lovelace')}` }

/** nginx with a configuration of examples/recipes, in which each text on the left becomes that on the right. */
function startConfigured(
  file: string,
  change: (folder: string, port: number, origin: number) => Record<string, string>,
): StartProxy {
  return (program, origin) =>
    startNginxWith(program, (folder, port) => {
      let text = readFileSync(`examples/recipes/${file}`, 'utf8')
      for (const [printed, own] of Object.entries(change(folder, port, origin))) {
        expect(text).toContain(printed)
        text = text.replace(printed, own)
      }
      return text
    })
}

const ownPlaces = (port: number, origin: number) => ({
  'listen 443': `listen 127.0.0.1:${port}`,
  '/etc/ssl/api.example.pem': resolve('test/support/tls/cert.pem'),
  '/etc/ssl/api.example.key': resolve('test/support/tls/key.pem'),
  '127.0.0.1:8080': `127.0.0.1:${origin}`,
})

const startTls = startConfigured('nginx.conf', (_, port, origin) => ownPlaces(port, origin))

/** As where the line on the version is left out. */
const startOldVersion = startConfigured('nginx.conf', (_, port, origin) => ({
  ...ownPlaces(port, origin),
  'proxy_http_version 1.1;': 'proxy_http_version 1.0;',
}))

const startCache = startConfigured('nginx-cache.conf', (folder, port, origin) => ({
  '/var/cache/nginx/app': `${folder}/cache`,
  ...ownPlaces(port, origin),
}))

const startVarnish: StartProxy = (program, origin) => {
  const text = readFileSync('examples/recipes/varnish.vcl', 'utf8')
  expect(text).toContain('.port = "8080"')
  return startVarnishConfigured(program, text.replace('"8080"', `"${origin}"`))
}

/** A request over https, for the host of the pages. */
function sendSecurely(port: number, { method = 'GET', path, headers = {}, body }: Request): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { port, host: '127.0.0.1', rejectUnauthorized: false, agent: false, method, path }
    const fields = { Host: 'api.example', ...headers } as Record<string, string>
    const outgoing = request({ ...options, headers: fields }, async (incoming) => {
      const chunks: Buffer[] = await incoming.toArray()
      const { statusCode, statusMessage, rawHeaders } = incoming
      const fields = pairFields(rawHeaders)
      resolve(new Answer({ status: statusCode!, phrase: statusMessage!, fields, body: Buffer.concat(chunks) }))
    })
    outgoing.on('error', reject).end(body)
  })
}

/** A request as a proxy sends it that ends TLS in front of Varnish. */
const sendForwarded: typeof sendSecurely = (port, request) =>
  sendHttp(port, { ...request, headers: { ...request.headers, 'X-Forwarded-Proto': 'https' } })

const json = { 'Content-Type': 'application/json' }

describe('examples/recipes/behind-nginx.mjs behind examples/recipes/nginx.conf', () => {
  it.runIf(nginx)('takes https and the host from nginx, and keeps entity tags strong', async () => {
    const { base } = await startRecipe('behind-nginx.mjs')
    const proxy = await startTls(nginx!, Number(new URL(base).port))
    try {
      const note = { method: 'POST', path: '/notes', headers: { ...json, ...ada }, body: '{"title":"First"}' }
      const created = await sendSecurely(proxy.port, note)
      expect([created.status, created.headers['location']]).toEqual([201, '/notes/1'])
      const read = await sendSecurely(proxy.port, { path: '/notes/1', headers: { 'Accept-Encoding': 'gzip' } })
      const tag = String(read.headers['etag'])
      expect(tag).toMatch(/^"/)
      const change = { method: 'PUT', path: '/notes/1', body: '{"title":"Second"}' }
      const headers = { ...json, ...ada, 'If-Match': tag }
      expect((await sendSecurely(proxy.port, { ...change, headers })).status).toBe(204)
      expect((await sendSecurely(proxy.port, { ...change, headers })).status).toBe(412)
      // Names that nginx passes on, but the service does not serve.
      expect((await sendSecurely(proxy.port, { path: '/notes/1', headers: { Host: 'other.example' } })).status).toBe(
        421,
      )
      // Past nginx: the service believes what a trusted peer says of the scheme.
      const cleartext = { Host: 'api.example', 'X-Forwarded-Proto': 'http' }
      const direct = await sendHttp(Number(new URL(base).port), { path: '/notes/1', headers: cleartext })
      expect(direct.status).toBe(403)
    } finally {
      await proxy.close()
    }
  })
})

describe('examples/recipes/live-updates.mjs behind nginx that speaks HTTP/1.0 to it', () => {
  it.runIf(nginx)('sends each event as it comes', async () => {
    const { base } = await startRecipe('live-updates.mjs')
    const proxy = await startOldVersion(nginx!, Number(new URL(base).port))
    try {
      const options = { port: proxy.port, host: '127.0.0.1', rejectUnauthorized: false, agent: false, path: '/events' }
      const listening = request(options).end()
      const [events] = (await once(listening, 'response')) as [IncomingMessage]
      const [first] = await once(events, 'data')
      expect(String(first)).toBe(': connected\n\n')
      listening.destroy()
    } finally {
      await proxy.close()
    }
  })
})

describe.each([
  ['nginx.conf', startTls],
  ['nginx-cache.conf', startCache],
])('examples/recipes/%s', (_, start) => {
  it.runIf(nginx)('names the address of the client last, whatever the client says that it is', async () => {
    const origin = await runListener((req, res) => res.end(req.headers['x-forwarded-for']))
    const proxy = await start(nginx!, origin.port)
    try {
      const headers = { 'X-Forwarded-For': '192.0.2.1' }
      const { body } = await sendSecurely(proxy.port, { path: '/', headers })
      expect(body.toString()).toBe('192.0.2.1, 127.0.0.1')
    } finally {
      await proxy.close()
      await origin.close()
    }
  })
})

describe.each<[string, StartProxy, string | undefined, typeof sendSecurely]>([
  ['examples/recipes/nginx-cache.conf', startCache, nginx, sendSecurely],
  ['examples/recipes/varnish.vcl', startVarnish, varnish, sendForwarded],
])('examples/recipes/caching.mjs behind %s', (_, start, program, sendTo) => {
  it.runIf(program)('lets a cache serve what has a lifetime, and nothing private', async () => {
    const { base, send } = await startRecipe('caching.mjs')
    const proxy = await start(program!, Number(new URL(base).port))
    const through = (path: string, headers: Record<string, string> = {}) => sendTo(proxy.port, { path, headers })
    try {
      await send('POST', '/articles', { headers: ada, json: { title: 'First' } })
      await send('POST', '/notes', { headers: ada, json: { title: 'Mine' } })
      const article = await through('/articles/1')
      expect([article.status, article.headers['cache-control']]).toEqual([200, 'max-age=60'])
      // Changed past the cache, which does not ask before the minute is over.
      await send('PUT', '/articles/1', { headers: ada, json: { title: 'Second' } })
      expect(String((await through('/articles/1')).body)).toContain('First')
      expect((await send('GET', '/articles/1')).value.title).toBe('Second')
      expect((await through('/articles/1', { 'If-None-Match': String(article.headers['etag']) })).status).toBe(304)

      const mine = await through('/notes/1', ada)
      expect([mine.status, mine.headers['cache-control']]).toEqual([200, 'private, no-cache'])
      expect((await through('/notes/1')).status).toBe(401)
    } finally {
      await proxy.close()
    }
  })
})

describe('examples/recipes/varnish.vcl', () => {
  it.runIf(varnish)('stores no part of an upload that breaks off', async () => {
    const sizes: unknown[] = []
    const origin = await runListener((req, res) => {
      if (req.method === 'PUT') sizes.push(req.headers['content-length'])
      req.resume().once('end', () => res.end())
    })
    const proxy = await startVarnish(varnish!, origin.port)
    try {
      const head = 'PUT /assets/a HTTP/1.1\r\nHost: api.example\r\n'
      const client = await openRawClient(proxy.port)
      client.send(`${head}Transfer-Encoding: chunked\r\n\r\n100\r\npart`)
      expect((await client.read()).status).toBe(411)
      client.reset()
      const whole = { method: 'PUT', path: '/assets/a', headers: { 'Content-Length': '4' }, body: 'part' }
      expect((await sendForwarded(proxy.port, whole)).status).toBe(200)
      expect(sizes).toEqual(['4'])
    } finally {
      await proxy.close()
      await origin.close()
    }
  })
})
