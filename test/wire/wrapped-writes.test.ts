import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { Server } from 'node:net'
import { duplexPair } from 'node:stream'
import { createBrotliCompress, createGzip } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Handler } from '../../src/core/handler.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { contentReply } from '../../src/core/reply.ts'
import { range } from '../../src/handlers/range.ts'
import { createResourceService } from '../../src/service/create-resource-service.ts'
import { collection, document } from '../../src/service/resource-definitions.ts'
import { memoryStore } from '../../src/stores/memory.ts'
import { type RunningHost, runServer } from '../support/hosts.ts'
import { openRawClient } from './raw-client.ts'

let close = async (): Promise<void> => {}
afterEach(() => close())

/** Replaces the methods of a response as the middleware `compression` does: functions to call after a write are dropped. */
function compress(req: IncomingMessage, res: ServerResponse): void {
  const native = { write: res.write.bind(res), end: res.end.bind(res), on: res.on.bind(res) }
  const gzip = createGzip()
  gzip.on('data', (chunk) => {
    if (!native.write(chunk)) gzip.pause()
  })
  gzip.on('end', () => native.end())
  native.on('drain', () => gzip.resume())
  const writeHead = (): void => {
    if (res.headersSent) return
    res.removeHeader('Content-Length')
    res.setHeader('Content-Encoding', 'gzip')
    res.writeHead(res.statusCode)
  }
  res.setHeader('Vary', 'Accept-Encoding') // so that fields are set one by one
  const nativeHead = res.writeHead.bind(res)
  res.writeHead = (status: number) => {
    res.removeHeader('Content-Length')
    res.setHeader('Content-Encoding', 'gzip')
    return nativeHead(status)
  }
  res.write = (chunk: Uint8Array) => {
    writeHead()
    return gzip.write(chunk)
  }
  res.end = (chunk?: unknown) => {
    writeHead()
    gzip.end(chunk)
    return res
  }
  res.on = (name: string, listener: (...values: never[]) => void) => {
    if (name === 'drain') gzip.on(name, listener as () => void)
    else native.on(name, listener as () => void)
    return res
  }
  req.on('close', () => gzip.destroy())
}

it.each([100, 1_500_000, 9_000_000])(
  'content of %i bytes leaves whole through middleware that compresses, which calls nothing after a write',
  async (size) => {
    const service = createResourceService(memoryStore(), { resources: { '/{name}': document() }, https: 'optional' })
    const running = await runServer(
      createServer((req, res) => {
        if (req.method === 'GET') compress(req, res)
        service(req, res)
      }),
    )
    close = running.close
    const url = `http://localhost:${running.port}/a`
    const content = Buffer.alloc(size, 'abcdefg')
    const fields = { 'Content-Type': 'text/plain' }
    expect((await fetch(url, { method: 'PUT', body: content, headers: fields })).status).toBe(201)
    const answer = await fetch(url)
    expect(answer.headers.get('content-encoding')).toBe('gzip')
    expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true)
  },
)

