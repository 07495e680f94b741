import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { json } from '../../src/actions/hook-types.ts'
import { attemptLimit } from '../../src/auth-schemes/accounts.ts'
import { basic } from '../../src/auth-schemes/basic.ts'
import { bearer } from '../../src/auth-schemes/bearer.ts'
import { digest } from '../../src/auth-schemes/digest.ts'
import { jwt } from '../../src/auth-schemes/jwt.ts'
import type { ContentStore } from '../../src/contents/types.ts'
import { conditional } from '../../src/handlers/conditional.ts'
import { preflight } from '../../src/handlers/preflight.ts'
import { range } from '../../src/handlers/range.ts'
import type { CollectionOptions } from '../../src/service/collection-options.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import type { ServiceOptions } from '../../src/service/service-options.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { createBesideContents } from '../../src/stores/sql/beside.ts'
import type { ContentLedger } from '../../src/stores/sql/dialect.ts'
import { readWhole } from '../../src/stores/streams.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { createIssuer, issue } from '../auth-schemes/tokens.ts'
import { serve } from '../service/serve.ts'
import { runServer } from '../support/hosts.ts'

/** What `await` waits for and is not a promise: `then` returns nothing, and calls back twice. */
function later<Value>(value: Value): Promise<Value> {
  const then = (resolve: (value: Value) => void, reject?: (error: unknown) => void): void => {
    setImmediate(() => {
      resolve(value)
      resolve(value)
      reject?.(new Error('late'))
    })
  }
  return { then } as unknown as Promise<Value>
}

async function createStore(): Promise<ResourceStore> {
  const store = memoryStore()
  await store.write('/notes/1', json({ id: 1, owner: 'ada', text: 'private' }), { expect: 'any' })
  return store
}

async function serveNotes(definition: CollectionOptions, options: ServiceOptions = {}, store?: ResourceStore) {
  return serve(store ?? (await createStore()), { resources: { '/notes': collection(definition) }, ...options })
}

const JSON_FIELD = 'Content-Type: application/json'
const writes = [
  ['POST', '/notes', [JSON_FIELD], '{}'],
  ['PUT', '/notes/1', [JSON_FIELD], '{}'],
  ['PATCH', '/notes/1', ['Content-Type: application/merge-patch+json'], '{"text":"new"}'],
] as const

describe('a hook that returns a thenable which is not a promise ("every hook may be asynchronous")', () => {
  it('authorize: what it refuses is refused', async () => {
    const { send } = await serveNotes({ authorize: () => later(false) })
    for (const target of ['/notes/1', '/notes']) expect((await send('GET', target)).status).toBe(403)
    for (const [method, target, fields, body] of writes) {
      expect((await send(method, target, fields, body)).status).toBe(403)
    }
    expect((await send('DELETE', '/notes/1')).status).toBe(403)
  })

  it('scope: the items of others stay hidden', async () => {
    const { send } = await serveNotes({ scope: () => later({ owner: 'grace' }) })
    expect((await send('GET', '/notes/1')).status).toBe(404)
    expect((await send('DELETE', '/notes/1')).status).toBe(404)
    expect((await send('GET', '/notes')).text).not.toContain('private')
  })

  it('schema, conflict and beforeWrite: their result counts', async () => {
    const validate = () => later({ issues: [{ message: 'no' }] })
    const schema = { '~standard': { version: 1, vendor: 'test', validate } } as const
    const invalid = await serveNotes({ schema })
    for (const [method, target, fields, body] of writes) {
      expect((await invalid.send(method, target, fields, body)).status).toBe(422)
    }
    const conflicting = await serveNotes({ conflict: () => later('It is closed.') })
    expect((await conflicting.send('PUT', '/notes/1', [JSON_FIELD], '{}')).status).toBe(409)
    const stamped = await serveNotes({ beforeWrite: (value) => later({ ...(value as object), stamp: 7 }) })
    expect((await stamped.send('POST', '/notes', [JSON_FIELD], '{}')).text).toContain('"stamp":7')
  })

  it('verify, requireAuth and principal: no request gets in', async () => {
    const schemes = [basic({ realm: 'notes', verify: () => later(false) }), bearer(() => later(false))]
    const { send } = await serveNotes({}, { https: 'optional', auth: { schemes, requireAuth: 'all' } })
    for (const credentials of ['Basic YTpi', 'Bearer abc']) {
      expect((await send('GET', '/notes/1', [`Authorization: ${credentials}`])).status).toBe(401)
    }
    const auth = { requireAuth: 'all', principal: () => later(undefined), challenge: 'Session realm="notes"' } as const
    const guarded = await serveNotes({}, { https: 'optional', auth })
    expect((await guarded.send('GET', '/notes/1')).status).toBe(401)
  })
})

