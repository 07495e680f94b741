import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  constants,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Stream,
} from 'node:http2'
import { setImmediate as immediate } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { attach } from '../../src/adapters/node.ts'
import { collectBytes } from '../../src/body-types/read-body.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Handler } from '../../src/core/handler.ts'
import { contentReply, type Reply } from '../../src/core/reply.ts'
import { bodyParse } from '../../src/handlers/body-parse.ts'
import { digestFields } from '../../src/handlers/digest-fields.ts'
import { patch } from '../../src/handlers/patch.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import type { ResourceStore } from '../../src/stores/types.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { openFrameClient } from './http2-frames.ts'
import { HTTP2, type Listener, serveOn, TEXT } from './transports.ts'

/** Programs that serve, and ask, `http` or `https`. */
const PRELUDE = `
import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createSecureServer, createServer } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
const scheme = process.argv[1]
const { setInterval } = globalThis
globalThis.setInterval = (call, time) => setInterval(call, time / 100)
const { range } = await import('./dist/range.js')
const respond = (content) => range(() => ({ contentType: 'text/plain', entityTag: '"a"', content }))
const listen = async (listener) => {
  const [key, cert] = ['key', 'cert'].map((name) => readFileSync('./test/support/tls/' + name + '.pem'))
  const server = scheme === 'https' ? createSecureServer({ key, cert }, listener) : createServer(listener)
  await once(server.listen(0), 'listening')
  return server
}
const open = (server, options) =>
  connect(scheme + '://localhost:' + server.address().port, { ...options, rejectUnauthorized: false }).on('error', () => {})
`

/** A connection ends in the turn in which an answer gives Node more to send, while a later request waits for its answer. */
const LOST_CONNECTION = `
const events = new EventEmitter()
async function* content() {
  yield Buffer.alloc(1000)
  await once(events, 'more')
  yield Buffer.alloc(1000)
  await once(events, 'end')
}
const answer = respond({ size: 3000, open: content })
const server = await listen((req, res) => (req.url === '/waits' ? events.emit('asked') : answer(req, res)))
const session = open(server)
const [socket] = await once(server, scheme === 'https' ? 'secureConnection' : 'connection')
const begun = session.request({ ':path': '/begun' }).on('error', () => {})
await once(begun, 'data')
session.request({ ':path': '/waits' }).on('error', () => {})
await once(events, 'asked')
setImmediate(() => {
  events.emit('more')
  socket.destroy()
})
await once(session, 'close')
setImmediate(() => process.exit(7))
`

/** The host closes a stream whose client does not read yet. Streams are looked at each second; here more often. */
const CLOSED_BY_HOST = `
const answer = respond(Buffer.alloc(10_000))
const server = await listen((req, res) => {
  answer(req, res)
  req.stream.close(0)
})
const session = open(server, { settings: { initialWindowSize: 0 } })
const stream = session.request({ ':path': '/' })
await once(stream, 'response')
await sleep(100)
session.settings({ initialWindowSize: 65_535 })
let size = 0
for await (const chunk of stream) size += chunk.length
process.exit(size === 10_000 ? 7 : 1)
`

type Create = (onError: (error: unknown) => void) => Handler

const service: Create = (onError) =>
  createResourceService(memoryStore(), {
    resources: { '/docs/{name}': document(), '/users': collection() },
    // The stream is gone, and with it the address of its client.
    https: 'optional',
    onError,
  })

const JSON_TYPE = 'application/json'
const MERGE_PATCH = 'application/merge-patch+json'

async function open(scheme: string, listener: (handler: Handler) => Listener): Promise<ClientHttp2Session> {
  const transport = scheme === 'http' ? HTTP2[0]! : HTTP2[1]!
  const { port } = await serveOn(transport, () => contentReply(200, 'hello', TEXT), listener)
  const session = connect(`${scheme}://localhost:${port}`, { rejectUnauthorized: false })
  closeAfterTest(() => session.destroy())
  return session
}

