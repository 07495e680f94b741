import { createServer, type IncomingMessage } from 'node:http'
import type { Server } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import express from 'express'
import express4 from 'express4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import Koa2 from 'koa2'
import { afterEach, describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import type { RequestView } from '../../src/core/request-view.ts'
import { auth, type HostUser, principalOf } from '../../src/handlers/auth.ts'
import type { AuthenticationOptions } from '../../src/handlers/authentication-options.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import type { ServiceAuthOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { type Request, runServer } from '../support/hosts.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

interface Found {
  user?: HostUser
}

/** The user that a host finds: in these tests by a field, as if by a session. */
const find = (req: IncomingMessage): HostUser | undefined => {
  const name = req.headers['x-session']
  return typeof name === 'string' ? { id: name, claims: { role: 'user' } } : undefined
}

interface Host {
  /** How its user would be taken in a service. */
  readonly take: (request: RequestView) => HostUser | undefined
  readonly create: (handler: Handler) => Server | Promise<Server>
}

const takeFromRequest = ({ req }: RequestView) => (req as IncomingMessage & Found).user

function createExpress(make: typeof express): Host {
  return {
    take: takeFromRequest,
    create(handler) {
      const app = make()
      app.use((req, _res, next) => {
        Object.assign(req, { user: find(req) })
        next()
      })
      app.use(handler as unknown as express.RequestHandler)
      return createServer(app)
    },
  }
}

function createKoa(App: typeof Koa): Host {
  return {
    take: ({ hostContext }) => (hostContext as Koa.Context).state['user'],
    create(handler) {
      const app = new App()
      app.use((context, next) => {
        context.state['user'] = find(context.req)
        return next()
      })
      app.use(koaMiddleware(handler) as unknown as Koa.Middleware)
      return createServer(app.callback())
    },
  }
}

const HOSTS: Readonly<Record<string, Host>> = {
  'a plain server': {
    take: takeFromRequest,
    create: (handler) =>
      createServer((req, res) => {
        Object.assign(req, { user: find(req) })
        handler(req, res)
      }),
  },
  'Express 4': createExpress(express4 as unknown as typeof express),
  'Express 5': createExpress(express),
  'Koa 2': createKoa(Koa2 as unknown as typeof Koa),
  'Koa 3': createKoa(Koa),
  Fastify: {
    take: ({ hostContext }) => (hostContext as Found).user,
    async create(handler) {
      const app = fastify()
      app.decorateRequest('user')
      app.addHook('onRequest', async (request) => {
        Object.assign(request, { user: find(request.raw) })
      })
      await app.register(fastifyPlugin(handler))
      await app.ready()
      return app.server
    },
  },
  Hono: {
    take: ({ hostContext }) => (hostContext as { get(name: string): HostUser | undefined }).get('user'),
    create(handler) {
      const app = new Hono<{ Variables: { user: HostUser | undefined } }>()
      app.use(async (context, next) => {
        context.set('user', find((context.env as { incoming: IncomingMessage }).incoming))
        await next()
      })
      app.use('/*', honoMiddleware(handler))
      return createAdaptorServer({ fetch: app.fetch }) as Server
    },
  },
}

const CHALLENGE = 'Session realm="app"'

async function start(host: Host, options: ServiceAuthOptions): Promise<(request: Request) => Promise<Answer>> {
  const service = createResourceService(memoryStore(), { auth: options, fallthrough: false })
  const running = await runServer(await host.create(service))
  closers.push(running.close, service.close)
  return running.send
}

const json = { 'Content-Type': 'application/json' }
const ada = { 'X-Session': 'ada' }
const basicAs = (user: string, password: string) => ({ Authorization: `Basic ${btoa(`${user}:${password}`)}` })

describe.each(Object.entries(HOSTS))('the user that %s has found', (_, host) => {
  it('is the principal of the request', async () => {
    const seen: unknown[] = []
    const send = await start(host, {
      principal: host.take,
      challenge: CHALLENGE,
      authorize: (principal) => seen.push(principal) > 0,
    })
    const refused = await send({ method: 'PUT', path: '/a', headers: json, body: '{}' })
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, CHALLENGE])
    expect((await send({ method: 'PUT', path: '/a', headers: { ...json, ...ada }, body: '{}' })).status).toBe(201)
    expect(seen).toEqual([{ scheme: 'host', id: 'ada', claims: { role: 'user' } }])
    const { headers } = await send({ path: '/a', headers: ada })
    expect([headers['cache-control'], headers['vary']]).toEqual(['private, no-cache', 'Authorization, Cookie'])
  })
})

