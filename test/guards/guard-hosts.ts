import 'reflect-metadata'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { createAdaptorServer } from '@hono/node-server'
import { All, Controller, Module, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import connect from 'connect'
import express from 'express'
import express4 from 'express4'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import koaMount from 'koa-mount'
import Koa2 from 'koa2'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { attach, mount } from '../../src/adapters/node.ts'
import type { Handler } from '../../src/core/handler.ts'
import { TLS } from '../support/hosts.ts'

/** A request has passed the guard: to the route of the secret, as the host's router understands it, or to the rest. */
export type Reach = (by: 'route' | 'rest', target: string) => void

/** A way to put a guard before routes of a host. */
export interface GuardedHost {
  readonly name: string
  /** `''` also puts the guard before everything. */
  readonly prefixes: readonly string[]
  readonly protocol?: 'https' | 'http2'
  /** Whether the host has chosen the route when the guard runs, so that it cannot change the method. */
  readonly routesFirst?: boolean
  /** Whether a middleware that answers by itself is a route here, and no guard before others. */
  readonly takesRoutes?: boolean
  create(guard: Handler, prefix: string, reach: Reach): Server | Promise<Server>
}

const BOTH = ['', '/api']

/** For hosts without a router of their own. */
function answerAll(reach: Reach): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    reach('rest', (req as { originalUrl?: string }).originalUrl ?? req.url!)
    res.end('reached')
  }
}

function onPlain(create: (listener: RequestListener) => unknown, protocol?: GuardedHost['protocol']): GuardedHost {
  return {
    name: `mount on ${protocol ?? 'http'}`,
    prefixes: BOTH,
    ...(protocol && { protocol }),
    create(guard, prefix, reach) {
      const guarded = mount(prefix, guard)
      const behind = answerAll(reach)
      return create((req, res) => guarded(req, res, () => behind(req, res))) as Server
    },
  }
}

/** `use` of Express, and of Connect, which has no routes but the rest. */
function onExpress(name: string, create: typeof express, put: 'use' | 'mount'): GuardedHost {
  return {
    name: `${name}, ${put === 'use' ? 'app.use(prefix, guard)' : 'app.use(mount(prefix, guard))'}`,
    prefixes: put === 'use' ? BOTH : ['/api'],
    create(guard, prefix, reach) {
      const app = create()
      if (put === 'use') app.use(prefix || '/', guard)
      else app.use(mount(prefix, guard))
      app.all(`${prefix}/secret`, (req, res) => {
        reach('route', req.originalUrl)
        res.end('reached')
      })
      // The mount of Express is compared as its routes are, so nothing else is behind it.
      if (put === 'use' && prefix !== '') app.use(prefix, answerAll(reach))
      else app.use(answerAll(reach))
      return createServer(app)
    },
  }
}

function onConnect(put: 'use' | 'mount'): GuardedHost {
  return {
    name: `Connect, ${put === 'use' ? 'app.use(prefix, guard)' : 'app.use(mount(prefix, guard))'}`,
    prefixes: put === 'use' ? BOTH : ['/api'],
    create(guard, prefix, reach) {
      const app = connect()
      const path = put === 'use' ? prefix || '/' : '/'
      app.use(path, (put === 'use' ? guard : mount(prefix, guard)) as connect.NextHandleFunction)
      app.use(`${prefix}/secret`, (req, res) => {
        reach('route', req.originalUrl!)
        res.end('reached')
      })
      app.use(path, answerAll(reach))
      return createServer(app)
    },
  }
}

function onKoa(name: string, App: typeof Koa, put: 'koa-mount' | 'prefix'): GuardedHost {
  return {
    name: `${name}, ${put === 'prefix' ? 'the option prefix' : 'koa-mount'}`,
    prefixes: put === 'prefix' ? ['/api'] : BOTH,
    create(guard, prefix, reach) {
      const app = new App()
      app.silent = true
      const secret = put === 'prefix' ? `${prefix}/secret` : '/secret'
      const behind: Koa.Middleware = (context) => {
        reach(context.path === secret ? 'route' : 'rest', context.originalUrl)
        context.body = 'reached'
      }
      if (put === 'prefix') app.use(koaMiddleware(guard, { prefix }))
      else app.use(prefix === '' ? koaMiddleware(guard) : koaMount(prefix, koaMiddleware(guard)))
      app.use(put === 'prefix' || prefix === '' ? behind : koaMount(prefix, behind))
      return createServer(app.callback())
    },
  }
}