describe('a stream of HTTP/2', () => {
  it.each<[string, Create, string, string, string]>([
    ['a service that gets a document', service, 'PUT', '/docs/a', 'text/plain'],
    ['a service that gets an item', service, 'POST', '/users', JSON_TYPE],
    ['a service that gets a patch', service, 'PATCH', '/docs/a', MERGE_PATCH],
    ['bodyParse', (onError) => bodyParse({ onError }), 'POST', '/', JSON_TYPE],
    ['digestFields', (onError) => digestFields({ onError }), 'POST', '/', JSON_TYPE],
    [
      'patch',
      (onError) => patch({ read: () => ({ document: {} }), write: () => {}, onError }),
      'PATCH',
      '/',
      MERGE_PATCH,
    ],
  ])('that is reset while a host or a hook is busy is not an error of %s', async (...row) => {
    const [, create, method, path, type] = row
    const errors: unknown[] = []
    const handler = create((error) => errors.push(error))
    let settle: (decision: Promise<unknown>) => void
    const decided = new Promise<unknown>((resolve) => {
      settle = resolve
    })
    const session = await open('http', () => (req, res) => {
      const reset = once((req as unknown as Http2ServerRequest).stream, 'close')
      settle(reset.then(() => handler.decide(handler.createExchange(req, res)!)).catch((error) => error))
    })
    const fields = { 'content-type': type, 'content-digest': `sha-256=:${'A'.repeat(43)}=:` }
    const stream = session.request({ ':method': method, ':path': path, ...fields })
    stream.on('error', () => {})
    stream.write('{"a":1}')
    await new Promise((resolve) => session.ping(resolve))
    stream.close(constants.NGHTTP2_CANCEL)
    expect([await decided, errors]).toEqual(['gone', []])
  })
})

