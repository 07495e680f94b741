import { createServer } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { attach, mount } from '../../src/adapters/node.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import type { ProtectedResourceMetadataOptions } from '../../src/auth-schemes/resource-metadata.ts'
import type { AuthScheme } from '../../src/auth-schemes/scheme.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { protectedResourceMetadata } from '../../src/handlers/resource-metadata.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { hosts, type RunningHost, runListener, runServer, startHost } from '../support/hosts.ts'

const METADATA: ProtectedResourceMetadataOptions = {
  resource: 'https://api.example/api',
  authorizationServers: ['https://login.example'],
  scopes: ['notes:read', 'notes:write'],
}
const PATH = '/.well-known/oauth-protected-resource/api'
const URL_OF_DOCUMENT = `https://api.example${PATH}`
const DOCUMENT = {
  resource: 'https://api.example/api',
  authorization_servers: ['https://login.example'],
  scopes_supported: ['notes:read', 'notes:write'],
  bearer_methods_supported: ['header'],
}

const createScheme = (metadata = METADATA): AuthScheme =>
  bearer((token) => token === 'good' && { id: 'ada', claims: { scope: 'notes:read' } }, {
    metadata,
    scope: ({ method }) => (method === 'GET' ? ['notes:read'] : ['notes:write']),
  })

const createService = (metadata = METADATA): Handler =>
  createResourceService(memoryStore(), {
    resources: { '/notes': collection() },
    auth: { schemes: [createScheme(metadata)] },
    https: 'optional',
  })

let host: RunningHost | undefined
afterEach(async () => {
  await host?.close()
  host = undefined
})

const parse = ({ body }: { readonly body: Buffer }): unknown => JSON.parse(body.toString())

