import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { createBytes } from '../../src/conformance/samples.ts'
import { openapi } from '../../src/openapi.ts'
import { createResourceService, type ResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createPrefix, openS3Contents } from '../support/contents.ts'
import { hosts, type RunningHost, startHost } from '../support/hosts.ts'
import { type S3Service, startS3 } from '../support/s3-service.ts'
import { createDatabaseFile, type DatabaseFile } from '../support/sqlite.ts'

const LARGE = createBytes(100_000, 1)
const JSON_TEXT = JSON.stringify({ text: 'x'.repeat(20_000) })

let s3: S3Service
let file: DatabaseFile
let store: ResourceStore
const closers: (() => unknown)[] = []
beforeAll(async () => {
  s3 = await startS3()
  file = await createDatabaseFile()
  const contents = openS3Contents(s3.endpoint, { prefix: createPrefix(), redirect: true })
  store = sqliteStore(file.open(), { contents, inlineLimit: 10_000, sweepInterval: 0 })
  const octets = { contentType: 'application/octet-stream', body: LARGE }
  await store.write('/files/large', { ...octets, filename: 'a b+"ü".bin' }, { expect: 'absent' })
  await store.write('/files/small', { ...octets, body: LARGE.subarray(0, 100) }, { expect: 'absent' })
  const page = { contentType: 'text/html', contentLanguage: 'de', contentEncoding: 'gzip', body: LARGE }
  await store.write('/files/page', page, { expect: 'absent' })
})
afterAll(async () => {
  await store.close?.()
  await file.remove()
  await s3.close()
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function serve(options: Parameters<typeof createResourceService>[1], kind = 'plain'): Promise<RunningHost> {
  const service: ResourceService = createResourceService(store, options)
  const host = await startHost(kind, service)
  closers.push(() => host.close().then(() => service.close()))
  return host
}

const FILES = { resources: { '/files': collection({ types: ['*/*'], ids: 'string' }) } } as const

describe('s3Contents with redirect: true', () => {
  it.each(Object.keys(hosts))(
    'answers GET and HEAD of large content with 307 to a signed address: %s',
    async (kind) => {
      const host = await serve(FILES, kind)
      for (const method of ['GET', 'HEAD'] as const) {
        const answer = await host.send({ method, path: '/files/large' })
        expect(answer.status).toBe(307)
        expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', etag: expect.stringMatching(/^"/) })
        expect(answer.headers['last-modified']).toBeDefined()
        expect(answer.body).toHaveLength(0)
        // Some readers of a query take "+" for itself.
        expect(answer.headers['location']).not.toContain('+')
        const response = await fetch(String(answer.headers['location']), { method })
        expect(response.status).toBe(200)
        expect(response.headers.get('content-length')).toBe('100000')
        expect(response.headers.get('content-type')).toBe('application/octet-stream')
        expect(response.headers.get('content-disposition')).toMatch(/^inline; filename=.*ü|%C3%BC/)
        if (method === 'GET') expect(LARGE.equals(Buffer.from(await response.arrayBuffer()))).toBe(true)
        // An address that was signed for one method is good for no other.
        const other = method === 'GET' ? 'HEAD' : 'GET'
        expect((await fetch(String(answer.headers['location']), { method: other })).status).toBe(403)
      }
    },
  )

  it('sends small content itself', async () => {
    const host = await serve(FILES)
    expect((await host.send({ path: '/files/small' })).status).toBe(200)
  })

  it('is 500 where the store gives no absolute URL as place: clients would look for it here', async () => {
    for (const address of [null, 42, '', '/elsewhere', {}, new URL('https://media.example/1')]) {
      const store = memoryStore()
      const body = { open: async function* () {}, locate: () => address as string }
      const read = (path: string) => ({ path, version: '1', size: 9, contentType: 'image/png', body })
      const service = createResourceService({ ...store, read }, { onError: () => {} })
      const host = await startHost('plain', service)
      closers.push(() => host.close().then(() => service.close()))
      expect((await host.send({ path: '/files/1' })).status).toBe(500)
    }
  })

  it('leaves the range to the target, and answers 416 itself', async () => {
    const host = await serve(FILES)
    const answer = await host.send({ path: '/files/large', headers: { Range: 'bytes=5-9' } })
    expect(answer.status).toBe(307)
    const part = await fetch(String(answer.headers['location']), { headers: { Range: 'bytes=5-9' } })
    expect(part.status).toBe(206)
    expect(Buffer.from(await part.arrayBuffer()).equals(LARGE.subarray(5, 10))).toBe(true)
    expect((await host.send({ path: '/files/large', headers: { Range: 'bytes=100000-' } })).status).toBe(416)
  })

  it('has the target say what the service would: type, coding, language, disposition, Cache-Control', async () => {
    const host = await serve(FILES)
    const { headers } = await host.send({ path: '/files/page' })
    const { searchParams } = new URL(String(headers['location']))
    const said = [...searchParams].filter(([name]) => name.startsWith('response-'))
    expect(Object.fromEntries(said)).toEqual({
      'response-cache-control': expect.stringMatching(/./),
      'response-content-disposition': 'attachment',
      'response-content-encoding': 'gzip',
      'response-content-language': 'de',
      'response-content-type': 'text/html',
    })
    expect(searchParams.get('X-Amz-Expires')).toBe('300')
  })

  it('judges conditions before: 304, 412', async () => {
    const host = await serve(FILES)
    const { headers } = await host.send({ path: '/files/large' })
    const send = (fields: Record<string, string>) => host.send({ path: '/files/large', headers: fields })
    expect((await send({ 'If-None-Match': String(headers['etag']) })).status).toBe(304)
    expect((await send({ 'If-None-Match': '"other"' })).status).toBe(307)
    expect((await send({ 'If-Match': '"other"' })).status).toBe(412)
  })

  it('sends the content itself where the target would judge a condition by validators of its own', async () => {
    const host = await serve(FILES)
    const { headers } = await host.send({ path: '/files/large' })
    const [tag, date] = [String(headers['etag']), String(headers['last-modified'])]
    const past = 'Thu, 01 Jan 2015 00:00:00 GMT'
    for (const [fields, status] of [
      [{ 'If-Match': tag }, 200],
      [{ 'If-Unmodified-Since': date }, 200],
      [{ 'If-Modified-Since': past }, 200],
      [{ Range: 'bytes=0-9', 'If-Range': '"other"' }, 200],
      [{ Range: 'bytes=0-9', 'If-Range': tag }, 206],
      [{ 'Want-Repr-Digest': 'sha-256=1' }, 200],
      [{ 'Want-Content-Digest': 'sha-256=1' }, 200],
    ] as const) {
      const answer = await host.send({ path: '/files/large', headers: fields as Record<string, string> })
      expect([fields, answer.status]).toEqual([fields, status])
      expect(LARGE.subarray(0, answer.body.length).equals(answer.body)).toBe(true)
    }
  })

  it('signs nothing for those whom authorize refuses', async () => {
    const authorize = vi.fn(() => false)
    const host = await serve({ resources: { '/files': collection({ types: ['*/*'], ids: 'string', authorize }) } })
    const answer = await host.send({ path: '/files/large' })
    expect(answer.status).toBe(403)
    expect(answer.headers['location']).toBeUndefined()
    expect(authorize).toHaveBeenCalled()
  })

  it('gives an address that expires after five minutes', async () => {
    const host = await serve(FILES)
    const address = String((await host.send({ path: '/files/large' })).headers['location'])
    // Signatures name whole seconds.
    s3.clockOffset = 290_000
    expect((await fetch(address)).status).toBe(200)
    s3.clockOffset = 301_000
    expect((await fetch(address)).status).toBe(403)
    s3.clockOffset = 0
  })

  it('is described: 307 of every kind of resource', async () => {
    const options = {
      resources: {
        '/files': collection({ types: ['*/*'], ids: 'string' }),
        '/notes': collection({ files: { a: {} } }),
        '/pages/{name}': document({}),
        '/settings': singleton({}),
        '/work': collection({ create: 'accepted', files: { a: {} } }),
      },
    } as const
    const host = await serve(options)
    const bare = await serve({})
    const put = (path: string) =>
      store.write(path, { contentType: 'application/json', body: JSON_TEXT }, { expect: 'any' })
    for (const path of ['/notes/1', '/notes/1/a', '/pages/x', '/settings']) await put(path)
    for (const path of ['/files/large', '/notes/1', '/notes/1/a', '/pages/x', '/settings']) {
      expect([path, (await host.send({ path })).status]).toEqual([path, 307])
    }
    expect((await bare.send({ path: '/pages/x' })).status).toBe(307)
    const service = createResourceService(store, options)
    const { paths } = openapi(service, { info: { title: 'Test', version: '1' } })
    const described = Object.entries(paths as Record<string, { get?: { responses: object } }>)
      .filter(([, { get }]) => get !== undefined && '307' in get.responses)
      .map(([path]) => path)
    expect(described).toEqual([
      '/files/{id}',
      '/notes/{id}',
      '/notes/{id}/a',
      '/pages/{name}',
      '/settings',
      '/work/{id}/a',
    ])
  })

  it('sends accepted items itself: the target would neither say when to look again, nor keep caches from answering', async () => {
    let finish = (): void => undefined
    const process = () => new Promise<undefined>((resolve) => (finish = () => resolve(undefined)))
    const work = collection({ create: 'accepted', cacheControl: 'max-age=60', process })
    const host = await serve({ resources: { '/accepted': work } })
    closers.push(() => finish())
    const headers = { 'Content-Type': 'application/json' }
    const created = await host.send({ method: 'POST', path: '/accepted', headers, body: JSON_TEXT })
    const answer = await host.send({ path: String(created.headers['location']) })
    const fields = [answer.headers['retry-after'], answer.headers['cache-control']]
    expect([created.status, answer.status, ...fields]).toEqual([202, 200, '1', 'no-cache'])
  })
})
