import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setImmediate as immediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { contentReply, emptyReply, type Reply } from '../../src/core/reply.ts'
import type { RawClient, WireClient } from './raw-client.ts'
import {
  countConnections,
  failing,
  HTTP1,
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

describe.each(TRANSPORTS)('a request body that was not read, on $name', (transport) => {
  const serve = (run: Run): Promise<Service> => serveOn(transport, run)
  const open = (port: number): Promise<WireClient> => openOn(transport, port)

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

  it('of a client that goes away while it is drained does no harm (row K3)', async () => {
    const { port, errors, server } = await serve(() => contentReply(401, 'who?', TEXT))
    for (const length of ['1000', '40000000']) {
      const client = await open(port)
      client.send(request('PUT', '/', `Content-Length: ${length}\r\n`, 'abc'))
      await client.firstBytes()
      client.leave()
    }
    await expect.poll(() => countConnections(server), { timeout: 30_000 }).toBe(0)
    expect(errors).toEqual([])
  })
})

// On HTTP/2 an answer ends its stream and no connection; http2.test.ts and http2-writer.test.ts have what takes the place of
// each: a stream that is refused while content arrives, one that is half read, and 100 Continue.
describe.each(HTTP1)('a request body that costs a connection, on $name', (transport) => {
  const serve = (run: Run): Promise<Service> => serveOn(transport, run)
  const open = (port: number): Promise<RawClient> => openOn(transport, port)

  it.each<[string, Reply]>([
    ['one piece', contentReply(413, 'too much', TEXT)],
    ['one piece of 100 kB', contentReply(413, 'too much'.padEnd(100_000), TEXT)],
    [
      'several pieces that are read at once',
      sourceReply(
        {
          size: 8,
          read: () => [Buffer.from('too '), Buffer.from('much')],
          open: () => failing(new Error('not opened')),
        },
        413,
      ),
    ],
  ])(
    'of 50 MB is not taken in: the client gets its answer, then the connection ends: %s (threat 14)',
    async (_, reply) => {
      let read = 0
      const { port } = await serve(({ req }) => {
        const { socket } = req
        socket.once('close', () => {
          read = socket.bytesRead
        })
        return reply
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
      expect([response.status, response.body.toString().trimEnd()]).toEqual([413, 'too much'])
      expect(response.values('connection')).toEqual(['close'])
      await client.closed
      await expect.poll(() => read).toBeGreaterThan(0)
      expect(read).toBeLessThan(2_000_000)
    },
  )

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

  it.each([
    ['2 MB', 32],
    ['content that does not end', 1],
  ])('of %s, chunked, is answered as the last request of its connection (RFC 9112 §9.6)', async (_, count) => {
    for (const run of [() => contentReply(401, 'who?', TEXT), () => emptyReply(204, [])]) {
      const { port } = await serve(run)
      const client = await open(port)
      client.send(request('PUT', '/', 'Transfer-Encoding: chunked\r\n'))
      for (let i = 0; i < count; i++) client.send(`10000\r\n${'x'.repeat(0x10000)}\r\n`)
      const response = await client.read()
      expect([401, 204]).toContain(response.status)
      expect(response.values('connection')).toEqual(['close'])
      await client.closed
    }
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
    expect(response.values('connection')).toEqual(['close'])
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
    expect([response.status, response.body.toString(), response.values('connection')]).toEqual([
      ...[400, 'no', ['close']],
    ])
    for (let i = 0; i < 399; i++) {
      client.send(new Uint8Array(1000))
      await immediate()
    }
    await client.closed
    expect(failures).toEqual([])
  })
})

describe.each(HTTP1)('a client that waits for 100 Continue, on $name', (transport) => {
  const open = (port: number): Promise<RawClient> => openOn(transport, port)

  async function serveContinue(run: Run): Promise<Service> {
    const service = await serveOn(transport, run)
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
      const refuse = async (method: string): Promise<void> => {
        const { port } = await serveContinue(run)
        const client = await open(port)
        client.send(expecting(method, 50_000_000))
        const response = await client.read()
        expect(response.status).toBeGreaterThanOrEqual(200)
        expect(response.values('connection')).toEqual(['close'])
        await client.closed
      }
      await Promise.all(['PUT', 'GET'].map(refuse))
    },
  )

  it('and sends its content all the same is not cut off before it has the answer (RFC 9110 §10.1.1)', async () => {
    const { port } = await serveContinue(() => emptyReply(412, []))
    const client = await open(port)
    const failures: unknown[] = []
    client.socket.on('error', (error) => failures.push(error))
    client.send(expecting('PUT', 100_000))
    await client.firstBytes()
    for (let i = 0; i < 100; i++) {
      client.send(new Uint8Array(1000))
      await immediate()
    }
    expect((await client.read()).status).toBe(412)
    await client.closed
    expect(failures).toEqual([])
  })

  it('and is refused on HEAD gets the head alone, and the connection ends', async () => {
    const { port } = await serveContinue(() => contentReply(401, 'who?', TEXT))
    const client = await open(port)
    client.send(expecting('HEAD'))
    expect((await client.readToEnd()).toString()).toMatch(/^HTTP\/1\.1 401 .*\r\n\r\n$/s)
  })

  it('gets 100 before its content is read (RFC 9110 §10.1.1, rows H77 and H81)', async () => {
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
