import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import connect from 'connect'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import { compress } from 'hono/compress'
import { cors } from 'hono/cors'
import Koa from 'koa'
import Koa2 from 'koa2'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import { auth } from '../../src/handlers/auth.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { hosts } from '../support/hosts.ts'
import { listen, send } from './raw.ts'

const ORIGIN = 'https://app.example'
const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
const content = 'text '.repeat(500)

/** What the middleware around has seen when the answer was ready: status and Vary. */
type See = (status: number, vary: string | undefined) => void

interface VaryHost {
  /**
   * A host with pieces before a route that says `Vary: Accept`, or fails below `/fail`. Where the host's own way to set a
   * field replaces the value, the route does that.
   */
  create(pieces: readonly Handler[], see: See): Server | Promise<Server>
  /** What else the host puts into Vary. */
  readonly extra?: string
}

function onKoa(App: typeof Koa): VaryHost {
  return {
    create(pieces, see) {
      const app = new App()
      app.silent = true
      app.use(async (context, next) => {
        await next()
        see(context.status, context.response.get('Vary'))
      })
      for (const piece of pieces) app.use(koaMiddleware(piece))
      app.use((context) => {
        if (context.path === '/fail') throw new Error('failed')
        context.set('Vary', 'Accept')
        if (context.path === '/open') context.set('Access-Control-Allow-Origin', '*')
        context.body = content
      })
      return createServer(app.callback())
    },
  }
}

function onExpress(create: typeof express): VaryHost {
  return {
    create(pieces, see) {
      const app = create()
      app.use((_req, res, next) => {
        res.on('finish', () => see(res.statusCode, String(res.getHeader('Vary'))))
        next()
      })
      app.use(...pieces)
      app.get('/fail', () => {
        throw new Error('failed')
      })
      app.get('/open', (_req, res) => void res.set('Access-Control-Allow-Origin', '*').send(content))
      app.use((_req, res) => void res.vary('Accept').send(content))
      app.use(((_error, _req, res, _next) => void res.sendStatus(500)) as express.ErrorRequestHandler)
      return createServer(app)
    },
  }
}

const varyHosts: Readonly<Record<string, VaryHost>> = {
  Connect: {
    create(pieces, see) {
      const app = connect()
      app.use((_req, res, next) => {
        res.on('finish', () => see(res.statusCode, String(res.getHeader('Vary'))))
        next()
      })
      for (const piece of pieces) app.use(piece as connect.NextHandleFunction)
      app.use('/fail', () => {
        throw new Error('failed')
      })
      app.use(((_error, _req, res, _next) => {
        res.statusCode = 500
        res.end('failed')
      }) as connect.ErrorHandleFunction)
      app.use((req, res) => {
        res.appendHeader('Vary', 'Accept')
        if (req.url === '/open') res.setHeader('Access-Control-Allow-Origin', '*')
        res.end(content)
      })
      return createServer(app)
    },
  },
  'Express 4': onExpress(express4 as unknown as typeof express),
  'Express 5': onExpress(express),
  'Koa 2': onKoa(Koa2 as unknown as typeof Koa),
  'Koa 3': onKoa(Koa),
  Fastify: {
    async create(pieces, see) {
      const app = fastify()
      app.addHook('onResponse', async (_request, reply) => see(reply.statusCode, String(reply.getHeader('vary'))))
      for (const piece of pieces) app.register(fastifyPlugin(piece))
      app.get('/fail', () => {
        throw new Error('failed')
      })
      app.get('/open', (_request, reply) => void reply.header('Access-Control-Allow-Origin', '*').send(content))
      app.get('/', (_request, reply) => void reply.header('Vary', 'Accept').type('text/plain').send(content))
      await app.ready()
      return app.server
    },
  },
  Hono: {
    extra: 'Accept-Encoding',
    create(pieces, see) {
      const app = new Hono()
      app.onError((_error, context) => context.text('failed', 500, { Vary: 'Accept' }))
      app.use(async (context, next) => {
        await next()
        see(context.res.status, context.res.headers.get('Vary') ?? undefined)
      })
      app.use(compress())
      for (const piece of pieces) app.use(honoMiddleware(piece))
      app.get('/fail', () => {
        throw new Error('failed')
      })
      app.get('/open', (context) => context.text(content, 200, { 'Access-Control-Allow-Origin': '*' }))
      app.get('/', (context) => context.text(content, 200, { Vary: 'Accept' }))
      return createAdaptorServer({ fetch: app.fetch }) as Server
    },
  },
}

const namesOf = (vary: string | undefined): string[] => (vary ?? '').split(/, ?/).sort()

describe.each(Object.entries(varyHosts))('Vary on %s (RFC 9110 §12.5.5)', (_name, { create, extra }) => {
  const expected = ['Accept', 'Authorization', 'Origin', ...(extra === undefined ? [] : [extra])].sort()
  const pieces = [preflight({ origins: [ORIGIN] }), auth({ schemes, requireAuth: 'writes' })]
  const fields = [`Origin: ${ORIGIN}`, `Authorization: Basic ${btoa('ada:lovelace')}`]

  it('has what each middleware and the route say, once, and so does what runs afterwards', async () => {
    const seen: [number, string | undefined][] = []
    const port = await listen(create(pieces, (...args) => seen.push(args)))
    const answer = await send(port, { target: '/', fields })
    expect(answer.text).toBe(content)
    expect(namesOf(answer.values('vary').join(', '))).toEqual(expected)
    expect(answer.fields.filter(([name]) => name === 'access-control-allow-origin')).toEqual([
      ['access-control-allow-origin', ORIGIN],
    ])
    await expect.poll(() => seen.map(([status, vary]) => [status, ...namesOf(vary)])).toEqual([[200, ...expected]])
  })

  it('leaves another field as the route says it', async () => {
    const port = await listen(create(pieces, () => {}))
    expect((await send(port, { target: '/open', fields })).field('access-control-allow-origin')).toBe('*')
  })

  it('has what the pieces say on the host’s answer to an error', async () => {
    const port = await listen(create(pieces, () => {}))
    const answer = await send(port, { target: '/fail', fields })
    expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([500, ORIGIN])
    expect(namesOf(answer.values('vary').join(', '))).toEqual(expect.arrayContaining(['Authorization', 'Origin']))
  })

  it('shows the status of a refusal to what runs afterwards', async () => {
    const seen: number[] = []
    const port = await listen(create(pieces, (status) => seen.push(status)))
    const answer = await send(port, { method: 'DELETE', target: '/', fields: [`Origin: ${ORIGIN}`] })
    expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([401, ORIGIN])
    await expect.poll(() => seen).toEqual([401])
  })
})

