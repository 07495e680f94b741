import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { json as jsonOf } from '../../src/actions/hook-types.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { RequestEvent } from '../../src/core/diagnostics.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { FIXTURE_RESOURCES, type Served, serve, serveFixtures } from './serve.ts'

const text = 'Content-Type: text/plain'
const json = 'Content-Type: application/json'
const merge = 'Content-Type: application/merge-patch+json'
const pointers = 'Content-Type: application/json-patch+json'
const ada = `Authorization: Basic ${btoa('ada:lovelace')}`
const app = 'Origin: https://app.example'
const evil = 'Origin: https://evil.example'

type Row = readonly [line: string, method: string, target: string, fields?: readonly string[], body?: string]

/** Each refusal, and the one line that says why. */
const rows: readonly Row[] = [
  ['GET /docs/%zz 400: checkTarget: The request target is malformed.', 'GET', '/docs/%zz?secret=1'],
  [
    'GET /docs/a.bin 400: checkTarget: The field host was sent more than once.',
    'GET',
    '/docs/a.bin',
    ['Host: a', 'Host: b'],
  ],
  ['GET /docs/a.bin 400: checkTarget: Host is malformed.', 'GET', '/docs/a.bin', ['Host: a b']],
  ['GET /docs/a.bin 421: checkHost: host not served', 'GET', '/docs/a.bin', ['Host: other.test']],
  [
    'GET /docs/a.bin 403: requireHttps: local, forwarded; This service is reached by https only.',
    'GET',
    '/docs/a.bin',
    ['X-Forwarded-For: 192.0.2.1'],
  ],
  [
    'POST /docs/a.bin 400: overrideMethod: X-HTTP-Method-Override names one of PUT, PATCH and DELETE.',
    'POST',
    '/docs/a.bin',
    [text, 'X-HTTP-Method-Override: GET'],
    'x',
  ],
  [
    'OPTIONS /docs/a.bin 204: applyCors: origin not allowed',
    'OPTIONS',
    '/docs/a.bin',
    [evil, 'Access-Control-Request-Method: PUT'],
  ],
  ['PROPFIND /docs/a.bin 501: checkMethod: unknown method', 'PROPFIND', '/docs/a.bin'],
  ['GET /nothing 404: checkMethod: no definition is for this path', 'GET', '/nothing'],
  [
    'POST /docs/a.bin 405: checkMethod: allowed are GET, HEAD, PUT, PATCH, DELETE, OPTIONS',
    'POST',
    '/docs/a.bin',
    [text],
    'x',
  ],
  ['GET /secret/a 401: authenticate: Credentials are required.', 'GET', '/secret/a'],
  [
    'GET /secret/a 401: authenticate: unknown scheme; Credentials are required.',
    'GET',
    '/secret/a',
    ['Authorization: Foo x'],
  ],
  [
    'PUT /docs/a.bin 403: refuseCrossSite: another site, with credentials that a browser attaches; Changes with these credentials are not taken from other sites.',
    'PUT',
    '/docs/a.bin',
    [ada, text, evil],
    'x',
  ],
  ['GET /forbidden 403: checkAuthorization: authorize refused', 'GET', '/forbidden'],
  ['GET /forgotten 403: checkAuthorization: authorize returned undefined, which refuses', 'GET', '/forgotten'],
  ['GET /hidden 404: loadCurrent: authorize hides it', 'GET', '/hidden'],
  ['GET /broken 500: checkAuthorization: Error: boom', 'GET', '/broken'],
  [
    'PUT /users/1 415: checkContent: Content of type text/plain is not taken here. Send application/json.',
    'PUT',
    '/users/1',
    [text],
    'x',
  ],
  [
    'PUT /users/1 415: checkContent: The content has no Content-Type. Send application/json.',
    'PUT',
    '/users/1',
    [],
    'x',
  ],
  [
    'POST /users 415: checkContent: Content of type text/plain is not taken here. Send application/json, application/x-www-form-urlencoded or multipart/form-data.',
    'POST',
    '/users',
    [text],
    'x',
  ],
  [
    'PUT /docs/x 415: checkContent: The content coding is not supported.',
    'PUT',
    '/docs/x',
    [text, 'Content-Encoding: foo'],
    'x',
  ],
  ['PUT /small 413: checkContent: The content is larger than 3 bytes.', 'PUT', '/small', [text], 'long'],
  [
    'PUT /docs/x 400: checkContent: PUT replaces the whole: Content-Range has no place here.',
    'PUT',
    '/docs/x',
    [text, 'Content-Range: bytes 0-1/2'],
    'x',
  ],
  ['GET /users/1 406: negotiate: Available: application/json.', 'GET', '/users/1', ['Accept: image/png']],
  ['GET /docs/missing 404: loadCurrent: nothing is stored here', 'GET', '/docs/missing'],
  ['GET /docs/gone 410: loadCurrent: it was removed', 'GET', '/docs/gone'],
  ['GET /users 400: loadCurrent: limit is a positive integer.', 'GET', '/users?limit=x'],
  ['DELETE /docs/a.bin 412: evaluateConditions: If-Match failed', 'DELETE', '/docs/a.bin', ['If-Match: "x"']],
  ['PUT /docs/missing 412: evaluateConditions: If-Match failed', 'PUT', '/docs/missing', [text, 'If-Match: *'], 'x'],
  [
    'PUT /docs/a.bin 412: evaluateConditions: If-None-Match failed',
    'PUT',
    '/docs/a.bin',
    [text, 'If-None-Match: *'],
    'x',
  ],
  [
    'PUT /docs/a.bin 412: evaluateConditions: If-Unmodified-Since failed',
    'PUT',
    '/docs/a.bin',
    [text, 'If-Unmodified-Since: Mon, 01 Jan 1990 00:00:00 GMT'],
    'x',
  ],
  ['GET /docs/a.bin 304: evaluateConditions: If-None-Match not-modified', 'GET', '/docs/a.bin', ['If-None-Match: *']],
  [
    'PUT /docs/a.bin 400: evaluateConditions: If-Match malformed; If-Match is not a list of entity tags.',
    'PUT',
    '/docs/a.bin',
    [text, 'If-Match: x'],
    'x',
  ],
  ['GET /docs/a.bin 416: selectContent: no byte of 26 is asked for', 'GET', '/docs/a.bin', ['Range: bytes=26-']],
  ['POST /users 400: perform: The content is not valid JSON.', 'POST', '/users', [json], '{'],
  [
    'POST /users 422: perform: The content is not valid for this resource.; /name Invalid input: expected string, received number',
    'POST',
    '/users',
    [json],
    '{"name":1}',
  ],
  [
    'PATCH /users/1 409: perform: Operation 0 does not fit the current state.; /0/path There is no value at this location.',
    'PATCH',
    '/users/1',
    [pointers],
    '[{"op":"remove","path":"/nope"}]',
  ],
  [
    'PATCH /docs/text.txt 415: loadCurrent: A resource of type text/plain; charset=utf-8 cannot be patched; replace it with PUT.',
    'PATCH',
    '/docs/text.txt',
    [merge],
    '{}',
  ],
  ['PUT /locked 409: perform: it is locked', 'PUT', '/locked', [text], 'x'],
  ['GET /docs/a.bin 200: perform', 'GET', '/docs/a.bin', [app]],
]