function onHono(route: 'route of the prefix' | 'route of everything'): GuardedHost {
  return {
    name: `Hono, ${route}`,
    prefixes: route === 'route of the prefix' ? BOTH : ['/api'],
    routesFirst: true,
    create(guard, prefix, reach) {
      const app = new Hono()
      const path = route === 'route of the prefix' ? `${prefix}/*` : '*'
      app.use(path, honoMiddleware(guard, { prefix }))
      app.all(`${prefix}/secret`, (context) => {
        reach('route', (context.env as { incoming: IncomingMessage }).incoming.url!)
        return context.text('reached')
      })
      app.all(path, (context) => {
        reach('rest', (context.env as { incoming: IncomingMessage }).incoming.url!)
        return context.text('reached')
      })
      return createAdaptorServer({ fetch: app.fetch }) as Server
    },
  }
}

/** Routes in the scope of a guard: those that were there before it, those after it, and those of a scope within. */
function onFastify(name: string, put: 'scope' | 'prefix', options: FastifyServerOptions = {}): GuardedHost {
  return {
    name: `Fastify, ${name}`,
    prefixes: put === 'scope' ? BOTH : ['/api'],
    routesFirst: true,
    takesRoutes: true,
    async create(guard, prefix, reach) {
      const app = fastify({ ...options, exposeHeadRoutes: false })
      const add = (scope: FastifyInstance, url: string, by: 'route' | 'rest'): void => {
        scope.all(url, (request) => {
          reach(by, request.raw.url!)
          return 'reached'
        })
      }
      await app.register(
        async (scope) => {
          const path = put === 'prefix' ? prefix : ''
          add(scope, `${path}/before`, 'rest')
          await scope.register(async (within) => add(within, `${path}/early/*`, 'rest'))
          await scope.register(fastifyPlugin(guard), put === 'prefix' ? { prefix } : {})
          add(scope, `${path}/secret`, 'route')
          await scope.register(async (within) => {
            add(within, `${path}/*`, 'rest')
            if (path + prefix !== '') add(within, path || '/', 'rest')
          })
        },
        { prefix: put === 'scope' ? prefix : '' },
      )
      await app.ready()
      return app.server
    },
  }
}

const onNest: GuardedHost = {
  name: 'Nest on Express, app.use(prefix, guard)',
  prefixes: BOTH,
  async create(guard, prefix, reach) {
    class Routes {
      answer(req: IncomingMessage, res: ServerResponse): void {
        reach('rest', (req as { originalUrl?: string }).originalUrl!)
        res.end('reached')
      }
    }
    Req()(Routes.prototype, 'answer', 0)
    Res()(Routes.prototype, 'answer', 1)
    All(['', '*path'])(Routes.prototype, 'answer', Object.getOwnPropertyDescriptor(Routes.prototype, 'answer')!)
    Controller(prefix)(Routes)
    class Application {}
    Module({ controllers: [Routes] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    app.use(prefix || '/', guard)
    await app.init()
    return app.getHttpServer() as Server
  },
}

const attached: GuardedHost = {
  name: 'attach with direct, before Express',
  prefixes: BOTH,
  create(guard, prefix, reach) {
    const app = express()
    app.all(`${prefix}/secret`, (req, res) => {
      reach('route', req.originalUrl)
      res.end('reached')
    })
    app.use(answerAll(reach))
    const server = createServer(app)
    attach(server, guard, { direct: prefix })
    return server
  },
}

const LENIENT = {
  routerOptions: {
    caseSensitive: false,
    ignoreDuplicateSlashes: true,
    ignoreTrailingSlash: true,
    useSemicolonDelimiter: true,
  },
} as FastifyServerOptions

export const guardedHosts: readonly GuardedHost[] = [
  onPlain((listener) => createServer(listener)),
  onPlain((listener) => createHttpsServer(TLS, listener), 'https'),
  onPlain((listener) => createHttp2Server(listener as never), 'http2'),
  attached,
  onConnect('use'),
  onConnect('mount'),
  onExpress('Express 4', express4 as unknown as typeof express, 'use'),
  onExpress('Express 5', express, 'use'),
  onExpress('Express 5', express, 'mount'),
  onNest,
  onKoa('Koa 2', Koa2 as unknown as typeof Koa, 'koa-mount'),
  onKoa('Koa 3', Koa, 'koa-mount'),
  onKoa('Koa 3', Koa, 'prefix'),
  onHono('route of the prefix'),
  onHono('route of everything'),
  onFastify('in a scope', 'scope'),
  onFastify('with a prefix', 'prefix'),
  onFastify('in a scope, with a lenient router', 'scope', LENIENT),
]
