import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import connect from 'connect'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { type AnyServer, attach, mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { auth } from '../../src/handlers/auth.ts'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { basicCredentials } from '../auth-schemes/guarded-server.ts'
import { formatRequest } from '../support/ask.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { listen, send } from './raw.ts'

const routed: Readonly<Record<string, () => Promise<Server>>> = {
  async Fastify() {
    const app = fastify()
    app.post('/x', () => 'POST')
    app.delete('/x', () => 'DELETE')
    await app.ready()
    return app.server
  },
  async Hono() {
    const app = new Hono()
    app.post('/x', (context) => context.text('POST'))
    app.delete('/x', (context) => context.text('DELETE'))
    return createAdaptorServer({ fetch: app.fetch }) as Server
  },
  async Express() {
    const app = express()
    app.post('/x', (_req, res) => void res.send('POST'))
    app.delete('/x', (_req, res) => void res.send('DELETE'))
    return createServer(app)
  },
}

describe('attach with a middleware', () => {
  it.each(Object.keys(routed))('runs it before the router of %s', async (name) => {
    const server = await routed[name]!()
    attach(server, methodOverride(), { direct: '' })
    const port = await listen(server)
    const fields = ['X-HTTP-Method-Override: DELETE']
    expect((await send(port, { method: 'POST', target: '/x', fields })).text).toBe('DELETE')
    expect((await send(port, { method: 'POST', target: '/x' })).text).toBe('POST')
    expect((await send(port, { method: 'POST', target: '/x', fields: ['X-HTTP-Method-Override: GET'] })).status).toBe(
      400,
    )
  })

  it('has 100 Continue sent where a host reads content as it becomes readable (RFC 9110 §10.1.1)', async () => {
    const server = createServer((req, res) => {
      req.on('readable', () => void req.read())
      req.on('end', () => res.end('read'))
    })
    attach(server, createResourceService(memoryStore(), { resources: { '/notes': collection() } }))
    const client = await openRawClient(await listen(server))
    client.send(
      formatRequest({ method: 'POST', target: '/other', fields: ['Expect: 100-continue', 'Content-Length: 3'] }),
    )
    expect((await client.read()).status).toBe(100)
    client.send('abc')
    expect((await client.read()).text).toBe('read')
    client.socket.destroy()
  })

  it.each([
    ['Express', (service: unknown) => express().use(service as express.RequestHandler)],
    ['Connect', (service: unknown) => connect().use(service as connect.NextHandleFunction)],
  ])('has 100 Continue sent where %s discards content by resume() (RFC 9110 §10.1.1)', async (_name, createApp) => {
    const service = createResourceService(memoryStore(), { resources: { '/notes': collection() } })
    const server = createServer(createApp(service))
    attach(server, service)
    const client = await openRawClient(await listen(server))
    client.send(
      formatRequest({ method: 'POST', target: '/other', fields: ['Expect: 100-continue', 'Content-Length: 3'] }),
    )
    expect((await client.read()).status).toBe(100)
    client.send('abc')
    expect((await client.read()).status).toBe(404)
    client.socket.destroy()
  })

  it('has a request that waits for 100 Continue handled once, also where two handlers are attached', async () => {
    const paths: string[] = []
    const service = createResourceService(memoryStore(), { resources: { '/notes': collection() } })
    const server = createServer((req, res) => {
      paths.push(req.url!)
      service(req, res, () => {
        req.resume().on('end', () => res.end('host'))
      })
    })
    attach(server, methodOverride(), { direct: '' })
    attach(server, service)
    const port = await listen(server)
    for (const [target, status] of [
      ['/notes', 201],
      ['/other', 200],
    ] as const) {
      const client = await openRawClient(port)
      const fields = ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2']
      client.send(formatRequest({ method: 'POST', target, fields: [...fields, 'Connection: close'] }))
      expect((await client.read()).status).toBe(100)
      client.send('{}')
      expect((await client.read()).status).toBe(status)
      expect(await client.rest()).toHaveLength(0)
    }
    expect(paths).toEqual(['/notes', '/other'])
    expect((await send(port, { method: 'GET', target: '/notes' })).text).toBe('[{"id":1}]')
  })

  it('emits "request" for a request that waits for 100 Continue, as instrumentation wraps it', async () => {
    const span = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    const authorize = (): boolean => seen.push(span.getStore()) > 0
    const service = createResourceService(memoryStore(), { resources: { '/notes': collection({ authorize }) } })
    const server = createServer(service)
    attach(server, service)
    const { emit } = server
    server.emit = (event: string, ...values: unknown[]): boolean => {
      const call = (): boolean => Reflect.apply(emit, server, [event, ...values]) as boolean
      return event === 'request' ? span.run('span', call) : call()
    }
    const fields = ['Expect: 100-continue', 'Content-Type: application/json', 'Content-Length: 2']
    const client = await openRawClient(await listen(server))
    client.send(formatRequest({ method: 'POST', target: '/notes', fields }))
    expect((await client.read()).status).toBe(100)
    client.send('{}')
    expect((await client.read()).status).toBe(201)
    client.socket.destroy()
    expect(new Set(seen)).toEqual(new Set(['span']))
  })

  it('leaves requests that wait for 100 Continue to the listener of the host for them', async () => {
    const server = createServer((_req, res) => void res.end('request'))
    server.on(
      'checkContinue',
      (_req, res) => void res.writeHead(417, { Connection: 'close', 'Content-Length': 0 }).end(),
    )
    attach(server, auth({ schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })] }), { direct: '/api' })
    const port = await listen(server)
    const fields = ['Expect: 100-continue', 'Content-Length: 3']
    expect((await send(port, { method: 'POST', target: '/x', fields })).status).toBe(417)
    expect((await send(port, { method: 'POST', target: '/api/x', fields })).status).toBe(401)
    expect((await send(port, { method: 'POST', target: '/x' })).text).toBe('request')
  })

  it('leaves an expectation that is unknown to the listener of the host for it, or answers 417 (RFC 9110 §10.1.1)', async () => {
    const own = createServer((_req, res) => void res.end('request'))
    own.on('checkExpectation', (_req, res) => void res.end('host'))
    for (const [server, status] of [
      [own, 200],
      [createServer(), 417],
    ] as const) {
      attach(server, createResourceService(memoryStore()))
      const answer = await send(await listen(server), { method: 'GET', target: '/x', fields: ['Expect: banana'] })
      expect(answer.status).toBe(status)
    }
  })

  it('has no 100 Continue sent once the response has begun (RFC 9110 §10.1.1)', async () => {
    const server = createServer((req, res) => {
      res.writeHead(200, { 'Content-Length': 2 }).flushHeaders()
      req.resume().on('data', () => {})
      res.end('ok')
    })
    attach(server, auth({ schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })] }))
    const port = await listen(server)
    const fields = ['Expect: 100-continue', 'Content-Length: 3']
    const answer = await send(port, { method: 'PUT', target: '/x', fields })
    expect([answer.status, answer.text]).toEqual([200, 'ok'])
  })

  it('lets it answer its own failure, which its onError receives with the path', async () => {
    const seen: unknown[] = []
    const verify = (): never => {
      throw new Error('no directory')
    }
    const onError = (error: unknown, { mount, path }: RequestView): unknown => seen.push([String(error), mount + path])
    const server = createServer((_req, res) => void res.end('host'))
    attach(server, auth({ schemes: [basic({ verify })], onError }), { direct: '/api' })
    const fields = [`Authorization: ${basicCredentials('a', 'b')}`]
    expect((await send(await listen(server), { method: 'GET', target: '/api/x', fields })).status).toBe(500)
    expect(seen).toEqual([['Error: no directory', '/api/x']])
  })

  it('reports an error that a service forwards with the path of the request', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    const authorize = (): never => {
      throw new Error('no directory')
    }
    const resources = { '/notes': collection({ authorize }) }
    const service = createResourceService(memoryStore(), { resources, unexpectedErrors: 'forward' })
    const server = createServer((_req, res) => void res.end('host'))
    attach(server, service, { direct: '/api' })
    expect((await send(await listen(server), { method: 'GET', target: '/api/notes?limit=1' })).status).toBe(500)
    expect(log.mock.calls.flat().join()).toContain('GET /api/notes failed: Error: no directory')
  })

  it('leaves OPTIONS * to the host, and refuses * with any other method (RFC 9112 §3.2.4)', async () => {
    const server = createServer((_req, res) => void res.end('host'))
    attach(server, auth({ schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })] }), { direct: '/api' })
    const port = await listen(server)
    expect((await send(port, { method: 'OPTIONS', target: '*' })).text).toBe('host')
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE', 'PROPFIND']) {
      expect([method, (await send(port, { method, target: '*' })).status]).toEqual([method, 400])
    }
  })
})

