import { gzipSync } from 'node:zlib'
import fastify, { type FastifyInstance } from 'fastify'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { type AuthOptions, auth } from '../../src/handlers/auth.ts'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { methodOverride } from '../../src/handlers/method-override.ts'
import { patch } from '../../src/handlers/patch.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import { requireHttps } from '../../src/handlers/require-https.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { Answer } from '../support/answer.ts'
import { listen, send } from './raw.ts'

const ada = `Authorization: Basic ${btoa('ada:lovelace')}`
const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
const json = 'Content-Type: application/json'

const createService = () =>
  createResourceService(memoryStore(), { resources: { '/users': collection(), '/files/{name}': document() } })

async function serve(build: (app: FastifyInstance) => unknown): Promise<number> {
  const app = fastify()
  await build(app)
  await app.ready()
  return listen(app.server)
}

describe('fastifyPlugin with a service', () => {
  it('runs behind every guard of the host, preHandler included', async () => {
    const seen: string[] = []
    const port = await serve((app) => {
      for (const hook of ['onRequest', 'preValidation', 'preHandler'] as const) {
        app.addHook(hook, async (request, reply) => {
          seen.push(hook)
          if (hook === 'preHandler' && request.headers['x-user'] === undefined) return reply.code(401).send()
        })
      }
      app.register(fastifyPlugin(createService()), { prefix: '/api' })
    })
    const post = { method: 'POST', target: '/api/users', body: '{}' }
    expect((await send(port, { ...post, fields: [json] })).status).toBe(401)
    expect(seen.splice(0)).toEqual(['onRequest', 'preValidation', 'preHandler'])
    expect((await send(port, { ...post, fields: [json, 'X-User: ada'] })).status).toBe(201)
    // What Fastify would refuse before preHandler is the service's to refuse, after it.
    for (const [method, fields] of [
      ['PUT', ['Content-Type: text']],
      ['DELETE', ['Content-Type: /']],
      ['QUERY', []],
    ] as const) {
      const request = { method, target: '/api/files/a', body: 'x' }
      expect((await send(port, { ...request, fields })).status).toBe(401)
      const answer = await send(port, { ...request, fields: [...fields, 'X-User: ada'] })
      expect([method, answer.field('content-type')]).toEqual([method, 'application/problem+json'])
    }
  })

  it('is seen by onSend, except for streams and for answers to content that still arrives, and by onResponse', async () => {
    const seen: string[] = []
    const port = await serve((app) => {
      app.addHook('onSend', async (request, reply) => {
        seen.push(`onSend ${request.method} ${reply.statusCode}`)
        reply.header('X-Added', 'yes')
      })
      app.addHook(
        'onResponse',
        async (request, reply) => void seen.push(`onResponse ${request.method} ${reply.statusCode}`),
      )
      app.register(fastifyPlugin(createService()))
    })
    const large = 'x'.repeat(1024 * 1024 + 1)
    const steps = [
      [{ method: 'PUT', target: '/files/a', fields: ['Content-Type: text/plain'], body: 'text' }, 201, 'yes'],
      [{ target: '/files/a' }, 200, 'yes'],
      [{ method: 'HEAD', target: '/files/a' }, 200, 'yes'],
      [{ target: '/files/a', fields: ['If-None-Match: *'] }, 304, 'yes'],
      [{ target: '/nothing' }, 404, 'yes'],
      [{ method: 'PUT', target: '/files/b', fields: ['Content-Type: text/plain'], body: large }, 201, 'yes'],
      [{ target: '/files/b' }, 200, undefined],
      [{ method: 'PUT', target: '/files/a', fields: ['If-Match: "x"'], body: 'text' }, 412, undefined],
    ] as const
    for (const [request, status, added] of steps) {
      const answer = await send(port, request)
      const method = 'method' in request ? request.method : 'GET'
      expect([request.target, answer.status, answer.field('x-added')]).toEqual([request.target, status, added])
      await expect.poll(() => seen.at(-1)).toBe(`onResponse ${method} ${status}`)
      expect(seen.splice(0)).toHaveLength(added === undefined ? 1 : 2)
    }
  })

  it('has parts and answers with digests left alone by a hook that compresses as @fastify/compress does', async () => {
    const port = await serve((app) => {
      app.addHook('onSend', async (request, reply, payload) => {
        if (request.headers['x-no-compression'] !== undefined || !Buffer.isBuffer(payload)) return payload
        reply.header('Content-Encoding', 'gzip').removeHeader('Content-Length')
        return gzipSync(payload)
      })
      app.register(fastifyPlugin(createService()))
    })
    const put = { method: 'PUT', target: '/files/a', fields: ['Content-Type: text/plain'], body: 'abcdef' }
    expect((await send(port, put)).status).toBe(201)
    const get = (...fields: string[]) => send(port, { target: '/files/a', fields })
    expect((await get()).field('content-encoding')).toBe('gzip')
    const part = await get('Range: bytes=1-2')
    expect([part.status, part.field('content-encoding'), part.text]).toEqual([206, undefined, 'bc'])
    const whole = await get('Want-Content-Digest: sha-256=1')
    expect([whole.field('content-encoding'), whole.text]).toEqual([undefined, 'abcdef'])
  })

  it('fails a request for which a hook throws no Error, which Fastify would send as an answer', async () => {
    const errors: unknown[] = []
    const thrown = { reason: 'text' }
    const authorize = () => Promise.reject(thrown)
    const port = await serve((app) => {
      app.setErrorHandler((error: Error, _request, reply) => {
        errors.push(error.cause)
        return reply.code(500).send()
      })
      const resources = { '/users': collection() }
      const service = createResourceService(memoryStore(), {
        resources,
        auth: { schemes, authorize },
        unexpectedErrors: 'forward',
      })
      app.register(fastifyPlugin(service))
    })
    expect((await send(port, { target: '/users', fields: [ada] })).status).toBe(500)
    expect(errors).toEqual([thrown])
  })

  it('works below a prefix with names, and tells it in Location', async () => {
    const port = await serve((app) => app.register(fastifyPlugin(createService()), { prefix: '/t/:tenant' }))
    const answer = await send(port, { method: 'POST', target: '/t/acme/users', fields: [json], body: '{}' })
    expect([answer.status, answer.field('location')]).toEqual([201, '/t/acme/users/1'])
    expect((await send(port, { target: '/t/acme/users' })).text).toBe('[{"id":1}]')
  })

  it.each([
    ['/a b', '/a%20b'],
    ['/ü/日', '/%C3%BC/%E6%97%A5'],
  ])('works below the prefix %s, which clients send as %s', async (prefix, sent) => {
    const port = await serve((app) => {
      app.register(
        async (scope) => {
          scope.register(fastifyPlugin(auth({ schemes, requireAuth: 'writes' })))
          scope.register(fastifyPlugin(createService()))
        },
        { prefix },
      )
      app.register(fastifyPlugin(preflight({ origins: ['https://a.example'] })), { prefix })
    })
    const post = { method: 'POST', target: `${sent}/users`, body: '{}' }
    expect((await send(port, { ...post, fields: [json] })).status).toBe(401)
    const answer = await send(port, { ...post, fields: [json, ada] })
    expect([answer.status, answer.field('location')]).toEqual([201, `${sent}/users/1`])
    const read = await send(port, { target: `${sent}/users/1`, fields: ['Origin: https://a.example'] })
    expect([read.status, read.field('access-control-allow-origin')]).toEqual([200, 'https://a.example'])
  })

  it.each(['/api/*', '/:id(^\\d+$)', '/:id?', '/v:major', '/a::b', '/a%20b'])(
    'refuses the prefix %s when registered',
    async (prefix) => {
      const app = fastify()
      app.register(fastifyPlugin(createService()), { prefix })
      await expect(app.ready()).rejects.toThrow(/^fastifyPlugin takes a prefix /)
    },
  )

  it('shares a scope with other services and pieces, each asked in turn', async () => {
    const port = await serve((app) => {
      app.register(
        async (scope) => {
          scope.register(fastifyPlugin(requireHttps()))
          scope.register(fastifyPlugin(preflight({ origins: ['https://app.example'] })))
          scope.register(fastifyPlugin(auth({ schemes, requireAuth: 'writes' })))
          scope.register(fastifyPlugin(createService()))
          scope.register(fastifyPlugin(createResourceService(memoryStore(), { resources: { '/jobs': collection() } })))
          scope.register(fastifyPlugin(range(() => ({ contentType: 'text/plain', content: 'film' }))), {
            prefix: '/film',
          })
          scope.register(fastifyPlugin(patch({ read: () => ({ document: {} }), write: () => undefined })), {
            prefix: '/film',
          })
          scope.get('/own', () => 'host')
        },
        { prefix: '/api' },
      )
    })
    for (const [method, target, status] of [
      ['GET', '/api/users', 200],
      ['GET', '/api/jobs', 200],
      ['GET', '/api/film', 200],
      ['GET', '/api/own', 200],
      ['GET', '/api/nothing', 404],
      ['POST', '/api/users', 401],
      ['PATCH', '/api/film', 401],
      ['OPTIONS', '/api/users', 204],
    ] as const) {
      expect([target, (await send(port, { method, target })).status]).toEqual([target, status])
    }
    const asking = ['Origin: https://app.example', 'Access-Control-Request-Method: GET']
    for (const target of ['/api/users', '/api/own', '/api/film']) {
      const answer = await send(port, { method: 'OPTIONS', target, fields: asking })
      expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([204, 'https://app.example'])
    }
  })

  it('does not answer under the hooks of another scope', async () => {
    const app = fastify()
    const register = (scope: FastifyInstance): unknown =>
      scope.register(fastifyPlugin(createService()), { prefix: '/api' })
    app.register(async (scope) => void register(scope))
    app.register(async (scope) => void register(scope))
    await expect(app.ready()).rejects.toThrow("already declared for route '/api/*'")
  })
})

