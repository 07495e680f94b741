import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import Koa from 'koa'
import Koa2 from 'koa2'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { negotiate } from '../../src/auth-schemes/negotiate.ts'
import { type AuthOptions, auth } from '../../src/handlers/auth.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { patch } from '../../src/handlers/patch.ts'
import { range } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer, sendHttp } from '../support/hosts.ts'
import { type Fields, serve } from './serve.ts'

const schemes = [basic({ accounts: { ada: 'a' } })]
const ada = { Authorization: `Basic ${btoa('ada:a')}` }
const cachingOf = (answer: Answer) => [answer.field('cache-control'), answer.field('vary')]

/** Routes behind a guard, as an Express user writes them. */
function createApp(requireAuth: 'all' | 'writes', cacheControl?: string) {
  const app = express()
  app.disable('x-powered-by').disable('etag')
  const caching = cacheControl === undefined ? {} : { cacheControl }
  app.use(auth({ schemes, requireAuth }) as unknown as express.RequestHandler)
  const use = (path: string, piece: unknown) => app.use(path, piece as express.RequestHandler)
  use(
    '/range',
    range(() => ({ contentType: 'text/plain', content: 'content', entityTag: '"1"', ...caching })),
  )
  use(
    '/conditional',
    conditional(() => ({ entityTag: '"1"', ...caching })),
  )
  use('/patch', patch({ read: () => ({ document: { a: 1 } }), write: () => {} }))
  app.use((_req, res) => void res.send('the route'))
  return app
}

