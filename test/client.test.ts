import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fetch as undiciFetch } from 'undici'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createPatch, createResourceClient, type Fetch, ResponseError } from '../src/client.ts'
import type { JsonObject, JsonValue } from '../src/core/json.ts'
import { createResourceService } from '../src/service/create-resource-service.ts'
import { collection } from '../src/service/resource-definitions.ts'
import { memoryStore } from '../src/stores/memory.ts'
import type { ResourceStore } from '../src/stores/types.ts'

const MERGE_PATCH = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'

let server: Server
let url: string

async function start(listener: RequestListener): Promise<void> {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/config/app`
}

async function stop(): Promise<void> {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
}

async function put(text: string): Promise<void> {
  const response = await fetch(url, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: text })
  expect(response.status).toBeOneOf([200, 201, 204])
}

const withMember = (document: JsonValue, name: string, value: JsonValue): JsonValue => ({
  ...(document as JsonObject),
  [name]: value,
})

describe('createResourceClient beside createResourceService', () => {
  beforeEach(async () => {
    await start(createResourceService(memoryStore()))
    await put('{"name":"a","list":[1,2,3],"sub":{"x":1,"y":2}}')
  })
  afterEach(stop)

  it('reads a document with its validators', async () => {
    const read = await createResourceClient().read(url)
    expect(read.document).toEqual({ name: 'a', list: [1, 2, 3], sub: { x: 1, y: 2 } })
    expect(read.entityTag).toMatch(/^".+"$/)
    expect(read.lastModified).toMatch(/ GMT$/)
  })

  it('edits a document, and gives it back as it is then', async () => {
    const client = createResourceClient()
    const edited = await client.edit(url, (document) => withMember(document, 'name', 'b'))
    expect(edited.document).toEqual({ name: 'b', list: [1, 2, 3], sub: { x: 1, y: 2 } })
    expect(await client.read(url)).toEqual(edited)
  })

  it('takes a change that is made in place', async () => {
    await createResourceClient().edit(url, (document) => Object.assign(document as object, { name: 'b' }))
    expect((await createResourceClient().read(url)).document).toMatchObject({ name: 'b' })
  })

  it('takes a change that is made later, and leaves out what JSON does not know', async () => {
    const edited = await createResourceClient().edit(new URL(url), async (document) => {
      const changed = document as Record<string, unknown>
      changed['name'] = undefined
      changed['at'] = new Date(0)
      return changed as JsonObject
    })
    expect(edited.document).toEqual({ list: [1, 2, 3], sub: { x: 1, y: 2 }, at: '1970-01-01T00:00:00.000Z' })
    expect(await createResourceClient().read(url)).toEqual(edited)
  })

  it('sends nothing where the change makes no difference', async () => {
    const methods: string[] = []
    const spy: Fetch = (target, init) => {
      methods.push(init.method)
      return fetch(target, init)
    }
    const client = createResourceClient({ fetch: spy })
    const before = await client.read(url)
    expect(await client.edit(url, (document) => ({ ...(document as JsonObject) }))).toEqual(before)
    expect(methods).toEqual(['GET', 'GET'])
  })

  it('sends a merge patch under If-Match, or a JSON Patch where null is to be stored (RFC 7396 §1, row M8)', async () => {
    const sent: [string | undefined, string | undefined, JsonValue][] = []
    const spy: Fetch = (target, init) => {
      const { 'Content-Type': type, 'If-Match': condition } = init.headers
      if (init.method === 'PATCH') sent.push([type, condition, JSON.parse(init.body!)])
      return fetch(target, init)
    }
    const client = createResourceClient({ fetch: spy })
    const { entityTag: first } = await client.read(url)
    const { entityTag: second } = await client.edit(url, (document) => withMember(document, 'sub', { x: 1, y: 3 }))
    await client.edit(url, (document) => withMember(document, 'none', null))
    expect(sent).toEqual([
      [MERGE_PATCH, first, { sub: { y: 3 } }],
      [JSON_PATCH, second, [{ op: 'add', path: '/none', value: null }]],
    ])
  })

  it('sends a JSON Patch where that is preferred', async () => {
    const spy = vi.fn<Fetch>((target, init) => fetch(target, init))
    await createResourceClient({ fetch: spy, prefer: 'json' }).edit(url, (document) =>
      withMember(document, 'list', [1, 2, 4]),
    )
    expect(JSON.parse(spy.mock.lastCall?.[1].body ?? '')).toEqual([{ op: 'replace', path: '/list/2', value: 4 }])
  })

  it('reads and changes anew when somebody else was faster', async () => {
    const client = createResourceClient()
    let calls = 0
    const edited = await client.edit(url, async (document) => {
      if (calls++ === 0) await client.edit(url, (other) => withMember(other, 'other', true))
      return withMember(document, 'name', 'mine')
    })
    expect(calls).toBe(2)
    expect(edited.document).toMatchObject({ name: 'mine', other: true })
  })

  it('loses none of many edits at the same time', async () => {
    const client = createResourceClient({ maxAttempts: 50 })
    const names = Array.from({ length: 10 }, (_, index) => `n${index}`)
    await Promise.all(names.map((name) => client.edit(url, (document) => withMember(document, name, 1))))
    expect(Object.keys((await client.read(url)).document as JsonObject)).toEqual(expect.arrayContaining(names))
  })

  it('gives up after the last attempt', async () => {
    const client = createResourceClient({ maxAttempts: 2 })
    let calls = 0
    const edit = client.edit(url, async (document) => {
      await createResourceClient().edit(url, (other) => withMember(other, 'count', ++calls))
      return withMember(document, 'name', 'mine')
    })
    await expect(edit).rejects.toMatchObject({ name: 'ResponseError', status: 412 })
    expect(calls).toBe(2)
  })

  it('tells of other answers with their problem document', async () => {
    const client = createResourceClient()
    const missing = await client.read(url.replace('app', 'none')).catch((error: unknown) => error)
    expect(missing).toBeInstanceOf(ResponseError)
    expect(missing).toMatchObject({ status: 404, problem: { status: 404 } })
    await expect(client.edit(url, () => 'x'.repeat(9_000_000))).rejects.toMatchObject({ status: 413 })
  })

  it('keeps members whatever they are called (rows J21, M9)', async () => {
    const names = ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString', 'toJSON']
    for (const prefer of ['merge', 'json'] as const) {
      const client = createResourceClient({ prefer })
      for (const name of names) {
        await put('{"a":1,"z":{"b":2}}')
        const value = JSON.parse(`{"a":1,"${name}":{"x":1},"z":{"${name}":[],"b":3}}`) as JsonValue
        await client.edit(url, () => value)
        expect(JSON.stringify(sorted((await client.read(url)).document))).toBe(JSON.stringify(sorted(value)))
        await client.edit(url, () => JSON.parse(`{"${name}":{"x":1,"y":2},"z":{}}`) as JsonValue)
        const changed = (await client.read(url)).document as JsonObject
        expect(Object.keys(changed).sort()).toEqual([name, 'z'].sort())
        expect(Object.getOwnPropertyDescriptor(changed, name)?.value).toEqual({ x: 1, y: 2 })
      }
    }
    expect(Reflect.get({}, 'x')).toBeUndefined()
  })

  it('works with the fetch of undici', async () => {
    const client = createResourceClient({ fetch: undiciFetch })
    const edited = await client.edit(url, (document) => withMember(document, 'name', 'b'))
    expect(edited.document).toMatchObject({ name: 'b' })
  })

  it('stops when it is told to', async () => {
    const options = { signal: AbortSignal.abort() }
    await expect(createResourceClient().read(url, options)).rejects.toMatchObject({ name: 'AbortError' })
    await expect(createResourceClient().edit(url, () => 1, options)).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('createResourceClient beside other servers', () => {
  afterEach(stop)

  it('sends If-Unmodified-Since where the tag is weak (RFC 9110 §13.1.1)', async () => {
    const seen: (string | undefined)[] = []
    await start((req, res) => {
      if (req.method === 'PATCH') seen.push(req.headers['if-match'], req.headers['if-unmodified-since'])
      res.setHeader('Content-Type', 'application/json')
      res.setHeader('ETag', 'W/"x"').setHeader('Last-Modified', 'Thu, 02 Jan 2025 03:04:05 GMT')
      res.writeHead(req.method === 'PATCH' ? 204 : 200).end(req.method === 'PATCH' ? '' : '{}')
    })
    const edited = await createResourceClient().edit(url, () => ({ a: 1 }))
    expect(seen).toEqual([undefined, 'Thu, 02 Jan 2025 03:04:05 GMT'])
    expect(edited.document).toEqual({ a: 1 })
  })

  it('does not change what has no validator', async () => {
    const methods: (string | undefined)[] = []
    await start((req, res) => {
      methods.push(req.method)
      res.setHeader('Content-Type', 'application/json').end('{}')
    })
    await expect(createResourceClient().edit(url, () => ({ a: 1 }))).rejects.toThrow(/neither a strong ETag/)
    expect(methods).toEqual(['GET'])
  })

  it('sends the fields it was given, asked for anew each time', async () => {
    const seen: (string | undefined)[] = []
    await start((req, res) => {
      seen.push(req.headers.authorization)
      res.setHeader('Content-Type', 'application/json').end('{}')
    })
    let token = 0
    const client = createResourceClient({ headers: () => ({ Authorization: `Bearer ${++token}` }) })
    await client.read(url)
    await client.read(url)
    await createResourceClient({ headers: { Authorization: 'Bearer 9' } }).read(url)
    expect(seen).toEqual(['Bearer 1', 'Bearer 2', 'Bearer 9'])
  })

  it.each([
    ['text/plain', '{}'],
    ['application/json', '{'],
  ])('refuses content that is no JSON: %s %s', async (type, body) => {
    await start((_req, res) => void res.setHeader('Content-Type', type).end(body))
    await expect(createResourceClient().read(url)).rejects.toMatchObject({ name: 'ResponseError', status: 200 })
  })
})

describe('createResourceClient', () => {
  it('refuses options that make no sense', () => {
    expect(() => createResourceClient({ maxAttempts: 0 })).toThrow(TypeError)
    expect(() => createResourceClient({ prefer: 'xml' } as never)).toThrow(TypeError)
    expect(() => createResourceClient({ fetch: 'x' } as never)).toThrow(TypeError)
    expect(() => createResourceClient({ retries: 1 } as never)).toThrow(TypeError)
  })
})

describe('createPatch', () => {
  const cases: [string, JsonValue, JsonValue, 'merge' | 'json', object | undefined][] = [
    ['nothing for equal documents', { a: [1] }, { a: [1] }, 'merge', undefined],
    ['a merge patch', { a: 1, b: 2 }, { a: 1 }, 'merge', { contentType: MERGE_PATCH, patch: { b: null } }],
    ['a merge patch for a scalar', { a: 1 }, 'x', 'merge', { contentType: MERGE_PATCH, patch: 'x' }],
    [
      'a JSON Patch',
      { a: 1, b: 2 },
      { a: 1 },
      'json',
      { contentType: JSON_PATCH, patch: [{ op: 'remove', path: '/b' }] },
    ],
    [
      'a JSON Patch for a scalar',
      1,
      null,
      'json',
      { contentType: JSON_PATCH, patch: [{ op: 'replace', path: '', value: null }] },
    ],
    [
      'a JSON Patch where a member is to be null',
      { a: 1 },
      { a: null },
      'merge',
      { contentType: JSON_PATCH, patch: [{ op: 'replace', path: '/a', value: null }] },
    ],
  ]
  it.each(cases)('makes %s', (_, before, after, prefer, expected) => {
    expect(createPatch(before, after, prefer)).toEqual(expected)
  })
})

/** Members in the order of their names. */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value as JsonObject).map(([name, child]) => [name, sorted(child)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

describe('create of createResourceClient', () => {
  afterEach(() => stop())

  /** Does what a collection does, and loses the answers that are told: the request has been done then. */
  async function startLossy(lost: number, status?: number): Promise<ResourceStore> {
    const store = memoryStore()
    const service = createResourceService(store, {
      resources: { '/config/app': collection({ idempotency: 'optional' }) },
    })
    let left = lost
    await start((req, res) => {
      if (left-- > 0 && status !== undefined) return void res.writeHead(status, { 'Retry-After': '0' }).end()
      if (left >= 0) {
        // Only the head is written late: the request has been done, and the client hears nothing.
        res.writeHead = () => res
        res.end = (() => res.destroy()) as typeof res.end
        res.write = () => true
      }
      service(req, res)
    })
    return store
  }

  const count = async (store: ResourceStore) => (await store.list('/config/app', { limit: 10 })).items.length

  it('creates once although answers are lost (issue 20)', async () => {
    const store = await startLossy(2)
    const created = await createResourceClient().create(url, { name: 'Ann' })
    expect(created).toEqual({ document: { name: 'Ann', id: 1 }, location: `${url}/1`, entityTag: expect.any(String) })
    expect(await count(store)).toBe(1)
  })

  it.each([429, 502, 503, 504])('repeats after %i, as often as it may (issue 20)', async (status) => {
    const store = await startLossy(2, status)
    await expect(createResourceClient({ maxAttempts: 2 }).create(url, {})).rejects.toMatchObject({ status })
    expect((await createResourceClient().create(url, {})).location).toBe(`${url}/1`)
    expect(await count(store)).toBe(1)
  })

  it('creates twice under two keys, once under one, and reports a refusal (issue 20)', async () => {
    await startLossy(0)
    const client = createResourceClient()
    const options = { key: 'a-key-of-16-chars' }
    const locations = [
      await client.create(url, { a: 1 }),
      await client.create(url, { a: 1 }),
      await client.create(url, { a: 1 }, options),
      await client.create(url, { a: 1 }, options),
    ].map(({ location }) => location)
    expect(locations).toEqual([`${url}/1`, `${url}/2`, `${url}/3`, `${url}/3`])
    await expect(client.create(url, { a: 2 }, options)).rejects.toMatchObject({ status: 422 })
  })
})