describe('fastifyPlugin with a middleware', () => {
  it('covers routes of its scope and no others, also with a prefix of its own', async () => {
    const port = await serve((app) => {
      app.get('/open', () => 'host')
      app.get('/early/x', () => 'host')
      app.register(fastifyPlugin(auth({ schemes })), { prefix: '/early' })
      app.register(
        async (scope) => {
          scope.get('/before', () => 'host')
          scope.register(fastifyPlugin(auth({ schemes })))
          scope.get('/after', () => 'host')
          scope.register(async (within) => void within.get('/within', () => 'host'))
        },
        { prefix: '/api' },
      )
    })
    for (const [target, status] of [
      ['/open', 200],
      ['/early/x', 401],
      ['/%65arly/x', 400],
      ['/api/before', 401],
      ['/api/after', 401],
      ['/api/within', 401],
    ] as const) {
      expect([target, (await send(port, { target })).status]).toEqual([target, status])
    }
    expect((await send(port, { target: '/api/before', fields: [ada] })).text).toBe('host')
  })

  it('asks once about a request, and not at all about a path beside its prefix, or one that auth has no route for', async () => {
    const asked: string[] = []
    const authorize: AuthOptions['authorize'] = (_principal, { path }) => asked.push(path) > 0
    const origins = (origin: string) => asked.push(origin) > 0
    const port = await serve((app) => {
      app.register(
        async (scope) => {
          scope.register(fastifyPlugin(preflight({ origins })), { prefix: '/b/' })
          scope.register(fastifyPlugin(auth({ schemes, authorize })), { prefix: '/b/' })
          scope.get('/b/x', () => 'host')
        },
        { prefix: '/a/' },
      )
    })
    const fields = [ada, 'Origin: https://app.example']
    expect((await send(port, { target: '/a/b/x', fields })).status).toBe(200)
    expect(asked.splice(0)).toEqual(['https://app.example', '/x'])
    for (const target of ['/a/b/none', '/a/c']) expect((await send(port, { target, fields })).status).toBe(404)
    expect(asked).toEqual(['https://app.example'])
  })

  it('answers preflights in a scope whose routes know no OPTIONS, with a 404 handler of its own too', async () => {
    const asking = ['Origin: https://app.example', 'Access-Control-Request-Method: PUT']
    for (const hasOwn404 of [false, true]) {
      const port = await serve((app) => {
        app.register(
          async (scope) => {
            if (hasOwn404) scope.setNotFoundHandler((_request, reply) => reply.code(404).send('own'))
            scope.register(fastifyPlugin(preflight({ origins: ['https://app.example'] })))
            scope.put('/x', () => 'host')
            scope.all('/rest/*', () => 'host')
          },
          { prefix: '/api' },
        )
      })
      const answer = (target: string): Promise<Answer> => send(port, { method: 'OPTIONS', target, fields: asking })
      expect((await answer('/api/x')).field('access-control-allow-origin')).toBe('https://app.example')
      expect((await answer('/api/rest/x')).status).toBe(204)
      expect((await answer('/other')).status).toBe(404)
      const put = await send(port, { method: 'PUT', target: '/api/x', fields: [asking[0]!] })
      expect([put.text, put.field('access-control-allow-origin')]).toEqual(['host', 'https://app.example'])
    }
  })

  it('gives a route the values of its own path', async () => {
    const port = await serve((app) => {
      app.register(fastifyPlugin(conditional(({ params }) => ({ entityTag: `"${params['id']}"` }))))
      app.get('/notes/:id', () => 'note')
    })
    const answer = await send(port, { target: '/notes/7' })
    expect([answer.status, answer.field('etag')]).toEqual([200, '"7"'])
    expect((await send(port, { target: '/notes/7', fields: ['If-None-Match: "7"'] })).status).toBe(304)
  })

  it.each([
    ['a service', createService()],
    ['a guard', auth({ schemes })],
  ])('is refused by Fastify 4 as %s, with the version that it needs', async (_name, handler) => {
    const app = fastify()
    Object.defineProperty(app, 'version', { value: '4.29.1' })
    const started = app.register(fastifyPlugin(handler)).ready()
    await expect(started.then(() => 'started')).rejects.toThrow(
      /http-resource-service-\d+ - expected '>=5' fastify version, '4\.29\.1' is installed/,
    )
  })

  it('has a name of its own each time: of two plugins with one name @fastify/autoload loads the second, and a guard was gone', () => {
    const plugins = [fastifyPlugin(auth({ schemes })), fastifyPlugin(createService())]
    const names = plugins.map((plugin) => Reflect.get(plugin, Symbol.for('plugin-meta')).name)
    expect(names[0]).not.toBe(names[1])
  })

  it('refuses methodOverride, for which it is too late, and says what does it', () => {
    expect(() => fastifyPlugin(methodOverride())).toThrow(
      "fastifyPlugin comes too late for methodOverride, since the host has chosen the route: use attach(server, methodOverride(), { direct: '' }), or the option methodOverride of the service.",
    )
  })

  it('leaves content that has been read to its end for a hook behind it that reads the payload', async () => {
    const port = await serve(async (app) => {
      await app.register(fastifyPlugin(bodyParse()))
      app.addHook('preParsing', (_request, _reply, payload, done) => {
        payload.on('end', () => done(null, payload)).resume()
      })
      app.post('/echo', ({ body }) => body)
    })
    const answer = await send(port, { method: 'POST', target: '/echo', fields: [json], body: '{"a":1}' })
    expect([answer.status, String(answer.body)]).toEqual([200, '{"a":1}'])
  })

  it('fails a request whose content another parser waits for, instead of waiting too', async () => {
    const errors: string[] = []
    const port = await serve((app) => {
      app.setErrorHandler((error, _request, reply) => {
        errors.push(String(error))
        return reply.code(500).send()
      })
      app.register(async (scope) => void scope.post('/early', () => 'host'))
      app.after(() => void app.register(fastifyPlugin(bodyParse())))
    })
    expect((await send(port, { method: 'POST', target: '/early', fields: [json], body: '{}' })).status).toBe(500)
    expect(errors).toEqual([
      'TypeError: fastifyPlugin(bodyParse()) has to be registered before the plugins that it reads for.',
    ])
  })

  it.each([
    [undefined, 'undefined'],
    [fastify, 'the function fastify'],
    [{ prefix: '/api' }, 'an object'],
  ])('names what it takes when it is given %s', (handler, name) => {
    expect(() => fastifyPlugin(handler as never)).toThrow(
      `fastifyPlugin takes a service or a standalone middleware, as createResourceService(store) or auth(options) return it, not ${name}.`,
    )
  })
})

describe('two pieces of one scope', () => {
  it('answer the methods of both, whichever comes first', async () => {
    const film = range(() => ({ contentType: 'text/plain', content: 'film' }))
    const change = patch({ read: () => ({ document: {} }), write: () => undefined })
    for (const pieces of [
      [change, film],
      [film, change],
    ]) {
      const port = await serve((app) =>
        app.register(async (scope) => {
          for (const piece of pieces) await scope.register(fastifyPlugin(piece), { prefix: '/a' })
        }),
      )
      expect((await send(port, { target: '/a/x' })).text).toBe('film')
      const fields = ['Content-Type: application/merge-patch+json']
      expect((await send(port, { method: 'PATCH', target: '/a/x', fields, body: '{"a":1}' })).status).toBe(200)
    }
  })
})
