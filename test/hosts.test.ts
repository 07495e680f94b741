import { createServer } from 'node:http'
import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { koaMiddleware } from '../src/adapters/koa.ts'
import { attach } from '../src/adapters/node.ts'
import { basic } from '../src/auth-schemes/basic.ts'
import { createResourceService, type ResourceService } from '../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../src/service/resource-definitions.ts'
import { memoryStore } from '../src/stores/memory.ts'
import { describeAnswer } from './support/describe-answer.ts'
import { hosts, type Request, type RunningHost, runServer, startHost } from './support/hosts.ts'

const running: RunningHost[] = []
afterEach(async () => {
  for (const host of running.splice(0)) await host.close()
})

async function start(name: string, handler: ResourceService, prefix: string): Promise<RunningHost> {
  const host = await startHost(name, handler, prefix)
  running.push(host)
  return host
}

function createService(): ResourceService {
  return createResourceService(memoryStore(), {
    resources: {
      '/users': collection(),
      '/docs': collection({ types: ['*/*'] }),
      '/config': singleton(),
      '/strict/{name}': document({ preconditions: 'required' }),
      '/secret/{name}': document({ requireAuth: 'all' }),
    },
    cors: { origins: ['https://app.example'], maxAge: 600 },
    auth: { schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })], requireAuth: 'writes' },
    maxTargetLength: 2048,
    https: 'optional',
    fallthrough: false,
  })
}

const json = { 'Content-Type': 'application/json' }
const ada = { Authorization: `Basic ${btoa('ada:lovelace')}` }
const foreign = { Origin: 'https://app.example' }
const big = Buffer.alloc(200_000, 'abcdefghij')

