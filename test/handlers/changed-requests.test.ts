import { createServer, type Server } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import express from 'express'
import fastify from 'fastify'
import Koa from 'koa'
import { afterEach, describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { auth, basic } from '../../src/auth.ts'
import type { Handler } from '../../src/core/handler.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { range } from '../../src/handlers/range.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { basicCredentials } from '../auth-schemes/guarded-server.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { serve } from './serve.ts'

/** Hosts that change a request, or begin its answer, between two standalone middlewares. */

const schemes = [basic({ accounts: { ada: 'secret' } })]
const ada = { Authorization: basicCredentials('ada', 'secret') }
const hosts: RunningHost[] = []
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close()
})

async function start(server: Server, protocol: 'http' | 'http2' = 'http'): Promise<RunningHost> {
  const host = await runServer(server, protocol)
  hosts.push(host)
  return host
}

describe('a host that changes the request between two standalone middlewares', () => {
  it('has the second decide on the method that the request has then', async () => {
    const app = express()
    app.use(requireHttps())
    app.use((req, _res, next) => {
      if (typeof req.query.method === 'string') req.method = req.query.method
      next()
    })
    app.use(auth({ schemes, authorize: (_principal, { method }) => method !== 'DELETE' }))
    app.all('/x', (req, res) => void res.send(req.method))
    const send = await serve(app)
    expect((await send('POST', '/x', ada)).text).toBe('POST')
    expect((await send('POST', '/x?method=DELETE', ada)).status).toBe(403)
    expect((await send('DELETE', '/x?method=POST', ada)).text).toBe('POST')
  })

  it('tells each below which mount it is', async () => {
    const app = express()
    const mounts: string[] = []
    const seen = conditional(({ mount }) => void mounts.push(mount))
    app.use('/api', seen, express.Router().use('/v1', seen))
    app.use(seen, (_req, res) => void res.end())
    const send = await serve(app)
    expect((await send('GET', '/api/v1/x')).status).toBe(200)
    expect(mounts).toEqual(['/api', '/api/v1', ''])
  })

  it('has the second read the query that the target has then', async () => {
    const app = express()
    app.use(conditional(({ query }) => ({ entityTag: `"${query.get('v')}"` })))
    app.use((req, _res, next) => {
      req.url = req.url.replace('v=1', 'v=2')
      next()
    })
    app.use(range(({ query }) => ({ contentType: 'text/plain', content: String(query.get('v')) })))
    const send = await serve(app)
    expect((await send('GET', '/x?v=1')).text).toBe('2')
  })
})

const begun: Readonly<Record<string, (handler: Handler) => Promise<RunningHost>>> = {
  plain: (handler) =>
    start(
      createServer((req, res) => {
        res.flushHeaders()
        handler(req, res, () => res.end('host'))
      }),
    ),
  http2: (handler) =>
    start(
      createHttp2Server((req, res) => {
        res.writeHead(200)
        handler(req, res, () => res.end('host'))
      }) as unknown as Server,
      'http2',
    ),
  Express: (handler) => {
    const app = express()
    app.use((_req, res, next) => {
      res.flushHeaders()
      next()
    })
    app.use(handler)
    app.use((_req, res) => void res.end('host'))
    return start(createServer(app))
  },
  Koa: (handler) => {
    const app = new Koa()
    app.silent = true
    app.use((context, next) => {
      context.status = 200
      context.flushHeaders()
      return next()
    })
    app.use(koaMiddleware(handler))
    app.use((context) => {
      context.body = 'host'
    })
    return start(createServer(app.callback()))
  },
  Fastify: async (handler) => {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => reply.raw.flushHeaders())
    await app.register(fastifyPlugin(handler))
    app.get('/', (_request, reply) => {
      reply.hijack()
      reply.raw.end('host')
    })
    await app.ready()
    return start(app.server)
  },
}

describe.each(Object.keys(begun))('a response that %s has begun', (name) => {
  it('is broken off where a standalone middleware refuses the request, and left alone where it passes', async () => {
    const host = await begun[name]!(auth({ schemes }))
    await expect(host.send({ path: '/' })).rejects.toThrow()
    expect((await host.send({ path: '/', headers: ada })).text).toBe('host')
  })

  it('is left alone where it is complete', async () => {
    let decided = (): void => {}
    const isDecided = new Promise<void>((resolve) => {
      decided = resolve
    })
    const piece = conditional(async () => {
      await isDecided
      return { entityTag: '"1"' }
    })
    const { send } = await start(
      createServer((req, res) => {
        piece(req, res, () => {})
        res.end('host')
      }),
    )
    const answers = await Promise.all([1, 2].map(() => send({ path: '/', headers: { 'If-Match': '"2"' } })))
    decided()
    expect(answers.map(({ text }) => text)).toEqual(['host', 'host'])
  })
})
