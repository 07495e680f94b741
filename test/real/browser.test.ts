import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { CorsOptions } from '../../src/handlers/preflight.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { findProgram } from './programs.ts'

const executablePath = findProgram('chromium', 'chromium-browser', 'google-chrome')

/** What a script gets to see. */
interface Seen {
  /** Set when the browser does not let the script see anything. */
  readonly refused?: string
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text?: string
}

interface Request {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  readonly credentials?: 'include' | 'omit' | 'same-origin'
  readonly cache?: 'default' | 'no-store' | 'no-cache'
  readonly mode?: 'cors' | 'no-cors'
}

/** What arrived at a server, preflights included. */
interface Arrival {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
}

const TOKEN = 'letmein'
const JSON_TYPE = { 'Content-Type': 'application/json' }

describe.runIf(executablePath !== undefined)('a browser on another origin', () => {
  const servers: Server[] = []
  const arrivals: Arrival[] = []
  let browser: Browser
  let good: Page
  let evil: Page
  let goodOrigin: string
  /** Services by what is special about their CORS. */
  const services: Record<'plain' | 'credentials' | 'any' | 'brief', string> = {
    plain: '',
    credentials: '',
    any: '',
    brief: '',
  }

  async function listen(listener: RequestListener): Promise<number> {
    const server = createServer(listener)
    servers.push(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }

  async function serveWith(cors: CorsOptions): Promise<string> {
    const service = createResourceService(memoryStore(), {
      resources: {
        '/users': collection(),
        '/tasks': collection({ query: { status: 'string' } }),
        '/docs': collection({ types: ['*/*'] }),
        '/readonly': document({ methods: ['GET'] }),
        '/secret': document(),
      },
      cors,
      auth: {
        schemes: [
          bearer((token) => (token === TOKEN ? { id: 'ada' } : undefined)),
          basic({ realm: 'test', accounts: { ada: 'lovelace' } }),
        ],
        requireAuth: ({ path, method }) => path === '/secret' || method === 'DELETE',
      },
      onError: (error) => {
        throw error
      },
    })
    const port = await listen((req, res) => {
      arrivals.push({ method: req.method!, path: req.url!, headers: req.headers })
      service(req, res)
    })
    return `http://127.0.0.1:${port}`
  }

  /** Runs fetch in a page. */
  function ask(page: Page, url: string, request: Request = {}): Promise<Seen> {
    return page.evaluate(
      async ([url, init]) => {
        try {
          const response = await fetch(url!, init as object)
          return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
        } catch (error) {
          return { refused: String(error) }
        }
      },
      [url, request] as const,
    )
  }

  const methodsOf = (): string[] => arrivals.map(({ method }) => method)

  beforeAll(async () => {
    const pages = await listen(
      (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>'),
    )
    // By name: another site than the address, so that cookies and Sec-Fetch-Site are those of a foreign site.
    goodOrigin = `http://localhost:${pages}`
    const evilPages = await listen(
      (_req, res) => void res.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html>'),
    )
    services.plain = await serveWith({ origins: goodOrigin })
    services.credentials = await serveWith({ origins: [goodOrigin], credentials: true })
    services.any = await serveWith({ origins: '*' })
    services.brief = await serveWith({ origins: goodOrigin, maxAge: 0 })
    browser = await chromium.launch({ executablePath: executablePath!, args: ['--no-sandbox', '--no-proxy-server'] })
    ;[good, evil] = [await browser.newPage(), await browser.newPage()]
    await good.goto(goodOrigin)
    await evil.goto(`http://localhost:${evilPages}`)
    for (const base of Object.values(services)) {
      for (const [path, text] of [
        ['/docs/a', 'hello'],
        ['/secret', 'secret'],
      ] as const) {
        const headers = { 'Content-Type': 'text/plain', Authorization: `Bearer ${TOKEN}` }
        expect((await fetch(base + path, { method: 'PUT', headers, body: text })).status).toBe(201)
      }
    }
  })

  afterAll(async () => {
    await browser?.close()
    for (const server of servers) server.closeAllConnections()
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  })

  beforeEach(() => {
    arrivals.length = 0
  })

  it('reads with a simple GET, without a preflight (interface OPTIONS 6)', async () => {
    const seen = await ask(good, `${services.plain}/docs/a`)
    expect([seen.status, seen.text]).toEqual([200, 'hello'])
    expect(methodsOf()).toEqual(['GET'])
  })

  it('reads what HEAD tells, without a preflight', async () => {
    const seen = await ask(good, `${services.plain}/docs/a`, { method: 'HEAD' })
    expect([seen.status, seen.headers?.['content-length']]).toEqual([200, '5'])
    expect(methodsOf()).toEqual(['HEAD'])
  })

  it.each(['text/plain', 'application/x-www-form-urlencoded'])(
    'posts %s without a preflight (interface OPTIONS 6)',
    async (type) => {
      const seen = await ask(good, `${services.plain}/docs`, {
        method: 'POST',
        headers: { 'Content-Type': type },
        body: 'a=b',
      })
      expect(seen.status).toBe(201)
      expect(methodsOf()).toEqual(['POST'])
    },
  )

  it('posts JSON after a preflight, and learns where it went (interface OPTIONS 5)', async () => {
    const seen = await ask(good, `${services.plain}/users`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: '{"name":"Ada"}',
    })
    expect([seen.status, JSON.parse(seen.text!).name]).toEqual([201, 'Ada'])
    expect(seen.headers?.['location']).toMatch(/^\/users\/\d+$/)
    expect(methodsOf()).toEqual(['OPTIONS', 'POST'])
    expect(arrivals[0]!.headers['access-control-request-headers']).toBe('content-type')
  })

  it('puts, patches and deletes, each after a preflight (interface OPTIONS 5)', async () => {
    const url = `${services.plain}/users/900`
    expect((await ask(good, url, { method: 'PUT', headers: JSON_TYPE, body: '{"name":"Ada"}' })).status).toBe(201)
    const type = { 'Content-Type': 'application/merge-patch+json' }
    const patched = await ask(good, url, { method: 'PATCH', headers: type, body: '{"role":"admin"}' })
    expect([patched.status, JSON.parse(patched.text!)]).toEqual([200, { id: 900, name: 'Ada', role: 'admin' }])
    const deleted = await ask(good, url, { method: 'DELETE', headers: { Authorization: `Bearer ${TOKEN}` } })
    expect(deleted.status).toBe(204)
    expect((await ask(good, url)).status).toBe(410)
    expect(methodsOf().filter((method) => method !== 'OPTIONS')).toEqual(['PUT', 'PATCH', 'DELETE', 'GET'])
  })

  it('sends Authorization, which the preflight lists (interface Authentication 8, row X10)', async () => {
    const seen = await ask(good, `${services.plain}/secret`, { headers: { Authorization: `Bearer ${TOKEN}` } })
    expect([seen.status, seen.text]).toEqual([200, 'secret'])
    expect(arrivals[0]!.headers['access-control-request-headers']).toBe('authorization')
  })

  it('sends Authorization where every origin and field is allowed, too', async () => {
    const seen = await ask(good, `${services.any}/secret`, { headers: { Authorization: `Bearer ${TOKEN}` } })
    expect([seen.status, seen.text]).toEqual([200, 'secret'])
  })

  it('reads a 401 and its challenges (row X15)', async () => {
    const seen = await ask(good, `${services.plain}/secret`)
    expect(seen.status).toBe(401)
    expect(seen.headers?.['www-authenticate']).toContain('Bearer')
  })

  it('asks for a protected resource, and the preflight does not fail for want of credentials (row X2)', async () => {
    expect((await ask(good, `${services.plain}/docs/guarded`, { method: 'DELETE' })).status).toBe(401)
    expect(methodsOf()).toEqual(['OPTIONS', 'DELETE'])
    expect(arrivals[0]!.headers.authorization).toBeUndefined()
  })

  it.each([
    [404, '/docs/none', {}],
    [405, '/docs/a', { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'x' }],
    [412, '/docs/a', { headers: { 'If-Match': '"x"' } }],
    [415, '/users', { method: 'POST', headers: { 'Content-Type': 'text/plain;charset=x-none' }, body: 'x' }],
    [416, '/docs/a', { headers: { Range: 'bytes=99-' } }],
    [400, '/users', { method: 'POST', headers: JSON_TYPE, body: '{' }],
  ] as const)('reads a %i (row X15)', async (status, path, request) => {
    expect((await ask(good, services.plain + path, request)).status).toBe(status)
  })

  it('reads the fields that are exposed by default (row X14)', async () => {
    const seen = await ask(good, `${services.plain}/docs/a`)
    for (const name of ['etag', 'last-modified', 'accept-ranges', 'cache-control', 'content-type']) {
      expect([name, typeof seen.headers?.[name]]).toEqual([name, 'string'])
    }
    expect(seen.headers?.['x-content-type-options']).toBeUndefined()
    const refused = await ask(good, `${services.plain}/docs/a`, { method: 'POST', body: 'x' })
    expect([refused.status, refused.headers?.['allow']]).toEqual([405, expect.stringContaining('PATCH')])
  })

  it('reads a range', async () => {
    const seen = await ask(good, `${services.plain}/docs/a`, { headers: { Range: 'bytes=1-3' } })
    expect([seen.status, seen.text, seen.headers?.['content-range']]).toEqual([206, 'ell', 'bytes 1-3/5'])
  })

  it('reads a 304 that it asked for itself (row H137)', async () => {
    const url = `${services.plain}/docs/a`
    const { headers } = await ask(good, url)
    const seen = await ask(good, url, { headers: { 'If-None-Match': headers!['etag']! } })
    expect([seen.status, seen.headers?.['etag']]).toEqual([304, headers!['etag']])
  })

  it('is served from its own cache after a 304 (rows H137 and X8)', async () => {
    const url = `${services.plain}/docs/a?cached`
    await ask(good, url)
    arrivals.length = 0
    const seen = await ask(good, url)
    expect([seen.status, seen.text]).toEqual([200, 'hello'])
    expect(arrivals.map(({ headers }) => typeof headers['if-none-match'])).toEqual(['string'])
  })

  it('changes what it has read, and only that (If-Match)', async () => {
    const url = `${services.plain}/docs/b`
    const type = { 'Content-Type': 'text/plain' }
    const created = await ask(good, url, { method: 'PUT', headers: type, body: '1' })
    const etag = created.headers!['etag']!
    expect((await ask(good, url, { method: 'PUT', headers: { ...type, 'If-Match': etag }, body: '2' })).status).toBe(
      204,
    )
    expect((await ask(good, url, { method: 'PUT', headers: { ...type, 'If-Match': etag }, body: '3' })).status).toBe(
      412,
    )
  })

  it('keeps the answer to a preflight for as long as Access-Control-Max-Age says (row X12)', async () => {
    const put = { method: 'PUT', headers: JSON_TYPE, body: '{}' }
    for (const [base, preflights] of [
      [services.plain, 1],
      [services.brief, 3],
    ] as const) {
      arrivals.length = 0
      for (let i = 0; i < 3; i++) await ask(good, `${base}/docs/aged`, put)
      expect(methodsOf().filter((method) => method === 'OPTIONS')).toHaveLength(preflights)
    }
  })

  it('is refused a method that the resource has not, before it is sent (row X23)', async () => {
    const seen = await ask(good, `${services.plain}/readonly`, { method: 'PUT', headers: JSON_TYPE, body: '{}' })
    expect(seen.refused).toContain('TypeError')
    expect(methodsOf()).toEqual(['OPTIONS'])
  })

  it('is refused a field that is not allowed, before it is sent (row X18)', async () => {
    const seen = await ask(good, `${services.plain}/docs/a`, { headers: { 'X-Anything': '1' } })
    expect(seen.refused).toContain('TypeError')
    expect(methodsOf()).toEqual(['OPTIONS'])
  })

  it('cannot tunnel a method that is not enabled (interface OPTIONS 7)', async () => {
    const seen = await ask(good, `${services.plain}/docs/a`, {
      method: 'POST',
      headers: { 'X-HTTP-Method-Override': 'DELETE' },
    })
    expect(seen.refused).toContain('TypeError')
    expect((await ask(good, `${services.plain}/docs/a`)).status).toBe(200)
  })

  it('on an origin that is not allowed sees nothing (row X17)', async () => {
    const seen = await ask(evil, `${services.plain}/docs/a`)
    expect(seen.refused).toContain('TypeError')
    expect((await ask(evil, `${services.plain}/docs/none`)).refused).toContain('TypeError')
  })

  it('on an origin that is not allowed changes nothing (rows X4 and X17)', async () => {
    const url = `${services.plain}/docs/evil`
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      expect((await ask(evil, url, { method, headers: JSON_TYPE, body: '{}' })).refused).toContain('TypeError')
    }
    expect(methodsOf()).toEqual(['OPTIONS', 'OPTIONS', 'OPTIONS'])
    expect((await ask(good, url)).status).toBe(404)
  })

  it('on any origin reads what everybody may, with "*" (row X5)', async () => {
    expect((await ask(evil, `${services.any}/docs/a`)).text).toBe('hello')
    expect((await ask(evil, `${services.any}/docs/a`, { credentials: 'include' })).refused).toContain('TypeError')
  })

  it('sends QUERY only after a preflight that allows it, with and without credentials (RFC 10008)', async () => {
    const query = {
      method: 'QUERY',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: 'status=open',
    } as const
    const include = { ...query, credentials: 'include' } as const
    for (const [url, request] of [
      [`${services.plain}/tasks`, query],
      [`${services.credentials}/tasks`, include],
    ] as const) {
      expect(await ask(good, url, request)).toMatchObject({ status: 200, text: '[]' })
      expect(methodsOf()).toEqual(['OPTIONS', 'QUERY'])
      arrivals.length = 0
      expect((await ask(evil, url, request)).refused).toContain('TypeError')
      expect(methodsOf()).toEqual(['OPTIONS'])
      arrivals.length = 0
    }
    // Without CORS there is nothing but the methods that a form may send.
    expect((await ask(evil, `${services.plain}/tasks`, { ...include, mode: 'no-cors' })).refused).toContain('TypeError')
    expect((await ask(evil, `${services.any}/tasks`, include)).refused).toContain('TypeError')
    expect(methodsOf()).toEqual(['OPTIONS'])
    expect((await ask(evil, `${services.any}/tasks`, query)).text).toBe('[]')
  })

  it('with a sandboxed document, whose origin is null, sees nothing (row X16)', async () => {
    const script = `fetch('${services.plain}/docs/a').then((r) => 'read ' + r.status, String).then((t) => parent.postMessage(t, '*'))`
    const seen = await good.evaluate(`new Promise((resolve) => {
      addEventListener('message', ({ data }) => resolve(data), { once: true })
      const frame = document.createElement('iframe')
      frame.setAttribute('sandbox', 'allow-scripts')
      frame.srcdoc = ${JSON.stringify(`<script>${script}`)} + '</' + 'script>'
      document.body.append(frame)
    })`)
    expect(seen).toContain('TypeError')
    expect(arrivals[0]!.headers.origin).toBe('null')
  })

  it('reads with credentials only where they are allowed (rows X6 and X7)', async () => {
    const include = { credentials: 'include' } as const
    expect((await ask(good, `${services.credentials}/docs/a`, include)).text).toBe('hello')
    expect((await ask(good, `${services.plain}/docs/a`, include)).refused).toContain('TypeError')
    expect((await ask(evil, `${services.credentials}/docs/a`, include)).refused).toContain('TypeError')
    const put = await ask(good, `${services.credentials}/docs/c`, {
      method: 'PUT',
      headers: JSON_TYPE,
      body: '{}',
      ...include,
    })
    expect(put.status).toBe(201)
  })

  it('of a foreign site cannot use the session of a user for a change without a preflight (threat 112)', async () => {
    const page = await browser.newPage()
    const cookie = {
      name: 'session',
      value: '1',
      domain: '127.0.0.1',
      path: '/',
      sameSite: 'None',
      secure: true,
    } as const
    await page.context().addCookies([cookie])
    await page.goto(evil.url())
    // A form, as any site may send one: no script has to read the answer for the change to happen.
    await page.evaluate(`{
      const form = document.createElement('form')
      Object.assign(form, { method: 'post', action: '${services.credentials}/docs', enctype: 'text/plain' })
      form.innerHTML = '<input name="a" value="b">'
      document.body.append(form)
      form.submit()
    }`)
    const response = await page.waitForResponse(`${services.credentials}/docs`)
    const { headers } = arrivals.find(({ method, path }) => method === 'POST' && path === '/docs')!
    expect([headers['sec-fetch-site'], headers.cookie]).toEqual(['cross-site', 'session=1'])
    expect(response.status()).toBe(403)
    await page.close()
  })
})
