import { createServer } from 'node:http'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { koaMiddleware } from '../../src/adapters/koa.ts'
import { HttpError, type HttpErrorCode } from '../../src/core/errors.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { runServer } from '../support/hosts.ts'
import { closeAfterTest, senderTo, serve } from './serve.ts'

const text = 'Content-Type: text/plain'
const json = 'Content-Type: application/json'

describe('hooks that fail', () => {
  it('are no reason to leave a request without its answer: onError, at once or later', async () => {
    const store: ResourceStore = {
      ...memoryStore(),
      read: () => {
        throw new Error('broken')
      },
    }
    for (const onError of [
      () => Promise.reject(new Error('hook')),
      () => {
        throw new Error('hook')
      },
    ]) {
      const { send } = await serve(store, { onError: onError as () => void })
      expect((await send('GET', '/x')).status).toBe(500)
    }
    const formatError = () => {
      throw new Error('format')
    }
    const onError = () => {
      throw new Error('hook')
    }
    const { send } = await serve(memoryStore(), { formatError, onError })
    expect((await send('GET', '/x')).status).toBe(500)
  })
})

describe('a store that says another size than its content has (threat 149)', () => {
  const faulty = (size: number, body: string | Uint8Array): ResourceStore => ({
    ...memoryStore(),
    read: (path) => ({ path, version: '1', contentType: 'text/plain', size, body }),
  })

  it.each([
    ['characters for bytes', 3, Buffer.from('ééé')],
    ['characters for bytes of text', 3, 'ééé'],
    ['more than there is', 6, 'x'],
    ['less than nothing', -1, 'x'],
  ])('is answered 500, and the connection stays in step: %s', async (_, size, body) => {
    const { send } = await serve(faulty(size, body), { onError: () => {} })
    expect((await send('GET', '/x')).status).toBe(500)
    expect((await send('GET', '/x', ['Range: bytes=0-1'])).status).toBe(500)
  })

  it('ends the connection where it gives something that is no bytes', async () => {
    const body = {
      async *open() {
        yield 5 as unknown as Uint8Array
      },
    }
    const store = {
      ...memoryStore(),
      read: (path: string) => ({ path, version: '1', contentType: 'text/plain', size: 9, body }),
    }
    const { send } = await serve(store, { onError: () => {} })
    await expect(send('GET', '/x')).rejects.toThrow('The connection ended')
  })
})

describe('a store whose clock is ahead (RFC 9110 §8.8.2, rows H37, H45)', () => {
  it('gives no date that names two states', async () => {
    let now = Date.UTC(2026, 0, 1, 12, 0, 0, 600)
    const { send } = await serve(memoryStore({ now: () => now + 500 }), { now: () => now })
    await send('PUT', '/x', [text], 'AAAAAAAAAA')
    const date = (await send('GET', '/x')).field('Last-Modified')!
    now += 300
    await send('PUT', '/x', [text], 'BBBBBBBBBB')
    expect((await send('GET', '/x', ['Range: bytes=5-', `If-Range: ${date}`])).status).toBe(200)
    expect((await send('GET', '/x', [`If-Modified-Since: ${date}`])).status).toBe(200)
    expect((await send('PUT', '/x', [text, `If-Unmodified-Since: ${date}`], 'C')).status).toBe(412)
    now += 2000
    expect((await send('GET', '/x')).field('Last-Modified')).not.toBe(date) // that of the store, which is past by now
  })
})

