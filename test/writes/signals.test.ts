import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { collection, createResourceService, document, type ServiceOptions } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { LargeBody, ResourceStore, StoredResource } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'

interface Call {
  readonly name: string
  readonly signal: AbortSignal | undefined
}

interface SilentStore {
  readonly store: ResourceStore
  readonly calls: Call[]
  /** Which calls never settle but by their signal. */
  silent: string | undefined
}

/** A store that records the signals of its calls; one of them can be made to wait for nothing but its signal. */
function createSilentStore(): SilentStore {
  const inner = memoryStore()
  const recorded: SilentStore = { store: undefined as never, calls: [], silent: undefined }

  function call<Result>(
    name: string,
    path: string,
    signal: AbortSignal | undefined,
    run: () => Result,
  ): Result | Promise<never> {
    // Accepted work has no client, and its monitors have one when they are made only.
    if (!/^(?:\/(?:docs|named|forms|files|queued|keyed|observed|$)|monitors\/|idempotency\/)/.test(path)) return run()
    recorded.calls.push({ name, signal })
    if (recorded.silent !== name) return run()
    return new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
      // A service waits for its requests when it closes.
      closeAfterTest(() => reject(new Error('The test has ended.')))
    })
  }

  function watchBody(resource: StoredResource): StoredResource {
    const { body, size } = resource
    if (!/^\/files\/(?:large|placed)$/.test(resource.path)) return resource
    const large: LargeBody = {
      async *open(first, last, options) {
        await call('open', resource.path, options?.signal, () => undefined)
        yield typeof body === 'string' ? Buffer.from(body).subarray(first, last + 1) : new Uint8Array(size)
      },
      ...(resource.path === '/files/placed' && {
        locate: ({ signal }) => call('locate', resource.path, signal, () => 'https://files.example/1'),
      }),
    }
    return { ...resource, body: large }
  }

  const store: ResourceStore = {
    supports: inner.supports!,
    read: async (path, options) => {
      const state = await call('read', path, options?.signal, () => inner.read(path, options))
      return state !== undefined && 'version' in state ? watchBody(state) : state
    },
    write: (path, content, options) => call('write', path, options.signal, () => inner.write(path, content, options)),
    create: (path, content, options) =>
      call('create', path, options?.signal, () => inner.create(path, content, options)),
    remove: (path, options) => call('remove', path, options.signal, () => inner.remove(path, options)),
    list: (path, options) => call('list', path, options.signal, () => inner.list(path, options)),
    stage: (body, options) => call('stage', '/', options?.signal, () => inner.stage!(body, options)),
  }
  return Object.assign(recorded, { store })
}

async function serve(store: ResourceStore, options: ServiceOptions): Promise<number> {
  const service = createResourceService(store, options)
  const server = createServer(service).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeAfterTest(async () => {
    server.closeAllConnections()
    server.close()
    await service.close()
  })
  return (server.address() as AddressInfo).port
}

async function until(condition: () => boolean, sentence: string): Promise<void> {
  for (const end = Date.now() + 30_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 5))) {
    if (Date.now() > end) throw new Error(sentence)
  }
}

const json = { 'Content-Type': 'application/json' }
const binary = { 'Content-Type': 'application/octet-stream' }
const form = { 'Content-Type': 'multipart/form-data; boundary=b' }
const MERGE_PATCH = { 'Content-Type': 'application/merge-patch+json' }
const KEY = { 'Idempotency-Key': 'a-key-of-16-chars' }
const MONITOR = 'b2ff6f2c-0df5-4f2c-9b3e-0a4a3e5f9a11'
const FORM = `--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n${'x'.repeat(100_000)}\r\n--b--\r\n`