describe('a store that returns thenables which are not promises', () => {
  it('is waited for, and each call counts once', async () => {
    const plain = await createStore()
    const slow =
      <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
      (...args: Args) =>
        later(call(...args) as Awaited<Result>)
    const store: ResourceStore = {
      ...plain,
      read: slow(plain.read),
      write: slow(plain.write),
      create: slow(plain.create),
      remove: slow(plain.remove),
      list: slow(plain.list),
    }
    const { send } = await serveNotes({}, {}, store)
    expect((await send('GET', '/notes/1')).text).toContain('private')
    expect((await send('POST', '/notes', [JSON_FIELD], '{}')).status).toBe(201)
    expect((await send('PUT', '/notes/1', [JSON_FIELD], '{}')).status).toBe(204)
    expect(JSON.parse((await send('GET', '/notes')).text)).toHaveLength(2)
    expect((await send('DELETE', '/notes/1')).status).toBe(204)
  })
})

describe('a hook whose result is needed at once, and that returns a promise', () => {
  it('opens nothing, and its rejection does not end the process', async () => {
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    try {
      const reject = () => Promise.reject(new Error('away')) as never
      const schemes = [basic({ realm: 'notes', accounts: { a: 'b' } })]
      const authorization = `Authorization: Basic ${btoa('a:b')}`
      const onError = () => {}
      const ruled = await serveNotes({}, { https: 'optional', auth: { schemes, requireAuth: reject } })
      expect((await ruled.send('GET', '/notes/1')).status).toBe(401)
      expect((await ruled.send('GET', '/notes/1', [authorization])).status).toBe(200)
      const own = await serveNotes({ requireAuth: reject }, { https: 'optional', auth: { schemes } })
      expect((await own.send('GET', '/notes/1')).status).toBe(401)
      const accepted = { scheme: 'Bearer', id: 'ada' }
      const bearers = { schemes: [bearer(() => accepted, { scope: reject })], requireAuth: 'all' } as const
      const scoped = await serveNotes({}, { https: 'optional', onError, auth: bearers })
      expect((await scoped.send('GET', '/notes/1', ['Authorization: Bearer abc'])).status).toBe(500)
      const proxied = await serveNotes({}, { https: 'optional', auth: { schemes }, trustProxy: reject })
      const forwarded = ['X-Forwarded-Proto: https', authorization]
      expect((await proxied.send('GET', '/notes/1', forwarded)).status).toBe(200)
      const formatted = await serveNotes({}, { onError, formatError: reject })
      expect((await formatted.send('GET', '/notes/9')).status).toBe(500)
      const throttle = attemptLimit({ keyOf: reject })
      const issuer = createIssuer('ES256', 'a')
      const tokens = jwt({ issuer: 'https://issuer.test', audience: 'api', keys: [issuer.jwk], scopes: reject })
      const digestField = 'Authorization: Digest username="a", realm="notes", uri="/notes/1", algorithm=SHA-256, '
      const digestRest = 'nonce="n", nc=00000001, cnonce="c", qop=auth, response="' + '0'.repeat(64) + '"'
      for (const [scheme, field, status] of [
        [basic({ realm: 'notes', accounts: { a: 'b' }, throttle }), authorization, 500],
        [bearer(tokens), `Authorization: Bearer ${issue(issuer)}`, 200],
        [bearer(tokens, { scope: () => ['read'] }), `Authorization: Bearer ${issue(issuer)}`, 500],
        [digest({ realm: 'notes', accounts: { a: 'b' }, targetOf: reject }), digestField + digestRest, 401],
      ] as const) {
        const guarded = await serveNotes({}, { https: 'optional', onError, auth: { schemes: [scheme] } })
        expect((await guarded.send('GET', '/notes/1', [field])).status).toBe(status)
      }
      const guard = preflight({ origins: 'https://app.test', methods: reject })
      const host = await runServer(
        createServer((req, res) => guard(req, res, (error) => res.writeHead(error ? 500 : 200).end())),
      )
      const headers = { Origin: 'https://app.test', 'Access-Control-Request-Method': 'PUT' }
      const preflighted = await fetch(`http://127.0.0.1:${host.port}/`, { method: 'OPTIONS', headers })
      expect(preflighted.status).toBe(500)
      await host.close()
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(rejected).toEqual([])
    } finally {
      process.off('unhandledRejection', onRejection)
    }
  })

  it('is 500 inside of a result and in the place of a stream, and its rejection does not end the process', async () => {
    const rejected: unknown[] = []
    const onRejection = (error: unknown): void => void rejected.push(error)
    process.on('unhandledRejection', onRejection)
    try {
      const reject = () => Promise.reject(new Error('away')) as never
      const state = { contentType: 'text/plain', entityTag: '"a"' }
      for (const guard of [
        conditional(() => ({ entityTag: reject() })),
        range(() => ({ ...state, contentType: reject(), content: 'a' })),
        range(() => ({ ...state, content: { size: 9, open: reject } })),
        range(() => ({ ...state, content: reject() })),
      ]) {
        const host = await runServer(createServer((req, res) => guard(req, res, () => res.writeHead(500).end())))
        expect((await fetch(`http://127.0.0.1:${host.port}/`)).status).toBe(500)
        await host.close()
      }
      const resources = { '/notes': collection(), '/files/{name}': document() }
      const stored = { version: '1', size: 9, contentType: 'application/json', body: { open: reject } }
      for (const [path, change] of [
        ['/notes/1', () => ({})],
        ['/notes/1', () => ({ entityTag: reject() })],
        ['/files/1', () => ({})],
      ] as const) {
        const store = { ...(await createStore()), read: () => ({ path, ...stored, ...change() }) }
        const { send } = await serve(store, { onError: () => {}, resources })
        expect((await send('GET', path)).status).toBe(500)
      }
      for (const give of [reject, () => ({ contentType: 'text/plain', body: reject() })]) {
        const outbox = () => [{ path: '/audit/1', content: give() }]
        const { send } = await serveNotes({ outbox }, { onError: () => {} })
        for (const [method, path, fields, body] of writes)
          expect((await send(method, path, fields, body)).status).toBe(500)
      }
      const formatError = () => ({ status: 404, headers: [], body: reject() })
      const { send } = await serveNotes({}, { onError: () => {}, formatError })
      expect((await send('GET', '/notes/9')).status).toBe(500)
      const beside = createBesideContents({ open: reject } as unknown as ContentStore, {} as ContentLedger, 0)
      await expect(readWhole(beside.open('a').open(0, 8))).rejects.toThrow(TypeError)
      await new Promise((resolve) => setTimeout(resolve, 20))
      expect(rejected).toEqual([])
    } finally {
      process.off('unhandledRejection', onRejection)
    }
  })

  it('requireAuth of a definition: a function that forgets to return opens nothing', async () => {
    const schemes = [basic({ realm: 'notes', accounts: { a: 'b' } })]
    const { send } = await serveNotes(
      { requireAuth: () => undefined as never },
      { https: 'optional', auth: { schemes } },
    )
    for (const target of ['/notes/1', '/notes']) expect((await send('GET', target)).status).toBe(401)
  })
})
