import { describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import { HttpError } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { startHost } from '../support/hosts.ts'
import { serve } from './serve.ts'

const json = 'Content-Type: application/json'
const text = 'Content-Type: text/plain'
const merge = 'Content-Type: application/merge-patch+json'
const ada = `Authorization: Basic ${btoa('ada:lovelace')}`

const options: ServiceOptions = {
  resources: {
    '/users': collection(),
    '/docs/{name}': document(),
    '/strict/{name}': document({ preconditions: 'required' }),
    '/secret/{name}': document({ requireAuth: 'all' }),
    '/forbidden': document({ authorize: () => false }),
    '/teapot': document({
      authorize() {
        throw new HttpError(429, 'ERR_TOO_MANY_REQUESTS', { detail: 'Later.', headers: { 'Retry-After': '7' } })
      },
    }),
  },
  cors: { origins: ['https://app.example'] },
  auth: { schemes: [basic({ realm: 'a "quoted" realm', accounts: { ada: 'lovelace' } })], requireAuth: () => false },
}

type Row = readonly [status: number, method: string, target: string, fields?: readonly string[], body?: string]

/** One request for each error that a client can cause. */
const rows: readonly Row[] = [
  [400, 'GET', '/docs/%zz'],
  [400, 'POST', '/users', [json], '{'],
  [401, 'GET', '/secret/a'],
  [403, 'GET', '/forbidden'],
  [404, 'GET', '/docs/missing'],
  [405, 'DELETE', '/users'],
  [406, 'GET', '/users/1', ['Accept: image/png']],
  [409, 'PUT', '/users/1', [json], '{"id":2}'],
  [410, 'GET', '/docs/gone'],
  [413, 'PUT', '/users/1', [json, 'Content-Length: 1000000000']],
  [414, 'GET', `/${'a'.repeat(3000)}`],
  [415, 'PUT', '/users/1', [text], 'x'],
  [416, 'GET', '/users/1', ['Range: bytes=999-']],
  [428, 'PUT', '/strict/a', [text], 'x'],
  [429, 'GET', '/teapot'],
  [501, 'PROPFIND', '/users'],
]

const named = rows.map((row) => [row[0], row] as const)

async function serveErrors() {
  const served = await serve(memoryStore(), options)
  await served.send('POST', '/users', [json], '{"name":"Ada"}')
  await served.send('PUT', '/docs/gone', [text], 'x')
  await served.send('DELETE', '/docs/gone')
  await served.send('PUT', '/strict/a', [text], 'x')
  return served
}

describe('error answers', () => {
  it.each(named)('%i is a problem document (RFC 9457, rows E1, E2, E4, E7, H184)', async (status, [, ...request]) => {
    const { send } = await serveErrors()
    const answer = await send(...request)
    expect([answer.status, answer.field('Content-Type')]).toEqual([status, 'application/problem+json'])
    const problem = JSON.parse(answer.text) as Record<string, unknown>
    expect(problem['type']).toMatch(/^urn:problem-type:http-resource-service:[a-z-]+$/)
    expect(problem['status']).toBe(status)
    for (const name of Object.keys(problem)) expect(name).toMatch(/^[A-Za-z]\w{2,}$/)
  })

  it.each(named)(
    '%i is text for a client that takes nothing else (row E10)',
    async (status, [, method, target, fields = [], body]) => {
      if (status === 406) return // the client refuses the resource itself
      const { send } = await serveErrors()
      const accept = method === 'GET' && target === '/users/1' ? [] : ['Accept: text/plain']
      const answer = await send(method, target, [...fields, ...accept], body)
      expect(answer.status).toBe(status)
      if (accept.length > 0) {
        expect(answer.field('Content-Type')).toBe('text/plain; charset=utf-8')
        expect(answer.text).toMatch(/^[A-Z][^{}]*\n$/)
      }
    },
  )

  it.each(named)(
    '%i has the fields of CORS for an origin that may read it (row X15, threat 133)',
    async (status, [, method, target, fields = [], body]) => {
      const { send } = await serveErrors()
      const answer = await send(method, target, [...fields, 'Origin: https://app.example'], body)
      expect(answer.status).toBe(status)
      // A target that names no resource has no policy either (row X24).
      const isResource = status !== 414 && target !== '/docs/%zz'
      expect(answer.field('Access-Control-Allow-Origin')).toBe(isResource ? 'https://app.example' : undefined)
      const foreign = await send(method, target, [...fields, 'Origin: https://evil.example'], body)
      expect([foreign.status, foreign.field('Access-Control-Allow-Origin')]).toEqual([status, undefined])
      if (isResource) expect(foreign.field('Vary')).toContain('Origin')
    },
  )

  it.each(named.filter(([, row]) => row[1] === 'GET'))(
    '%i is the same for HEAD, without content (rows H91, H183, threat 123)',
    async (status, [, , target, fields = []]) => {
      const { send } = await serveErrors()
      const get = await send('GET', target, fields)
      const head = await send('HEAD', target, fields)
      const of = ({ fields }: typeof get) => fields.filter(([name]) => name !== 'date')
      // HEAD has no ranges, and so none that cannot be satisfied.
      if (status === 416) expect(head.status).toBe(200)
      else expect([head.status, of(head)]).toEqual([status, of(get)])
    },
  )

  it('412 is empty, whatever the client takes (interface PATCH 4, row E9)', async () => {
    const { send } = await serveErrors()
    for (const method of ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE']) {
      const fields = ['If-Match: "x"', 'Accept: */*', method === 'PATCH' ? merge : json]
      const answer = await send(method, '/users/1', fields, method === 'PUT' || method === 'PATCH' ? '{}' : undefined)
      expect([answer.status, answer.field('Content-Length'), answer.text]).toEqual([412, '0', ''])
      expect(answer.field('Content-Type')).toBeUndefined()
    }
  })

  it('never echo what was sent (row E8, threat 66)', async () => {
    const { send } = await serveErrors()
    const secret = 'hunter2'
    for (const [method, target, fields, body] of [
      ['POST', '/users', [json], `{"password":"${secret}"`],
      ['POST', `/${secret}`, [json], '{}'],
      ['GET', `/docs/${secret}?token=${secret}`, [`Authorization: Basic ${secret}`]],
      ['GET', `/docs/${secret}%zz`, []],
      ['PUT', '/users/1', [json, `If-Match: ${secret}`], '{}'],
      ['GET', `/users?limit=${secret}`, []],
      ['GET', `/users?after=${secret}`, []],
      ['PATCH', '/users/1', [merge], `{"a":"${secret}"`],
      ['GET', '/docs/a', [`X-Secret: ${secret}`, `Cookie: ${secret}`]],
    ] as const) {
      const answer = await send(method, target, fields, body)
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.text + JSON.stringify(answer.fields)).not.toContain(secret)
    }
  })

  it('quote the realm of a challenge (RFC 9110 §11.5, rows H82, H89)', async () => {
    const { send } = await serveErrors()
    const answer = await send('GET', '/secret/a')
    expect(answer.field('WWW-Authenticate')).toBe('Basic realm="a \\"quoted\\" realm", charset="UTF-8"')
    expect((await send('GET', '/secret/a', [`Proxy-${ada}`])).status).toBe(401)
    expect((await send('GET', '/secret/a', [ada.replace('Basic', 'bAsIc')])).status).toBe(404)
  })

  it('keep the fields that they were thrown with (row H182)', async () => {
    const { send } = await serveErrors()
    const answer = await send('GET', '/teapot')
    expect([answer.field('Retry-After'), JSON.parse(answer.text).detail]).toEqual(['7', 'Later.'])
  })
})

