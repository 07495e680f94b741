import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, it } from 'vitest'
import { basic } from '../../src/auth-schemes/basic.ts'
import type { RequestEvent } from '../../src/core/diagnostics.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Reply } from '../../src/core/reply.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, singleton } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { hosts, type RunningHost, startHost } from '../support/hosts.ts'
import { serve } from './serve.ts'

const running: RunningHost[] = []
afterEach(async () => {
  for (const host of running.splice(0)) await host.close()
})

const NO_STORE = ['Cache-Control', 'no-store']
const TEXT = 'Žluťoučký kůň — 日本 😀'

async function start(host: string, formatError: (error: HttpError) => Reply): Promise<RunningHost> {
  const service = createResourceService(memoryStore(), { formatError, fallthrough: false, https: 'optional' })
  const server = await startHost(host, service)
  running.push(server)
  return server
}

describe('formatError', () => {
  it.each(Object.keys(hosts))(
    'sends text beyond ASCII as UTF-8, with its length in bytes, on %s (RFC 9110 §8.6, §8.3.2)',
    async (host) => {
      const types = ['text/html', 'text/plain; charset=iso-8859-1', 'application/json', 'TEXT/plain; charset="UTF-8"']
      let headers: readonly string[] = []
      const server = await start(host, ({ status }) => ({ status, headers, body: TEXT }))
      const sent = ['text/html; charset=utf-8', 'text/plain; charset=utf-8', types[2], types[3]]
      for (const [i, type] of types.entries()) {
        // The length that a function counts in characters is not what is sent.
        for (const length of [[], ['content-length', String(TEXT.length)]]) {
          headers = ['Content-Type', type, ...length]
          for (const method of ['GET', 'HEAD']) {
            const answer = await server.send({ method, path: '/nothing' })
            expect([answer.status, answer.headers['content-type'], answer.headers['content-length']]).toEqual([
              ...[404, sent[i], String(Buffer.byteLength(TEXT))],
            ])
            expect(answer.body.toString()).toBe(method === 'GET' ? TEXT : '')
          }
        }
      }
    },
  )

  it.each<[string, Reply, readonly [type: string | undefined, length: string, body: string]]>([
    ['ASCII text', { status: 400, headers: ['Content-Type', 'text/html'], body: 'abc' }, ['text/html', '3', 'abc']],
    ['text without a type', { status: 400, headers: [], body: 'ü' }, ['text/plain; charset=utf-8', '2', 'ü']],
    [
      'a type with further parameters',
      { status: 400, headers: ['Content-Type', 'text/html; a="b c"; charset=latin1'], body: 'ü' },
      ['text/html; a="b c"; charset=utf-8', '2', 'ü'],
    ],
    ['bytes', { status: 400, headers: ['Content-Type', 'a/b'], body: Buffer.from('ü') }, ['a/b', '2', 'ü']],
    ['no content', { status: 400, headers: [] }, [undefined, '0', '']],
    ['empty text', { status: 400, headers: ['Content-Length', '9'], body: '' }, [undefined, '0', '']],
    [
      'a source',
      {
        status: 400,
        headers: ['Content-Type', 'text/plain; charset=utf-8'],
        body: {
          size: 2,
          open: async function* () {
            yield Buffer.from('ü')
          },
        },
      },
      ['text/plain; charset=utf-8', '2', 'ü'],
    ],
  ])('completes a reply with %s', async (_, reply, [type, length, body]) => {
    const headers = [...reply.headers, 'Cache-Control', 'no-store']
    const { send } = await serve(memoryStore(), { formatError: () => ({ ...reply, headers }) })
    for (const target of ['/nothing', '/%zz']) {
      const answer = await send('GET', target)
      expect([answer.field('content-type'), answer.field('content-length'), answer.text]).toEqual([type, length, body])
    }
  })

  it.each([
    ['nothing', undefined],
    ['no fields', { status: 404 }],
    ['no status', { headers: [] }],
    ['an interim status', { status: 100, headers: [] }],
    ['a field that no message may hold', { status: 404, headers: ['X-Why', '☃'] }],
    ['a field name that no message may hold', { status: 404, headers: ['X Why', 'a'] }],
    ['fields as an object', { status: 404, headers: { a: 'b' } }],
    ['a promise', Promise.resolve({ status: 404, headers: [] })],
  ])('answers 500, and says what was expected, for %s', async (_, wrong) => {
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    const { send } = await serve(memoryStore(), { formatError: () => wrong as Reply, onError })
    expect((await send('GET', '/nothing')).status).toBe(500)
    expect(errors.map(String)).toEqual([
      'TypeError: formatError returns { status, headers, body }: a status of 200 to 599, and names and values in turn, in Latin-1.',
    ])
  })

  it('answers 500, and reports it, for a reply that cannot be sent', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => void errors.push(error)
    const wrong = { status: 404, headers: [], body: { message: 'ü' } } as unknown as Reply
    const { send } = await serve(memoryStore(), { formatError: () => wrong, onError })
    expect((await send('GET', '/nothing')).status).toBe(500)
    expect(errors.map(String)).toEqual([
      'TypeError: formatError: the body of a reply must be a string, a Uint8Array or a ContentSource.',
    ])
  })

  it('keeps errors out of caches unless the reply says otherwise (RFC 9110 §15.1)', async () => {
    let headers: readonly string[] = []
    const { send } = await serve(memoryStore(), { formatError: ({ status }) => ({ status, headers, body: 'no' }) })
    expect((await send('GET', '/nothing')).field('cache-control')).toBe('no-store')
    headers = ['cache-control', 'no-store']
    expect((await send('GET', '/nothing')).field('cache-control')).toBe('no-store')
  })

  it('ends the connection where its content cannot be read, and neither can that of the error after it', async () => {
    const body = {
      size: 3,
      open() {
        throw new Error('The page is gone.')
      },
    }
    const formatError = ({ status }: HttpError): Reply => ({ status, headers: NO_STORE, body })
    const { port } = await serve(memoryStore(), { formatError, onError() {} })
    const answer = fetch(`http://127.0.0.1:${port}/nothing`, { signal: AbortSignal.timeout(20_000) })
    await expect(answer).rejects.toThrow('fetch failed')
  })

  it.each(['plain', 'Fastify'])(
    'sees no values in a path that no definition is for, or that is malformed; nor does an event, on %s',
    async (host) => {
      const seen: unknown[] = []
      const see = ({ params, pattern }: Exchange): number => seen.push([{ ...params }, pattern])
      const listen = (message: unknown): void => void see((message as RequestEvent).exchange)
      subscribe('http-resource-service:request', listen)
      closeAfterTest(async () => unsubscribe('http-resource-service:request', listen))
      const formatError = ({ status }: HttpError, exchange: Exchange): Reply => {
        see(exchange)
        return { status, headers: NO_STORE }
      }
      const resources = { '/notes': collection() }
      const service = createResourceService(memoryStore(), { resources, formatError, fallthrough: false })
      const server = await startHost(host, service)
      running.push(server)
      for (const [path, status, ...known] of [
        ['/nothing', 404, {}, undefined],
        ['/notes/%00', 400, {}, undefined],
        ['/notes/7', 404, { id: '7' }, '/notes/{id}'],
      ] as const) {
        seen.length = 0
        expect((await server.send({ path })).status).toBe(status)
        expect(seen).toEqual([known, known])
      }
    },
  )

  it('does not lose WWW-Authenticate, Allow and Retry-After (RFC 9110 §11.6.1, §15.5.6, §10.2.3)', async () => {
    const store = memoryStore()
    const failing = {
      ...store,
      read() {
        throw new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '7' } })
      },
    } as unknown as ResourceStore
    const verify = () => ({ id: 'ada' })
    const realm = 'notes'
    const options = { resources: { '/notes': collection({ methods: ['GET'] }), '/open': singleton({}) } }
    const bare = (error: HttpError): Reply => ({
      status: error.status,
      headers: [...NO_STORE, 'Content-Type', 'text/plain'],
      body: 'no',
    })
    const guarded = await serve(store, {
      ...options,
      formatError: bare,
      auth: { schemes: [basic({ realm, verify })] },
    })
    const refused = await guarded.send('GET', '/notes')
    expect([refused.status, refused.field('WWW-Authenticate')]).toEqual([401, expect.stringContaining('realm="notes"')])
    const open = await serve(failing, { ...options, formatError: bare })
    const unknown = await open.send('DELETE', '/notes')
    expect([unknown.status, unknown.field('Allow')]).toEqual([405, expect.stringContaining('GET')])
    const away = await open.send('GET', '/open')
    expect([away.status, away.field('Retry-After')]).toEqual([503, '7'])

    const own = (error: HttpError): Reply => ({
      status: error.status,
      headers: [...NO_STORE, 'retry-after', '1', 'allow', 'GET, HEAD'],
    })
    const set = await serve(failing, { ...options, formatError: own })
    expect((await set.send('GET', '/open')).field('Retry-After')).toBe('1')
    expect((await set.send('DELETE', '/notes')).field('Allow')).toBe('GET, HEAD')
    const other = await serve(failing, { ...options, formatError: () => ({ status: 404, headers: NO_STORE }) })
    expect((await other.send('GET', '/open')).field('Retry-After')).toBeUndefined()
  })
})
