import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { basicCredentials, type RunningDemo, startDemo } from '../support/demo.ts'
import { startHost } from '../support/hosts.ts'
import { type Served, senderTo, serve, serveFixtures } from './serve.ts'

const json = 'Content-Type: application/json'
const text = 'Content-Type: text/plain'
const patch = 'Content-Type: application/merge-patch+json'
const me = `Authorization: ${basicCredentials}`
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

describe('Allow (RFC 9110 §10.2.1, rows H48, H71, H73, P9, P10)', () => {
  let demo: RunningDemo
  let send: Served['send']
  beforeAll(async () => {
    demo = await startDemo()
    send = senderTo(demo.port)
  })
  afterAll(() => demo.close())

  it.each<readonly [string, readonly string[]]>([
    ['/', ['GET', 'HEAD', 'OPTIONS']],
    ['/file.bin', ['GET', 'HEAD', 'OPTIONS']],
    ['/users', ['GET', 'HEAD', 'POST', 'OPTIONS']],
    ['/users/1', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/jobs', ['GET', 'HEAD', 'POST', 'OPTIONS']],
    ['/jobs/1', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/uploads', ['GET', 'HEAD', 'POST', 'OPTIONS']],
    ['/uploads/1', ['GET', 'HEAD', 'DELETE', 'OPTIONS']],
    ['/config/app', ['GET', 'HEAD', 'PUT', 'PATCH', 'OPTIONS']],
    ['/config/app.json', ['GET', 'HEAD', 'PUT', 'PATCH', 'OPTIONS']],
    ['/docs', ['GET', 'HEAD', 'POST', 'OPTIONS']],
    ['/docs/report.json', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/articles/1', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/strict/a', ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']],
    ['/operations/1', ['GET', 'HEAD', 'DELETE', 'OPTIONS']],
  ])('of %s is true for every method: %j', async (target, allowed) => {
    const allow = allowed.join(', ')
    const options = await send('OPTIONS', target)
    expect([options.status, options.field('Allow'), options.text]).toEqual([204, allow, ''])
    expect(options.field('Accept-Patch') !== undefined).toBe(allowed.includes('PATCH'))
    expect(options.field('Accept-Post') !== undefined).toBe(allowed.includes('POST'))
    for (const method of METHODS) {
      const answer = await send(method, target, [text], method === 'GET' ? undefined : '')
      expect([method, answer.status === 405]).toEqual([method, !allowed.includes(method)])
      if (answer.status === 405) expect(answer.field('Allow')).toBe(allow)
    }
    const origin = ['Origin: https://app.example', 'Access-Control-Request-Method: PUT']
    const preflight = await send('OPTIONS', target, origin)
    expect(preflight.field('Access-Control-Allow-Methods')).toBe(allowed.slice(0, -1).join(', '))
    expect(preflight.field('Allow')).toBeUndefined()
  })

  it('says 405 before it asks who is there, and 404 where there is nothing', async () => {
    expect((await send('DELETE', '/config/app')).status).toBe(405)
    for (const method of METHODS) expect((await send(method, '/nothing')).status).toBe(404)
  })

  it('of the server as a whole names what it knows (RFC 9110 §9.3.7, row H72)', async () => {
    const answer = await send('OPTIONS', '*')
    expect([answer.status, answer.field('Allow')]).toEqual([
      204,
      [...METHODS.slice(0, 2), 'QUERY', ...METHODS.slice(2)].join(', '),
    ])
    expect(
      (await send('OPTIONS', '*', ['Origin: https://app.example', 'Access-Control-Request-Method: PUT'])).status,
    ).toBe(204)
    for (const method of ['GET', 'HEAD', 'POST', 'DELETE']) expect((await send(method, '*')).status).toBe(400)
  })

  it('is not asked of the store (rows H72, X24, threat 134)', async () => {
    const { send, store } = await serveFixtures({ cors: { origins: ['https://app.example'] } })
    const preflight = ['Origin: https://app.example', 'Access-Control-Request-Method: GET']
    const known = await send('OPTIONS', '/docs/a.bin', preflight)
    const unknown = await send('OPTIONS', '/docs/missing', preflight)
    expect(known.fields.filter(([name]) => name !== 'date')).toEqual(unknown.fields.filter(([name]) => name !== 'date'))
    await send('OPTIONS', '*')
    await send('OPTIONS', '/users')
    expect(store.reads).toEqual([])
  })

  it('follows the methods that a definition is restricted to', async () => {
    const resources = {
      '/read': document({ methods: ['GET'] }),
      '/drop': collection({ methods: ['POST'], memberMethods: ['PUT'] }),
      '/config': singleton({ methods: ['PUT', 'GET'] }),
    }
    const { send } = await serve(memoryStore(), { resources })
    const allowOf = async (target: string) => (await send('OPTIONS', target)).field('Allow')
    expect(await allowOf('/read')).toBe('GET, HEAD, OPTIONS')
    expect(await allowOf('/drop')).toBe('POST, OPTIONS')
    expect(await allowOf('/drop/1')).toBe('PUT, OPTIONS')
    expect(await allowOf('/config')).toBe('GET, HEAD, PUT, OPTIONS')
    expect((await send('GET', '/drop')).status).toBe(405)
    expect((await send('HEAD', '/drop')).status).toBe(405)
    expect((await send('OPTIONS', '/drop/1')).field('Accept-Ranges')).toBeUndefined()
  })
})

describe('methods that are not known', () => {
  it.each(['PROPFIND', 'MKCOL', 'LOCK', 'SEARCH', 'PURGE', 'LINK', 'M-SEARCH', 'REPORT', 'QUERY'])(
    '%s is answered 501 (RFC 9110 §15.6.2, rows H47, Y4)',
    async (method) => {
      const { send, store } = await serveFixtures()
      for (const target of ['/docs/a.bin', '/docs/missing', '/nothing']) {
        const answer = await send(method, target)
        expect([answer.status, answer.field('Allow')]).toEqual([501, undefined])
      }
      expect(store.reads).toEqual([])
    },
  )

  it('TRACE shows nothing of the request (RFC 9110 §9.3.8, row H74)', async () => {
    const { send } = await serveFixtures()
    const answer = await send('TRACE', '/docs/a.bin', ['Authorization: Basic c2VjcmV0', 'Cookie: secret=1'])
    expect(answer.status).toBe(501)
    expect(answer.text).not.toMatch(/c2VjcmV0|secret/)
  })
})

describe('X-HTTP-Method-Override (interface OPTIONS 7, row H75, threat 113)', () => {
  const override = (method: string): string => `X-HTTP-Method-Override: ${method}`

  it('is ignored unless it is enabled', async () => {
    const { send } = await serveFixtures()
    expect((await send('POST', '/users/1', [json, override('DELETE')], '{}')).status).toBe(405)
    expect((await send('POST', '/users', [json, override('DELETE')], '{}')).status).toBe(201)
    expect((await send('POST', '/users', [json, override('TRACE')], '{}')).status).toBe(201)
    expect((await send('GET', '/users/1')).status).toBe(200)
  })

  it.each<readonly [string, string, readonly string[], number]>([
    ['POST', '/users/1', [override('DELETE')], 204],
    ['POST', '/users/1', [json, override('PUT')], 204],
    ['POST', '/users/1', [patch, override('PATCH')], 204],
    ['POST', '/users/1', [json, override('PUT'), 'If-Match: "x"'], 412],
    ['POST', '/users', [json, override('DELETE')], 405],
    ['GET', '/users/1', [override('DELETE')], 200],
    ['HEAD', '/users/1', [override('DELETE')], 200],
    ['PUT', '/users/1', [json, override('DELETE')], 204],
    ['DELETE', '/users/1', [override('GET')], 204],
    ...['TRACE', 'GET', 'POST', 'HEAD', 'OPTIONS', 'CONNECT', 'delete', 'delete, put', 'DELETE,DELETE', ''].map(
      (method): readonly [string, string, readonly string[], number] => [
        'POST',
        '/users/1',
        [json, override(method)],
        400,
      ],
    ),
    ['POST', '/users/1', [override('DELETE'), override('PUT')], 400],
    ['POST', '/users/1?_method=DELETE', [json], 405],
  ])('enabled, %s %s with %j is %i', async (method, target, fields, status) => {
    const { send, store } = await serveFixtures({ methodOverride: true })
    const body = method === 'POST' || method === 'PUT' ? '{}' : undefined
    expect((await send(method, target, fields, body)).status).toBe(status)
    if (status >= 400) expect(store.writes).toEqual([])
  })
})

describe('idempotence (RFC 9110 §9.2.2)', () => {
  it('PUT twice leaves the same, DELETE twice too, POST makes two (rows H51, H52, H59 to H61)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection(), '/docs/{name}': document() } })
    expect((await send('PUT', '/docs/a', [text], 'same')).status).toBe(201)
    expect((await send('PUT', '/docs/a', [text], 'same')).status).toBe(204)
    expect((await send('GET', '/docs/a')).text).toBe('same')
    expect((await send('DELETE', '/docs/a')).status).toBe(204)
    expect((await send('DELETE', '/docs/a')).status).toBe(410)
    expect((await send('DELETE', '/docs/b')).status).toBe(404)
    const first = await send('POST', '/users', [json], '{}')
    const second = await send('POST', '/users', [json], '{}')
    expect([first.status, second.status]).toEqual([201, 201])
    expect(first.field('Location')).not.toBe(second.field('Location'))
  })

  it('DELETE ignores content (RFC 9110 §9.3.5, row H70)', async () => {
    const { send } = await serve(memoryStore(), {})
    await send('PUT', '/a', [text], 'x')
    await send('PUT', '/b', [text], 'x')
    expect((await send('DELETE', '/a', [json], '{"path":"/b"}')).status).toBe(204)
    expect((await send('GET', '/b')).status).toBe(200)
  })
})

describe('the order of decisions (section 17 of the requirements)', () => {
  const long = `/users/${'a'.repeat(3000)}`
  const foreign = 'Origin: https://evil.example'

  it.each<readonly [string, number, string, string, readonly string[]]>([
    ['414 before 400', 414, 'GET', `${long}%zz`, []],
    ['400 before 421', 400, 'GET', '/%zz', ['Host: evil.test']],
    ['421 before 403 for cleartext', 421, 'GET', '/users', ['Host: evil.test', 'X-Forwarded-For: 192.0.2.1']],
    ['403 for cleartext before OPTIONS *', 403, 'OPTIONS', '*', ['X-Forwarded-For: 192.0.2.1']],
    [
      '403 for cleartext before 401',
      403,
      'DELETE',
      '/users/1',
      ['X-Forwarded-For: 192.0.2.1', 'Authorization: Basic !'],
    ],
    [
      'a preflight before 405',
      204,
      'OPTIONS',
      '/users',
      ['Origin: https://app.example', 'Access-Control-Request-Method: PUT'],
    ],
    ['501 before 404', 501, 'PROPFIND', '/nothing', []],
    ['501 before 401', 501, 'PROPFIND', '/users/1', []],
    ['OPTIONS before 401', 204, 'OPTIONS', '/users/1', ['Authorization: Basic !']],
    ['405 before 401', 405, 'DELETE', '/users', []],
    ['401 before 403', 401, 'PUT', '/users/1', [json, foreign, 'Authorization: Basic !']],
    ['401 before 415', 401, 'PUT', '/users/1', [text]],
    ['401 before 404 (row H88)', 401, 'DELETE', '/users/9', []],
    ['403 before 415', 403, 'PUT', '/users/1', [text, me, foreign]],
    ['403 before 404', 403, 'DELETE', '/users/9', [me, foreign]],
    ['415 before 413', 415, 'PUT', '/users/1', [me, text, 'Content-Length: 1000000000000']],
    ['415 for the type before the coding', 415, 'PUT', '/users/1', [me, text, 'Content-Encoding: foo']],
    [
      '413 before 400 for Content-Range',
      413,
      'PUT',
      '/users/1',
      [me, json, 'Content-Length: 1000000000000', 'Content-Range: bytes 0-1/2'],
    ],
    [
      '400 for Content-Range before 412',
      400,
      'PUT',
      '/users/1',
      [me, json, 'Content-Range: bytes 0-1/2', 'If-Match: "x"'],
    ],
    ['415 before 404', 415, 'PATCH', '/users/9', [me, text]],
    ['413 before 404', 413, 'PATCH', '/users/9', [me, patch, 'Content-Length: 1000000000000']],
    ['406 before 404', 406, 'GET', '/users/9', ['Accept: image/png']],
    ['404 before 412', 404, 'PATCH', '/users/9', [me, patch, 'If-Match: "x"']],
    ['404 before 428', 404, 'DELETE', '/strict/none', [me]],
    ['428 before 400 for content', 428, 'PUT', '/strict/a', [me, json]],
    ['412 before 416', 412, 'GET', '/users/1', ['If-Match: "x"', 'Range: bytes=999-']],
    ['304 before 416', 304, 'GET', '/users/1', ['If-None-Match: *', 'Range: bytes=999-']],
    ['412 before 400 for content', 412, 'PUT', '/users/1', [me, json, 'If-Match: "x"']],
  ])('of two that apply, answers the earlier one: %s', async (_, status, method, target, fields) => {
    const { send } = await serve(memoryStore(), {
      resources: {
        '/users': collection(),
        '/strict/{name}': document({ preconditions: 'required', types: ['application/json'] }),
      },
      cors: { origins: ['https://app.example'] },
      allowedHosts: ['demo.test'],
      auth: { schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })], requireAuth: 'writes' },
    })
    for (const at of ['/users/1', '/strict/a']) expect((await send('PUT', at, [me, json], '{"a":1}')).status).toBe(201)
    const isWrite = method === 'PUT' || method === 'PATCH'
    expect((await send(method, target, fields, isWrite ? '{"broken":' : undefined)).status).toBe(status)
  })

  it('names the types, and not the codings, where both are refused with 415', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection() } })
    const answer = await send('POST', '/users', ['Content-Type: x/y', 'Content-Encoding: foo'], '{')
    expect([answer.status, answer.field('Accept-Encoding')]).toEqual([415, undefined])
    expect(answer.text).toContain('unsupported-media-type')
  })
})

describe('a method that is not known', () => {
  // HTTP/2 passes any name on; the parser of HTTP/1.1 refuses most of them.
  it.each(['get', 'Get', 'CONNECTED', 'PROPFIND', 'LINK', 'QUERY', 'constructor', '__proto__', '0'])(
    'is 501: %s (RFC 9110 §9.1, rows H47 and H49, threat 16)',
    async (method) => {
      const service = createResourceService(memoryStore(), { resources: { '/a': document() } })
      const host = await startHost('http2', service)
      const { status } = await host.send({ method, path: '/a' })
      await host.close()
      await service.close()
      expect(status).toBe(501)
    },
  )
})