describe('Koa', () => {
  const serveOnKoa = async (store: ResourceStore, before?: Koa.Middleware, options = {}) => {
    const app = new Koa()
    app.silent = true
    if (before !== undefined) app.use(before)
    app.use(koaMiddleware(createResourceService(store, options)))
    const host = await runServer(createServer(app.callback()))
    closeAfterTest(() => host.close())
    return { port: host.port, send: senderTo(host.port) }
  }

  it('gives HEAD the length of what the store need not have read (row H23)', async () => {
    const inner = memoryStore()
    await inner.write('/x', { contentType: 'text/plain', body: 'hello' }, { expect: 'any' })
    const store: ResourceStore = {
      ...inner,
      async read(path, options) {
        const state = await inner.read(path, options)
        return options?.metadataOnly === true && state !== undefined && !('removed' in state)
          ? { ...state, body: '' }
          : state
      },
    }
    const { send } = await serveOnKoa(store)
    expect((await send('HEAD', '/x')).field('Content-Length')).toBe('5')
  })

  it('sends nothing of a body that another middleware had meant to send (rows H22, H24)', async () => {
    const { send } = await serveOnKoa(memoryStore(), async (context, next) => {
      context.body = 'default answer'
      await next()
    })
    await send('PUT', '/x', [text], 'hello')
    for (const answer of [
      await send('GET', '/x', [text, 'If-None-Match: *'], 'unread'),
      await send('PUT', '/x', [text, 'If-Match: "n"'], 'unread'),
      await send('DELETE', '/x', [text], 'unread'),
    ]) {
      const length = answer.field('Content-Length')
      expect([answer.status, answer.field('Content-Type'), length ?? '0']).toEqual([answer.status, undefined, '0'])
    }
  })

  it('gets errors that are forwarded, also of content that fails before its first byte, with the fields of CORS', async () => {
    const body = {
      // biome-ignore lint/correctness/useYield: it fails first
      async *open(): AsyncGenerator<Uint8Array> {
        throw new Error('first')
      },
    }
    const read = (path: string) => {
      if (path === '/now') throw new Error('now')
      return { path, version: '1', contentType: 'text/plain', size: 300_000, body }
    }
    const cors = { origins: ['https://a.example'] }
    const options = { errors: 'forward', cors, onError: () => {} } as const
    const koa = await serveOnKoa({ ...memoryStore(), read }, undefined, options)
    const service = createResourceService({ ...memoryStore(), read }, options)
    const plain = await runServer(
      createServer((req, res) =>
        service(req, res, () => {
          res.statusCode = 599
          res.end()
        }),
      ),
    )
    closeAfterTest(() => plain.close())
    for (const path of ['/late', '/now']) {
      for (const [port, status] of [
        [koa.port, 500],
        [plain.port, 599],
      ]) {
        // The hosts' own answers: they need not please our linter.
        const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { Origin: 'https://a.example' } })
        expect([answer.status, answer.headers.get('Access-Control-Allow-Origin')]).toEqual([
          status,
          'https://a.example',
        ])
      }
    }
  })
})

describe('what is there is what is offered (RFC 9110 §12.5.1, row H92)', () => {
  it('a relative of the usual type is found by its own name', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/conf': singleton(), '/x/{name}': document({ types: ['*/*+json'] }) },
    })
    for (const path of ['/conf', '/x/a']) {
      await send('PUT', path, ['Content-Type: application/vnd.x+json'], '{}')
      const statusFor = async (accept: string) => (await send('GET', path, [`Accept: ${accept}`])).status
      expect(await statusFor('application/vnd.x+json')).toBe(200)
      expect(await statusFor('application/json')).toBe(406)
      expect(await statusFor('*/*')).toBe(200)
      expect(await statusFor('image/png')).toBe(406)
    }
  })
})

describe('fields', () => {
  it('of one answer count before those of all: Cross-Origin-Resource-Policy is sent once', async () => {
    const cors = { origins: ['https://a.example'], resourcePolicy: 'cross-origin' } as const
    const { send } = await serve(memoryStore(), { cors, resources: { '/d/{name}': document() } })
    await send('PUT', '/d/h', ['Content-Type: text/html'], '<p>')
    await send('PUT', '/d/t', [text], 'text')
    expect((await send('GET', '/d/h')).field('Cross-Origin-Resource-Policy')).toBe('same-origin')
    expect((await send('GET', '/d/t')).field('Cross-Origin-Resource-Policy')).toBe('cross-origin')
    // A path that names nothing tells scripts so (row X15).
    const missing = await send('GET', '/d', ['Origin: https://a.example'])
    expect([missing.status, missing.field('Access-Control-Allow-Origin')]).toEqual([404, 'https://a.example'])
  })

  it('keep XML that calls itself audio from acting as a page (threat 114)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/d/{name}': document() } })
    await send('PUT', '/d/a', ['Content-Type: audio/x+xml'], '<x/>')
    expect((await send('GET', '/d/a')).field('Content-Security-Policy')).toContain('sandbox')
  })

  it('that say of a form too little to read it are refused before it is asked for (row H76)', async () => {
    const { send } = await serve(memoryStore(), { resources: { '/users': collection() } })
    const answer = await send('POST', '/users', [
      'Content-Type: multipart/form-data',
      'Expect: 100-continue',
      'Content-Length: 10',
    ])
    expect(answer.status).toBe(400)
  })

  it('that name a transfer coding which nobody takes off are refused (RFC 9112 §6.1)', async () => {
    const { send } = await serve(memoryStore(), {})
    const answer = await send('PUT', '/x', [text, 'Transfer-Encoding: gzip, chunked'], '1\r\nx\r\n0\r\n\r\n')
    expect(answer.status).toBe(501)
    expect((await send('GET', '/x')).status).toBe(404)
  })

  it('name no tag of a rendition where the state has none', async () => {
    const store: ResourceStore = {
      ...memoryStore(),
      read: (path) => ({
        path,
        version: '1',
        entityTag: '',
        contentType: 'application/json',
        size: 2,
        body: '{}',
        lastModified: 1e12,
      }),
    }
    const toText = { type: 'text/plain', render: () => 'text' }
    const { send } = await serve(store, {
      resources: { '/x': document({ types: ['application/json'], representations: [toText] }) },
    })
    const answer = await send('GET', '/x', ['Accept: text/plain'])
    expect([answer.text, answer.field('ETag')]).toEqual(['text', undefined])
    const date = answer.field('Last-Modified')
    expect((await send('GET', '/x', ['Accept: text/plain', `If-Modified-Since: ${date}`])).status).toBe(304)
  })
})

