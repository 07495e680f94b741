import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { HttpError } from '../../src/core/errors.ts'
import type { Exchange } from '../../src/core/exchange.ts'
import type { MaybePromise } from '../../src/core/handler.ts'
import { createHandler, type Handler } from '../../src/core/node-handler.ts'
import { type ContentSource, contentReply, emptyReply, encodeText, type Reply } from '../../src/core/reply.ts'
import { openRawClient, type RawClient, valuesOf } from './raw-client.ts'

/** Bytes a second: more than the kernel takes at once without a reader is forgiven in a moment. */
const FAST = 100_000_000

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

interface Service {
  readonly port: number
  readonly server: Server
  readonly handler: Handler
  /** What the error hook was told. */
  readonly errors: unknown[]
}

type Run = (exchange: Exchange) => MaybePromise<Reply | undefined>

function createService(run: Run): { handler: Handler; errors: unknown[] } {
  const errors: unknown[] = []
  const handler = createHandler({ run, forwardErrors: false, onError: (error) => errors.push(error) })
  return { handler, errors }
}

async function serve(run: Run): Promise<Service> {
  const { handler, errors } = createService(run)
  const server = createServer(handler)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  })
  return { server, handler, errors, port: (server.address() as AddressInfo).port }
}

async function open(port: number): Promise<RawClient> {
  const client = await openRawClient(port)
  closers.push(() => client.socket.destroy())
  return client
}