describe('auth before another middleware or a route', () => {
  it('has the Cache-Control and the Vary of a service, where credentials are needed and where they are optional', async () => {
    const service = createResourceService(memoryStore(), { auth: { schemes, requireAuth: 'writes' } })
    const inService = await serve(service)
    await inService('PUT', '/a', { ...ada, 'Content-Type': 'text/plain' }, 'content')
    const expected = {
      known: cachingOf(await inService('GET', '/a', ada)),
      anonymous: cachingOf(await inService('GET', '/a')),
    }
    expect(expected).toEqual({
      known: ['private, no-cache', 'Authorization'],
      anonymous: ['no-cache', 'Authorization'],
    })
    const send = await serve(createApp('writes'))
    const asked: readonly (readonly [string, Fields])[] = [
      ['/range', {}],
      ['/range', { Range: 'bytes=0-1' }],
      ['/range', { 'If-None-Match': '"1"' }],
      ['/conditional', {}],
      ['/conditional', { 'If-None-Match': '"1"' }],
      ['/elsewhere', {}],
    ]
    for (const [path, fields] of asked) {
      // A 206 differs from the 200 by no-transform alone (RFC 9111 §5.2.2.6).
      const added = 'Range' in fields ? ', no-transform' : ''
      expect([path, fields, cachingOf(await send('GET', path, { ...fields, ...ada }))]).toEqual([
        path,
        fields,
        [`${expected.known[0]}${added}`, expected.known[1]],
      ])
      const [cacheControl, vary] = cachingOf(await send('GET', path, fields))
      expect([path, vary, [`no-cache${added}`, undefined].includes(cacheControl)]).toEqual([
        path,
        'Authorization',
        true,
      ])
    }
    const patched = await send('PATCH', '/patch', { ...ada, 'Content-Type': 'application/merge-patch+json' }, '{"a":2}')
    expect([patched.status, ...cachingOf(patched)]).toEqual([200, ...expected.known])
    const refused = await (await serve(createApp('all')))('GET', '/range')
    expect([refused.status, ...cachingOf(refused)]).toEqual([401, 'no-store', 'Authorization'])
  })

  it('sends the Cache-Control of the route where the principal came from Authorization (RFC 9111 §3.5)', async () => {
    for (const [configured, expected] of [
      ['max-age=60', 'max-age=60'],
      ['max-age=60, must-revalidate', 'private, max-age=60, must-revalidate'],
      ['public, max-age=60', 'public, max-age=60'],
    ] as const) {
      const send = await serve(createApp('writes', configured))
      for (const path of ['/range', '/conditional']) {
        for (const fields of [{}, { 'If-None-Match': '"1"' }]) {
          expect(cachingOf(await send('GET', path, { ...fields, ...ada }))).toEqual([expected, 'Authorization'])
          expect(cachingOf(await send('GET', path, fields))).toEqual([configured, 'Authorization'])
        }
      }
    }
  })

  it('keeps the Cache-Control of the host, whatever a middleware behind it says', async () => {
    for (const guards of [[], [auth({ schemes })]]) {
      const app = express()
      app.use((_req, res, next) => void next(res.setHeader('Cache-Control', 'max-age=5') === res ? undefined : 'error'))
      for (const guard of guards) app.use(guard as unknown as express.RequestHandler)
      app.use(
        conditional(() => ({ entityTag: '"1"', cacheControl: 'max-age=60' })) as unknown as express.RequestHandler,
      )
      app.use((_req, res) => void res.send('the route'))
      const send = await serve(app)
      expect((await send('GET', '/', ada)).field('cache-control')).toBe('max-age=5')
    }
  })

  it('keeps the Cache-Control that the host sets behind the guard, where range says nothing', async () => {
    const caching = 'max-age=60, must-revalidate'
    const piece = range(() => ({ contentType: 'text/plain', entityTag: '"1"', content: 'a' }))
    const guard = auth({ schemes })
    const send = await serve((req, res) => {
      guard(req, res, (error) => {
        if (error !== undefined) throw error
        res.setHeader('Cache-Control', caching)
        piece(req, res)
      })
    })
    for (const fields of [{}, { 'If-None-Match': '"1"' }]) {
      expect((await send('GET', '/', { ...fields, ...ada })).field('cache-control')).toBe(caching)
    }
  })

  it('keeps the Cache-Control of the host, made private for Negotiate and for a principal of the host', async () => {
    const acceptor = () => ({ step: () => ({ outcome: 'complete' as const, name: 'ada@EXAMPLE.TEST' }) })
    const guards = [
      [auth({ schemes }), ada, 'public, max-age=60'],
      [auth({ schemes: [negotiate({ acceptor })] }), { Authorization: 'Negotiate YQ==' }, 'private, max-age=60'],
      [auth({ principal: () => ({ id: 'ada' }), challenge: 'Session' }), {}, 'private, max-age=60'],
    ] as const
    for (const [guard, fields, expected] of guards) {
      const send = await serve((req, res) => {
        res.setHeader('Cache-Control', 'public, max-age=60')
        guard(req, res, () => res.end('the route'))
      })
      expect((await send('GET', '/', fields)).field('cache-control')).toBe(expected)
    }
  })

  it('makes it private on Fastify and Hono too, which keep their fields elsewhere, and leaves that of the route', async () => {
    const guard = auth({ principal: () => ({ id: 'ada' }), challenge: 'Session' })
    const onFastify = fastify()
    onFastify.addHook('onRequest', async (_request, reply) => void reply.header('Cache-Control', 'public, max-age=60'))
    await onFastify.register(fastifyPlugin(guard))
    onFastify.get('/', async () => 'the route')
    onFastify.get('/own', async (_request, reply) => reply.header('Cache-Control', 'max-age=5').send('the route'))
    await onFastify.ready()
    const onHono = new Hono()
    onHono.use(async (context, next) => {
      context.header('Cache-Control', 'public, max-age=60')
      await next()
    })
    onHono.use(honoMiddleware(guard))
    onHono.get('/', (context) => context.text('the route'))
    onHono.get('/own', (context) => {
      context.header('Cache-Control', 'max-age=5')
      return context.text('the route')
    })
    for (const server of [onFastify.server, createAdaptorServer({ fetch: onHono.fetch }) as Server]) {
      const { port, close } = await runServer(server)
      closeAfterTest(close)
      const sent = await Promise.all(['/', '/own'].map((path) => sendHttp(port, { path })))
      expect(sent.map(({ status, field }) => [status, field('cache-control')])).toEqual([
        [200, 'private, max-age=60'],
        [200, 'max-age=5'],
      ])
    }
  })

  const user = () => auth({ principal: () => ({ id: 'ada' }), principalIsAmbient: false, challenge: 'Host' })
  const state = () => conditional(() => ({ entityTag: '"1"', lastModified: 0, cacheControl: 'public, max-age=60' }))
  it.each([
    ['', [user()], 'private, no-cache'],
    [' behind conditional', [state()], undefined],
    [' behind auth and conditional', [user(), state()], 'private, no-cache'],
  ])(
    'says so of an error that the route throws as well, on every host%s: caches keep a 404 that says nothing (RFC 9110 §15.1)',
    async (_, pieces, caching) => {
      const absent = () => Object.assign(new Error('absent'), { status: 404, statusCode: 404, expose: true })
      const onExpress = [express, express4 as unknown as typeof express].map((create) => {
        const app = create().use(...(pieces as unknown as express.RequestHandler[]))
        return createServer(app.use((_req, _res, next) => next(absent())))
      })
      const onKoa = [Koa, Koa2 as unknown as typeof Koa].map((App) => {
        const app = new App()
        for (const piece of pieces) app.use(koaMiddleware(piece))
        app.use((context) => context.throw(404))
        return createServer(app.callback())
      })
      const onFastify = fastify()
      for (const piece of pieces) await onFastify.register(fastifyPlugin(piece))
      onFastify.get('/', async () => Promise.reject(absent()))
      await onFastify.ready()
      const onHono = new Hono().use(...pieces.map((piece) => honoMiddleware(piece))).get('/', () => {
        throw new HTTPException(404)
      })
      const servers = [...onExpress, ...onKoa, onFastify.server, createAdaptorServer({ fetch: onHono.fetch }) as Server]
      for (const server of servers) {
        const { port, close } = await runServer(server)
        closeAfterTest(close)
        const { status, field } = await sendHttp(port, { path: '/' })
        const fields = ['cache-control', 'etag', 'last-modified'].map((name) => field(name))
        expect([status, ...fields]).toEqual([404, caching, undefined, undefined])
      }
    },
  )

  it('leaves the Cache-Control of its own that a route gives an error behind auth and conditional', async () => {
    const app = express()
    for (const piece of [user(), state()]) app.use(piece as unknown as express.RequestHandler)
    app.use((_req, res) => void res.status(404).set('Cache-Control', 'no-store').send('absent'))
    const answer = await (await serve(app))('GET', '/')
    expect([answer.status, answer.field('cache-control'), answer.field('etag')]).toEqual([404, 'no-store', undefined])
  })

  it('sends each field once where a request passes two guards', async () => {
    const app = express()
    for (let i = 0; i < 2; i++) app.use(auth({ schemes }) as unknown as express.RequestHandler)
    app.use((_req, res) => void res.send('the route'))
    const answer = await (await serve(app))('GET', '/', ada)
    expect([answer.values('cache-control').length, answer.values('vary').length, ...cachingOf(answer)]).toEqual([
      ...[1, 1],
      ...['private, no-cache', 'Authorization'],
    ])
  })

  it('leaves private what a guard has found private, where credentials count behind it', async () => {
    const store = memoryStore()
    await (await serve(createResourceService(store)))('PUT', '/a', { 'Content-Type': 'text/plain' }, 'content')
    const service = createResourceService(store, { auth: { schemes }, cacheControl: 'public, max-age=60' })
    const app = express()
    // Vary does not name the field that users are found by: a cache would give others what they get.
    const principal: AuthOptions['principal'] = ({ headers }) => headers['x-user'] !== undefined && { id: 'ada' }
    app.use(auth({ principal, principalIsAmbient: false, challenge: 'Host' }) as unknown as express.RequestHandler)
    app.use(
      '/range',
      auth({ schemes }) as unknown as express.RequestHandler,
      range(() => ({
        contentType: 'text/plain',
        content: 'content',
        cacheControl: 'public, max-age=60',
      })) as unknown as express.RequestHandler,
    )
    app.use(service as unknown as express.RequestHandler)
    const send = await serve(app)
    for (const path of ['/a', '/range']) {
      const answer = await send('GET', path, { ...ada, 'X-User': 'ada' })
      expect([path, answer.status, cachingOf(answer)[0]?.startsWith('private')]).toEqual([path, 200, true])
    }
  })
})