describe('a service behind CORS of its host', () => {
  const put = (origin: string) => ({
    method: 'PUT',
    target: '/a',
    fields: [`Authorization: Basic ${btoa('ada:lovelace')}`, `Origin: ${origin}`, 'Content-Type: text/plain'],
    body: 'text',
  })
  const createService = () =>
    createResourceService(memoryStore(), {
      resources: { '/{name}': document() },
      auth: { schemes, requireAuth: 'writes' },
    })

  /** A host whose own CORS answers with these fields, before the service. */
  const corsHosts: Readonly<Record<string, (allow: Readonly<Record<string, string>>) => Server | Promise<Server>>> = {
    Express(allow) {
      const app = express()
      app.use((_req, res, next) => void next(res.set(allow) && undefined))
      app.use(createService())
      return createServer(app)
    },
    Koa(allow) {
      const app = new Koa()
      app.use((context, next) => {
        context.set(allow)
        return next()
      })
      app.use(koaMiddleware(createService()))
      return createServer(app.callback())
    },
    async Fastify(allow) {
      const app = fastify()
      app.addHook('onRequest', async (_request, reply) => void reply.headers(allow))
      app.register(fastifyPlugin(createService()))
      await app.ready()
      return app.server
    },
    Hono(allow) {
      const app = new Hono()
      const origin = allow['Access-Control-Allow-Origin']!
      app.use(cors({ origin, credentials: allow['Access-Control-Allow-Credentials'] === 'true' }))
      app.use(honoMiddleware(createService()))
      return createAdaptorServer({ fetch: app.fetch }) as Server
    },
  }

  it.each(Object.keys(corsHosts))(
    'takes credentials of an origin that the host on %s names (Fetch, "CORS check")',
    async (name) => {
      for (const [allow, credentials, status] of [
        [ORIGIN, 'true', 201],
        [ORIGIN, 'false', 403],
        ['*', 'true', 403],
        ['https://other.example', 'true', 403],
      ] as const) {
        const fields = { 'Access-Control-Allow-Origin': allow, 'Access-Control-Allow-Credentials': credentials }
        const port = await listen(corsHosts[name]!(fields))
        expect([allow, credentials, (await send(port, put(ORIGIN))).status]).toEqual([allow, credentials, status])
      }
    },
  )

  it('takes those of an origin that the piece before it names', async () => {
    const app = express()
    app.use(preflight({ origins: [ORIGIN], credentials: true }), createService())
    const port = await listen(createServer(app))
    expect((await send(port, put(ORIGIN))).status).toBe(201)
    expect((await send(port, put('https://evil.example'))).status).toBe(403)
  })
})

describe.each(Object.keys(hosts).filter((name) => !/^http/.test(name)))(
  'an absolute-form target on %s (RFC 9112 §3.2.2)',
  (name) => {
    it('leaves nothing of its authority in Location, Content-Location and Link', async () => {
      const service = createResourceService(memoryStore(), { fallthrough: false, https: 'optional' })
      const port = await listen(hosts[name]!(service, '/api') as Promise<Server>)
      const at = (path: string): string => `http://evil.test/api${path}`
      const fields = ['Content-Type: application/json']
      const created = await send(port, { method: 'POST', target: at('/users'), fields, body: '{}' })
      expect([created.status, created.field('location')]).toEqual([201, '/api/users/1'])
      await send(port, { method: 'POST', target: at('/users'), fields, body: '{}' })
      const listed = await send(port, { target: at('/users?limit=1') })
      expect(listed.field('link')).toMatch(/^<\/api\/users\?/)
      const merge = ['Content-Type: application/merge-patch+json']
      const patched = await send(port, { method: 'PATCH', target: at('/users/1'), fields: merge, body: '{"a":1}' })
      expect(patched.status).toBe(200)
      for (const answer of [created, listed, patched]) expect(JSON.stringify(answer.fields)).not.toContain('evil')
      // Two slashes are two, whatever the host makes of them.
      expect((await send(port, { target: at('//users') })).status).toBe(400)
      expect((await send(port, { target: '/api//users' })).status).toBe(400)
      // A cursor has one place in Link, however its name is spelled.
      const cursor = /after=([\w-]+)/.exec(listed.field('link')!)![1]
      const second = await send(port, { target: `/api/users?limit=1&%61fter=${cursor}` })
      expect(JSON.parse(second.text)).toMatchObject([{ id: 2 }])
      for (let i = 0; i < 2; i++) await send(port, { method: 'POST', target: '/api/users', fields, body: '{}' })
      const next = await send(port, { target: `/api/users?limit=1&%61fter=${cursor}` })
      expect(next.field('link')!.match(/after=|%61fter=/g)).toEqual(['after='])
    })
  },
)
