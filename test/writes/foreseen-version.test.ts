import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import type { StandardSchema } from '../../src/core/definition-types.ts'
import { HttpError } from '../../src/core/errors.ts'
import { attach, createResourceService, type ServiceOptions } from '../../src/index.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const JSON_TYPE = 'application/json'
const CURRENT = { contentType: JSON_TYPE, body: '{"a":1}' }
const ANYTHING: StandardSchema = {
  '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
}

/** A service over a store whose tags are its versions, with a document at /docs/a, and the calls that it makes. */
async function start(options: ServiceOptions['resources'] = { '/docs/{name}': document({ types: [JSON_TYPE] }) }) {
  const inner = memoryStore()
  const calls: string[] = []
  const store: ResourceStore = {
    ...inner,
    supports: { ...inner.supports, tagsAreVersions: true },
    read(path, options) {
      calls.push('read')
      return inner.read(path, options)
    },
    write(path, content, options) {
      calls.push('write')
      return inner.write(path, content, options)
    },
  }
  await inner.write('/docs/a', CURRENT, { expect: 'any' })
  const service = createResourceService(store, { resources: options! })
  const server = createServer()
  attach(server, service)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  const { port } = server.address() as { port: number }

  async function put(path: string, body: string, fields: Record<string, string> = {}): Promise<number> {
    calls.length = 0
    const { status } = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'PUT',
      headers: { 'Content-Type': JSON_TYPE, ...fields },
      body,
    })
    return status
  }

  async function tagOf(path: string): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    await answer.arrayBuffer()
    return answer.headers.get('etag')!
  }

  return { inner, port, calls, put, tag: await tagOf('/docs/a'), tagOf }
}