describe.each([
  ['http', HTTP2[0]!],
  ['https', HTTP2[1]!],
])('a stream of HTTP/2 on %s', (scheme, transport) => {
  const isSecure = scheme === 'https'

  it.each<[string, (reach: () => void) => Handler, string, string]>([
    [
      'the hook of a service',
      (reach) => {
        const beforeWrite = (value: object) => {
          reach()
          return value
        }
        return createResourceService(memoryStore(), {
          resources: { '/users': collection({ beforeWrite }) },
          https: 'optional',
        })
      },
      'POST',
      JSON_TYPE,
    ],
    ['the function of patch', (reach) => patch({ read: () => ({ document: {} }), write: reach }), 'PATCH', MERGE_PATCH],
    [
      'a store that does not look whether the client has left',
      (reach) => {
        const store = memoryStore()
        const write: ResourceStore['write'] = async (path, content) => {
          const body = await collectBytes(content.body as AsyncIterable<Uint8Array>, 100)
          reach()
          return store.write(path, { ...content, body }, { expect: 'any' })
        }
        return createResourceService({ ...store, write }, { https: 'optional' })
      },
      'PUT',
      'text/plain',
    ],
  ])('that is reset with NO_ERROR in the midst of its content does not get to %s', async (...row) => {
    const [, create, method, type] = row
    const reach = vi.fn()
    const handler = create(reach)
    let settle: (stream: ServerHttp2Stream) => void
    const begun = new Promise<ServerHttp2Stream>((resolve) => {
      settle = resolve
    })
    const listener: Listener = (req, res) => {
      settle((req as unknown as Http2ServerRequest).stream)
      handler(req, res)
    }
    const { port } = await serveOn(
      transport,
      () => undefined,
      () => listener,
    )
    const client = await openFrameClient(port, isSecure)
    closeAfterTest(() => client.leave())
    const reset = client.begin(method, '/users', [['content-type', type]], '{"a":1}')
    const closed = once(await begun, 'close')
    await immediate() // it is being read
    reset(constants.NGHTTP2_NO_ERROR)
    await closed
    await immediate()
    expect(reach).not.toHaveBeenCalled()
  })

  it.each(['HEAD', 'PUT'])('of %s that is reset while it waits for 100 Continue is sent none', async (method) => {
    const left = (exchange: Exchange) =>
      new Promise<Reply>((resolve) => exchange.onClose(() => resolve(contentReply(200, 'hello', TEXT))))
    const { port, server, handler } = await serveOn(transport, left)
    attach(server, handler)
    const asked = once(server, 'checkContinue') as Promise<unknown> as Promise<
      [Http2ServerRequest, Http2ServerResponse]
    >
    const client = await openFrameClient(port, isSecure)
    closeAfterTest(() => client.leave())
    const reset = client.begin(method, '/', [['expect', '100-continue']], 'hello')
    const [{ stream }, res] = await asked
    const writeContinue = vi.spyOn(res, 'writeContinue')
    const closed = once(stream, 'close')
    reset(constants.NGHTTP2_CANCEL)
    await closed
    await immediate()
    expect(writeContinue).not.toHaveBeenCalled()
  })

  it('that its host has paused, and its client has reset with NO_ERROR, is sent no 100 Continue either', async () => {
    const paused: Listener = (req) => void req.pause()
    const { port, server, handler } = await serveOn(
      transport,
      () => undefined,
      () => paused,
    )
    attach(server, handler)
    const asked = once(server, 'checkContinue') as Promise<unknown> as Promise<
      [Http2ServerRequest, Http2ServerResponse]
    >
    const client = await openFrameClient(port, isSecure)
    closeAfterTest(() => client.leave())
    const reset = client.begin('PUT', '/', [['expect', '100-continue']], 'hello')
    const [req, res] = await asked
    const writeContinue = vi.spyOn(res, 'writeContinue').mockReturnValue()
    const aborted = once(req.stream, 'aborted')
    reset(constants.NGHTTP2_NO_ERROR)
    await aborted
    req.resume()
    await immediate()
    expect(writeContinue).not.toHaveBeenCalled()
  })

  // Where Node reads a request and its reset in one call, the stream is closed when the request is handed over.
  it('that is closed when its request arrives is sent no 100 Continue', async () => {
    const { port, server, handler } = await serveOn(transport, () => contentReply(200, 'hello', TEXT))
    attach(server, handler)
    const writeContinue = vi.fn()
    const closed = new Promise<void>((resolve) => {
      server.prependListener('checkContinue', ({ stream }: Http2ServerRequest, res: Http2ServerResponse) => {
        Object.assign(res, { writeContinue })
        stream.once('close', resolve).close(constants.NGHTTP2_NO_ERROR)
      })
    })
    const client = await openFrameClient(port, isSecure)
    closeAfterTest(() => client.leave())
    client.begin('PUT', '/', [['expect', '100-continue']], 'hello')
    await closed
    expect(writeContinue).not.toHaveBeenCalled()
  })

  it('is closed once it is answered, however much of its content has arrived and is not read', async () => {
    const closed: Promise<unknown>[] = []
    const session = await open(scheme, (handler) => (req, res) => {
      closed.push(once((req as unknown as Http2ServerRequest).stream, 'close'))
      handler(req, res)
    })
    const stream = session.request({ ':method': 'PUT', ':path': '/' })
    stream.on('error', () => {})
    stream.write(Buffer.alloc(1024 * 1024))
    const [headers] = await once(stream, 'response')
    await closed[0]
    expect(headers[':status']).toBe(200)
  })

  it('is closed where its content waited when it was reset with NO_ERROR, and the store fails then', async () => {
    let settle: (stream: ServerHttp2Stream) => void
    const begun = new Promise<ServerHttp2Stream>((resolve) => {
      settle = resolve
    })
    const write: ResourceStore['write'] = async (_, { body }) => {
      const stream = await begun
      for await (const _ of body as AsyncIterable<Uint8Array>) {
        // What waits now is not read any more.
        while (!stream.writableFinished) await immediate()
        break
      }
      throw new Error('The store is away.')
    }
    const options = { https: 'optional', idleTimeout: 40, onError() {} } as const
    const service = createResourceService({ ...memoryStore(), write }, options)
    const session = await open(scheme, () => (req, res) => {
      settle((req as unknown as Http2ServerRequest).stream)
      service(req, res)
    })
    const stream = session.request({ ':method': 'PUT', ':path': '/a' })
    stream.write(Buffer.alloc(900_000))
    const served = await begun
    const closed = new Promise((resolve) => served.once('close', resolve))
    await once(served, 'pause')
    stream.close(constants.NGHTTP2_NO_ERROR)
    await closed
  })

  it('is closed after the answer to HEAD where the client does not end its request (RFC 9113 §8.1)', async () => {
    const session = await open(scheme, (handler) => handler)
    for (const length of [undefined, 0]) {
      const fields = { ':method': 'HEAD', ':path': '/', 'content-length': length }
      const stream = session.request(fields, { endStream: false })
      const [headers] = await once(stream, 'response')
      await once(stream, 'close')
      expect([headers[':status'], stream.rstCode]).toEqual([200, constants.NGHTTP2_NO_ERROR])
    }
  })

  it.each([
    ['its connection is lost while it waits to send', LOST_CONNECTION],
    ['its host has closed it before it was read', CLOSED_BY_HOST],
  ])('ends no process where %s', (_, program) => {
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', PRELUDE + program, scheme],
      {
        encoding: 'utf8',
        timeout: 20_000,
        killSignal: 'SIGKILL',
      },
    )
    expect([stderr, status]).toEqual(['', 7])
  })
})