async function serveAll(explain?: (line: string) => void): Promise<Served> {
  return serveFixtures({
    resources: {
      ...FIXTURE_RESOURCES,
      '/users': collection({ schema: z.looseObject({ name: z.string() }) }),
      '/secret/{name}': document({ requireAuth: 'all' }),
      '/strict/{name}': document({ preconditions: 'required' }),
      '/locked': document({ conflict: () => 'it is locked' }),
      '/small': document({ maxSize: 3 }),
      '/forbidden': document({ authorize: () => false }),
      '/forgotten': document({ authorize: (() => undefined) as never }),
      '/hidden': document({ authorize: () => 'not-found' }),
      '/broken': document({
        authorize: () => {
          throw new Error('boom')
        },
      }),
    },
    methodOverride: true,
    allowedHosts: ['demo.test'],
    cors: { origins: ['https://app.example'] },
    auth: { schemes: [basic({ realm: 'test', accounts: { ada: 'lovelace' } })], requireAuth: () => false },
    onError() {},
    ...(explain === undefined ? {} : { explain }),
  })
}

describe('explain', () => {
  it.each(rows.map((row) => [row[0], row] as const))('says in one line: %s', async (line, [, ...request]) => {
    const lines: string[] = []
    const { send } = await serveAll((line) => lines.push(line))
    await send(...request)
    expect(lines[0]).toBe(line)
  })

  it('says why a condition is required (RFC 6585 §3)', async () => {
    const lines: string[] = []
    const { send } = await serveAll((line) => lines.push(line))
    await send('PUT', '/strict/a', [text], 'x')
    await send('PUT', '/strict/a', [text], 'x')
    expect(lines.find((line) => line.includes('428'))).toMatch(/^PUT \/strict\/a 428: evaluateConditions: .*If-Match/)
  })
})