describe('415 tells what is taken (RFC 9110 §15.5.16, rows H33, H178, P4)', () => {
  const hints = ['Accept', 'Accept-Patch', 'Accept-Post', 'Accept-Encoding']

  it.each<readonly [string, string, readonly string[], string, string]>([
    ['PUT', '/users/1', [text], 'Accept', 'application/json'],
    ['PUT', '/users/1', [], 'Accept', 'application/json'],
    ['PATCH', '/users/1', [json], 'Accept-Patch', 'application/json-patch+json, application/merge-patch+json'],
    ['PATCH', '/users/1', [], 'Accept-Patch', 'application/json-patch+json, application/merge-patch+json'],
    [
      'POST',
      '/users',
      ['Content-Type: text/xml'],
      'Accept-Post',
      'application/json, application/x-www-form-urlencoded, multipart/form-data',
    ],
    ['PUT', '/users/1', [json, 'Content-Encoding: gzip'], 'Accept-Encoding', 'identity'],
    ['POST', '/users', [json, 'Content-Encoding: foo'], 'Accept-Encoding', 'identity'],
  ])('%s %s with %j: only %s', async (method, target, fields, name, value) => {
    const { send } = await serveErrors()
    const answer = await send(method, target, fields, '{}')
    expect(answer.status).toBe(415)
    expect(hints.map((hint) => [hint, answer.field(hint)])).toEqual(
      hints.map((hint) => [hint, hint === name ? value : undefined]),
    )
  })
})