/** What every host must answer, in this order, on a service of its own. */
const script: readonly (Request & { readonly expect: number })[] = [
  { path: '/users', expect: 200 },
  { method: 'HEAD', path: '/users', expect: 200 },
  { method: 'POST', path: '/users', headers: { ...json, ...ada }, body: '{"name":"Ada"}', expect: 201 },
  { method: 'POST', path: '/users', headers: { ...json, ...ada }, body: '{"name":"Grace \u{1f30d}"}', expect: 201 },
  { method: 'POST', path: '/users', headers: json, body: '{"name":"Eve"}', expect: 401 },
  { method: 'POST', path: '/users', headers: { ...json, ...ada }, body: '{"name":', expect: 400 },
  { method: 'POST', path: '/users', headers: { 'Content-Type': 'text/xml', ...ada }, body: '<a/>', expect: 415 },
  { path: '/users', expect: 200 },
  { path: '/users?limit=1', expect: 200 },
  { path: '/users/1', expect: 200 },
  { path: '/users/2', headers: foreign, expect: 200 },
  { path: '/users/1', headers: { 'If-None-Match': '*' }, expect: 304 },
  { path: '/users/1', headers: { Range: 'bytes=0-3' }, expect: 206 },
  { path: '/users/1', headers: { Range: 'bytes=0-1,4-5' }, expect: 206 },
  { path: '/users/1', headers: { Range: 'bytes=4000-' }, expect: 416 },
  { path: '/users/1', headers: { Accept: 'image/png' }, expect: 406 },
  { path: '/users/9', expect: 404 },
  { path: '/nothing', expect: 404 },
  { path: '/users/', expect: 404 },
  {
    method: 'PATCH',
    path: '/users/1',
    headers: { 'Content-Type': 'application/merge-patch+json', ...ada },
    body: '{"role":"admin"}',
    expect: 200,
  },
  { method: 'PATCH', path: '/users/1', headers: { ...json, ...ada }, body: '{}', expect: 415 },
  { method: 'PUT', path: '/config', headers: { ...json, ...ada }, body: '{"debug":true}', expect: 201 },
  { method: 'PUT', path: '/config', headers: { ...json, ...ada }, body: '{"debug":false}', expect: 200 },
  {
    method: 'PUT',
    path: '/config',
    headers: { ...json, ...ada, 'If-Match': '"other"' },
    body: '{"debug":false}',
    expect: 412,
  },
  {
    method: 'PUT',
    path: '/docs/%C3%BC',
    headers: { ...ada, 'Content-Type': 'text/html; charset=utf-8' },
    body: '<p>text',
    expect: 201,
  },
  { path: '/docs/%C3%BC', expect: 200 },
  {
    method: 'PUT',
    path: '/docs/big',
    headers: { ...ada, 'Content-Type': 'application/x-big' },
    body: big,
    expect: 201,
  },
  { path: '/docs/big', expect: 200 },
  { path: '/docs/big', headers: { Range: 'bytes=-100000' }, expect: 206 },
  { method: 'HEAD', path: '/docs/big', expect: 200 },
  { method: 'PUT', path: '/strict/a', headers: { ...ada, ...json }, body: '1', expect: 201 },
  { method: 'PUT', path: '/strict/a', headers: { ...ada, ...json }, body: '2', expect: 428 },
  { path: '/secret/a', headers: foreign, expect: 401 },
  { path: '/secret/a', headers: ada, expect: 404 },
  { method: 'HEAD', path: '/users/1', headers: { 'If-None-Match': '*' }, expect: 304 },
  { method: 'HEAD', path: '/users/1', headers: { Range: 'bytes=4000-' }, expect: 200 },
  { method: 'HEAD', path: '/users/9', expect: 404 },
  { method: 'HEAD', path: '/secret/a', expect: 401 },
  { path: '/users/1', headers: { 'If-Match': '"other"' }, expect: 412 },
  { path: '/users/9', headers: { Accept: 'text/plain' }, expect: 406 },
  { path: '/secret/a', headers: { Authorization: 'Negotiate' }, expect: 401 },
  { method: 'PUT', path: '/docs/empty', headers: { ...ada, 'Content-Type': 'text/plain' }, body: '', expect: 201 },
  { path: '/docs/empty', expect: 200 },
  { method: 'HEAD', path: '/docs/empty', expect: 200 },
  { path: '/docs/big', headers: { Range: 'bytes=0-9,100-109', 'If-Range': '"other"' }, expect: 200 },
  { path: '/docs/big', headers: { Range: 'bytes=0-9,199990-' }, expect: 206 },
  {
    method: 'PUT',
    path: '/docs/big',
    headers: { ...ada, 'Content-Type': 'application/x-big', 'If-Match': '"other"' },
    body: big,
    expect: 412,
  },
  { method: 'PUT', path: '/docs/big', headers: { 'Content-Type': 'text/plain' }, body: big, expect: 401 },
  {
    method: 'POST',
    path: '/users',
    headers: { ...ada, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'name=%C3%84da&name=x',
    expect: 201,
  },
  {
    method: 'POST',
    path: '/users',
    headers: { ...json, ...ada, Prefer: 'return=minimal' },
    body: '{"name":"Ada"}',
    expect: 201,
  },
  {
    method: 'POST',
    path: '/users',
    headers: { ...json, ...ada, Origin: 'https://evil.example' },
    body: '{}',
    expect: 403,
  },
  { method: 'POST', path: '/users', headers: { ...json, ...ada, ...foreign }, body: '{"name":"Ada"}', expect: 201 },
  { path: '/users?limit=2', headers: foreign, expect: 200 },
  { path: '/users?limit=x', expect: 400 },
  { method: 'DELETE', path: '/users/1', headers: ada, expect: 204 },
  { path: '/users/1', expect: 410 },
  { method: 'OPTIONS', path: '/users/2', expect: 204 },
  {
    method: 'OPTIONS',
    path: '/users/2',
    headers: { ...foreign, 'Access-Control-Request-Method': 'PUT' },
    expect: 204,
  },
  { method: 'OPTIONS', path: '/nothing', expect: 404 },
  { method: 'DELETE', path: '/users', headers: ada, expect: 405 },
  { method: 'PROPFIND', path: '/users', expect: 501 },
  { method: 'TRACE', path: '/users', expect: 501 },
  { method: 'QUERY', path: '/users', headers: json, body: '{}', expect: 501 },
  {
    method: 'OPTIONS',
    path: '/users/2',
    headers: { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'PUT' },
    expect: 204,
  },
  { path: '/users/%zz', expect: 400 },
  { path: '/users/%2f', expect: 400 },
  { path: '//users', expect: 400 },
  { path: '/docs/../users', expect: 400 },
  { path: `/users?${'a'.repeat(2100)}`, expect: 414 },
]

async function play(host: RunningHost, prefix: string) {
  const answers = []
  for (const { expect: status, ...request } of script) {
    const answer = await host.send({ ...request, path: prefix + request.path })
    answers.push({
      request: `${request.method ?? 'GET'} ${request.path}`,
      expect: status,
      ...describeAnswer(answer, prefix),
    })
  }
  return answers
}

describe.each(['', '/api'])('every host under "%s"', (prefix) => {
  let reference: Awaited<ReturnType<typeof play>>
  beforeAll(async () => {
    const host = await startHost('plain', createService(), prefix)
    reference = await play(host, prefix)
    await host.close()
  })

  it('answers each request of the contract as it should', () => {
    expect(reference.map(({ request, status }) => `${request} ${status}`)).toEqual(
      reference.map(({ request, expect }) => `${request} ${expect}`),
    )
  })

  it.each(Object.keys(hosts).filter((name) => name !== 'plain'))('answers on %s as on plain http', async (name) => {
    const host = await start(name, createService(), prefix)
    const answers = await play(host, prefix)
    // Fastify refuses broken escapes before any plugin sees them: as we would, but in its own words.
    const ours = (answer: (typeof answers)[number]): boolean => name !== 'Fastify' || !answer.request.includes('%zz')
    expect(answers.filter(ours)).toEqual(reference.filter(ours))
    expect(answers.map(({ status }) => status)).toEqual(reference.map(({ status }) => status))
  })
})

describe.each(Object.keys(hosts).filter((name) => name !== 'http2' && name !== 'https'))('attach on %s', (name) => {
  it('answers OPTIONS * (RFC 9110 §9.3.7)', async () => {
    const host = await start(name, createService(), '/api')
    const { status, headers } = await host.send({ method: 'OPTIONS', path: '*' })
    expect(status).toBe(204)
    expect(headers['allow']).toBe('GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  })

  it('refuses before it asks for the content (RFC 9110 §10.1.1)', async () => {
    const host = await start(name, createService(), '/api')
    const answer = await host.send({
      method: 'PUT',
      path: '/api/docs/a',
      headers: { Expect: '100-continue', 'Content-Length': '1000000' },
    })
    expect(answer.status).toBe(401)
  })
})

describe('a body that the host has parsed', () => {
  const send = (host: RunningHost, path: string, type: string, body: string) =>
    host.send({ method: 'POST', path, headers: { 'Content-Type': type, ...ada }, body })

  it.each([
    ['Express 5', express],
    ['Express 4', express4],
  ])('is used behind the parsers of %s', async (_, create) => {
    const app = create()
    app.use(create.json(), create.urlencoded({ extended: true }), create.text())
    app.use('/api', createService() as unknown as express.RequestHandler)
    const host = await runServer(createServer(app))
    running.push(host)
    const created = await send(host, '/api/users', 'application/json', '{"name":"Ada"}')
    expect(created.status).toBe(201)
    expect(JSON.parse(created.body.toString())).toEqual({ id: 1, name: 'Ada' })
    const form = await send(host, '/api/users', 'application/x-www-form-urlencoded', 'name=Grace')
    expect(JSON.parse(form.body.toString())).toEqual({ id: 2, name: 'Grace' })
  })

  it('is used behind a parser of Koa', async () => {
    const app = new Koa()
    app.use(async (context, next) => {
      const chunks: Buffer[] = []
      for await (const chunk of context.req) chunks.push(chunk as Buffer)
      ;(context.request as { body?: unknown }).body = JSON.parse(Buffer.concat(chunks).toString())
      await next()
    })
    app.use(koaMiddleware(createService()) as unknown as Koa.Middleware)
    const host = await runServer(createServer(app.callback()))
    running.push(host)
    const created = await send(host, '/users', 'application/json', '{"name":"Ada"}')
    expect(created.status).toBe(201)
  })

  it('ends in a clear error where it is gone', async () => {
    const app = express()
    app.use((req, _res, next) => {
      req.resume()
      req.on('end', () => next())
    })
    const service = createService()
    app.use(service as unknown as express.RequestHandler)
    const host = await runServer(createServer(app))
    running.push(host)
    expect((await send(host, '/users', 'application/json', '{"name":"Ada"}')).status).toBe(500)
  })
})

describe('attach with "direct"', () => {
  it('takes the paths it owns past the host, and leaves the rest to it', async () => {
    const app = express()
    app.get('/api/own', (_req, res) => void res.send('host'))
    app.get('/other', (_req, res) => void res.send('host'))
    const service = createResourceService(memoryStore(), { resources: { '/users': collection() } })
    const server = createServer(app)
    attach(server, service, { direct: '/api' })
    const host = await runServer(server)
    running.push(host)
    const users = await host.send({ path: '/api/users' })
    expect(users.headers['x-powered-by']).toBeUndefined()
    expect(users.status).toBe(200)
    expect((await host.send({ path: '/api/own' })).body.toString()).toBe('host')
    expect((await host.send({ path: '/other' })).body.toString()).toBe('host')
  })
})
