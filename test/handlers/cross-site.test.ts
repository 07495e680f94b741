import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import type { AuthScheme } from '../../src/auth-schemes/scheme.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { createCrossSiteCheck } from '../../src/handlers/access-checks.ts'
import { auth } from '../../src/handlers/auth.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { ask, type Fields, listen } from './serve.ts'

const EVIL = 'https://evil.test'
const FRIEND = 'https://friend.test'
const BASIC = { Authorization: 'Basic YTpi' }

const isCleartext = () => false

async function start(allows?: (origin: string) => boolean, isSecure = isCleartext) {
  const cors = allows && { allows, isAnyOrigin: false }
  const piece = createHandler({ run: createCrossSiteCheck(isSecure, cors), forwardErrors: false })
  const port = await listen((req, res) => piece(req, res, () => void res.end('done')))
  const statusOf = async (method: string, fields: Fields) => (await ask(port, method, '/', fields)).status
  return { port, statusOf }
}

describe('createCrossSiteCheck', () => {
  const allows = (origin: string) => origin === FRIEND

  it('judges by the method that was sent what needs a preflight under "*": a form may stand for DELETE on the host', async () => {
    const cors = { allows: () => false, isAnyOrigin: true }
    const piece = createHandler({ run: createCrossSiteCheck(isCleartext, cors), forwardErrors: false })
    // As the middleware `method-override` of Express does for `?_method=DELETE`.
    const port = await listen((req, res) => {
      Object.assign(req, { originalMethod: req.method, method: 'DELETE' })
      piece(req, res, () => void res.end('done'))
    })
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const statusOf = async (method: string, fields: Fields) =>
      (await ask(port, method, '/', { ...BASIC, Origin: EVIL, ...fields })).status
    for (const method of ['GET', 'POST']) {
      expect([await statusOf(method, form), await statusOf(method, {})]).toEqual([403, 403])
    }
    expect([await statusOf('PUT', form), await statusOf('DELETE', {})]).toEqual([200, 200])
    for (const type of ['TEXT/PLAIN; charset=utf-8', 'multipart/form-data; boundary=b']) {
      expect([type, await statusOf('POST', { 'Content-Type': type })]).toEqual([type, 403])
    }
    expect(await statusOf('POST', { 'Content-Type': 'application/json' })).toBe(200)
  })

  it.each<[string, Fields]>([
    ['Basic', BASIC],
    ['basic', { Authorization: 'basic YTpi' }],
    ['Digest', { Authorization: 'Digest username="a"' }],
    ['Negotiate', { Authorization: 'Negotiate abc' }],
    ['NTLM', { Authorization: 'NTLM abc' }],
    ['a cookie', { Cookie: 'session=1' }],
    ['a cookie beside a token', { Cookie: 'session=1', Authorization: 'Bearer t' }],
  ])(
    'refuses a change by another site with %s, which a browser attaches by itself (threats 112 and 132)',
    async (_what, credentials) => {
      const { statusOf } = await start(allows)
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
        expect(await statusOf(method, { ...credentials, Origin: EVIL })).toBe(403)
        expect(await statusOf(method, { ...credentials, Origin: 'null' })).toBe(403)
        expect(await statusOf(method, { ...credentials, Origin: EVIL, 'Sec-Fetch-Site': 'cross-site' })).toBe(403)
        expect(await statusOf(method, { ...credentials, 'Sec-Fetch-Site': 'cross-site' })).toBe(403)
        expect(await statusOf(method, { ...credentials, Origin: EVIL, 'Sec-Fetch-Site': 'same-site' })).toBe(403)
      }
    },
  )

  it.each<[string, string, Fields]>([
    ['a read', 'GET', { ...BASIC, Origin: EVIL, 'Sec-Fetch-Site': 'cross-site' }],
    ['OPTIONS', 'OPTIONS', { ...BASIC, Origin: EVIL }],
    ['a program, which sends neither field', 'POST', BASIC],
    [
      'a token, which no browser attaches',
      'POST',
      { Authorization: 'Bearer t', Origin: EVIL, 'Sec-Fetch-Site': 'cross-site' },
    ],
    ['no credentials (row X17)', 'POST', { Origin: EVIL, 'Sec-Fetch-Site': 'cross-site' }],
    ['an origin that CORS allows', 'POST', { ...BASIC, Origin: FRIEND, 'Sec-Fetch-Site': 'cross-site' }],
    ['an own page', 'POST', { ...BASIC, 'Sec-Fetch-Site': 'same-origin' }],
    ['an own page without a referrer', 'POST', { ...BASIC, Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }],
    ['the user in person', 'POST', { ...BASIC, 'Sec-Fetch-Site': 'none' }],
  ])('lets %s pass', async (_who, method, fields) => {
    expect(await (await start(allows)).statusOf(method, fields)).toBe(200)
  })

  it('knows its own origin without Sec-Fetch-Site: the same host and port, either scheme where the scheme is unknown', async () => {
    const { port, statusOf } = await start()
    expect(await statusOf('POST', { ...BASIC, Origin: `http://127.0.0.1:${port}` })).toBe(200)
    expect(await statusOf('POST', { ...BASIC, Origin: `https://127.0.0.1:${port}` })).toBe(200)
    expect(await statusOf('POST', { ...BASIC, Origin: `http://127.0.0.1:${port + 1}` })).toBe(403)
    expect(await statusOf('POST', { ...BASIC, Origin: 'http://127.0.0.1' })).toBe(403)
    expect(await statusOf('POST', { ...BASIC, Host: 'a.test', Origin: 'https://a.test' })).toBe(200)
    expect(await statusOf('POST', { ...BASIC, Host: 'a.test:443', Origin: 'https://a.test' })).toBe(200)
    expect(await statusOf('POST', { ...BASIC, Host: 'a.test', Origin: 'https://b.a.test' })).toBe(403)
  })

  it('does not take a cleartext page of the same host for its own when the request came by https', async () => {
    const { statusOf } = await start(undefined, () => true)
    expect(await statusOf('POST', { ...BASIC, Host: 'a.test', Origin: 'http://a.test' })).toBe(403)
    expect(await statusOf('POST', { ...BASIC, Host: 'a.test', Origin: 'https://a.test' })).toBe(200)
  })

  it('does not take a page for its own that the browser says is of another site', async () => {
    const { port, statusOf } = await start()
    const own = { ...BASIC, Origin: `http://127.0.0.1:${port}` }
    expect(await statusOf('POST', { ...own, 'Sec-Fetch-Site': 'same-site' })).toBe(403)
    expect(await statusOf('POST', { ...own, 'Sec-Fetch-Site': 'cross-site' })).toBe(403)
  })

  it('counts CORS of the host where it names the origin and takes credentials, and only then', async () => {
    const piece = createHandler({ run: createCrossSiteCheck(isCleartext), forwardErrors: false })
    const statusOf = async (allowed: string, credentials?: string) => {
      const port = await listen((req, res) => {
        res.setHeader('Access-Control-Allow-Origin', allowed)
        if (credentials !== undefined) res.setHeader('Access-Control-Allow-Credentials', credentials)
        piece(req, res, () => void res.end('done'))
      })
      return (await ask(port, 'POST', '/', { ...BASIC, Origin: FRIEND })).status
    }
    expect([await statusOf(FRIEND, 'true'), await statusOf(FRIEND), await statusOf(FRIEND, 'false')]).toEqual([
      200, 403, 403,
    ])
    expect([await statusOf('*', 'true'), await statusOf(EVIL, 'true')]).toEqual([403, 403])
  })

  it('refuses a change by another site with a client certificate, which a browser attaches by itself', async () => {
    const [cert, key] = ['cert', 'key'].map((name) =>
      readFileSync(new URL(`../support/tls/${name}.pem`, import.meta.url)),
    )
    const piece = createHandler({ run: createCrossSiteCheck(isCleartext), forwardErrors: false })
    const options = { cert, key, ca: cert, requestCert: true, rejectUnauthorized: false }
    const server = createServer(options, (req, res) => piece(req, res, () => void res.end('done')))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const statusOf = async (own: object, headers: Record<string, string>) => {
      const req = request({ port, host: '127.0.0.1', method: 'POST', ca: cert, headers, agent: false, ...own }).end()
      const [res] = await once(req, 'response')
      res.resume()
      return res.statusCode
    }
    expect(await statusOf({ cert, key }, { Origin: EVIL })).toBe(403)
    expect(await statusOf({ cert, key }, { Origin: `https://127.0.0.1:${port}` })).toBe(200)
    expect(await statusOf({}, { Origin: EVIL })).toBe(200)
    server.close()
  })

  it('waits for a function that takes its time, and takes nothing but true for yes', async () => {
    const answers: Record<string, unknown> = { [FRIEND]: Promise.resolve(true), [EVIL]: 'yes' }
    const { statusOf } = await start((origin) => answers[origin] as boolean)
    expect(await statusOf('POST', { ...BASIC, Origin: FRIEND })).toBe(200)
    expect(await statusOf('POST', { ...BASIC, Origin: EVIL })).toBe(403)
  })
})