describe('a principal of the host', () => {
  const plain = HOSTS['a plain server']!
  const put = { method: 'PUT', path: '/a', body: '{}' }

  it('counts as attached by browsers, unless the service says that it is not', async () => {
    const foreign = { ...json, ...ada, Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
    for (const [principalIsAmbient, status] of [
      [undefined, 403],
      [true, 403],
      [false, 201],
    ] as const) {
      const send = await start(plain, {
        principal: plain.take,
        challenge: CHALLENGE,
        ...(principalIsAmbient === undefined ? {} : { principalIsAmbient }),
      })
      expect((await send({ ...put, headers: foreign })).status).toBe(status)
      expect((await send({ ...put, headers: { ...json, ...ada } })).status).toBeLessThan(300)
    }
  })

  it('comes after credentials in Authorization that a scheme knows, right or wrong', async () => {
    const seen: unknown[] = []
    const send = await start(plain, {
      schemes: [basic({ accounts: { bob: 'b' } })],
      principal: plain.take,
      requireAuth: 'all',
      authorize: (principal) => seen.push(`${principal?.scheme} ${principal?.id}`) > 0,
    })
    const statusOf = async (headers: Record<string, string>) => (await send({ path: '/a', headers })).status
    expect(await statusOf({ ...ada, ...basicAs('bob', 'b') })).toBe(404)
    expect(await statusOf({ ...ada, ...basicAs('bob', 'x') })).toBe(401)
    expect(await statusOf(ada)).toBe(404)
    // Credentials that the host has verified, and credentials that no part of the server knows.
    expect(await statusOf({ ...ada, Authorization: 'Bearer of-the-host' })).toBe(404)
    expect(await statusOf({ Authorization: 'Bearer unknown' })).toBe(401)
    expect(await statusOf({})).toBe(401)
    expect(seen).toEqual(['basic bob', 'host ada', 'host ada'])
  })

  it('makes every answer private, whatever the definition says (RFC 9111 §3.5)', async () => {
    for (const [cacheControl, expected] of [
      ['max-age=60', 'private, max-age=60'],
      ['public, max-age=60, s-maxage=90', 'private, max-age=60'],
      ['no-store', 'no-store'],
    ] as const) {
      const service = createResourceService(memoryStore(), {
        cacheControl,
        auth: { principal: plain.take, challenge: CHALLENGE, requireAuth: 'writes' },
      })
      const running = await runServer(await plain.create(service))
      closers.push(running.close)
      await running.send({ ...put, headers: { ...json, ...ada } })
      expect((await running.send({ path: '/a', headers: ada })).headers['cache-control']).toBe(expected)
      expect((await running.send({ path: '/a' })).headers['cache-control']).toBe(cacheControl)
    }
  })

  it('is found by a function that may take its time, and is checked', async () => {
    const users: Readonly<Record<string, unknown>> = {
      ada: { id: 'ada' },
      ...{ nobody: null, none: undefined, no: false },
      ...{
        number: { id: 7 },
        empty: { id: '' },
        nameless: {},
        text: 'ada',
        yes: true,
        claims: { id: 'a', claims: 'admin' },
      },
    }
    const failures: unknown[] = []
    const service = createResourceService(memoryStore(), {
      onError: (error) => failures.push(String(error)),
      auth: {
        principal: async ({ req }) => users[String(req.headers['x-session'])] as HostUser,
        challenge: CHALLENGE,
      },
    })
    const running = await runServer(createServer(service))
    closers.push(running.close)
    const statuses: Record<string, number> = {}
    for (const name of Object.keys(users)) {
      statuses[name] = (await running.send({ path: '/a', headers: { 'X-Session': name } })).status
    }
    expect(statuses).toEqual({
      ada: 404,
      ...{ nobody: 401, none: 401, no: 401 },
      ...{ number: 500, empty: 500, nameless: 500, text: 500, yes: 500, claims: 500 },
    })
    const message = 'auth: "principal" returns { id, claims }, or undefined, null or false'
    expect(failures).toEqual(Array.from({ length: 6 }, () => expect.stringContaining(message)))
  })

  // Vary names Cookie; of any other field by which the host finds its users, caches do not know.
  it('keeps shared caches away from answers without a user, where users are found by another field than Cookie', async () => {
    for (const [principalIsAmbient, cacheControl] of [
      [true, 'max-age=60'],
      [false, 'private, max-age=60'],
    ] as const) {
      const service = createResourceService(memoryStore(), {
        cacheControl: 'max-age=60',
        auth: { principal: plain.take, principalIsAmbient, challenge: CHALLENGE, requireAuth: 'writes' },
      })
      const running = await runServer(await plain.create(service))
      closers.push(running.close, service.close)
      expect((await running.send({ ...put, headers: { ...json, ...ada } })).status).toBe(201)
      expect((await running.send({ path: '/a' })).headers['cache-control']).toBe(cacheControl)
      expect((await running.send({ path: '/a', headers: ada })).headers['cache-control']).toBe('private, max-age=60')
    }
  })

  it('is taken by the middleware as well', async () => {
    const guard = auth({ principal: plain.take, challenge: CHALLENGE })
    const server = createServer((req, res) => {
      Object.assign(req, { user: find(req) })
      guard(req, res, () => res.end(JSON.stringify(principalOf(req))))
    })
    const running = await runServer(server)
    closers.push(running.close)
    expect((await running.send({ path: '/' })).headers['www-authenticate']).toBe(CHALLENGE)
    const answer = await running.send({ path: '/', headers: ada })
    expect(JSON.parse(answer.body.toString())).toEqual({ scheme: 'host', id: 'ada', claims: { role: 'user' } })
    expect([answer.headers['cache-control'], answer.headers['vary']]).toEqual([
      'private, no-cache',
      'Authorization, Cookie',
    ])
  })

  it.each<[string, AuthenticationOptions, string]>([
    ['no schemes and no principal', {}, 'auth needs at least one scheme, or "principal".'],
    [
      'no schemes and no challenge',
      { principal: plain.take },
      'auth with "principal" and no schemes needs a "challenge" for its 401 (RFC 9110 section 15.5.2).',
    ],
    [
      'a malformed challenge',
      { principal: plain.take, challenge: 'Session\r\nX: y' },
      'auth takes as challenge: a scheme and its parameters in ASCII, such as Session realm="app"; it is text.',
    ],
    [
      'an empty challenge',
      { principal: plain.take, challenge: '' },
      'auth takes as challenge: a scheme and its parameters in ASCII, such as Session realm="app"; it is empty text.',
    ],
    [
      'principalIsAmbient for nothing',
      { schemes: [basic({ accounts: { a: 'b' } })], principalIsAmbient: false },
      'auth has "principalIsAmbient" without "principal".',
    ],
    [
      'principalIsAmbient: "no"',
      { principal: plain.take, challenge: 'A', principalIsAmbient: 'no' as never },
      'auth takes as principalIsAmbient: true or false; it is text.',
    ],
    [
      'a principal that is not a function',
      { principal: { id: 'ada' } as never, challenge: 'A' },
      'auth takes as principal: a function.',
    ],
    [
      'an object that is not a scheme',
      { schemes: [basic({ accounts: { a: 'b' } }), {} as never] },
      'auth: schemes[1] must be an AuthScheme (name, challenges, authenticate), not an object.',
    ],
  ])('is refused at construction with %s', (_, options, message) => {
    expect(() => auth(options)).toThrow(new TypeError(message))
    expect(() => createResourceService(memoryStore(), { auth: options })).toThrow(new TypeError(message))
  })
})
