import { ServerResponse } from 'node:http'
import { setImmediate as immediate } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { takeBuffer } from '../../src/core/byte-blocks.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { Handler } from '../../src/core/handler.ts'
import { type ContentSource, contentReply, emptyReply } from '../../src/core/reply.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import type { WireClient } from './raw-client.ts'
import {
  countConnections,
  endless,
  FAST,
  failing,
  HTTP1,
  HUGE,
  type Listener,
  openOn,
  type Run,
  recordedSource,
  request,
  type Service,
  serveOn,
  sourceReply,
  TEXT,
  TRANSPORTS,
} from './transports.ts'

/** A cycle that no power of two divides: what is sent twice or in the wrong order does not fit. */
const CYCLE = Buffer.from(Array.from({ length: 251 }, (_, i) => i))

/** Whether all has come that was sent; a reset of a stream may overtake it (RFC 9113 §5.4.2). */
function hasCome(client: WireClient, body: Buffer, sent: string): boolean {
  return client.isHttp2 ? sent.startsWith(body.toString()) : body.toString() === sent
}

describe.each(TRANSPORTS)('content from a source on $name', (transport) => {
  const serve = (run: Run): Promise<Service> => serveOn(transport, run)
  const open = (port: number): Promise<WireClient> => openOn(transport, port)

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
    const all = Buffer.alloc(size, CYCLE)
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
      const all = Buffer.alloc(size, CYCLE)
      const { port } = await serve(() => contentReply(200, all, TEXT))
      const client = await open(port)
      client.send(request('GET'))
      expect((await client.read()).body.equals(all)).toBe(true)
    },
  )

  // Over TLS Node takes a request that follows while more waits for a malformed one, and resets the connection.
  it.each([40_000, 70_000, 3_000_000])('sends the end of %i bytes when nothing waits any more', async (size) => {
    const all = Buffer.alloc(size, CYCLE)
    const ends: unknown[] = []
    const { end } = ServerResponse.prototype
    vi.spyOn(ServerResponse.prototype, 'end').mockImplementation(function (this: ServerResponse, ...args: unknown[]) {
      ends.push({ length: (args[0] as Uint8Array).length, waits: this.writableNeedDrain })
      return end.apply(this, args as never)
    })
    closeAfterTest(() => vi.restoreAllMocks())
    const { port } = await serve(() => contentReply(200, all, TEXT))
    const client = await open(port)
    // The second one has no connection yet when its response is made.
    client.send(request('GET') + request('GET'))
    for (let i = 0; i < 2; i++) expect((await client.read()).body.equals(all)).toBe(true)
    const ending = { length: 1, waits: false }
    if (transport.name === 'HTTP/1.1 over TLS') expect(ends).toEqual([ending, ending])
  })

  it('sends large content to its last byte where no byte may wait (setDefaultHighWaterMark)', async () => {
    const all = Buffer.alloc(1_500_000, CYCLE)
    const watch = (handler: Handler): Listener => {
      return (req, res) => handler(req, Object.defineProperty(res, 'writableHighWaterMark', { value: 0 }))
    }
    const { port } = await serveOn(transport, () => contentReply(200, all, TEXT), watch)
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.read()).body.equals(all)).toBe(true)
  })

  it('asks no more of a source that has given all, which may never end, and closes it', async () => {
    let [asked, closed] = [0, 0]
    const iterator: AsyncIterator<Uint8Array> = {
      next: () => (++asked === 1 ? Promise.resolve({ value: Buffer.from('abc') }) : new Promise(() => {})),
      return: async () => ({ done: true, value: ++closed }),
    }
    const { port } = await serve(() =>
      sourceReply({ size: 3, open: () => ({ [Symbol.asyncIterator]: () => iterator }) }),
    )
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.read()).body.toString()).toBe('abc')
    await expect.poll(() => [asked, closed]).toEqual([1, 1])
  })

  it('asks for the next chunk only when the last has left: a source may use one buffer again', async () => {
    const size = 64 * 256 * 1024
    const { source } = recordedSource(size, function* () {
      const buffer = Buffer.alloc(256 * 1024)
      for (let i = 0; i < 64; i++) yield buffer.fill(i)
    })
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.pause()
    client.send(request('GET'))
    await immediate()
    client.resume()
    const { body } = await client.read()
    for (let i = 0; i < 64; i++) {
      const part = body.subarray(i * 256 * 1024, (i + 1) * 256 * 1024)
      expect(part.equals(Buffer.alloc(part.length, i))).toBe(true)
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
    client.pause()
    client.send(request('GET'))
    await closed // the writer gives the client up
    expect(taken).toBeGreaterThan(0)
    expect(taken).toBeLessThan(32 * 1024 * 1024)
  })

  it('lets others have their turn where it gives empty chunks only', async () => {
    let hadTurn = false
    let chunks = 0
    const { source } = recordedSource(1, function* () {
      yield Buffer.alloc(0)
      setImmediate(() => {
        hadTurn = true
      })
      while (!hadTurn && ++chunks < 1000) yield Buffer.alloc(0)
      yield Buffer.from('x')
    })
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.read()).body.toString()).toBe('x')
    expect(chunks).toBeLessThan(1000)
  })

  it('that fails before its first byte is answered with 500, and the connection lives on (row H180)', async () => {
    const failure = new Error('disk gone: /secret/path')
    const { source } = recordedSource(10, () => failing(failure))
    const { port, errors } = await serve(({ req }) => (req.url === '/ok' ? emptyReply(204, []) : sourceReply(source)))
    const client = await open(port)
    client.send(request('GET') + request('GET', '/ok'))
    const response = await client.read()
    expect(response.status).toBe(500)
    expect(response.values('content-type')).toEqual(['application/problem+json'])
    expect(response.values('cache-control')).toEqual(['no-store'])
    expect(response.body.toString()).not.toMatch(/secret|disk/)
    expect((await client.read()).status).toBe(204)
    expect(errors).toEqual([failure])
  })

  it('may choose its answer before its first byte', async () => {
    const { source } = recordedSource(10, () =>
      failing(new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '7' } })),
    )
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    const response = await client.read()
    expect([response.status, response.values('retry-after')]).toEqual([503, ['7']])
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
    const { status, body } = await client.readBroken()
    expect([status, hasCome(client, body, 'half ')]).toEqual([200, true])
    // On HTTP/2 the other stream goes on.
    expect(errors).toEqual(client.isHttp2 ? [failure, failure] : [failure])
    // That of the request behind it as well; when, is up to Node.
    await expect.poll(() => record.closed).toBe(record.opened)
  })

  it('shorter than it said breaks the connection off', async () => {
    const { source } = recordedSource(10, () => [Buffer.from('short')])
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect(hasCome(client, (await client.readBroken()).body, 'short')).toBe(true)
    expect(errors).toHaveLength(1)
  })

  it('that gives nothing at all though it said otherwise breaks the connection off', async () => {
    const { source } = recordedSource(10, () => [])
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect((await client.readBroken()).body.toString()).toBe('')
    expect(errors).toHaveLength(1)
  })

  it.each<[string, string[], string]>([
    ['in one chunk', ['too much'], ''],
    ['in its second chunk', ['to', 'o much'], 'to'],
  ])('longer than it said never sends what the length does not announce: %s', async (_, chunks, expected) => {
    const { source, record } = recordedSource(3, () => chunks.map((chunk) => Buffer.from(chunk)))
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    expect(hasCome(client, (await client.readBroken()).body, expected)).toBe(true)
    expect(errors).toHaveLength(1)
    expect(record.closed).toBe(1)
  })

  it('with more after its last byte is answered whole; the rest is reported and not sent', async () => {
    const { source, closed } = recordedSource(3, () => ['two', '!'].map((chunk) => Buffer.from(chunk)))
    const { port } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    expect((await client.read()).body.toString()).toBe('two')
    expect((await client.rest()).toString()).toBe('')
    await closed
  })

  it('whose end fails does not spoil an answer that is complete, nor the next on its connection', async () => {
    const source: ContentSource = {
      size: 3,
      open: () => ({
        [Symbol.asyncIterator]: () => ({
          next: async () => ({ done: false, value: Buffer.from('two') }),
          return: async () => Promise.reject(new Error('close failed')),
        }),
      }),
    }
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    for (const _ of [1, 2]) {
      client.send(request('GET'))
      expect((await client.read()).body.toString()).toBe('two')
      await immediate()
    }
    expect(errors).toEqual([])
  })

  it('is closed when the client goes away, and no failure is reported (threat 12, row K3)', async () => {
    const { source, record, closed } = recordedSource(HUGE, endless)
    const { port, errors } = await serve(() => sourceReply(source))
    const client = await open(port)
    client.send(request('GET'))
    await client.firstBytes()
    client.leave()
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
    client.leave()
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
          if (i % 3 > 0) await client.firstBytes()
          if (i % 2 === 0) client.leave()
          else client.reset()
          await client.closed
        }),
      )
    }
    await expect
      .poll(async () => [opened - closed, await countConnections(server)], { timeout: 30_000 })
      .toEqual([0, 0])
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
    client.pause()
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
    client.pause()
    client.send(request('GET'))
    let received = 0
    // About 10 MB a second: the one chunk takes four times as long as idleTimeout.
    let due = 0
    client.incoming.removeAllListeners('data')
    client.incoming.on('data', (chunk: Buffer) => {
      received += chunk.length
      if (received >= due) client.incoming.pause()
    })
    const timer = setInterval(() => {
      due = received + 256 * 1024
      client.incoming.resume()
    }, 25)
    closeAfterTest(() => clearInterval(timer))
    await expect.poll(() => received >= size || client.incoming.destroyed, { timeout: 60_000 }).toBe(true)
    expect(received).toBeGreaterThanOrEqual(size)
    expect(errors).toEqual([])
  })
})

