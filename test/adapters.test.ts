import { createServer } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { afterEach, describe, expect, it } from 'vitest'
import { honoMiddleware } from '../src/adapters/hono.ts'
import { mount } from '../src/adapters/mount.ts'
import { createResourceService } from '../src/service/create-resource-service.ts'
import { collection } from '../src/service/resource-definitions.ts'
import { memoryStore } from '../src/stores/memory.ts'
import { checkAnswer, formatRequest } from './support/ask.ts'
import { type RunningHost, runServer } from './support/hosts.ts'
import { openRawClient, valuesOf } from './wire/raw-client.ts'

const running: RunningHost[] = []
afterEach(async () => {
  for (const host of running.splice(0)) await host.close()
})

async function run(server: Parameters<typeof runServer>[0]): Promise<number> {
  const host = await runServer(server)
  running.push(host)
  return host.port
}

const createService = (fallthrough = true) =>
  createResourceService(memoryStore(), { resources: { '/users': collection() }, fallthrough })

describe('honoMiddleware', () => {
  it('answers once, and leaves the connection to the next request', async () => {
    const app = new Hono()
    app.use('/*', honoMiddleware(createService()))
    app.get('/own', (context) => context.text('host'))
    const client = await openRawClient(await run(createAdaptorServer({ fetch: app.fetch }) as never))
    for (const [method, target, status] of [
      ['GET', '/users', 200],
      ['HEAD', '/users', 200],
      ['GET', '/users/1', 404],
      ['HEAD', '/users/1', 404],
      ['OPTIONS', '/users', 204],
      ['GET', '/own', 200],
      ['GET', '/users', 200],
    ] as const) {
      client.send(formatRequest({ method, target }))
      expect((await client.read(method)).status).toBe(status)
    }
    client.socket.destroy()
  })

  it('keeps what earlier middleware has set, every cookie of it, and what later middleware touches', async () => {
    const app = new Hono()
    app.use('*', async (context, next) => {
      context.header('Set-Cookie', 'a=1', { append: true })
      context.header('Set-Cookie', 'b=2', { append: true })
      context.header('Vary', 'Cookie')
      await next()
      context.header('X-After', 'too late')
    })
    app.use('/*', honoMiddleware(createService()))
    const client = await openRawClient(await run(createAdaptorServer({ fetch: app.fetch }) as never))
    for (let i = 0; i < 2; i++) {
      client.send(formatRequest({ target: '/users' }))
      const answer = await client.read()
      expect([answer.status, answer.body.toString()]).toEqual([200, '[]'])
      expect(valuesOf(answer, 'set-cookie')).toEqual(['a=1', 'b=2'])
      expect(valuesOf(answer, 'vary')).toEqual(['Cookie'])
      expect(valuesOf(answer, 'x-after')).toEqual([])
    }
    client.socket.destroy()
  })
})

describe('mount', () => {
  it('answers 404 outside its prefix where there is no host, as everywhere', async () => {
    const port = await run(createServer(mount('/api', createService(false))))
    for (const target of ['/', '/apis/users', '/users', '*', 'http://demo.test/users']) {
      const method = target === '*' ? 'OPTIONS' : 'GET'
      const client = await openRawClient(port)
      client.send(formatRequest({ method, target }))
      const answer = checkAnswer(method, await client.read(method))
      expect([target, answer.status]).toEqual([target, 404])
      client.socket.destroy()
    }
  })

  it('finds the prefix in an absolute-form target (RFC 9112 §3.2.2, row H5)', async () => {
    const service = createService(false)
    const server = createServer(mount('/apis', service))
    const port = await run(server)
    const client = await openRawClient(port)
    for (const [target, status] of [
      ['http://demo.test/apis/users', 200],
      ['http://demo.test:81/apis/users?limit=1', 200],
      ['HTTP://demo.test/apis', 404],
      ['http://demo.test/apis//users', 400],
      ['http://user@demo.test/apis/users', 400],
    ] as const) {
      client.send(formatRequest({ target }))
      const answer = await client.read()
      expect([target, answer.status]).toEqual([target, status])
    }
    client.socket.destroy()
  })
})