function request(method: string, path = '/', more = '', body = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: a.test\r\n${more}\r\n${body}`
}

/** A source that records what becomes of it. */
function recordedSource(size: number, chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
  const record = { opened: 0, closed: 0 }
  let settle = (): void => {}
  const closed = new Promise<void>((resolve) => {
    settle = resolve
  })
  const source: ContentSource = {
    size,
    async *open() {
      record.opened++
      try {
        yield* chunks()
      } finally {
        record.closed++
        settle()
      }
    },
  }
  return { source, record, closed }
}

function sourceReply(source: ContentSource, status = 200): Reply {
  return { status, headers: ['Content-Length', String(source.size)], body: source }
}

/** Chunks for ever; what a client that goes away leaves behind. */
function* endless(size = 64 * 1024): Iterable<Uint8Array> {
  const chunk = new Uint8Array(size)
  for (;;) yield chunk
}

/** A source that cannot be read. */
function failing(error: Error): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        await immediate()
        throw error
      },
    }),
  }
}

const TEXT = ['Content-Type', 'text/plain']
/** Whether it is the source, not the client, that ends: never. */
const HUGE = 2 ** 40

describe('the writer on HTTP/1.1', () => {
  it('sends content with its length, and the fields of every answer', async () => {
    const { port } = await serve(() => contentReply(200, 'hello', TEXT))
    const client = await open(port)
    client.send(request('GET'))
    const response = await client.read()
    expect(response.status).toBe(200)
    expect(response.body.toString()).toBe('hello')
    expect(valuesOf(response, 'content-length')).toEqual(['5'])
    expect(valuesOf(response, 'x-content-type-options')).toEqual(['nosniff'])
    expect(valuesOf(response, 'date')[0]).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
    expect(valuesOf(response, 'transfer-encoding')).toEqual([])
  })

  it('adds nothing that tells who answers (RFC 9110 §17.12, row H25)', async () => {
    const { port } = await serve(() => emptyReply(204, []))
    const client = await open(port)
    client.send(request('GET'))
    const names = (await client.read()).fields.map(([name]) => name)
    expect(names).not.toContain('server')
    expect(names).not.toContain('x-powered-by')
  })

  it.each(['ä€😀', 'plain', '', '\u0000\u007f\u0080\u00ff'])(
    'counts the bytes of %j, not its characters',
    async (text) => {
      const { port } = await serve(() => contentReply(200, encodeText(text), TEXT))
      const client = await open(port)
      client.send(request('GET'))
      const response = await client.read()
      expect(response.body.toString()).toBe(text)
      expect(valuesOf(response, 'content-length')).toEqual([String(Buffer.byteLength(text))])
    },
  )

  it.each<[string, () => Reply]>([
    ['a string', () => contentReply(200, 'hello', TEXT)],
    ['bytes', () => contentReply(200, Buffer.from('hello'), TEXT)],
    ['2 MB of bytes', () => contentReply(200, new Uint8Array(2_000_000), TEXT)],
    ['an error', () => contentReply(404, '{}', ['Content-Type', 'application/problem+json'])],
    ['nothing', () => emptyReply(200, TEXT)],
  ])(
    'answers HEAD with the fields of GET and no content: %s (RFC 9110 §9.3.2, rows H21, H23, H54, H55)',
    async (_, reply) => {
      const { port } = await serve(reply)
      const client = await open(port)
      client.send(request('GET'))
      const get = await client.read()
      client.send(request('HEAD'))
      client.send(request('GET'))
      const head = await client.read('HEAD')
      const after = await client.read()
      const known = ({ fields }: typeof get) => fields.filter(([name]) => name !== 'date')
      expect([head.status, known(head)]).toEqual([get.status, known(get)])
      expect([after.status, known(after)]).toEqual([get.status, known(get)])
      // Megabytes: comparing them one by one takes seconds.
      expect(after.body.equals(get.body)).toBe(true)
    },
  )

  it('opens no source for HEAD (RFC 9110 §9.3.2, row H56)', async () => {
    const { source, record } = recordedSource(HUGE, endless)
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('HEAD'))
    const response = await client.read('HEAD')
    expect(valuesOf(response, 'content-length')).toEqual([String(HUGE)])
    expect(record.opened).toBe(0)
  })

  it.each([204, 304])(
    'sends no content and no length with %i (RFC 9110 §6.4.1 and §8.6, rows H21, H22, H24)',
    async (status) => {
      const { port } = await serve(({ path, req }) =>
        req.url === '/next' ? contentReply(200, 'next', TEXT) : emptyReply(status, ['ETag', `"${path}"`]),
      )
      const client = await open(port)
      client.send(request('GET') + request('DELETE') + request('GET', '/next'))
      for (let i = 0; i < 2; i++) {
        const response = await client.read()
        expect(response.status).toBe(status)
        expect(valuesOf(response, 'content-length')).toEqual([])
        expect(valuesOf(response, 'transfer-encoding')).toEqual([])
      }
      expect((await client.read()).body.toString()).toBe('next')
    },
  )

  it.each([200, 201, 202, 412, 416, 500])('says of an empty %i that it is empty (RFC 9110 §8.6)', async (status) => {
    const { port } = await serve(() => emptyReply(status, []))
    const client = await open(port)
    client.send(request('PATCH', '/', 'Content-Length: 0\r\n'))
    const response = await client.read()
    expect([response.status, valuesOf(response, 'content-length')]).toEqual([status, ['0']])
  })

  it('closes after an answer on HTTP/1.0, and gives its length (threat 18)', async () => {
    const { port } = await serve(() => contentReply(200, 'hello', TEXT))
    const client = await open(port)
    client.send('GET / HTTP/1.0\r\n\r\n')
    const text = (await client.readToEnd()).toString()
    expect(text).toMatch(/\r\nContent-Length: 5\r\n/)
    expect(text).toMatch(/\r\n\r\nhello$/)
  })

  it('keeps the order of pipelined requests, whatever takes how long', async () => {
    const { port } = await serve(async ({ req }) => {
      const text = req.url!.slice(1)
      for (let i = Number(text) * 3; i > 0; i--) await immediate()
      if (text === '2')
        return sourceReply(
          recordedSource(3, async function* () {
            for (const char of 'two') {
              await immediate()
              yield Buffer.from(char)
            }
          }).source,
        )
      return contentReply(200, text, TEXT)
    })
    const client = await open(port)
    client.send(['3', '2', '1', '0'].map((text) => request('GET', `/${text}`)).join(''))
    const bodies = []
    for (let i = 0; i < 4; i++) bodies.push((await client.read()).body.toString())
    expect(bodies).toEqual(['3', 'two', '1', '0'])
  })

  it('merges Vary with what the host has set, and sends a repeated field as often as it was given', async () => {
    const { handler } = createService((exchange) => {
      exchange.vary = 'Origin, Accept'
      exchange.pending = [...exchange.pending, 'X-Pending', '1']
      return emptyReply(401, ['WWW-Authenticate', 'Basic realm="a"', 'WWW-Authenticate', 'Bearer realm="a"'])
    })
    const server = createServer((req, res) => {
      res.setHeader('Vary', 'Accept-Encoding, origin')
      res.setHeader('X-Host', 'kept')
      res.setHeader('X-Pending', 'replaced')
      handler(req, res)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => server.close())
    const client = await open((server.address() as AddressInfo).port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    const response = await client.read()
    expect(valuesOf(response, 'vary')).toEqual(['Accept-Encoding, origin, Accept'])
    expect(valuesOf(response, 'www-authenticate')).toEqual(['Basic realm="a"', 'Bearer realm="a"'])
    expect(valuesOf(response, 'x-host')).toEqual(['kept'])
    expect(valuesOf(response, 'x-pending')).toEqual(['1'])
  })

  it.each(['a\r\nX-Evil: 1', 'a\u0000b', 'a\u007fb', '日本'])(
    'answers 500 rather than send the field value %j (RFC 9110 §5.5, row H11)',
    async (value) => {
      const { source, closed } = recordedSource(HUGE, endless)
      const { port, errors } = await serve(({ req }) =>
        req.url === '/source'
          ? { status: 200, headers: ['X-Name', value, 'Content-Length', String(HUGE)], body: source }
          : contentReply(200, 'x', ['X-Name', value]),
      )
      const client = await open(port)
      client.send(request('GET', '/') + request('GET', '/source') + request('HEAD', '/'))
      for (const method of ['GET', 'GET', 'HEAD']) {
        const response = await client.read(method)
        expect([response.status, response.phrase]).toEqual([500, 'Internal Server Error'])
        expect(valuesOf(response, 'x-evil')).toEqual([])
        expect(valuesOf(response, 'x-name')).toEqual([])
      }
      await closed
      expect(errors).toHaveLength(3)
    },
  )

  it('writes nothing where the answer has already been given', async () => {
    const { port, errors } = await serve(({ res }) => {
      res.end('before')
      return contentReply(200, 'after', TEXT)
    })
    const client = await open(port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    expect((await client.readToEnd()).toString()).toMatch(/\r\n\r\n(6\r\n)?before(\r\n0\r\n\r\n)?$/)
    expect(errors).toEqual([])
  })
})

describe('content from a source', () => {
  it.each<[string, number[]]>([
    ['one chunk', [10]],
    ['several chunks', [1, 2, 3, 4]],
    ['empty chunks among them', [0, 5, 0, 0, 5, 0]],
    ['large chunks', [3_000_000, 1, 2_000_000]],
    ['many small chunks', Array.from({ length: 2000 }, () => 7)],
    ['nothing', []],
    ['one empty chunk', [0]],
  ])('arrives whole and in order: %s', async (_, sizes) => {
    const size = sizes.reduce((sum, size) => sum + size, 0)
    const all = Buffer.from(Array.from({ length: size }, (_, i) => i % 251))
    const { source, record, closed } = recordedSource(size, function* () {
      let at = 0
      for (const length of sizes) {
        yield all.subarray(at, at + length)
        at += length
      }
    })
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET') + request('GET'))
    for (let i = 0; i < 2; i++) {
      const response = await client.read()
      expect(response.body.equals(all)).toBe(true)
    }
    await closed
    client.send(request('HEAD'))
    expect((await client.read('HEAD')).status).toBe(200)
    expect(record).toEqual({ opened: 2, closed: 2 })
    expect(errors).toEqual([])
  })

  it.each([1_048_576, 1_048_577, 5_000_000])(
    'sends %i bytes from memory in pieces that a slow reader can take',
    async (size) => {
      const all = Buffer.from(Array.from({ length: size }, (_, i) => i % 251))
      const { port } = await serve(() => contentReply(200, all, TEXT))
      const client = await open(port)
      client.send(request('GET'))
      expect((await client.read()).body.equals(all)).toBe(true)
    },
  )

  it('asks for the next chunk only when the last has left: a source may use one buffer again', async () => {
    const size = 64 * 256 * 1024
    const { source } = recordedSource(size, function* () {
      const buffer = Buffer.alloc(256 * 1024)
      for (let i = 0; i < 64; i++) yield buffer.fill(i)
    })
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.socket.pause()
    client.send(request('GET'))
    await immediate()
    client.socket.resume()
    const { body } = await client.read()
    for (let i = 0; i < 64; i++) {
      const part = body.subarray(i * 256 * 1024, (i + 1) * 256 * 1024)
      expect(part.every((byte) => byte === i)).toBe(true)
    }
  })

  it('holds the source back while the client does not read (threat 10)', async () => {
    let taken = 0
    const { source, closed } = recordedSource(HUGE, function* () {
      for (const chunk of endless(256 * 1024)) {
        taken += chunk.length
        yield chunk
      }
    })
    const { port } = await serve((exchange) => {
      exchange.idleTimeout = 300
      exchange.slowestReader = FAST
      return sourceReply(source)
    })
    const client = await open(port)
    client.socket.pause()
    client.send(request('GET'))
    await closed // the writer gives the client up
    expect(taken).toBeGreaterThan(0)
    expect(taken).toBeLessThan(32 * 1024 * 1024)
  })

  it('that fails before its first byte is answered with 500, and the connection lives on (row H180)', async () => {
    const failure = new Error('disk gone: /secret/path')
    const { source } = recordedSource(10, () => failing(failure))
    const { port, errors } = await serve(({ req }) => (req.url === '/ok' ? emptyReply(204, []) : sourceReply(source)))
    const client = await open(port)
    client.send(request('GET') + request('GET', '/ok'))
    const response = await client.read()
    expect(response.status).toBe(500)
    expect(valuesOf(response, 'content-type')).toEqual(['application/problem+json'])
    expect(valuesOf(response, 'cache-control')).toEqual(['no-store'])
    expect(response.body.toString()).not.toMatch(/secret|disk/)
    expect((await client.read()).status).toBe(204)
    expect(errors).toEqual([failure])
  })

  it('may choose its answer before its first byte', async () => {
    const { source } = recordedSource(10, () =>
      failing(new HttpError(503, 'ERR_UNAVAILABLE', { headers: ['Retry-After', '7'] })),
    )
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    const response = await client.read()
    expect([response.status, valuesOf(response, 'retry-after')]).toEqual([503, ['7']])
    expect(errors).toEqual([])
  })

  it('that fails later breaks the connection off, so that half of it never looks whole', async () => {
    const failure = new Error('disk gone')
    const { source, record } = recordedSource(10, async function* () {
      yield Buffer.from('half ')
      await immediate()
      throw failure
    })
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET') + request('GET', '/next'))
    const text = (await client.readToEnd()).toString()
    expect(text).toMatch(/^HTTP\/1\.1 200 /)
    expect(text).toMatch(/\r\n\r\nhalf $/)
    expect(errors).toEqual([failure])
    // That of the request behind it as well; when, is up to Node.
    await expect.poll(() => record.closed).toBe(record.opened)
  })

  it('shorter than it said breaks the connection off', async () => {
    const { source } = recordedSource(10, () => [Buffer.from('short')])
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.readToEnd()).toString()).toMatch(/\r\n\r\nshort$/)
    expect(errors).toHaveLength(1)
  })

  it('that gives nothing at all though it said otherwise breaks the connection off', async () => {
    const { source } = recordedSource(10, () => [])
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.readToEnd()).toString()).toMatch(/\r\n\r\n$|^$/)
    expect(errors).toHaveLength(1)
  })

  it.each<[string, string[], RegExp]>([
    ['in one chunk', ['too much'], /\r\n\r\n$|^$/],
    ['in its second chunk', ['to', 'o much'], /\r\n\r\nto$/],
  ])('longer than it said never sends what the length does not announce: %s', async (_, chunks, expected) => {
    const { source, record } = recordedSource(3, () => chunks.map((chunk) => Buffer.from(chunk)))
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.readToEnd()).toString()).toMatch(expected)
    expect(errors).toHaveLength(1)
    expect(record.closed).toBe(1)
  })

  it('with more after its last byte is answered whole; the rest is reported and not sent', async () => {
    const { source, closed } = recordedSource(3, () => ['two', '!'].map((chunk) => Buffer.from(chunk)))
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    expect((await client.readToEnd()).toString()).toMatch(/\r\n\r\ntwo$/)
    await closed
  })

  it('whose end fails does not spoil an answer that is complete', async () => {
    const { source } = recordedSource(3, async function* () {
      yield Buffer.from('two')
      throw new Error('close failed')
    })
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    expect((await client.readToEnd()).toString()).toMatch(/\r\n\r\ntwo$/)
  })

  it('is closed when the client goes away, and nobody is told of a failure (threat 12, row K3)', async () => {
    const { source, record, closed } = recordedSource(HUGE, endless)
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    await once(client.socket, 'data')
    client.socket.destroy()
    await closed
    expect(record).toEqual({ opened: 1, closed: 1 })
    expect(errors).toEqual([])
  })

  it('is closed when the client goes away before the first chunk is there', async () => {
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    let gone = (_: unknown): void => {}
    const left = new Promise((resolve) => {
      gone = resolve
    })
    const { source, record, closed } = recordedSource(HUGE, async function* () {
      await gate
      yield* endless()
    })
    const { port, errors } = await serve((exchange) => {
      exchange.res.once('close', gone)
      return sourceReply(source)
    })
    const client = await open(port)
    client.send(request('GET'))
    await expect.poll(() => record.opened).toBe(1)
    client.socket.destroy()
    await left
    release()
    await closed
    expect(record.closed).toBe(1)
    expect(errors).toEqual([])
  })

  it('is closed after each of 200 aborted downloads (threat 12, row K6)', async () => {
    let opened = 0
    let closed = 0
    const { port, errors, server } = await serve(() =>
      sourceReply({
        size: HUGE,
        async *open() {
          opened++
          try {
            yield* endless()
          } finally {
            closed++
          }
        },
      }),
    )
    for (let round = 0; round < 10; round++) {
      const clients = await Promise.all(Array.from({ length: 20 }, () => open(port)))
      await Promise.all(
        clients.map(async (client, i) => {
          client.send(request('GET'))
          if (i % 3 > 0) await once(client.socket, 'data')
          if (i % 2 === 0) client.socket.destroy()
          else client.socket.resetAndDestroy()
          await client.closed
        }),
      )
    }
    await expect.poll(() => [opened - closed, countConnections(server)], { timeout: 5000 }).toEqual([0, 0])
    expect(opened).toBeGreaterThan(100)
    expect(errors).toEqual([])
  })

  it('of a client that stopped reading is given up after idleTimeout, not before (threat 10)', async () => {
    const { source, closed } = recordedSource(HUGE, endless)
    const { port } = await serve((exchange) => {
      exchange.idleTimeout = 400
      exchange.slowestReader = FAST
      return sourceReply(source)
    })
    const client = await open(port)
    client.socket.pause()
    const start = performance.now()
    client.send(request('GET'))
    await closed
    expect(performance.now() - start).toBeGreaterThan(390)
  })

  it('of a client that reads slowly but steadily is not given up, however large the chunk', async () => {
    const size = 24 * 1024 * 1024
    const { port, errors } = await serve((exchange) => {
      exchange.idleTimeout = 600
      return sourceReply(recordedSource(size, () => [new Uint8Array(size)]).source)
    })
    const client = await open(port)
    client.socket.pause()
    client.send(request('GET'))
    let received = 0
    // About 10 MB a second: the one chunk takes four times as long as idleTimeout.
    let due = 0
    client.socket.removeAllListeners('data')
    client.socket.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received >= due) client.socket.pause()
    })
    const timer = setInterval(() => {
      due = received + 256 * 1024
      client.socket.resume()
    }, 25)
    closers.push(() => clearInterval(timer))
    await expect.poll(() => received >= size || client.socket.destroyed, { timeout: 15_000 }).toBe(true)
    expect(received).toBeGreaterThanOrEqual(size)
    expect(errors).toEqual([])
  })
})

function countConnections(server: Server): number {
  return (server as Server & { _connections: number })._connections
}

describe('a request body that nobody read', () => {
  const answers: readonly [string, Run][] = [
    ['a small answer', () => contentReply(401, '{}', TEXT)],
    ['an empty answer', () => emptyReply(204, [])],
    ['a large answer', () => contentReply(200, new Uint8Array(3_000_000), TEXT)],
    [
      'an answer from a source',
      () => sourceReply(recordedSource(5, () => [Buffer.from('he'), Buffer.from('llo')]).source),
    ],
    [
      'a late answer',
      async () => {
        for (let i = 0; i < 5; i++) await immediate()
        return contentReply(403, 'no', TEXT)
      },
    ],
  ]
  const bodies: readonly [string, string, string][] = [
    ['of 3 bytes', 'Content-Length: 3\r\n', 'abc'],
    ['of 100 kB', 'Content-Length: 100000\r\n', 'x'.repeat(100_000)],
    ['of 500 kB', 'Content-Length: 512000\r\n', 'x'.repeat(512_000)],
    ['of 3 bytes, chunked', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n0\r\n\r\n'],
    ['of 100 kB, chunked', 'Transfer-Encoding: chunked\r\n', `186a0\r\n${'x'.repeat(100_000)}\r\n0\r\n\r\n`],
    ['that looks like a request', 'Content-Length: 33\r\n', request('GET', '/evil', 'A: b\r\n').slice(0, 33)],
  ]

  for (const [answer, run] of answers) {
    it.each(bodies)(
      `%s leaves the connection in sync after ${answer} (rows H53 and K4, threat 2)`,
      async (_, fields, body) => {
        const seen: string[] = []
        const { port } = await serve((exchange) => {
          seen.push(`${exchange.method} ${exchange.req.url}`)
          return exchange.req.url === '/next' ? contentReply(200, 'next', TEXT) : run(exchange)
        })
        const client = await open(port)
        for (const method of ['GET', 'POST', 'DELETE']) {
          client.send(request(method, '/', fields, body))
          client.send(request('GET', '/next'))
          expect((await client.read(method)).status).toBeLessThan(500)
          expect((await client.read()).body.toString()).toBe('next')
        }
        expect(seen).toEqual(['GET', 'POST', 'DELETE'].flatMap((method) => [`${method} /`, 'GET /next']))
      },
    )
  }

  it('100 mixed requests leave one connection in sync (row K4)', async () => {
    const { port } = await serve(({ req }) => contentReply(Number(req.url!.slice(1)), req.url!, TEXT))
    const client = await open(port)
    for (let i = 0; i < 100; i++) {
      const status = [200, 401, 403, 404, 405, 412, 415, 422, 500][i % 9]!
      const [, fields, body] = bodies[i % bodies.length]!
      client.send(request(i % 2 === 0 ? 'PUT' : 'DELETE', `/${status}`, fields, body))
      const response = await client.read()
      expect([response.status, response.body.toString()]).toEqual([status, `/${status}`])
    }
  })

  it('of 50 MB is not taken in: the client gets its answer, then the connection ends (threat 14)', async () => {
    let read = 0
    const { port } = await serve(({ req }) => {
      const { socket } = req
      socket.once('close', () => {
        read = socket.bytesRead
      })
      return contentReply(413, 'too much', TEXT)
    })
    const client = await open(port)
    client.send(request('PUT', '/', 'Content-Length: 50000000\r\n'))
    const chunk = new Uint8Array(64 * 1024)
    const feed = (): void => {
      while (!client.socket.destroyed && client.socket.write(chunk));
    }
    client.socket.on('drain', feed)
    feed()
    const response = await client.read()
    expect([response.status, response.body.toString()]).toEqual([413, 'too much'])
    expect(valuesOf(response, 'connection')).toEqual(['close'])
    await client.closed
    await expect.poll(() => read).toBeGreaterThan(0)
    expect(read).toBeLessThan(2_000_000)
  })

  it('of 50 MB, chunked, is not taken in either (threat 14)', async () => {
    let read = 0
    const { port } = await serve(({ req }) => {
      const { socket } = req
      socket.once('close', () => {
        read = socket.bytesRead
      })
      return contentReply(401, 'who?', TEXT)
    })
    const client = await open(port)
    client.send(request('PUT', '/', 'Transfer-Encoding: chunked\r\n'))
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const feed = (): void => {
      while (!client.socket.destroyed && client.socket.write(chunk));
    }
    client.socket.on('drain', feed)
    feed()
    const response = await client.read()
    expect([response.status, response.body.toString()]).toEqual([401, 'who?'])
    await client.closed
    await expect.poll(() => read).toBeGreaterThan(0)
    expect(read).toBeLessThan(4_000_000)
  })

  it('that was refused while it was being read ends the connection, and the answer arrives (row H177)', async () => {
    const { port } = await serve(async (exchange) => {
      exchange.bodyState = 'reading'
      await once(exchange.req, 'data')
      exchange.req.pause()
      return contentReply(413, 'too much', TEXT)
    })
    const client = await open(port)
    client.send(request('PUT', '/', 'Content-Length: 1000000\r\n', 'x'.repeat(1000)))
    const response = await client.read()
    expect([response.status, response.body.toString()]).toEqual([413, 'too much'])
    expect(valuesOf(response, 'connection')).toEqual(['close'])
    await client.closed
  })

  it.each(['HTTP/1.1', 'HTTP/1.0'])('is awaited before an %s connection that ends is closed', async (version) => {
    const { port } = await serve(() => contentReply(400, 'no', TEXT))
    const client = await open(port)
    const failures: unknown[] = []
    client.socket.on('error', (error) => failures.push(error))
    client.send(`PUT / ${version}\r\nHost: a\r\nContent-Length: 400000\r\nConnection: close\r\n\r\n`)
    client.send(new Uint8Array(1000))
    const response = await client.read()
    expect([response.status, response.body.toString(), valuesOf(response, 'connection')]).toEqual([
      ...[400, 'no', ['close']],
    ])
    for (let i = 0; i < 399; i++) {
      client.send(new Uint8Array(1000))
      await immediate()
    }
    await client.closed
    expect(failures).toEqual([])
  })

  it('of a client that goes away while it is drained does no harm (row K3)', async () => {
    const { port, errors, server } = await serve(() => contentReply(401, 'who?', TEXT))
    for (const length of ['1000', '40000000']) {
      const client = await open(port)
      client.send(request('PUT', '/', `Content-Length: ${length}\r\n`, 'abc'))
      await once(client.socket, 'data')
      client.socket.destroy()
    }
    await expect.poll(() => countConnections(server)).toBe(0)
    expect(errors).toEqual([])
  })
})

describe('a client that waits for 100 Continue', () => {
  async function serveContinue(run: Run): Promise<Service> {
    const service = await serve(run)
    service.server.on('checkContinue', (req, res: ServerResponse) => {
      const exchange = service.handler.createExchange(req, res)!
      exchange.sendContinue = () => res.writeContinue()
      service.handler(req, res)
    })
    return service
  }
  const expecting = (method: string, length = 5): string =>
    request(method, '/', `Expect: 100-continue\r\nContent-Length: ${length}\r\n`)

  it.each<[string, Run]>([
    ['content', () => contentReply(401, 'who?', TEXT)],
    ['no content', () => emptyReply(412, [])],
    ['204', () => emptyReply(204, [])],
    ['a source', () => sourceReply(recordedSource(4, () => [Buffer.from('who?')]).source, 401)],
    ['2 MB', () => contentReply(403, new Uint8Array(2_000_000), TEXT)],
  ])(
    'and is refused gets the answer at once and no 100, then the connection ends: %s (RFC 9110 §10.1.1, rows H76 and H80, threat 15)',
    async (_, run) => {
      for (const method of ['PUT', 'GET']) {
        const { port } = await serveContinue(run)
        const client = await open(port)
        client.send(expecting(method, 50_000_000))
        const response = await client.read()
        expect(response.status).toBeGreaterThanOrEqual(200)
        expect(valuesOf(response, 'connection')).toEqual(['close'])
        await client.closed
      }
    },
  )

  it('and is refused on HEAD gets the head alone, and the connection ends', async () => {
    const { port } = await serveContinue(() => contentReply(401, 'who?', TEXT))
    const client = await open(port)
    client.send(expecting('HEAD'))
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 401 .*\r\n\r\n$/s)
  })

  it('is told to go on before its content is read (RFC 9110 §10.1.1, rows H77 and H81)', async () => {
    const { port } = await serveContinue(async (exchange) => {
      exchange.sendContinue?.()
      exchange.sendContinue = undefined
      exchange.bodyState = 'reading'
      const [chunk] = await once(exchange.req, 'data')
      await once(exchange.req, 'end')
      exchange.bodyState = 'read'
      return contentReply(200, String(chunk), TEXT)
    })
    const client = await open(port)
    client.send(expecting('PUT'))
    expect((await client.read()).status).toBe(100)
    client.send('hello')
    expect((await client.read()).body.toString()).toBe('hello')
    client.send(expecting('PUT'))
    expect((await client.read()).status).toBe(100)
  })
})

describe('the writer on HTTP/2', () => {
  async function serveHttp2(run: Run): Promise<{ session: ClientHttp2Session; errors: unknown[] }> {
    const { handler, errors } = createService(run)
    const server = createHttp2Server(handler)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closers.push(() => {
      session.destroy()
      server.close()
    })
    return { session, errors }
  }

  async function read(stream: ClientHttp2Stream) {
    const [headers] = await once(stream, 'response')
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(chunk)
    return { headers, body: Buffer.concat(chunks) }
  }

  it.each<[string, () => Reply, string]>([
    ['a string', () => contentReply(200, 'hello', TEXT), 'hello'],
    ['bytes', () => contentReply(200, encodeText('ä€'), TEXT), 'ä€'],
    [
      'a source',
      () => sourceReply(recordedSource(5, () => [Buffer.from('he'), Buffer.from(''), Buffer.from('llo')]).source),
      'hello',
    ],
    ['nothing', () => emptyReply(412, []), ''],
  ])('sends %s, and to HEAD the same fields alone (row K5)', async (_, reply, text) => {
    const { session, errors } = await serveHttp2(reply)
    const get = await read(session.request({ ':path': '/' }))
    expect(get.body.toString()).toBe(text)
    expect(get.headers['content-length']).toBe(String(Buffer.byteLength(text)))
    expect(get.headers['x-content-type-options']).toBe('nosniff')
    expect(get.headers['connection']).toBeUndefined()
    const head = await read(session.request({ ':path': '/', ':method': 'HEAD' }))
    expect(head.body.length).toBe(0)
    expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
    expect(errors).toEqual([])
  })

  it.each([204, 304])('sends no content and no length with %i (row K5)', async (status) => {
    const { session } = await serveHttp2(() => emptyReply(status, ['ETag', '"a"']))
    const { headers, body } = await read(session.request({ ':path': '/' }))
    expect([headers[':status'], headers['content-length'], body.length]).toEqual([status, undefined, 0])
  })

  it('sends a field as often as it was given', async () => {
    const { session } = await serveHttp2((exchange) => {
      exchange.vary = 'Origin'
      return emptyReply(401, [
        'WWW-Authenticate',
        'Basic realm="a"',
        'Link',
        '</a>',
        'WWW-Authenticate',
        'Bearer realm="a"',
        'Link',
        '</b>',
      ])
    })
    const stream = session.request({ ':path': '/' })
    const raw: string[] = await new Promise((resolve) => {
      stream.once('response', (_headers: unknown, _flags: unknown, raw: string[]) => resolve(raw))
    })
    stream.resume()
    const values = (name: string) => raw.filter((_, i) => i % 2 === 1 && raw[i - 1] === name)
    expect(values('www-authenticate')).toEqual(['Basic realm="a"', 'Bearer realm="a"'])
    expect(values('link')).toEqual(['</a>', '</b>'])
    expect(values('vary')).toEqual(['Origin'])
  })

  it('closes the source when the client resets the stream, and tells nobody of a failure', async () => {
    const { source, closed } = recordedSource(HUGE, endless)
    const { session, errors } = await serveHttp2(() => sourceReply(source))
    const stream = session.request({ ':path': '/' })
    await once(stream, 'data')
    stream.on('error', () => {})
    stream.close(8)
    await closed
    expect(errors).toEqual([])
  })

  it('closes the source when the client resets the stream while the last chunk is awaited', async () => {
    let release = (): void => {}
    const gate = new Promise<void>((resolve) => {
      release = resolve
    })
    let gone = (_: unknown): void => {}
    const left = new Promise((resolve) => {
      gone = resolve
    })
    const { source, closed } = recordedSource(10, async function* () {
      yield Buffer.from('first')
      await gate
      yield Buffer.from(' last')
    })
    const { session, errors } = await serveHttp2((exchange) => {
      exchange.res.once('close', gone)
      return sourceReply(source)
    })
    const stream = session.request({ ':path': '/' })
    stream.on('error', () => {})
    await once(stream, 'data')
    stream.close(8)
    await left
    release()
    await closed
    expect(errors).toEqual([])
  })

  it('resets the stream when a source fails late, and answers 500 when it fails early', async () => {
    const failure = new Error('disk gone')
    const { session, errors } = await serveHttp2(({ req }) =>
      sourceReply(
        recordedSource(10, async function* () {
          if (req.url === '/late') yield Buffer.from('half ')
          await immediate()
          throw failure
        }).source,
      ),
    )
    const early = await read(session.request({ ':path': '/early' }))
    expect(early.headers[':status']).toBe(500)
    const late = session.request({ ':path': '/late' })
    const [headers] = await once(late, 'response')
    expect(headers[':status']).toBe(200)
    let received = 0
    late.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    late.on('error', () => {})
    await new Promise((resolve) => late.once('close', resolve))
    expect(received).toBeLessThan(10)
    expect(late.rstCode).not.toBe(0)
    expect(errors).toEqual([failure, failure])
    const after = await read(session.request({ ':path': '/early' }))
    expect(after.headers[':status']).toBe(500)
  })

  it.each<[string, Run]>([
    ['never read', () => contentReply(401, 'who?', TEXT)],
    [
      'never read, answered from a source',
      () => sourceReply(recordedSource(4, () => [Buffer.from('who?')]).source, 401),
    ],
    [
      'half read',
      async (exchange) => {
        exchange.bodyState = 'reading'
        await once(exchange.req, 'data')
        exchange.req.pause()
        return contentReply(413, 'who?', TEXT)
      },
    ],
  ])('answers a body that is %s, then asks the client to stop (RFC 9113 §8.1)', async (_, run) => {
    const { session, errors } = await serveHttp2(run)
    const stream = session.request({ ':path': '/', ':method': 'PUT' })
    stream.on('error', () => {})
    stream.write(new Uint8Array(4096))
    const closed = new Promise((resolve) => stream.once('close', resolve))
    const { headers, body } = await read(stream)
    expect(headers[':status']).toBeGreaterThanOrEqual(400)
    expect(body.toString()).toBe('who?')
    await closed
    expect(stream.rstCode).toBe(0)
    expect(errors).toEqual([])
  })

  it('gives up a client that stopped reading after idleTimeout (threat 10)', async () => {
    const { source, closed } = recordedSource(HUGE, endless)
    const { session } = await serveHttp2((exchange) => {
      exchange.idleTimeout = 300
      exchange.slowestReader = FAST
      return sourceReply(source)
    })
    const stream = session.request({ ':path': '/' })
    stream.on('error', () => {})
    await once(stream, 'response')
    await closed
  })

  it('aborts the signal when the client resets the stream, also one that is asked for afterwards', async () => {
    let aborted = (_: unknown): void => {}
    const seen = new Promise((resolve) => {
      aborted = resolve
    })
    let late = (_: boolean): void => {}
    const lateAborted = new Promise<boolean>((resolve) => {
      late = resolve
    })
    const { session } = await serveHttp2((exchange) => {
      if (exchange.req.url === '/early') exchange.signal.addEventListener('abort', aborted)
      else exchange.res.once('close', () => late(exchange.signal.aborted))
      return new Promise(() => {})
    })
    for (const path of ['/early', '/late']) {
      const stream = session.request({ ':path': path })
      stream.on('error', () => {})
      await new Promise((resolve) => session.ping(resolve))
      stream.close(8)
    }
    await seen
    expect(await lateAborted).toBe(true)
  })
})
