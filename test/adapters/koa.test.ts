import { createServer, type RequestListener } from 'node:http'
import fastify from 'fastify'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { auth } from '../../src/handlers/auth.ts'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { listen, send } from './raw.ts'

const createService = () => createResourceService(memoryStore(), { resources: { '/users': collection() } })
const json = ['Content-Type: application/json']

describe('koaMiddleware', () => {
  it('mounts by itself, with names in the prefix too', async () => {
    const app = new Koa()
    app.use(koaMiddleware(createService(), { prefix: '/t/:tenant' }))
    app.use((context) => {
      context.body = `host ${context.url}`
    })
    const port = await listen(createServer(app.callback()))
    const created = await send(port, { method: 'POST', target: '/t/acme/users', fields: json, body: '{}' })
    expect([created.status, created.field('location')]).toEqual([201, '/t/acme/users/1'])
    for (const target of ['/users', '/t/users', '/%74/acme/users']) {
      expect((await send(port, { target })).text).toBe(`host ${target}`)
    }
  })

  it('sets no field where a route has written the response itself', async () => {
    const app = new Koa()
    const errors: unknown[] = []
    app.on('error', (error) => errors.push(error))
    app.use(koaMiddleware(preflight({ origins: ['https://app.example'] })))
    app.use((context) => {
      context.respond = false
      context.res.end('written')
    })
    const fields = ['Origin: https://app.example']
    const answer = await send(await listen(createServer(app.callback())), { target: '/', fields })
    expect([answer.status, answer.text, errors]).toEqual([404, 'written', []])
  })

  it('merges Vary of an error with that of the middleware before the route', async () => {
    const app = new Koa()
    app.silent = true
    app.use(koaMiddleware(preflight({ origins: ['https://app.example', 'https://b.example'] })))
    const own = [{ Vary: 'Accept' }, { vary: ['Accept', 'origin'] }, { Vary: '*' }, { Vary: undefined }, {}, null]
    app.use((context) => context.throw(406, 'none', { headers: Object.freeze(own[Number(context.query['n'])]) }))
    const port = await listen(createServer(app.callback()))
    const answers = await Promise.all(own.map((_, n) => send(port, { target: `/?n=${n}` })))
    expect(answers.map(({ status }) => status)).toEqual(own.map(() => 406))
    const varying = answers.map((answer) => answer.field('vary'))
    expect(varying).toEqual(['Origin, Accept', 'Origin, Accept', '*', 'Origin', 'Origin', 'Origin'])
  })

  it('gives an error that is thrown for many requests the fields of each, and its own', async () => {
    const app = new Koa()
    app.silent = true
    const origins = ['https://a.example', 'https://b.example']
    app.use(koaMiddleware(auth({ schemes: [basic({ accounts: { ada: 'lovelace' } })], requireAuth: () => false })))
    app.use(koaMiddleware(preflight({ origins })))
    const error = Object.assign(new Error('none'), { status: 404, headers: { 'X-Own': '1', Vary: 'Accept' } })
    app.use(() => {
      throw error
    })
    const port = await listen(createServer(app.callback()))
    const NAMES = ['access-control-allow-origin', 'cache-control', 'x-own', 'vary']
    const seen = async (...fields: string[]) => {
      const answer = await send(port, { target: '/', fields })
      return NAMES.map((name) => answer.field(name))
    }
    const vary = 'Authorization, Origin, Accept'
    const ada = `Authorization: Basic ${btoa('ada:lovelace')}`
    expect(await seen(`Origin: ${origins[0]}`, ada)).toEqual([origins[0], 'private, no-cache', '1', vary])
    expect(await seen(`Origin: ${origins[1]}`)).toEqual([origins[1], undefined, '1', vary])
    expect(await seen()).toEqual([undefined, undefined, '1', vary])
  })

  it('changes the method before the routes of the host', async () => {
    const app = new Koa()
    app.use(koaMiddleware(methodOverride()))
    app.use((context) => {
      context.body = context.method
    })
    const port = await listen(createServer(app.callback()))
    const fields = ['X-HTTP-Method-Override: DELETE']
    expect((await send(port, { method: 'POST', target: '/', fields })).text).toBe('DELETE')
  })

  it('leaves the answer to the middleware before it where content cannot be opened', async () => {
    const app = new Koa()
    app.use(async (context, next) => {
      try {
        await next()
      } catch {
        context.status = 503
        context.body = 'sorry'
      }
    })
    const content = {
      size: 3,
      open: () => {
        throw new Error('gone')
      },
    }
    app.use(koaMiddleware(range(() => ({ contentType: 'text/plain', content })) as never))
    const answer = await send(await listen(createServer(app.callback())), { target: '/' })
    expect([answer.status, answer.text]).toEqual([503, 'sorry'])
  })

  it('sends bytes that are not a Buffer as they are', async () => {
    const app = new Koa()
    const content = new TextEncoder().encode('a,b')
    app.use(koaMiddleware(range(() => ({ contentType: 'text/csv', content }))))
    const port = await listen(createServer(app.callback()))
    const whole = await send(port, { target: '/' })
    expect([whole.status, whole.field('content-type'), whole.text]).toEqual([200, 'text/csv', 'a,b'])
    const part = await send(port, { target: '/', fields: ['Range: bytes=1-'] })
    expect([part.status, part.field('content-length'), part.text]).toEqual([206, '2', ',b'])
  })

  it('names what it takes when it is given something else', () => {
    expect(() => koaMiddleware(undefined as never)).toThrow(
      'koaMiddleware takes a service or a standalone middleware, as createResourceService(store) or auth(options) return it, not undefined.',
    )
    expect(() => koaMiddleware(new Koa() as never, { prefix: '/api' })).toThrow(
      'koaMiddleware takes a service or a standalone middleware, as createResourceService(store) or auth(options) return it, not an object.',
    )
    expect(() => koaMiddleware(createService(), { prefix: 'api' })).toThrow(
      'koaMiddleware takes as prefix: a path such as ',
    )
    expect(() => koaMiddleware('/api' as never, createService() as never)).toThrow('koaMiddleware takes a')
  })
})

describe('an answer that the host has begun', () => {
  const service = createService()

  it.each<[string, RequestListener]>([
    [
      'a plain server',
      (req, res) => {
        res.write('begun')
        service(req, res)
      },
    ],
    [
      'Koa',
      new Koa()
        .use((context, next) => {
          context.res.write('begun')
          return next()
        })
        .use(koaMiddleware(service))
        .callback(),
    ],
    [
      'Fastify',
      async (req, res) => {
        const app = fastify()
        app.addHook('onRequest', async (_request, reply) => {
          reply.header('X-Host', 'yes').raw.write('begun')
        })
        await app.register(fastifyPlugin(service))
        await app.ready()
        app.routing(req, res)
      },
    ],
  ])('is broken off by a reply that comes too late for it: %s', async (_, listener) => {
    const port = await listen(createServer(listener))
    const answered = fetch(`http://127.0.0.1:${port}/users`, { signal: AbortSignal.timeout(10_000) })
    await expect(answered.then((answer) => answer.text())).rejects.toThrow(/^(?:terminated|fetch failed)$/)
  })
})