describe('an HttpError with the fields of a response that a hook was given', () => {
  const upstream = {
    ...{
      'content-type': 'text/html',
      'content-length': '3',
      'transfer-encoding': 'chunked',
      'content-encoding': 'gzip',
    },
    ...{ trailer: 'X-Sum', 'retry-after': '7' },
  }
  const authorize = (): never => {
    throw new HttpError(429, 'ERR_TOO_MANY_REQUESTS', { headers: upstream })
  }
  const formats: readonly (readonly [string, ServiceOptions])[] = [
    ['by the service', {}],
    [
      'by formatError',
      {
        formatError: ({ status }) => ({
          status,
          headers: ['Content-Type', 'text/plain', 'Transfer-Encoding', 'chunked'],
          body: 'Later.',
        }),
      },
    ],
  ]
  it.each(formats)('is answered without those that describe the content: %s (RFC 9112 §6.3)', async (_, options) => {
    const { send } = await serve(memoryStore(), { resources: { '/docs/{name}': document({ authorize }) }, ...options })
    const answer = await send('GET', '/docs/a')
    expect([answer.status, answer.field('Retry-After')]).toEqual([429, '7'])
    expect(answer.field('Content-Length')).toBe(String(answer.body.length))
    expect(answer.field('Content-Type')).not.toContain('html')
    for (const name of ['Transfer-Encoding', 'Content-Encoding', 'Trailer']) expect(answer.field(name)).toBeUndefined()
  })

  it.each(formats)(
    'is answered without those of its connection on HTTP/2: %s (RFC 9113 §8.2.2)',
    async (_, options) => {
      const connection = { connection: 'keep-alive', 'keep-alive': 'timeout=5', upgrade: 'h2c', te: 'trailers' }
      const refuse = (): never => {
        throw new HttpError(429, 'ERR_TOO_MANY_REQUESTS', { headers: { ...upstream, ...connection } })
      }
      const resources = { '/docs/{name}': document({ authorize: refuse }) }
      const service = createResourceService(memoryStore(), { resources, ...options })
      const host = await startHost('http2', service)
      const { status, headers } = await host.send({ path: '/docs/a' })
      await host.close()
      expect([status, headers['retry-after'], headers['upgrade']]).toEqual([429, '7', undefined])
    },
  )

  it('is answered with those that every answer has once', async () => {
    const others = { 'access-control-allow-origin': '*', 'x-content-type-options': 'nosniff' }
    const refuse = (): never => {
      throw new HttpError(429, 'ERR_TOO_MANY_REQUESTS', { headers: others })
    }
    const { send } = await serve(memoryStore(), {
      resources: { '/docs/{name}': document({ authorize: refuse }) },
      cors: { origins: ['https://app.example'] },
    })
    const { fields } = await send('GET', '/docs/a', ['Origin: https://app.example'])
    for (const name of Object.keys(others)) expect(fields.filter((field) => field[0] === name)).toHaveLength(1)
  })
})