describe.each(TRANSPORTS)('short content that is read at once on $name', (transport) => {
  it.each([2, 4])('is not sent where it has %i bytes in place of 3', async (length) => {
    const { port } = await serveOn(transport, () =>
      sourceReply({ size: 3, read: () => Buffer.alloc(length), open: () => failing(new Error('not opened')) }),
    )
    const client = await openOn(transport, port)
    client.send(request('GET'))
    expect((await client.read()).status).toBe(500)
  })
})

describe.each(HTTP1)('short content that is read into a buffer on $name', (transport) => {
  it('leaves the buffer to later requests, once, also where the client leaves while it is read', async () => {
    const lent: Uint8Array[] = []
    let release = (): void => {}
    const isReleased = new Promise<void>((resolve) => {
      release = resolve
    })
    let isOver = (): void => {}
    const over = new Promise<void>((resolve) => {
      isOver = resolve
    })
    const { port } = await serveOn(transport, ({ req, res }) => {
      const read: NonNullable<ContentSource['read']> = async (buffer) => {
        lent.push(buffer!)
        if (req.url === '/late') await isReleased.finally(() => setImmediate(isOver))
        return buffer!.subarray(0, 3).fill(0x61)
      }
      if (req.url === '/late') res.once('close', release)
      return sourceReply({ size: 3, read, open: () => failing(new Error('not opened')) })
    })
    const client = await openOn(transport, port)
    for (const _ of [1, 2]) {
      client.send(request('GET'))
      expect((await client.read()).body.toString()).toBe('aaa')
      await immediate()
    }
    expect(lent[1]).toBe(lent[0])
    client.send(request('GET', '/late'))
    await expect.poll(() => lent.length).toBe(3)
    client.leave()
    await over
    await immediate()
    const taken = new Set(Array.from({ length: 40 }, takeBuffer))
    expect(taken.size).toBe(40)
    expect(lent.every((buffer) => taken.has(buffer))).toBe(true)
  })
})
