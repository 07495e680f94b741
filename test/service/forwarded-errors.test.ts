import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { createAdaptorServer } from '@hono/node-server'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { fastifyPlugin } from '../../src/adapters/fastify.ts'
import { honoMiddleware } from '../../src/adapters/hono.ts'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer } from '../support/hosts.ts'

const body = {
  // biome-ignore lint/correctness/useYield: it fails first
  async *open(): AsyncGenerator<Uint8Array> {
    throw new Error('first')
  },
}

function createFailing(): ResourceService {
  const read = (path: string) => {
    if (path === '/now') throw new Error('now')
    if (path === '/soon') return Promise.reject(new Error('soon'))
    return { path, version: '1', contentType: 'text/plain', size: 300_000, body }
  }
  const cors = { origins: ['https://a.example'] }
  return createResourceService({ ...memoryStore(), read }, { unexpectedErrors: 'forward', cors, onError: () => {} })
}

const hosts = {
  plain(service: ResourceService) {
    return createServer((req, res) =>
      service(req, res, (error) => {
        res.statusCode = error === undefined ? 404 : 599
        res.end()
      }),
    )
  },
  // As OpenTelemetry wraps the `next` of Express.
  instrumented(service: ResourceService) {
    return createServer((req, res) => {
      function next(error?: unknown): void {
        res.statusCode = error === undefined ? 404 : 599
        res.end()
      }
      service(req, res, (...args: unknown[]) => next(...args))
    })
  },
  koa(service: ResourceService) {
    const app = new Koa()
    app.silent = true
    app.use(async (context, next) => {
      try {
        await next()
      } catch (error) {
        context.set((error as { headers: Record<string, string> }).headers)
        context.status = 599
        context.body = ''
      }
    })
    return createServer(app.use(koaMiddleware(service)).callback())
  },
  async fastify(service: ResourceService) {
    const app = fastify()
    app.setErrorHandler((_, __, reply) => reply.code(599).send(''))
    await app.register(fastifyPlugin(service))
    await app.ready()
    return app.server
  },
  hono(service: ResourceService) {
    const app = new Hono()
    app.use('/*', honoMiddleware(service))
    app.onError(() => new Response(null, { status: 599 }))
    return createAdaptorServer({ fetch: app.fetch }) as ReturnType<typeof createServer>
  },
}

describe('errors that are forwarded', () => {
  // Fastify and Hono have let go of the answer by the time its content fails: it is answered here.
  it.each([
    ['plain', '/now', 599],
    ['plain', '/soon', 599],
    ['plain', '/late', 599],
    ['instrumented', '/now', 599],
    ['instrumented', '/soon', 599],
    ['instrumented', '/late', 599],
    ['koa', '/now', 599],
    ['koa', '/soon', 599],
    ['koa', '/late', 599],
    ['fastify', '/now', 599],
    ['fastify', '/soon', 599],
    ['fastify', '/late', 500],
    ['hono', '/now', 599],
    ['hono', '/soon', 599],
    ['hono', '/late', 500],
  ] as const)(
    'on %s, of %s, end in %i with the fields of CORS, and close() awaits them no more',
    async (host, path, status) => {
      const service = createFailing()
      const server = await runServer(await hosts[host](service))
      closeAfterTest(() => server.close())
      // The hosts' own answers: they need not please our linter.
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { Origin: 'https://a.example' } })
      const allowed = answer.headers.get('Access-Control-Allow-Origin')
      expect([answer.status, allowed, answer.headers.get('Vary')]).toEqual([status, 'https://a.example', 'Origin'])
      expect(await Promise.race([service.close().then(() => 'closed'), wait(5000, 'waits')])).toBe('closed')
    },
  )
})
