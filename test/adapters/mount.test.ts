import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import express from 'express'
import express4 from 'express4'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { Handler } from '../../src/core/handler.ts'
import type { HostRequest } from '../../src/core/request-view.ts'
import { auth } from '../../src/handlers/auth.ts'
import { patch } from '../../src/handlers/patch.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { checkAnswer, formatRequest } from '../support/ask.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { listen, send } from './raw.ts'

const createService = (fallthrough = true) =>
  createResourceService(memoryStore(), { resources: { '/users': collection() }, fallthrough })

describe('mount', () => {
  it('answers 404 outside its prefix where there is no host, as everywhere', async () => {
    const port = await listen(createServer(mount('/api', createService(false))))
    for (const target of ['/', '/apis/users', '/users', '*', 'http://demo.test/users', '/%61pi/users', '/API/users']) {
      const method = target === '*' ? 'OPTIONS' : 'GET'
      const client = await openRawClient(port)
      client.send(formatRequest({ method, target }))
      const answer = checkAnswer(method, await client.read(method))
      expect([target, answer.status]).toEqual([target, 404])
      client.socket.destroy()
    }
  })

  it('finds the prefix in an absolute-form target (RFC 9112 §3.2.2)', async () => {
    const port = await listen(createServer(mount('/apis', createService(false))))
    for (const [target, status] of [
      ['http://demo.test/apis/users', 200],
      ['http://demo.test:81/apis/users?limit=1', 200],
      ['HTTP://demo.test/apis', 404],
      ['http://demo.test/apis//users', 400],
      ['http://user@demo.test/apis/users', 400],
      ['http://demo.test:x/apis/users', 400],
      ['http:///apis/users', 400],
      ['ftp://demo.test/apis/users', 400],
    ] as const) {
      expect([target, (await send(port, { target })).status]).toEqual([target, status])
    }
  })

  it('takes a name in the prefix for any segment, and gives it back in Location', async () => {
    const port = await listen(createServer(mount('/t/:tenant', createService(false))))
    const fields = ['Content-Type: application/json']
    for (const tenant of ['acme', 'a%20b', '%C3%BC']) {
      const answer = await send(port, { method: 'POST', target: `/t/${tenant}/users`, fields, body: '{}' })
      expect([answer.status, answer.field('location')]).toEqual([
        201,
        expect.stringMatching(`^/t/${tenant}/users/\\d+$`),
      ])
    }
    for (const tenant of ['', '.', '..', '%2e%2e', 'a%2fb', 'a\\b', '%zz']) {
      expect([tenant, (await send(port, { target: `/t/${tenant}/users` })).status]).toEqual([tenant, 404])
    }
  })

  it.each([
    ['Express 4', express4 as unknown as typeof express],
    ['Express 5', express],
  ])('leaves to %s what links below the mount would not lead back to (RFC 3986 §5.2.4)', async (_, create) => {
    const app = create()
    app.use('/t/:tenant', createService() as unknown as express.RequestHandler)
    app.use('/:name', createService() as unknown as express.RequestHandler)
    const port = await listen(createServer(app))
    const fields = ['Content-Type: application/json']
    const post = (mount: string) => send(port, { method: 'POST', target: `${mount}/users`, fields, body: '{}' })
    for (const mount of ['/t/acme', '/t/a%20b', '/%C3%BC']) {
      const { status, field } = await post(mount)
      expect([status, field('location')]).toEqual([201, `${mount}/users/${mount === '/t/a%20b' ? 2 : 1}`])
    }
    for (const mount of ['/\\evil.example', '/..', '/%2e%2e', '/t/..', '/t/%2E.', '/t/a\\..\\..', '/t/a%00']) {
      const { status, field } = await post(mount)
      expect([mount, status, field('location')]).toEqual([mount, 404, undefined])
    }
  })

  it('has no Content-Location of a patch that would lead to another host', async () => {
    const app = express()
    app.use(
      '/:name',
      patch({ read: () => ({ document: {} }), write: () => undefined }) as unknown as express.RequestHandler,
    )
    const port = await listen(createServer(app))
    const fields = ['Content-Type: application/merge-patch+json', 'Prefer: return=representation']
    for (const [target, location] of [
      ['/a%20b/doc?x', '/a%20b/doc?x'],
      ['/\\evil.example/doc', undefined],
      ['/../doc', undefined],
    ] as const) {
      const { status, field } = await send(port, { method: 'PATCH', target, fields, body: '{"a":1}' })
      expect([target, status, field('content-location')]).toEqual([target, 200, location])
    }
  })

  it('lets no spelling of a name end the target in Link', async () => {
    const port = await listen(createServer(mount('/t/:tenant', createService(false))))
    const fields = ['Content-Type: application/json']
    for (const _ of [1, 2]) await send(port, { method: 'POST', target: '/t/a/users', fields, body: '{}' })
    const { status, field } = await send(port, { target: '/t/a>;rel="next",<b/users?limit=1' })
    expect([status, field('link')]).toEqual([
      200,
      expect.stringMatching(/^<\/t\/a%3E;rel="next",<b\/users\?limit=1&after=\w+>; rel="next"$/),
    ])
  })

  it('makes a handler that can be mounted again, by a host or by itself', async () => {
    const app = express()
    app.use('/a', mount('/b', mount('/:c', createService(false))) as unknown as express.RequestHandler)
    const port = await listen(createServer(app))
    const body = '{"name":"Ada"}'
    const fields = ['Content-Type: application/json']
    const created = await send(port, { method: 'POST', target: '/a/b/x/users', fields, body })
    expect([created.status, created.field('location')]).toEqual([201, '/a/b/x/users/1'])
    expect((await send(port, { target: '/a/c/x/users' })).status).toBe(404)
  })

  it.each<[string, (handler: Handler) => Handler]>([
    ['once', (handler) => mount('/api', handler)],
    ['within another', (handler) => mount('/api', mount('/v1', handler))],
  ])('leaves the URL of the request alone for what comes after it, mounted %s', async (_, place) => {
    const seen: unknown[] = []
    const guard = auth({ schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })] })
    for (const handler of [guard, createService()]) {
      const placed = place(handler)
      const app = express()
      const see = (req: IncomingMessage & HostRequest, res: ServerResponse) => {
        seen.push([req.url, req.originalUrl, req.baseUrl])
        res.end('host')
      }
      app.use('/app', placed as unknown as express.RequestHandler, see)
      const plain = await listen(createServer((req, res) => placed(req, res, () => see(req, res))))
      const fields = [`Authorization: Basic ${btoa('ada:lovelace')}`]
      await send(plain, { target: '/api/v1/x?y', fields })
      await send(await listen(createServer(app)), { target: '/app/api/v1/x?y', fields })
    }
    const onPlain = ['/api/v1/x?y', undefined, undefined]
    const onExpress = ['/api/v1/x?y', '/app/api/v1/x?y', '/app']
    expect(seen).toEqual([onPlain, onExpress, onPlain, onExpress])
  })

  it.each(['api', '/api/', '/', '/api/*', '/a b', '/a?b', '/a#b', '/:', '/:a-b', undefined, null, 1])(
    'refuses %j, which could never match',
    (prefix) => {
      expect(() => mount(prefix as string, createService())).toThrow(
        `mount takes a prefix such as '/api' or '/t/:tenant', without a slash or a star at the end, not ${JSON.stringify(prefix)}.`,
      )
    },
  )

  it('names what was meant when its arguments are exchanged, or one is missing', () => {
    expect(() => mount(createService() as never, '/api' as never)).toThrow(
      "mount takes the prefix first: mount('/api', service).",
    )
    for (const [handler, name] of [
      [undefined, 'undefined'],
      [() => {}, 'a function'],
      [{}, 'an object'],
    ] as const) {
      expect(() => mount('/api', handler as unknown as Handler)).toThrow(
        `mount takes a service or a standalone middleware, as createResourceService(store) or auth(options) return it, not ${name}.`,
      )
    }
  })
})