describe('bearer with metadata', () => {
  it.each(Object.keys(hosts))('serves it for a service below a prefix of %s by attach (RFC 9728 §3)', async (name) => {
    host = await startHost(name, createService(), '/api')
    const { status, headers, body } = await host.send({ path: PATH })
    expect([status, headers['content-type'], JSON.parse(body.toString())]).toEqual([200, 'application/json', DOCUMENT])
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(headers['cache-control']).toBe('public, max-age=3600')
    expect([headers['vary'], headers['www-authenticate']]).toEqual([undefined, undefined])

    const head = await host.send({ method: 'HEAD', path: PATH })
    expect([head.status, head.body.length, head.headers['content-length']]).toEqual([200, 0, String(body.length)])
    const again = await host.send({ path: PATH, headers: { 'If-None-Match': String(headers['etag']) } })
    expect([again.status, again.body.length, again.headers['etag']]).toEqual([304, 0, headers['etag']])
    expect(again.headers['access-control-allow-origin']).toBe('*')

    const refused = await host.send({ path: '/api/notes' })
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([
      401,
      `Bearer realm="Resources", resource_metadata="${URL_OF_DOCUMENT}"`,
    ])
    const known = await host.send({ path: '/api/notes', headers: { Authorization: 'Bearer good' } })
    expect(known.status).toBe(200)
  })

  it.each(['plain', 'Express 5', 'Koa 3', 'Fastify', 'Hono'])(
    'serves it for a service at the root of %s',
    async (name) => {
      host = await startHost(name, createService({ ...METADATA, resource: 'https://api.example' }))
      const { status, body } = await host.send({ path: '/.well-known/oauth-protected-resource' })
      expect([status, JSON.parse(body.toString()).resource]).toEqual([200, 'https://api.example'])
      expect((await host.send({ path: '/notes' })).status).toBe(401)
    },
  )

  it('serves it without attach where the service sees the path: at the root, and below mount', async () => {
    for (const listener of [
      createService(),
      mount('/api', createService()),
      mount('/x', mount('/api', createService())),
    ]) {
      host = await runListener(listener)
      expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
      await host.close()
    }
    host = undefined
  })

  it('serves it by the standalone auth, which asks for no credentials there', async () => {
    const guard = auth({ schemes: [createScheme()] })
    for (const listener of [guard, mount('/api', guard)]) {
      host = await runListener((req, res) => listener(req, res, () => void res.end('host')))
      expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
      const { status, headers } = await host.send({ path: '/api/x' })
      expect([status, headers['www-authenticate']]).toEqual([401, expect.stringContaining(URL_OF_DOCUMENT)])
      await host.close()
    }
    const server = createServer((_req, res) => void res.end('host'))
    attach(server, guard, { direct: '/api' })
    host = await runServer(server)
    expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
    expect((await host.send({ path: '/other' })).body.toString()).toBe('host')
  })

  it('leaves every other target to the host, spellings of its own included', async () => {
    const server = createServer((_req, res) => void res.end('host'))
    attach(server, createService())
    host = await runServer(server)
    for (const path of [
      '/.well-known/oauth-protected-resource',
      `${PATH}/`,
      `${PATH}/notes`,
      `${PATH}x`,
      `/api${PATH}`,
      '/.well-known/oauth-protected-resource/%61pi',
      '/.well-known/oauth-protected-resource/API',
      '/.well-known//oauth-protected-resource/api',
      '/.well-known/oauth-authorization-server/api',
    ]) {
      expect([path, (await host.send({ path })).body.toString()]).toEqual([path, 'host'])
    }
    expect((await host.send({ path: `${PATH}?x=1` })).status).toBe(200)
    expect((await host.send({ path: `http://other.example${PATH}` })).status).toBe(200)
  })

  it('says nothing of Host: resource and resource_metadata are the configured ones', async () => {
    host = await startHost('plain', createService(), '/api')
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example' }
    const answers = [await host.send({ path: PATH, headers }), await host.send({ path: '/api/notes', headers })]
    expect(JSON.stringify(answers.map(({ headers, body }) => [headers, body.toString()]))).not.toContain('evil')
  })

  it('answers any origin, preflights included, and 405 with Allow for any other method (RFC 9110 §15.5.6)', async () => {
    host = await startHost('Express 5', createService(), '/api')
    const preflightAnswer = await host.send({
      method: 'OPTIONS',
      path: PATH,
      headers: {
        Origin: 'https://app.example',
        'Access-Control-Request-Method': 'GET',
        'Access-Control-Request-Headers': 'mcp-protocol-version',
      },
    })
    const { status, headers } = preflightAnswer
    expect([status, headers['access-control-allow-origin'], headers['access-control-allow-headers']]).toEqual([
      204,
      '*',
      '*',
    ])
    expect([headers['access-control-allow-methods'], headers['cache-control']]).toEqual(['GET, HEAD', 'no-store'])
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
      const { status, headers } = await host.send({ method, path: PATH, headers: { 'Content-Length': '0' } })
      expect([method, status, headers['allow']]).toEqual([method, 405, 'GET, HEAD, OPTIONS'])
      expect(headers['access-control-allow-origin']).toBe('*')
    }
  })

  it('lets any origin read why a condition was refused', async () => {
    for (const listener of [createService(), protectedResourceMetadata(METADATA)]) {
      host = await runListener(listener)
      for (const [tag, expected] of [
        ['"other"', 412],
        ['other', 400],
      ] as const) {
        const { status, headers } = await host.send({ path: PATH, headers: { 'If-Match': tag } })
        expect([status, headers['access-control-allow-origin']]).toEqual([expected, '*'])
      }
      await host.close()
    }
    host = undefined
  })

  it('sends one Access-Control-Allow-Origin behind a policy for other paths', async () => {
    const [policy, guard] = [preflight({ origins: ['https://app.example'] }), auth({ schemes: [createScheme()] })]
    host = await runListener((req, res) => policy(req, res, () => guard(req, res, () => void res.end('host'))))
    for (const origin of ['https://app.example', 'https://other.example']) {
      const { headers } = await host.send({ path: PATH, headers: { Origin: origin } })
      expect(headers['access-control-allow-origin']).toBe('*')
    }
  })

  it('refuses a request for it that programs delimit differently (RFC 9112 §6.1)', async () => {
    host = await startHost('plain', createService(), '/api')
    const { status } = await host.send({ path: PATH, headers: { 'Transfer-Encoding': 'gzip, chunked' } })
    expect(status).toBe(501)
  })

  it('names it in every challenge, and the missing scopes beside it (RFC 9728 §5.1, RFC 6750 §3.1)', async () => {
    host = await startHost('plain', createService(), '/api')
    const challenge = async (request: { method?: string; path: string; headers?: Record<string, string> }) => {
      const { status, headers } = await host!.send(request)
      return [status, headers['www-authenticate']]
    }
    const parameter = `resource_metadata="${URL_OF_DOCUMENT}"`
    expect(await challenge({ path: '/api/notes', headers: { Authorization: 'Bearer bad' } })).toEqual([
      401,
      `Bearer realm="Resources", error="invalid_token", error_description="The token is not valid.", ${parameter}`,
    ])
    expect(await challenge({ method: 'PUT', path: '/api/notes/1', headers: { Authorization: 'Bearer good' } })).toEqual(
      [
        403,
        'Bearer realm="Resources", error="insufficient_scope", ' +
          `error_description="The token lacks a scope that this request needs.", scope="notes:write", ${parameter}`,
      ],
    )
    expect(await challenge({ path: '/api/notes?access_token=x', headers: { Authorization: 'Bearer good' } })).toEqual([
      400,
      `Bearer realm="Resources", error="invalid_request", ${parameter}`,
    ])
  })

  it.each<[string, unknown]>([
    ['no resource', {}],
    ['http', { resource: 'http://api.example/' }],
    ['a relative resource', { resource: '/api' }],
    ['a fragment', { resource: 'https://api.example/#a' }],
    ['an empty fragment', { resource: 'https://api.example/#' }],
    ['user information', { resource: 'https://ada@api.example/' }],
    ['a blank', { resource: 'https://api.example/ ' }],
    ['a line feed', { resource: 'https://api.example/a\n' }],
    ['letters outside ASCII', { resource: 'https://api.example/ü' }],
    ['a host in upper case', { resource: 'https://API.example/' }],
    ['a default port', { resource: 'https://api.example:443/' }],
    ['a dot segment', { resource: 'https://api.example/a/../b' }],
    ['a URL object', { resource: new URL('https://api.example/') }],
    ['an empty list of servers', { ...METADATA, authorizationServers: [] }],
    ['one server that is not a list', { ...METADATA, authorizationServers: 'https://login.example' }],
    ['a server by http', { ...METADATA, authorizationServers: ['http://login.example'] }],
    ['a server with a query', { ...METADATA, authorizationServers: ['https://login.example/?a'] }],
    ['a server with a fragment', { ...METADATA, authorizationServers: ['https://login.example/#'] }],
    ['scopes in one text', { ...METADATA, scopes: 'a b' }],
    ['a scope with a blank', { ...METADATA, scopes: ['a b'] }],
    ['a scope with a quote', { ...METADATA, scopes: ['a"'] }],
    ['an option that does not exist', { ...METADATA, scopes_supported: ['a'] }],
  ])('is not made with %s (RFC 9728 §1.2)', (_, metadata) => {
    expect(() => bearer(() => true, { metadata: metadata as never })).toThrow(TypeError)
    expect(() => protectedResourceMetadata(metadata as never)).toThrow(TypeError)
  })

  it('names the form that clients write where a resource differs from it', () => {
    expect(() => protectedResourceMetadata({ resource: 'https://API.example:443' })).toThrow(
      /"https:\/\/api\.example\/"/,
    )
  })

  it('is not made with two schemes that have metadata', () => {
    const other: AuthScheme = { ...createScheme(), name: 'DPoP' }
    expect(() => auth({ schemes: [createScheme(), other] })).toThrow(TypeError)
    expect(() => auth({ schemes: [{ ...createScheme(), metadata: undefined }, other] })).not.toThrow()
  })
})