it.each([undefined, () => true])('says that an item is out of scope, with authorize %s', async (authorize) => {
  const lines: string[] = []
  const store = memoryStore()
  await store.write('/owned/1', jsonOf({ id: 1, owner: 'bob' }), { expect: 'any' })
  const { send } = await serve(store, {
    resources: {
      '/owned': collection({
        scope: () => ({ owner: 'ada' }),
        clientIds: true,
        files: { photo: { replaceable: true } },
        ...(authorize && { authorize }),
      }),
    },
    explain: (line) => lines.push(line),
  })
  for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
    await send(method, '/owned/1', [method === 'PATCH' ? merge : json], method[0] === 'P' ? '{}' : undefined)
  }
  await send('GET', '/owned/1/photo')
  await send('PUT', '/owned/1/photo', [text], 'x')
  await send('GET', '/owned/2')
  expect(lines.filter((line) => !line.startsWith('OPTIONS'))).toEqual([
    'GET /owned/1 404: loadCurrent: out of scope',
    'PUT /owned/1 404: loadCurrent: out of scope',
    'PATCH /owned/1 404: loadCurrent: out of scope',
    'DELETE /owned/1 404: loadCurrent: out of scope',
    'GET /owned/1/photo 404: loadCurrent: out of scope',
    'PUT /owned/1/photo 404: loadCurrent: out of scope',
    'GET /owned/2 404: loadCurrent: nothing is stored here',
  ])
})

describe('the channel http-resource-service:request', () => {
  async function traceOf(...request: Parameters<Served['send']>): Promise<RequestEvent> {
    const events: RequestEvent[] = []
    const listen = (event: unknown): void => void events.push(event as RequestEvent)
    subscribe('http-resource-service:request', listen)
    closeAfterTest(async () => unsubscribe('http-resource-service:request', listen))
    const { send } = await serveAll()
    await send(...request)
    return events[0]!
  }

  it('has every step that was taken, what each found, and no query', async () => {
    const event = await traceOf('GET', '/docs/a.bin?token=secret', ['Range: items=0-1'])
    expect(event).toMatchObject({ method: 'GET', target: '/docs/a.bin', status: 200, reason: 'perform' })
    expect(event.steps[0]).toBe('findRoute')
    expect(event.steps).toContain('selectContent: Range ignored')
    expect(event.duration).toBeGreaterThanOrEqual(0)
    expect(JSON.stringify(event.steps)).not.toContain('secret')
  })

  it('says why a range came to nothing', async () => {
    const event = await traceOf('GET', '/docs/a.bin', ['Range: bytes=0-1', 'If-Range: "x"'])
    expect(event.steps).toContain('selectContent: If-Range does not match')
  })

  it('names no host and no password of an absolute-form target', async () => {
    const event = await traceOf('GET', 'http://ada:lovelace@demo.test/docs/a.bin')
    expect([event.status, event.target]).toEqual([400, '/docs/a.bin'])
  })

  it('tells of OPTIONS * too', async () => {
    const event = await traceOf('OPTIONS', '*')
    expect([event.target, event.reason]).toEqual(['*', 'checkMethod'])
  })
})

it('says nothing of the requests of another service in the same process', async () => {
  const lines: string[] = []
  const own = await serveAll((line) => lines.push(line))
  const other = await serveAll()
  await other.send('GET', '/docs/a.bin')
  expect(lines).toEqual([])
  await own.send('GET', '/docs/a.bin')
  expect(lines[0]).toBe('GET /docs/a.bin 200: perform')
})

it('leaves no listener behind once the service is closed', async () => {
  const name = 'http-resource-service:request'
  const service = createResourceService(memoryStore(), { explain: () => {} })
  expect(channel(name).hasSubscribers).toBe(true)
  await service.close()
  expect(channel(name).hasSubscribers).toBe(false)
})
