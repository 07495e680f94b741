import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createAdaptorServer, type HttpBindings } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import Koa2 from 'koa2'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { Handler } from '../../src/core/handler.ts'
import { range } from '../../src/handlers/range.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer, sendHttp } from '../support/hosts.ts'
import { openRawClient } from '../wire/raw-client.ts'

/** Fields of content that a host means to send, which it sets before it knows who answers. */
const PRESET = { 'Content-Type': 'text/html', 'Transfer-Encoding': 'chunked', Trailer: 'X-Sum', 'X-Kept': 'yes' }

const onKoa = (App: typeof Koa) => (handler: Handler, fields: Readonly<Record<string, string>>) => {
  const app = new App()
  app.use((context, next) => {
    context.set(fields)
    return next()
  })
  app.use(koaMiddleware(handler))
  return createServer(app.callback())
}

type Create = (handler: Handler, fields: Readonly<Record<string, string>>) => Server | Promise<Server>

/** Hosts whose own middleware sets fields before the service answers. */
const hosts: Readonly<Record<string, Create>> = {
  plain: (handler, fields) =>
    createServer((req: IncomingMessage, res: ServerResponse) => {
      for (const [name, value] of Object.entries(fields)) res.setHeader(name, value)
      handler(req, res)
    }),
  Express: (handler, fields) =>
    createServer(
      express().use((_req, res, next) => {
        res.set(fields)
        next()
      }, handler),
    ),
  'Koa 2': onKoa(Koa2 as unknown as typeof Koa),
  'Koa 3': onKoa(Koa),
  async Fastify(handler, fields) {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => void reply.headers(fields))
    await app.register(fastifyPlugin(handler))
    await app.ready()
    return app.server
  },
  async 'the response of Node below Fastify'(handler, fields) {
    const app = fastify()
    app.addHook('onRequest', async (_request, { raw }) => {
      for (const [name, value] of Object.entries(fields)) raw.setHeader(name, value)
    })
    await app.register(fastifyPlugin(handler))
    await app.ready()
    return app.server
  },
  'the response of Node below Hono'(handler, fields) {
    const app = new Hono<{ Bindings: HttpBindings }>()
    app.use(async ({ env }, next) => {
      for (const [name, value] of Object.entries(fields)) env.outgoing.setHeader(name, value)
      await next()
    })
    app.use(honoMiddleware(handler))
    return createAdaptorServer({ fetch: app.fetch }) as Server
  },
  Hono(handler, fields) {
    const app = new Hono()
    app.use(async (context, next) => {
      for (const [name, value] of Object.entries(fields)) context.header(name, value)
      await next()
    })
    app.use(honoMiddleware(handler))
    return createAdaptorServer({ fetch: app.fetch }) as Server
  },
}

const service = () =>
  createResourceService(memoryStore(), { resources: { '/docs/{name}': document() }, fallthrough: false })

describe.each(Object.entries(hosts))('fields of content that %s has set before', (_name, create) => {
  it('give way to the length and the type of the answer (RFC 9112 §6.2, RFC 9110 §8.6)', async () => {
    const { port, close } = await runServer(await create(service(), PRESET))
    closeAfterTest(close)
    const client = await openRawClient(port)
    closeAfterTest(() => client.leave())
    const large = 'x'.repeat(2_000_000)
    const exchanges: readonly (readonly [method: string, status: number, fields: string, body: string])[] = [
      ['PUT', 201, 'Content-Type: text/plain\r\n', 'hello'],
      ['PUT', 204, 'Content-Type: text/plain\r\n', 'hello'],
      ['GET', 200, '', ''],
      ['GET', 206, 'Range: bytes=1-2\r\n', ''],
      ['HEAD', 200, '', ''],
      ['GET', 304, 'If-None-Match: *\r\n', ''],
      ['PUT', 412, 'Content-Type: text/plain\r\nIf-Match: "other"\r\n', 'hello'],
      ['OPTIONS', 204, '', ''],
      ['PUT', 204, 'Content-Type: text/plain\r\n', large],
      ['GET', 200, '', ''],
      ['DELETE', 204, '', ''],
      ['GET', 410, '', ''],
    ]
    for (const [method, status, fields, body] of exchanges) {
      const length = body === '' ? '' : `Content-Length: ${body.length}\r\n`
      client.send(`${method} /docs/a HTTP/1.1\r\nHost: a.test\r\n${fields}${length}\r\n${body}`)
      const answer = await client.read(method)
      expect([method, answer.status]).toEqual([method, status])
      const { headers } = answer
      expect([headers['transfer-encoding'], headers['trailer'], headers['x-kept']]).toEqual([
        undefined,
        undefined,
        'yes',
      ])
      expect(headers['content-type']).not.toBe('text/html')
      if (status === 204 || status === 304) expect(headers['content-length']).toBeUndefined()
    }
  })
})

