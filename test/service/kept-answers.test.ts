import { createServer } from 'node:http'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { mount } from '../../src/adapters/node.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { checkAnswer, formatRequest } from '../support/ask.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runServer } from '../support/hosts.ts'
import { openRawClient } from '../wire/raw-client.ts'
import { senderTo } from './serve.ts'

const ada = `Authorization: Basic ${btoa('ada:lovelace')}`
const ROUNDS = [1, 2, 3]

/** A service with three members, of which the second is not JSON. */
async function createService(options: ServiceOptions = {}): Promise<ResourceService> {
  const store = memoryStore()
  for (const body of ['{"n":1}', 'text', '{"n":3}']) {
    const contentType = body === 'text' ? 'text/plain' : 'application/json'
    await store.create('/users', () => ({ contentType, body }))
  }
  const resources = { '/users': collection({ types: ['*/*'], pageSize: { default: 2, max: 2 } }) }
  return createResourceService(store, { resources, fallthrough: false, ...options })
}

async function listen(listener: Parameters<typeof createServer>[1]) {
  const host = await runServer(createServer(listener))
  closeAfterTest(() => host.close())
  return senderTo(host.port)
}

describe('what is kept of an answer', () => {
  it('is kept for each mount: Link and the places of members (RFC 8288 §3.2)', async () => {
    const service = await createService()
    const app = express().disable('x-powered-by')
    app.use('/api', service as unknown as express.RequestHandler)
    app.use('/v2', mount('/x', service) as unknown as express.RequestHandler)
    app.use(service as unknown as express.RequestHandler)
    const send = await listen(app)
    const tags = new Set<string | undefined>()
    for (const _ of ROUNDS) {
      for (const prefix of ['', '/api', '/v2/x']) {
        const answer = await send('GET', `${prefix}/users`)
        expect(answer.field('link')).toMatch(new RegExp(`^<${prefix}/users\\?after=\\w+>; rel="next"$`))
        expect(JSON.parse(answer.text)[1].href).toBe(`${prefix}/users/2`)
        const again = await send('GET', `${prefix}/users`, [`If-None-Match: ${answer.field('etag')}`])
        expect([again.status, again.field('link')]).toEqual([304, answer.field('link')])
        tags.add(answer.field('etag'))
      }
    }
    expect(tags.size).toBe(3)
  })

  it('is kept for each query: Link carries the query on', async () => {
    const send = await listen(await createService())
    for (const _ of ROUNDS) {
      for (const query of ['', 'a=1', 'a=2']) {
        const link = (await send('GET', `/users?${query}`)).field('link')!
        expect(link.slice(0, link.indexOf('after='))).toBe(`</users?${query === '' ? '' : `${query}&`}`)
      }
    }
  })

  it.each(['/users', '/users/1', '/users/2'])(
    'is private for an authorised reader of %s, whichever request came first (RFC 9111 §3.5)',
    async (target) => {
      const schemes = [basic({ realm: 'test', accounts: { ada: 'lovelace' } })]
      const send = await listen(await createService({ auth: { schemes, requireAuth: 'writes' } }))
      for (const _ of ROUNDS) {
        const anonymous = await send('GET', target)
        const own = await send('GET', target, [ada])
        expect([anonymous, own].map((answer) => answer.field('cache-control'))).toEqual([
          'no-cache',
          'private, no-cache',
        ])
        for (const [fields, expected] of [
          [[], 'no-cache'],
          [[ada], 'private, no-cache'],
        ] as const) {
          const known = await send('GET', target, [...fields, 'If-None-Match: *'])
          expect([known.status, known.field('cache-control')]).toEqual([304, expected])
        }
      }
    },
  )

  it.each(['/users', '/users/1', '/users/2'])(
    'carries on %s the Vary that the host sets on this very request (RFC 9110 §12.5.5)',
    async (target) => {
      const service = await createService({ cors: { origins: ['https://a.example', 'https://b.example'] } })
      const send = await listen((req, res) => {
        if (typeof req.headers['x-vary'] === 'string') res.setHeader('Vary', req.headers['x-vary'])
        service(req, res)
      })
      for (const _ of ROUNDS) {
        for (const origin of [undefined, 'https://a.example', 'https://b.example']) {
          for (const vary of [undefined, 'Accept-Language', 'Cookie']) {
            const fields = [
              ...(vary === undefined ? [] : [`X-Vary: ${vary}`]),
              ...(origin === undefined ? [] : [`Origin: ${origin}`]),
            ]
            for (const condition of [[], ['If-None-Match: *']]) {
              const answer = await send('GET', target, [...fields, ...condition])
              expect(answer.field('vary')).toBe(vary === undefined ? 'Origin' : `${vary}, Origin`)
              expect(answer.field('access-control-allow-origin')).toBe(origin)
            }
          }
        }
      }
    },
  )

  it('lets no malformed Host pass the second time (RFC 9112 §3.2)', async () => {
    const service = await createService()
    const host = await runServer(createServer(service))
    closeAfterTest(() => host.close())
    const client = await openRawClient(host.port)
    for (const [name, status] of [
      ...(['a b', 'a/b', 'a@b', 'a:x', '[::1'] as const).map((name) => [name, 400] as const),
      ['demo.test', 200],
    ] as const) {
      for (const _ of ROUNDS) {
        client.send(formatRequest({ target: '/users', fields: [`Host: ${name}`] }))
        expect([name, checkAnswer('GET', await client.read()).status]).toEqual([name, status])
      }
    }
    client.socket.destroy()
  })

  it.each(['credentials', 'no credentials'])(
    'allows an origin only while the function allows it, with %s (Fetch, "CORS protocol")',
    async (kind) => {
      const allowed = new Set<string>()
      const origins = (origin: string): boolean => allowed.has(origin)
      const send = await listen(await createService({ cors: { origins, credentials: kind === 'credentials' } }))
      const preflight = ['Access-Control-Request-Method: PUT']
      const allowedTo = async (origin: string) => {
        const field = 'access-control-allow-origin'
        const simple = await send('GET', '/users/1', [`Origin: ${origin}`])
        const asked = await send('OPTIONS', '/users/1', [`Origin: ${origin}`, ...preflight])
        const refused = await send('GET', '/users/none', [`Origin: ${origin}`])
        return [simple, asked, refused].map((answer) => answer.field(field))
      }
      for (const _ of ROUNDS) {
        for (const origin of ['https://a.example', 'https://b.example']) {
          allowed.add(origin)
          expect(await allowedTo(origin)).toEqual([origin, origin, origin])
          allowed.delete(origin)
          expect(await allowedTo(origin)).toEqual([undefined, undefined, undefined])
        }
      }
    },
  )

  it('is kept for each of two services over one store, whose definitions differ', async () => {
    const store = memoryStore()
    const open = { '/docs/{name}': document({ cacheControl: 'public, max-age=60', allowInline: ['text/html'] }) }
    const [shared, own] = await Promise.all(
      [open, { '/docs/{name}': document() }].map((resources) => listen(createResourceService(store, { resources }))),
    )
    await store.write('/docs/a', { contentType: 'text/html', body: '<p>' }, { expect: 'any' })
    for (const _ of ROUNDS) {
      const [one, other] = [await shared!('GET', '/docs/a'), await own!('GET', '/docs/a')]
      expect([one.field('cache-control'), other.field('cache-control')]).toEqual(['public, max-age=60', 'no-cache'])
      const dispositions = [one, other].map((answer) => answer.field('content-disposition')?.split(';')[0])
      expect(dispositions).toEqual([undefined, 'attachment'])
      const again = await own!('GET', '/docs/a', [`If-None-Match: ${one.field('etag')}`])
      expect([again.status, again.field('cache-control')]).toEqual([304, 'no-cache'])
    }
  })
})

it('a date becomes strong once its second is over, also of a state that was read within it (RFC 9110 §8.8.2.2)', async () => {
  const lastModified = Date.UTC(2026, 0, 1)
  const state = { path: '/a', version: '1', lastModified, contentType: 'text/plain', body: 'text', size: 4 }
  let now = lastModified + 100
  const store: ResourceStore = { ...memoryStore(), read: async () => state as StoredResource }
  const send = await listen(createResourceService(store, { now: () => now }))
  const fields = ['Range: bytes=0-1', `If-Range: ${new Date(lastModified).toUTCString()}`]
  const statuses: number[] = []
  for (const time of [100, 200, 1000]) {
    now = lastModified + time
    statuses.push((await send('GET', '/a', fields)).status)
  }
  expect(statuses).toEqual([200, 200, 206])
})