describe('PUT with If-Match where tags are versions', () => {
  it('leaves the condition to the write: one call of the store', async () => {
    const { put, tag, tagOf, calls } = await start()
    expect([await put('/docs/a', '{"a":2}', { 'If-Match': tag }), calls.join()]).toEqual([204, 'write'])
    expect(await tagOf('/docs/a')).not.toBe(tag)
  })

  it('answers 412 for a tag of before, and changes nothing (RFC 9110 §13.1.1)', async () => {
    const { put, tag, inner } = await start()
    await put('/docs/a', '{"a":2}', { 'If-Match': tag })
    expect(await put('/docs/a', '{"a":3}', { 'If-Match': tag })).toBe(412)
    expect(await inner.read('/docs/a')).toMatchObject({ body: '{"a":2}' })
  })

  it('answers 412 where there is nothing, and 404 or 410 where clients choose no names', async () => {
    const { put, tag, inner } = await start({
      '/docs/{name}': document({ types: [JSON_TYPE] }),
      '/items': collection({ clientIds: false }),
    })
    expect(await put('/docs/none', '{"a":3}', { 'If-Match': tag })).toBe(412)
    expect(await put('/items/7', '{"a":3}', { 'If-Match': tag })).toBe(404)
    await inner.write('/items/8', CURRENT, { expect: 'any' })
    await inner.remove('/items/8', { expect: 'any', mode: 'tombstone' })
    expect(await put('/items/8', '{"a":3}', { 'If-Match': tag })).toBe(410)
    expect(await inner.read('/items/7')).toBeUndefined()
  })

  it('judges the condition before the content, as always (RFC 9110 §13.2.1)', async () => {
    const { put, tag, calls } = await start({
      '/docs/{name}': document({ types: [JSON_TYPE] }),
      '/items': collection({ clientIds: false }),
    })
    expect([await put('/docs/a', '{"a":', { 'If-Match': tag }), calls.join()]).toEqual([400, 'read'])
    expect(await put('/docs/a', '{"a":', { 'If-Match': '"other"' })).toBe(412)
    expect(await put('/items/7', '{"a":', { 'If-Match': tag })).toBe(404)
  })

  it.each([500, 503])('answers %i of the store at once, and asks it nothing more', async (status) => {
    const { put, calls, inner } = await start()
    Object.assign(inner, { write: () => Promise.reject(new HttpError(status, 'ERR_UNAVAILABLE')) })
    expect([await put('/docs/a', '{"a":2}', { 'If-Match': '"old"' }), calls.join()]).toEqual([status, 'write'])
  })

  it.each([
    ['a list of tags', { 'If-Match': '"x", TAG' }],
    ['a further condition', { 'If-Match': 'TAG', 'If-None-Match': '"x"' }],
  ])('reads the state first for %s', async (_, fields) => {
    const { put, tag, calls } = await start()
    const own = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, value.replace('TAG', tag)]))
    expect([await put('/docs/a', '{"a":2}', own), calls.join()]).toEqual([204, 'read,write'])
  })

  it('reads the state first where the client waits for 100 Continue, which 412 comes in the place of (RFC 9110 §10.1.1)', async () => {
    const { port, calls } = await start()
    calls.length = 0
    const headers = { 'Content-Type': JSON_TYPE, 'Content-Length': 7, 'If-Match': '"old"', Expect: '100-continue' }
    const asked = request({ port, host: '127.0.0.1', method: 'PUT', path: '/docs/a', headers })
    closers.push(() => asked.destroy())
    asked.on('error', () => {}).flushHeaders()
    const [answer] = await Promise.race([once(asked, 'continue'), once(asked, 'response')])
    expect([answer?.statusCode, calls.join()]).toEqual([412, 'read'])
  })

  it('reads the state first where the content is not small: 412 comes before an upload', async () => {
    const { put, calls } = await start()
    expect([await put('/docs/a', JSON.stringify('x'.repeat(20_000)), { 'If-Match': '"old"' }), calls.join()]).toEqual([
      412,
      'read',
    ])
  })

  it.each(['', '*', 'W/"x"', '"%"', '""', 'x'])('does not take %s for a version', async (field) => {
    const { put, calls } = await start()
    await put('/docs/a', '{"a":2}', { 'If-Match': field })
    expect(calls[0]).toBe('read')
  })

  it('shows hooks the state first', async () => {
    const seen: unknown[] = []
    const { put, tag, calls } = await start({
      '/docs/{name}': document({
        types: [JSON_TYPE],
        authorize: (_, __, resource) => {
          seen.push(resource?.value)
          return true
        },
      }),
    })
    expect(await put('/docs/a', '{"a":2}', { 'If-Match': tag })).toBe(204)
    expect(calls[0]).toBe('read')
    expect(seen).toContainEqual({ a: 1 })
  })

  const notes = { types: [JSON_TYPE], ids: 'integer', clientIds: true } as const
  it.each<[string, NonNullable<ServiceOptions['resources']>]>([
    ['authorize', { '/notes': collection({ ...notes, authorize: () => true }) }],
    ['conflict', { '/notes': collection({ ...notes, conflict: () => undefined }) }],
    ['beforeWrite', { '/notes': collection({ ...notes, beforeWrite: (value) => value }) }],
    ['an outbox', { '/notes': collection({ ...notes, outbox: () => [] }) }],
    ['afterCommit', { '/notes': collection({ ...notes, afterCommit: () => {} }) }],
    ['files', { '/notes': collection({ files: { photo: {} } }) }],
    ['a schema', { '/notes': collection({ ...notes, schema: ANYTHING }) }],
    ['a query', { '/notes': collection({ ...notes, query: { a: 'number' } }) }],
    ['a soft deletion', { '/notes': collection({ ...notes, deletion: 'soft' }) }],
  ])('answers 412 for a tag of before where a definition has %s, and changes nothing', async (_, resources) => {
    const { put, tagOf, inner } = await start(resources)
    expect(await put('/notes/1', '{"a":1}')).toBe(201)
    const old = await tagOf('/notes/1')
    expect(await put('/notes/1', '{"a":2}', { 'If-Match': old })).toBe(204)
    expect(await put('/notes/1', '{"a":3}', { 'If-Match': old })).toBe(412)
    expect(await inner.read('/notes/1')).toMatchObject({ body: expect.stringContaining('"a":2') })
    expect(await put('/notes/1', '{"a":4}', { 'If-Match': await tagOf('/notes/1') })).toBe(204)
  })

  it('refuses a patch document in the place of the JSON that it would change, also with a condition that is met (RFC 5789 §2)', async () => {
    const { put, tag, inner } = await start({ '/docs/{name}': document() })
    const fields = { 'If-Match': tag, 'Content-Type': 'application/merge-patch+json' }
    expect(await put('/docs/a', '{"a":2}', fields)).toBe(415)
    expect(await inner.read('/docs/a')).toMatchObject(CURRENT)
  })

  it('lets one of several win that race with the same tag', async () => {
    const { put, tag } = await start()
    const statuses = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put('/docs/a', `{"a":${i}}`, { 'If-Match': tag })),
    )
    expect(statuses.filter((status) => status === 204)).toHaveLength(1)
    expect(statuses.filter((status) => status === 412)).toHaveLength(7)
  })
})