describe('a scheme that says whether browsers attach its credentials', () => {
  const create = (isAmbient?: boolean): AuthScheme => ({
    name: 'Ticket',
    ...(isAmbient === undefined ? {} : { isAmbient }),
    challenges: () => ['Ticket'],
    authenticate: () => ({ outcome: 'accepted', principal: { scheme: 'ticket', id: 'ada' } }),
  })
  const foreign = {
    Authorization: 'Ticket 1',
    Origin: EVIL,
    'Sec-Fetch-Site': 'cross-site',
    'Content-Type': 'text/plain',
  }

  it.each([
    [true, 403],
    [undefined, 403],
    [false, 201],
  ])('is asked, and counts as ambient where it says nothing: isAmbient %s', async (isAmbient, status) => {
    const service = createResourceService(memoryStore(), { auth: { schemes: [create(isAmbient)] } })
    const port = await listen(service)
    expect((await ask(port, 'PUT', '/a', foreign, 'x')).status).toBe(status)
    const own = { ...foreign, Origin: `http://127.0.0.1:${port}`, 'Sec-Fetch-Site': 'same-origin' }
    expect((await ask(port, 'PUT', '/a', own, 'x')).status).toBeLessThan(300)
  })

  it.each([
    [undefined, 403],
    [false, 201],
  ])(
    'is asked about a principal that a guard before the service has found: isAmbient %s',
    async (isAmbient, status) => {
      const guard = auth({ schemes: [create(isAmbient)] })
      const service = createResourceService(memoryStore())
      const port = await listen((req, res) => guard(req, res, () => service(req, res)))
      expect((await ask(port, 'PUT', '/a', foreign, 'x')).status).toBe(status)
    },
  )
})
