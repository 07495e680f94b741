import { setImmediate as immediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { contentReply, emptyReply, encodeText, type Reply } from '../../src/core/reply.ts'
import type { RawClient, WireClient } from './raw-client.ts'
import {
  endless,
  HTTP1,
  HUGE,
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

describe.each(TRANSPORTS)('the writer on $name', (transport) => {
  const serve = (run: Run): Promise<Service> => serveOn(transport, run)
  const open = (port: number): Promise<WireClient> => openOn(transport, port)

  it('sends content with its length, and the fields of every answer', async () => {
    const { port } = await serve(() => contentReply(200, 'hello', TEXT))
    const client = await open(port)
    client.send(request('GET'))
    const response = await client.read()
    expect(response.status).toBe(200)
    expect(response.body.toString()).toBe('hello')
    expect(response.values('content-length')).toEqual(['5'])
    expect(response.values('x-content-type-options')).toEqual(['nosniff'])
    expect(response.values('date')[0]).toMatch(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/)
    expect(response.values('transfer-encoding')).toEqual([])
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
      expect(response.values('content-length')).toEqual([String(Buffer.byteLength(text))])
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
    expect(response.values('content-length')).toEqual([String(HUGE)])
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
        expect(response.values('content-length')).toEqual([])
        expect(response.values('transfer-encoding')).toEqual([])
      }
      expect((await client.read()).body.toString()).toBe('next')
    },
  )

  it.each([200, 201, 202, 412, 416, 500])('says of an empty %i that it is empty (RFC 9110 §8.6)', async (status) => {
    const { port } = await serve(() => emptyReply(status, []))
    const client = await open(port)
    client.send(request('PATCH', '/', 'Content-Length: 0\r\n'))
    const response = await client.read()
    expect([response.status, response.values('content-length')]).toEqual([status, ['0']])
  })

  it('merges Vary with what the host has set, and sends a repeated field as often as it was given', async () => {
    const run: Run = (exchange) => {
      exchange.vary = 'Origin, Accept'
      exchange.pending = [...exchange.pending, 'X-Pending', '1']
      return emptyReply(401, ['WWW-Authenticate', 'Basic realm="a"', 'WWW-Authenticate', 'Bearer realm="a"'])
    }
    const { port } = await serveOn(transport, run, (handler) => (req, res) => {
      res.setHeader('Vary', 'Accept-Encoding, origin')
      res.setHeader('X-Host', 'kept')
      res.setHeader('X-Pending', 'replaced')
      handler(req, res)
    })
    const client = await open(port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    const response = await client.read()
    expect(response.values('vary')).toEqual(['Accept-Encoding, origin, Accept'])
    expect(response.values('www-authenticate')).toEqual(['Basic realm="a"', 'Bearer realm="a"'])
    expect(response.values('x-host')).toEqual(['kept'])
    expect(response.values('x-pending')).toEqual(['1'])
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
        // HTTP/2 has no phrase (RFC 9113 §8.3.1).
        expect([response.status, response.phrase]).toEqual([500, client.isHttp2 ? '' : 'Internal Server Error'])
        expect(response.values('x-evil')).toEqual([])
        expect(response.values('x-name')).toEqual([])
      }
      await closed
      expect(errors).toHaveLength(3)
    },
  )

  it('sends no field of the answer with that 500, beside those of the host', async () => {
    const run: Run = () => contentReply(200, 'x', ['X-First', 'a', 'X-Name', '日本', 'X-Host', 'replaced'])
    const { port } = await serveOn(transport, run, (handler) => (req, res) => {
      res.setHeader('X-Host', 'kept')
      handler(req, res)
    })
    const client = await open(port)
    client.send(request('GET'))
    const response = await client.read()
    expect([response.status, response.values('x-host'), response.values('x-first')]).toEqual([500, ['kept'], []])
  })

  it('writes nothing where the answer has already been given', async () => {
    const { port, errors } = await serve(({ res }) => {
      res.setHeader('Content-Length', '6')
      res.end('before')
      return contentReply(200, 'after', TEXT)
    })
    const client = await open(port)
    client.send(request('GET', '/', 'Connection: close\r\n'))
    expect((await client.read()).body.toString()).toBe('before')
    await client.closed
    expect(errors).toEqual([])
  })
})

// Neither can exist on HTTP/2: its streams are answered in any order (RFC 9113 §5), and it has no older version.
describe.each(HTTP1)('the writer, for one request after the other, on $name', (transport) => {
  const serve = (run: Run): Promise<Service> => serveOn(transport, run)
  const open = (port: number): Promise<RawClient> => openOn(transport, port)

  it('closes after an answer on HTTP/1.0, and gives its length (threat 18)', async () => {
    const { port } = await serve(() => contentReply(200, 'hello', TEXT))
    const client = await open(port)
    client.send('GET / HTTP/1.0\r\n\r\n')
    const text = (await client.readToEnd()).toString()
    expect(text).toMatch(/\r\nContent-Length: 5\r\n/)
    expect(text).toMatch(/\r\n\r\nhello$/)
  })

  it('sends text with the header section in one plain write, for which nothing has to be gathered (issue 23)', async () => {
    let gathered = 0
    const { port } = await serve(({ res }) => {
      const socket = res.socket!
      const gather = socket._writev!
      socket._writev = (...args) => {
        gathered++
        gather.apply(socket, args)
      }
      return contentReply(200, 'hello', TEXT)
    })
    const client = await open(port)
    for (let i = 0; i < 3; i++) {
      client.send(request('GET'))
      expect((await client.read()).body.toString()).toBe('hello')
    }
    expect(gathered).toBe(0)
  })

  it('ends text that the connection does not take at once', async () => {
    const text = 'x'.repeat(1024 * 1024)
    const { port } = await serve(() => contentReply(200, text, TEXT))
    const client = await open(port)
    client.send(request('GET') + request('GET', '/', 'Connection: close\r\n'))
    for (let i = 0; i < 2; i++) expect((await client.read()).body.toString()).toBe(text)
    await client.closed
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
})