describe('the signal of store calls (ResourceStore: "Aborts when the client has left")', () => {
  it.each<[string, string, string, Record<string, string>, string | undefined]>([
    ['read', 'GET', '/docs/1', {}, undefined],
    ['read', 'HEAD', '/docs/1', {}, undefined],
    ['read', 'PUT', '/docs/1', { ...json, 'If-Match': '"x"' }, '{}'],
    ['list', 'GET', '/docs', {}, undefined],
    ['read', 'GET', '/docs?limit=50', {}, undefined],
    ['create', 'POST', '/docs', json, '{}'],
    ['write', 'PUT', '/docs/1', json, '{"a":1}'],
    ['write', 'PATCH', '/docs/1', MERGE_PATCH, '{"a":2}'],
    ['remove', 'DELETE', '/docs/1', {}, undefined],
    ['remove', 'DELETE', '/observed/1', {}, undefined],
    ['write', 'PUT', '/observed/1', json, '{"a":1}'],
    ['create', 'POST', '/observed', json, '{}'],
    ['list', 'DELETE', '/forms/1', {}, undefined],
    ['write', 'DELETE', '/queued/1', {}, undefined],
    ['remove', 'DELETE', `/operations/${MONITOR}`, {}, undefined],
    ['write', 'PATCH', '/keyed/1', { ...MERGE_PATCH, ...KEY }, '{}'],
    ['write', 'PATCH', '/keyed/1', { ...MERGE_PATCH, ...KEY }, '{"a":2}'],
    ['create', 'POST', '/keyed', { ...json, ...KEY }, '{}'],
    ['write', 'POST', '/named', json, '{}'],
    ['stage', 'POST', '/forms', { ...form, 'Transfer-Encoding': 'chunked' }, FORM],
    ['stage', 'PUT', '/files/1', { ...binary, 'If-None-Match': '*' }, 'y'.repeat(100_000)],
    ['write', 'PUT', '/files/1', { ...binary, 'Content-Length': '100000' }, 'the beginning'],
    ['open', 'GET', '/files/large', {}, undefined],
    ['open', 'GET', '/files/large', { Range: 'bytes=1-2' }, undefined],
    ['open', 'GET', '/files/large', { Range: 'bytes=1-2,5-6' }, undefined],
    ['open', 'GET', '/files/large', { Range: 'bytes=1-2', 'Want-Content-Digest': 'sha-256=1' }, undefined],
    ['open', 'GET', '/files/large', { Accept: 'text/plain' }, undefined],
    ['locate', 'GET', '/files/placed', {}, undefined],
    ['open', 'PATCH', '/files/large', MERGE_PATCH, '{"a":2}'],
  ])('ends %s of %s %s when the client leaves', async (silent, method, path, headers, body) => {
    const errors: unknown[] = []
    const recorded = createSilentStore()
    const port = await serve(recorded.store, {
      resources: {
        '/docs': collection(),
        '/named': collection({ ids: 'uuid' }),
        '/forms': collection({ create: 'accepted', process: async () => ({}) }),
        '/files/{name}': document(
          headers['Accept'] === undefined
            ? { types: ['*/*'] }
            : { types: ['application/json'], representations: [{ type: 'text/plain', render: () => '' }] },
        ),
        '/queued': collection({ deletion: 'queued' }),
        '/keyed': collection({ idempotency: 'optional' }),
        '/observed': collection({ outbox: () => [], afterCommit: () => {} }),
      },
      onError: (error) => errors.push(error),
    })
    const { store } = recorded
    await store.write('/docs/1', { contentType: 'application/json', body: '{"id":1}' }, { expect: 'any' })
    for (const path of ['/queued/1', '/keyed/1', '/observed/1'])
      await store.write(path, { contentType: 'application/json', body: '{"id":1}' }, { expect: 'any' })
    const monitor = JSON.stringify({ id: MONITOR, kind: 'removal', target: '/queued/2', state: 'done' })
    await store.write(`monitors/${MONITOR}`, { contentType: 'application/json', body: monitor }, { expect: 'any' })
    await store.write('/forms/1', { contentType: 'application/json', body: '{"id":1}' }, { expect: 'any' })
    // A page that is read while it is written.
    for (let id = 2; id < 10; id++) {
      const body = JSON.stringify({ id, text: 'x'.repeat(50_000) })
      await store.write(`/docs/${id}`, { contentType: 'application/json', body }, { expect: 'any' })
    }
    for (const path of ['/files/large', '/files/placed'])
      await store.write(path, { contentType: 'application/json', body: '{"a":"0123"}' }, { expect: 'any' })
    recorded.calls.length = 0
    recorded.silent = silent

    const client = request({ port, method, path, headers })
    client.on('error', () => {})
    if (headers['Content-Length'] === undefined) client.end(body)
    else client.write(body)
    await until(() => recorded.calls.at(-1)?.name === silent, `The service has not called ${silent}.`)
    for (const { signal } of recorded.calls) expect(signal).toBeInstanceOf(AbortSignal)
    const { signal } = recorded.calls.at(-1)!
    expect(signal!.aborted).toBe(false)
    client.destroy()
    await until(() => signal!.aborted, 'The signal did not abort.')

    recorded.silent = undefined
    await new Promise((resolve) => setTimeout(resolve, 20))
    // An answer to a client that has left is not a failure.
    expect(errors).toEqual([])
    expect(await store.read('/docs/1')).toMatchObject({ body: '{"id":1}' })
  })

  it('does not abort after an answer that was sent', async () => {
    const recorded = createSilentStore()
    const port = await serve(recorded.store, { resources: { '/docs': collection() } })
    const answer = await fetch(`http://127.0.0.1:${port}/docs`, { method: 'POST', headers: json, body: '{}' })
    await answer.text()
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(recorded.calls.map(({ signal }) => signal?.aborted)).toEqual([false])
  })
})