describe('options whose value could not have the effect that they promise', () => {
  const wrong: [string, () => unknown][] = [
    ['require: true', () => collection({ require: true as never })],
    ['preconditions: true', () => document({ preconditions: true as never })],
    ['maxSize: "1kb"', () => document({ maxSize: '1kb' as never })],
    ['maxSize: NaN', () => document({ maxSize: Number.NaN })],
    ['methods: ["get"]', () => document({ methods: ['get' as never] })],
    ['methods: []', () => document({ methods: [] })],
    ['authorize: text', () => document({ authorize: 'x' as never })],
    ['a rendition without render', () => document({ representations: [{ type: 'text/plain' } as never] })],
    ['create: "accept"', () => collection({ create: 'accept' as never })],
    ['remove: "hide"', () => collection({ remove: 'hide' as never })],
    ['names: "int"', () => collection({ names: 'int' as never })],
    ['files: a list', () => collection({ files: ['file'] as never })],
    ['pageSize: 2', () => collection({ pageSize: 2 as never })],
    ['cacheControl with a line break', () => document({ cacheControl: 'a\nb' })],
    ['no store', () => createResourceService(undefined as never)],
    ['a function for a store', () => createResourceService(memoryStore as never)],
    ['resources: a list', () => createResourceService(memoryStore(), { resources: [] as never })],
    [
      'a definition that was not called',
      () => createResourceService(memoryStore(), { resources: { '/a': collection as never } }),
    ],
    [
      'a pattern of another router',
      () => createResourceService(memoryStore(), { resources: { '/a/:id': document() } }),
    ],
    ['an asterisk', () => createResourceService(memoryStore(), { resources: { '/a/*': document() } })],
    ['codings: zstd', () => createResourceService(memoryStore(), { codings: ['zstd' as never] })],
    ['onError: "log"', () => createResourceService(memoryStore(), { onError: 'log' as never })],
    ['errors: "throw"', () => createResourceService(memoryStore(), { errors: 'throw' as never })],
    ['operations: { concurrency: 0 }', () => createResourceService(memoryStore(), { operations: { concurrency: 0 } })],
    [
      'require without auth',
      () => createResourceService(memoryStore(), { resources: { '/a': collection({ require: 'all' }) } }),
    ],
  ]
  it.each(wrong)('are refused: %s', (_, make) => {
    expect(make).toThrow(TypeError)
  })

  it('leave a kind of resource the methods that it has', async () => {
    const { send } = await serve(memoryStore(), {
      resources: { '/one': singleton({ methods: ['GET', 'PUT', 'DELETE'] }) },
    })
    expect((await send('OPTIONS', '/one')).field('Allow')).toBe('GET, HEAD, PUT, OPTIONS')
    await send('PUT', '/one', [json], '{}')
    expect((await send('DELETE', '/one')).status).toBe(405)
  })
})

describe('HttpError', () => {
  it.each<[number, unknown, object?]>([
    [404, undefined],
    [409, 'Order was shipped'],
    [200, 'ERR_CONFLICT'],
    [700, 'ERR_CONFLICT'],
    [503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' } }],
  ])('takes no status, code or fields that could not be sent: %s %s', (status, code, options) => {
    expect(() => new HttpError(status, code as HttpErrorCode, options as never)).toThrow(TypeError)
  })
})