it('middleware that compresses is given no more than its client reads (threat 10)', async () => {
  let taken = 0
  const open = async function* (): AsyncGenerator<Uint8Array> {
    for (taken = 0; taken < 200; taken++) yield randomBytes(256 * 1024)
  }
  const film = range(() => ({ contentType: 'text/plain', content: { size: 200 * 256 * 1024, open } }))
  const running = await runServer(
    createServer((req, res) => {
      compress(req, res)
      film(req, res)
    }),
  )
  close = running.close
  const client = await openRawClient(running.port)
  client.pause()
  client.send('GET /a HTTP/1.1\r\nHost: a\r\n\r\n')
  for (let before = -1; taken === 0 || taken > before; ) {
    before = taken
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  expect(taken).toBeLessThan(100)
  client.socket.destroy()
})

it('content leaves to its last byte by a runtime with connections of its own, which calls nothing after a write', async () => {
  const { write } = ServerResponse.prototype
  const uncalled = vi.spyOn(ServerResponse.prototype, 'write').mockImplementation(function (
    this: ServerResponse,
    chunk,
  ) {
    return write.call(this, chunk, 'latin1')
  })
  try {
    const film = range(() => ({ contentType: 'text/plain', content: 'a'.repeat(100_000) }))
    const server = createServer((req, res) => film(req, res))
    const [client, connection] = duplexPair()
    server.emit('connection', connection)
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    let text = ''
    for await (const chunk of client) text += chunk
    expect(text.endsWith(`\r\n\r\n${'a'.repeat(100_000)}`)).toBe(true)
  } finally {
    uncalled.mockRestore()
  }
}, 20_000)

type Wrap = (res: ServerResponse) => void
/** A method of a response as middleware replaces it: with the arguments that it was written for. */
type Method = (this: ServerResponse, ...given: unknown[]) => unknown

/** Replaces a method, as middleware does. */
function replace(
  res: ServerResponse,
  name: 'write' | 'end' | 'writeHead' | 'setHeader',
  make: (native: Method) => Method,
): void {
  Object.assign(res, { [name]: make(res[name] as Method) })
}

/** What `on-headers` 1.0.2 does, and with it `compression` 1.7, `morgan` 1.10 and `express-session` 1.17. */
const withOldHeaders: Wrap = (res) =>
  replace(
    res,
    'writeHead',
    (native) =>
      function (status, ...rest) {
        const fields = rest.at(-1)
        if (Array.isArray(fields)) for (const pair of fields as string[]) this.setHeader(pair[0]!, pair[1]!)
        this.setHeader('X-Wrapped', 'yes')
        return native.call(this, status)
      },
  )

/** Sets a field when the answer ends, as middleware for routes that do not write a head by themselves. */
const withLateField: Wrap = (res) =>
  replace(
    res,
    'end',
    (native) =>
      function (...given) {
        this.setHeader('X-Wrapped', 'yes')
        return native.apply(this, given)
      },
  )

/** Gathers what is written, returns nothing and sends all of it at the end. */
const withGathered: Wrap = (res) => {
  const chunks: Uint8Array[] = []
  replace(res, 'write', () => (chunk) => void chunks.push(chunk as Uint8Array))
  replace(
    res,
    'end',
    (native) =>
      function (chunk) {
        if (typeof chunk === 'string') chunks.push(Buffer.from(chunk))
        else if (chunk instanceof Uint8Array) chunks.push(chunk)
        // The one of HTTP/2 writes by the method.
        Reflect.deleteProperty(this, 'write')
        this.setHeader('X-Wrapped', 'yes')
        return native.call(this, Buffer.concat(chunks))
      },
  )
}

/** Calls no function after a write, as `pipe` of Node needs none. */
class UncalledResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
  override write(chunk: unknown): boolean {
    return super.write(chunk)
  }
}

async function serve(handler: Handler, wrap: Wrap, isHttp2 = false): Promise<RunningHost> {
  const listener = (req: IncomingMessage, res: ServerResponse): void => {
    wrap(res)
    handler(req, res)
  }
  const server = isHttp2 ? createHttp2Server(listener as never) : createServer(listener)
  const running = await runServer(server as Server, isHttp2 ? 'http2' : 'http')
  close = running.close
  return running
}