describe.each(Object.entries(hosts))('a connection that %s has said to keep', (_name, create) => {
  const start = async (handler: Handler): Promise<number> => {
    const { port, close } = await runServer(await create(handler, { Connection: 'keep-alive' }))
    closeAfterTest(close)
    return port
  }

  it.each([
    ['the client asks for it', 'GET /docs/a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n'],
    ['HTTP/1.0 has it so', 'GET /docs/a HTTP/1.0\r\n\r\n'],
    [
      'the framing is faulty',
      'DELETE /docs/a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
  ])('ends where %s (RFC 9112 §9.6)', async (_why, request) => {
    const client = await openRawClient(await start(service()))
    client.send(request)
    const answer = (await client.readToEnd()).toString()
    expect(answer.match(/^connection: .*$/gim)).toEqual([expect.stringMatching(/^connection: close\r?$/i)])
  })

  it('ends when the service closes', async () => {
    const handler = service()
    const port = await start(handler)
    await handler.close()
    const client = await openRawClient(port)
    client.send('GET /docs/a HTTP/1.1\r\nHost: a.test\r\n\r\n')
    expect((await client.readToEnd()).toString()).toMatch(/\r\nconnection: close\r\n/i)
  })
})

it.each(Object.entries(hosts))(
  'ends in %s where the client asks for it and the answer has Connection',
  async (_name, create) => {
    const upgrade = requireHttps({ status: 426, trustProxy: 'loopback', log: false })
    const { port, close } = await runServer(await create(upgrade, {}))
    closeAfterTest(close)
    const client = await openRawClient(port)
    client.send('GET /docs/a HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: http\r\nConnection: close\r\n\r\n')
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 426 [\s\S]*\r\nconnection: Upgrade, close\r\n/i)
  },
)

it.each([
  ['keep-alive', 'keep-alive, close'],
  ['Close', 'Close'],
])('ends where the client asks for it and an error has Connection: %s', async (connection, sent) => {
  const authorize = (): never => {
    throw new HttpError(503, 'ERR_BUSY', { headers: { connection } })
  }
  const { port, close } = await runServer(
    createServer(createResourceService(memoryStore(), { resources: { '/a': document({ authorize }) } })),
  )
  closeAfterTest(close)
  const client = await openRawClient(port)
  client.send('GET /a HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
  expect((await client.readToEnd()).toString()).toContain(`\r\nConnection: ${sent}\r\n`)
})

it('leaves none of its fields on the error that is sent in its place', async () => {
  const state = { path: '/a', version: 'v', contentType: 'text/plain', size: 1, body: 'a', contentLanguage: 'de\n' }
  const store = { ...memoryStore(), read: () => state }
  const handler = createResourceService(store, {
    resources: { '/a': document({ storedHeaders: ['Content-Language'] }) },
  })
  const { port, close } = await runServer(await hosts['plain']!(handler, PRESET))
  closeAfterTest(close)
  const answer = await sendHttp(port, { path: '/a' })
  const names = ['X-Kept', 'ETag', 'Content-Language'].map((name) => answer.field(name.toLowerCase()))
  expect([answer.status, ...names]).toEqual([500, 'yes', undefined, undefined])
})

it('leaves no length on an answer of HTTP/2 that has no content', async () => {
  const handler = service()
  const server = createHttp2Server((req, res) => {
    res.setHeader('Content-Length', '5')
    res.setHeader('Content-Type', 'text/html')
    handler(req, res)
  }) as unknown as Server
  const host = await runServer(server, 'http2')
  closeAfterTest(host.close)
  const put = { method: 'PUT', path: '/docs/a', headers: { 'Content-Type': 'text/plain' }, body: 'hello' }
  expect((await host.send(put)).status).toBe(201)
  const { status, headers } = await host.send(put)
  expect([status, headers['content-length'], headers['content-type']]).toEqual([204, undefined, undefined])
})

describe.each(Object.entries(hosts))('Cache-Control that %s has set before range', (_name, create) => {
  it('is that of the answer, where the source has none (RFC 9110 §15.4.5)', async () => {
    const source = { contentType: 'text/plain', entityTag: '"a"', content: 'hello' }
    const served = range(({ path }) => (path === '/own' ? { ...source, cacheControl: 'no-store' } : source))
    const { port, close } = await runServer(await create(served, { 'Cache-Control': 'max-age=5' }))
    closeAfterTest(close)
    const fieldOf = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
      const { status, field } = await sendHttp(port, { path, headers })
      return [status, field('cache-control')]
    }
    expect(await fieldOf('/')).toEqual([200, 'max-age=5'])
    expect(await fieldOf('/', { 'If-None-Match': '"a"' })).toEqual([304, 'max-age=5'])
    expect(await fieldOf('/', { Range: 'bytes=0-1' })).toEqual([206, 'max-age=5, no-transform'])
    expect(await fieldOf('/own')).toEqual([200, 'no-store'])
  })
})