describe('attach', () => {
  const service = createResourceService(memoryStore())

  it('takes OPTIONS * for a service that is mounted, before a host and without one (RFC 9110 §9.3.7)', async () => {
    const host = mount('/api', service)
    const mounts = [host, mount('/api', service), mount('/b', mount('/api', service))]
    for (const mounted of mounts) {
      for (const server of [createServer(), createServer(host)]) {
        attach(server, mounted)
        const port = await listen(server)
        const { status, headers } = await send(port, { method: 'OPTIONS', target: '*' })
        expect([status, headers['allow']]).toEqual([204, 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'])
        expect((await send(port, { method: 'OPTIONS', target: '/elsewhere' })).status).toBe(404)
      }
    }
  })

  it.each<[string, () => unknown]>([
    ['Express', () => express()],
    ['Connect', () => connect()],
    ['Koa', () => new Koa()],
    ['Fastify', () => fastify()],
    ['Hono', () => new Hono()],
    ['nothing', () => undefined],
    ['a port', () => 8080],
  ])('names what was meant when it is given an application: %s', (_name, create) => {
    expect(() => attach(create() as AnyServer, service)).toThrow(
      'attach takes a server, as createServer(app) or app.listen() returns it (Fastify: app.server, Nest: app.getHttpServer()), not an application.',
    )
  })

  it('takes a handler, and a prefix that can match', () => {
    expect(() => attach(createServer(), undefined as never)).toThrow(
      'attach takes a service or a standalone middleware, as ',
    )
    expect(() => attach(createServer(), service, { direct: '/api/' })).toThrow(
      'attach takes as direct: a path such as ',
    )
    expect(() => attach(createServer(), service, '/api' as never)).toThrow(
      'attach takes an object of options, not text.',
    )
    expect(() => attach(createServer(), service, { prefix: '/api' } as never)).toThrow('attach has no option "prefix"')
  })
})
