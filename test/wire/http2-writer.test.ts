import { once } from 'node:events'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type Http2ServerResponse,
  type ServerHttp2Stream,
} from 'node:http2'
import { setImmediate as immediate, setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createHandler } from '../../src/core/node-handler.ts'
import { contentReply, emptyReply, encodeText, type Reply } from '../../src/core/reply.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { openFrameClient } from './http2-frames.ts'
import {
  endless,
  FAST,
  failing,
  HTTP2,
  HUGE,
  type Run,
  recordedSource,
  serveOn,
  sourceReply,
  TEXT,
} from './transports.ts'

describe.each(HTTP2)('the writer and the streams of $name', (transport) => {
  async function serveHttp2(run: Run): Promise<{ session: ClientHttp2Session; errors: unknown[] }> {
    const { port, errors } = await serveOn(transport, run)
    return { session: openSession(port), errors }
  }

  function openSession(port: number): ClientHttp2Session {
    const scheme = transport.name.endsWith('TLS') ? 'https' : 'http'
    const session = connect(`${scheme}://localhost:${port}`, { rejectUnauthorized: false })
    closeAfterTest(() => session.destroy())
    return session
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

  // When a response has been written, Node resets a stream whose request was not read: it did so with three of ten.
  it('ends each stream by END_STREAM, also where windows run out (RFC 9113 §8.1)', async () => {
    const content = Buffer.alloc(500_000, 'a')
    const { port } = await serveOn(transport, () => contentReply(200, content, TEXT))
    const client = await openFrameClient(port, transport.name.endsWith('TLS'))
    closeAfterTest(client.leave)
    const timer = setInterval(() => client.goOn(1), 3)
    closeAfterTest(() => clearInterval(timer))
    for (let round = 0; round < 4; round++) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => client.ask('GET', '/', [])))
      for (const { body } of answers) expect(body.equals(content)).toBe(true)
    }
  })

  it('ends by END_STREAM also behind content that is not read (RFC 9113 §8.1)', async () => {
    const content = Buffer.alloc(20_000, 'a')
    const { port } = await serveOn(transport, () => contentReply(200, content, TEXT))
    const client = await openFrameClient(port, transport.name.endsWith('TLS'))
    closeAfterTest(client.leave)
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(Array.from({ length: 6 }, () => client.ask('GET', '/', [], 'a')))
      for (const { body } of answers) expect(body.equals(content)).toBe(true)
    }
  })

  it('ends by END_STREAM where the client makes room for it late (RFC 9113 §8.1)', async () => {
    const content = Buffer.alloc(2 * 65_535, 'a')
    const { port } = await serveOn(transport, () => contentReply(200, content, TEXT))
    const asked = [undefined, 'a'].map(async (sent) => {
      const client = await openFrameClient(port, transport.name.endsWith('TLS'))
      closeAfterTest(client.leave)
      const timer = setInterval(() => client.goOn(0), 1300)
      closeAfterTest(() => clearInterval(timer))
      return (await client.ask('GET', '/', [], sent)).body.length
    })
    expect(await Promise.all(asked)).toEqual([content.length, content.length])
  })

  it('gives up a client that makes no room for END_STREAM (threat 10)', async () => {
    const { port } = await serveOn(transport, (exchange) => {
      exchange.idleTimeout = 300
      exchange.slowestReader = FAST
      // As much as there is room for at first (RFC 9113 §6.9.2).
      return contentReply(200, Buffer.alloc(65_535, 'a'), TEXT)
    })
    const client = await openFrameClient(port, transport.name.endsWith('TLS'))
    closeAfterTest(client.leave)
    await expect(client.ask('GET', '/', [])).rejects.toThrow('The stream was reset.')
  })

  it.each([204, 304])('sends no content and no length with %i (row K5)', async (status) => {
    const { session } = await serveHttp2(() => emptyReply(status, ['ETag', '"a"']))
    const { headers, body } = await read(session.request({ ':path': '/' }))
    expect([headers[':status'], headers['content-length'], body.length]).toEqual([status, undefined, 0])
  })

  it('leaves no field of a reply behind that may not be sent, on the 500 in its place', async () => {
    const fields = ['ETag', '"a"', 'X-Own', 'yes', 'X-Broken', 'a\nb']
    const { session, errors } = await serveHttp2(() => contentReply(200, 'hello', fields))
    const { headers, body } = await read(session.request({ ':path': '/' }))
    expect([headers[':status'], headers.etag, headers['x-own']]).toEqual([500, undefined, undefined])
    expect([JSON.parse(body.toString()).status, errors]).toEqual([500, [expect.any(TypeError)]])
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

  it('closes the source when the client resets the stream, and reports no failure', async () => {
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

  it.each([
    ['after the last write', 10_000, 200],
    ['before the last write, at once', HUGE, Number.POSITIVE_INFINITY],
  ])('ends a stream that its client resets with NO_ERROR %s, and not the connection', async (_, size, idleTimeout) => {
    const { source, closed } = recordedSource(size, () => endless(10_000))
    let served: ServerHttp2Stream | undefined
    const { session } = await serveHttp2((exchange) => {
      if (exchange.req.url === '/next') return contentReply(200, 'hello', TEXT)
      exchange.idleTimeout = idleTimeout
      served = (exchange.res as unknown as Http2ServerResponse).stream
      return sourceReply(source)
    })
    session.settings({ initialWindowSize: 0 })
    await once(session, 'localSettings')
    const stream = session.request({ ':path': '/' })
    await once(stream, 'response')
    stream.close(0)
    await closed
    await expect.poll(() => served!.destroyed).toBe(true)
    session.settings({ initialWindowSize: 65_535 })
    expect((await read(session.request({ ':path': '/next' }))).body.toString()).toBe('hello')
  })

  it('watches a stream once, also where a handler answers what another one failed to', async () => {
    const counts: number[] = []
    const broken = recordedSource(5, () => failing(new Error('disk gone')))
    const first = createHandler({ run: () => sourceReply(broken.source), forwardErrors: 'always' })
    const { port } = await serveOn(
      transport,
      () => contentReply(200, 'hello', TEXT),
      (handler) => (req, res) => {
        const answer = (): void => {
          handler(req, res)
          counts.push((res as unknown as Http2ServerResponse).stream.listenerCount('aborted'))
        }
        if (req.url === '/plain') answer()
        else first(req, res, answer)
      },
    )
    const session = openSession(port)
    for (const path of ['/plain', '/']) await read(session.request({ ':path': path }))
    expect(counts[1]).toBe(counts[0])
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

  it('gives up no client that waits for a slow source', async () => {
    const { source } = recordedSource(2, async function* () {
      yield Buffer.from('a')
      await wait(200)
      yield Buffer.from('b')
    })
    const { session } = await serveHttp2((exchange) => {
      exchange.idleTimeout = 40
      exchange.slowestReader = FAST
      return sourceReply(source)
    })
    expect((await read(session.request({ ':path': '/' }))).body.toString()).toBe('ab')
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