describe('protectedResourceMetadata', () => {
  const handler = protectedResourceMetadata(METADATA)

  it('is mounted beside a service below a prefix: Express', async () => {
    const app = express()
    app.use('/api', createService() as unknown as express.RequestHandler)
    app.use(handler as unknown as express.RequestHandler)
    host = await runServer(createServer(app))
    expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
    expect((await host.send({ path: '/other' })).status).toBe(404)
  })

  it('is mounted at the very path, or above it: Express', async () => {
    for (const prefix of [PATH, '/.well-known/oauth-protected-resource', '/.well-known']) {
      const app = express()
      app.use(prefix, handler as unknown as express.RequestHandler)
      host = await runServer(createServer(app))
      expect([prefix, parse(await host.send({ path: PATH }))]).toEqual([prefix, DOCUMENT])
      expect(parse(await host.send({ path: `${PATH}?x=1` }))).toEqual(DOCUMENT)
      expect((await host.send({ path: `${PATH}/other` })).status).toBe(404)
      await host.close()
    }
    host = undefined
  })

  it('is mounted beside a service below a prefix: Koa', async () => {
    const app = new Koa()
    app.use(koaMiddleware(handler) as unknown as Koa.Middleware)
    app.use(koaMiddleware(createService(), { prefix: '/api' }) as unknown as Koa.Middleware)
    host = await runServer(createServer(app.callback()))
    expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
    expect((await host.send({ path: '/api/notes' })).status).toBe(401)
  })

  it.each([{}, { prefix: '/.well-known' }, { prefix: PATH }])(
    'is mounted beside a service below a prefix: Fastify, with %j',
    async (options) => {
      const app = fastify()
      await app.register(fastifyPlugin(handler), options)
      await app.register(fastifyPlugin(createService()), { prefix: '/api' })
      await app.ready()
      host = await runServer(app.server)
      expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
      expect((await host.send({ path: '/api/notes' })).status).toBe(401)
      expect((await host.send({ path: '/other' })).status).toBe(404)
    },
  )

  it('is mounted beside a service below a prefix: Hono', async () => {
    const app = new Hono()
    app.use('/.well-known/*', honoMiddleware(handler))
    app.use('/api/*', honoMiddleware(createService(), { prefix: '/api' }))
    host = await runServer(createAdaptorServer({ fetch: app.fetch }) as ReturnType<typeof createServer>)
    expect(parse(await host.send({ path: PATH }))).toEqual(DOCUMENT)
    expect((await host.send({ path: '/api/notes' })).status).toBe(401)
  })

  it.each([
    ['https://api.example', '/.well-known/oauth-protected-resource', 200],
    ['https://api.example/', '/.well-known/oauth-protected-resource', 200],
    ['https://api.example/', '/.well-known/oauth-protected-resource/', 404],
    ['https://api.example/a/b', '/.well-known/oauth-protected-resource/a/b', 200],
    ['https://api.example/a/', '/.well-known/oauth-protected-resource/a/', 200],
    ['https://api.example/a/', '/.well-known/oauth-protected-resource/a', 200],
    ['https://api.example/a', '/.well-known/oauth-protected-resource/a/', 404],
    ['https://api.example/%C3%BC', '/.well-known/oauth-protected-resource/%C3%BC', 200],
    ['https://api.example:8443/a', '/.well-known/oauth-protected-resource/a', 200],
    ['https://api.example/a?tenant=1', '/.well-known/oauth-protected-resource/a?tenant=1', 200],
    ['https://api.example/a?tenant=1', '/.well-known/oauth-protected-resource/a?tenant=2', 404],
    ['https://api.example/a?tenant=1', '/.well-known/oauth-protected-resource/a', 404],
  ])('serves %s at %s: %i (RFC 9728 §3.1)', async (resource, path, expected) => {
    host = await runListener(protectedResourceMetadata({ resource }))
    const { status, body } = await host.send({ path })
    expect(status).toBe(expected)
    if (expected === 200) {
      expect(JSON.parse(body.toString())).toEqual({ resource, bearer_methods_supported: ['header'] })
    }
  })

  it('leaves out lists without values (RFC 9728 §3.2)', async () => {
    host = await runListener(protectedResourceMetadata({ resource: 'https://api.example/a', scopes: [] }))
    const { body } = await host.send({ path: '/.well-known/oauth-protected-resource/a' })
    expect(JSON.parse(body.toString())).toEqual({
      resource: 'https://api.example/a',
      bearer_methods_supported: ['header'],
    })
  })
})