describe('behind middleware that wraps the methods of a response', () => {
  it.each([
    ['that reads no list of fields', withOldHeaders],
    ['that sets fields at the end', withLateField],
    ['that gathers content', withGathered],
  ])('answers are those of the service: one %s', async (_, wrap) => {
    const resources = { '/notes': collection(), '/{name}': document() }
    const { send } = await serve(createResourceService(memoryStore(), { resources, https: 'optional' }), wrap)
    const headers = { 'Content-Type': 'application/json' }
    const created = await send({ method: 'POST', path: '/notes', headers, body: '{"a":1}' })
    expect([created.status, created.field('location'), created.text]).toEqual([201, '/notes/1', '{"id":1,"a":1}'])
    const got = await send({ path: '/notes/1' })
    expect([got.status, got.field('content-type'), got.field('x-wrapped')]).toEqual([200, 'application/json', 'yes'])
    expect((await send({ path: '/notes/1', headers: { 'If-None-Match': got.field('etag')! } })).status).toBe(304)
    expect((await send({ path: '/notes/2' })).status).toBe(404)
    expect((await send({ method: 'DELETE', path: '/notes/1', headers: { 'If-Match': '"no"' } })).status).toBe(412)
    expect((await send({ method: 'HEAD', path: '/notes/1' })).field('content-length')).toBe(got.field('content-length'))
  })

  it.each([
    ['HTTP/1.1', false],
    ['HTTP/2', true],
  ])(
    'content of a source that uses one buffer repeatedly is gathered whole, though a write returns nothing: %s',
    async (_, isHttp2) => {
      const content = Buffer.from(Array.from({ length: 100_000 }, (_, i) => `${i} `).join(''))
      async function* open(): AsyncGenerator<Uint8Array> {
        const buffer = Buffer.alloc(40_000)
        for (let at = 0; at < content.length; at += buffer.length) {
          yield buffer.subarray(0, content.copy(buffer, 0, at, at + buffer.length))
        }
      }
      const film = range(() => ({ contentType: 'text/plain', content: { size: content.length, open } }))
      const { send } = await serve(film, withGathered, isHttp2)
      const answer = await send({ path: '/' })
      expect([answer.status, answer.field('x-wrapped')]).toEqual([200, 'yes'])
      expect(answer.body.equals(content)).toBe(true)
    },
  )

  it.each<[string, Wrap, typeof ServerResponse]>([
    ['of the class of a host', () => {}, UncalledResponse],
    [
      'that is put in place when the head is written',
      (res) =>
        replace(
          res,
          'writeHead',
          (native) =>
            function (...given) {
              replace(this, 'write', (write) => (chunk) => write.call(this, chunk))
              return native.apply(this, given)
            },
        ),
      ServerResponse,
    ],
    [
      'that is put in place when a field is set',
      (res) => {
        res.setHeader('X-Before', '1')
        replace(
          res,
          'setHeader',
          (native) =>
            function (...given) {
              replace(this, 'write', (write) => (chunk) => write.call(this, chunk))
              return native.apply(this, given)
            },
        )
      },
      ServerResponse,
    ],
  ])('large content leaves whole by a method that calls nothing after a write: one %s', async (_, wrap, Response) => {
    async function* open(first: number, last: number): AsyncGenerator<Uint8Array> {
      const buffer = Buffer.alloc(50_000)
      for (let at = first; at <= last; at += 50_000) yield buffer.fill(at / 50_000).subarray(0, last + 1 - at)
    }
    const sources = {
      '/bytes': Buffer.alloc(150_000),
      '/large': Buffer.alloc(2_500_000),
      '/parts': { size: 150_000, open },
      '/many': { size: 2_500_000, open },
    }
    const film = range(({ path }) => ({ contentType: 'text/plain', content: sources[path as keyof typeof sources] }))
    const server = createServer({ ServerResponse: Response }, (req, res) => {
      wrap(res)
      film(req, res)
    })
    const { port, close: stop } = await runServer(server)
    close = stop
    for (const [path, content] of Object.entries(sources)) {
      const answer = await fetch(`http://localhost:${port}${path}`)
      const bytes = Buffer.from(await answer.arrayBuffer())
      const size = content instanceof Uint8Array ? content.length : content.size
      expect([path, bytes.length]).toEqual([path, size])
      if (path === '/many') expect(bytes.every((byte, at) => byte === Math.floor(at / 50_000))).toBe(true)
    }
  })

  it('short content that is read at once is read into memory that nothing else is read into', async () => {
    const kept: Uint8Array[] = []
    const letters = ['a', 'b', 'c']
    const handler = createHandler({
      run() {
        const letter = letters.shift()!
        const read = (buffer: Uint8Array = Buffer.alloc(3)) => buffer.fill(letter.charCodeAt(0), 0, 3).subarray(0, 3)
        return { status: 200, headers: ['Content-Length', '3'], body: { size: 3, read, open: () => expect.fail() } }
      },
      forwardErrors: false,
    })
    const { send } = await serve(handler, (res) =>
      replace(
        res,
        'end',
        (native) =>
          function (...given) {
            kept.push(given[0] as Uint8Array)
            return native.apply(this, given)
          },
      ),
    )
    for (const letter of [...letters]) expect((await send({ path: '/' })).text).toBe(letter.repeat(3))
    expect(kept.map(String)).toEqual(['a', 'b', 'c'].map((letter) => String(Buffer.from(letter.repeat(3)))))
  })

  it('content that is read at once is given at once, however large', async () => {
    const body = { size: 100_000, read: () => Buffer.alloc(100_000, 'a'), open: () => expect.fail() }
    const handler = createHandler({
      run: () => ({ status: 200, headers: ['Content-Length', '100000'], body }),
      forwardErrors: false,
    })
    const { send } = await serve(handler, withLateField)
    const answer = await send({ path: '/' })
    expect([answer.status, answer.field('x-wrapped'), answer.text]).toEqual([200, 'yes', 'a'.repeat(100_000)])
  })

  it('a refused upload gets its answer at once where the middleware has a method to flush', async () => {
    const resources = { '/{name}': document({ types: ['text/plain'] }) }
    const service = createResourceService(memoryStore(), { resources, https: 'optional' })
    const coder = createBrotliCompress()
    const flushed = once(coder, 'data')
    const running = await serve(service, (res) => {
      replace(res, 'write', () => (chunk) => coder.write(chunk))
      replace(
        res,
        'end',
        (native) =>
          function () {
            return native.call(this)
          },
      )
      Object.assign(res, { flush: () => coder.flush() })
    })
    const client = await openRawClient(running.port)
    client.send('PUT /a HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\nContent-Length: 9000000\r\n\r\nx')
    expect((await flushed)[0].length).toBeGreaterThan(0)
    client.socket.destroy()
  })

  it('a refused upload is ended once where the middleware ends it later, as sessions that are saved do', async () => {
    const resources = { '/{name}': document({ types: ['text/plain'] }) }
    const service = createResourceService(memoryStore(), { resources, https: 'optional' })
    let ended = 0
    let closed: Promise<unknown> | undefined
    const running = await serve(service, (res) => {
      closed = once(res.req, 'close')
      replace(
        res,
        'end',
        (native) =>
          function () {
            ended++
            void closed!.then(() => native.call(this))
            return this
          },
      )
    })
    const client = await openRawClient(running.port)
    client.send(
      'PUT /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: image/png\r\nContent-Length: 1\r\n\r\nx',
    )
    expect((await client.read()).status).toBe(415)
    await client.rest()
    expect(ended).toBe(1)
  })

  it('an error of the middleware after the answer has begun reaches onError', async () => {
    const errors: unknown[] = []
    const service = createResourceService(memoryStore(), { https: 'optional', onError: (error) => errors.push(error) })
    const { send } = await serve(service, (res) =>
      replace(
        res,
        'end',
        (native) =>
          function (...given) {
            native.apply(this, given)
            throw new Error('after the end')
          },
      ),
    )
    await send({ path: '/a' }).catch(() => {})
    expect(errors.map(String)).toEqual(['Error: after the end'])
  })

  it.each(['respond', 'forward'] as const)(
    'an error of the middleware before the answer has begun leaves none of its fields on the 500 (%s)',
    async (unexpectedErrors) => {
      const resources = { '/notes': collection() }
      const options = { resources, unexpectedErrors, onError: () => {} } as const
      const service = createResourceService(memoryStore(), options)
      const running = await runServer(
        createServer((req, res) => {
          const end = res.end.bind(res)
          res.end = (() => {
            res.end = end
            throw new Error('before the head')
          }) as typeof end
          res.setHeader('Link', '</help>; rel="help"')
          service(req, res, (_error) => res.writeHead(500).end())
        }),
      )
      close = running.close
      const headers = { 'Content-Type': 'application/json' }
      const answer = await fetch(`http://localhost:${running.port}/notes`, { method: 'POST', headers, body: '{}' })
      const names = ['location', 'content-location', 'etag', 'last-modified', 'link']
      expect([answer.status, ...names.map((name) => answer.headers.get(name))]).toEqual([
        500,
        ...[null, null, null, null, '</help>; rel="help"'],
      ])
    },
  )
})

it('an answer has the words of its own status where middleware wraps the methods and the host has set others', async () => {
  const run = () => contentReply(200, 'x', [])
  const handler = createHandler({ run, forwardErrors: false })
  const running = await runServer(
    createServer((req, res) => {
      const end = res.end.bind(res)
      res.end = ((...values: Parameters<typeof end>) => end(...values)) as typeof end
      Object.assign(res, { statusCode: 503, statusMessage: 'Not Yet' })
      handler(req, res)
    }),
  )
  close = running.close
  const answer = await fetch(`http://localhost:${running.port}/`)
  expect([answer.status, answer.statusText]).toEqual([200, 'OK'])
})
