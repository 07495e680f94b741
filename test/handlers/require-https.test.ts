import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https'
import { type AddressInfo, createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type RequireHttpsOptions, requireHttps } from '../../src/handlers/require-https.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { HOSTS } from './serve.ts'

const STRANGER = '203.0.113.7'
const tls = {
  key: readFileSync(new URL('../support/tls/key.pem', import.meta.url)),
  cert: readFileSync(new URL('../support/tls/cert.pem', import.meta.url)),
}

interface Request {
  readonly headers?: Readonly<Record<string, string | string[]>>
  /** The address that the connection seems to come from; empty for one that is not known any more. */
  readonly peer?: string
  readonly over?: 'http' | 'https'
}

/** Sends one request, and gives its status and the fields of the answer. */
async function send(listener: RequestListener, { headers = {}, peer, over = 'http' }: Request) {
  const server = over === 'http' ? createServer(listener) : createHttpsServer(tls, listener)
  const rename = (socket: object): void => {
    if (peer !== undefined) Object.defineProperty(socket, 'remoteAddress', { value: peer || undefined })
  }
  server.on(over === 'http' ? 'connection' : 'secureConnection', rename)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeAfterTest(() => new Promise((resolve) => (server as Server).close(resolve)))
  const { port } = server.address() as AddressInfo
  const options = { host: '127.0.0.1', port, headers: headers as Record<string, string>, agent: false } as const
  const req = over === 'http' ? request(options) : httpsRequest({ ...options, rejectUnauthorized: false })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  res.resume()
  return { status: res.statusCode!, headers: res.headers }
}

const XFP = 'X-Forwarded-Proto'

describe.each(HOSTS)('requireHttps in %s', (_name, mount) => {
  const statusOf = async (options: RequireHttpsOptions | undefined, req: Request) =>
    (
      await send(
        mount([requireHttps(options)], () => 'secret'),
        req,
      )
    ).status

  it('trusts the proxies of its own option, not those of another on the same connection', async () => {
    const trusting = requireHttps({ trustProxy: 'loopback', log: false })
    const strict = requireHttps({ log: false })
    const statuses: number[] = []
    for (const guards of [
      [trusting, trusting],
      [trusting, strict],
      [strict, trusting],
    ]) {
      const served = mount(guards, () => 'secret')
      statuses.push((await send(served, { headers: { [XFP]: 'https' } })).status)
    }
    expect(statuses).toEqual([200, 403, 403])
  })

  it('judges each connection by itself: cleartext after TLS is refused, and TLS after cleartext passes', async () => {
    const served = mount([requireHttps({ log: false })], () => 'secret')
    const statuses: number[] = []
    for (const over of ['https', 'http', 'https'] as const)
      statuses.push((await send(served, { over, peer: STRANGER })).status)
    expect(statuses).toEqual([200, 403, 200])
  })

  it('refuses cleartext from elsewhere before credentials are looked at (RFC 9110 §4.2.2, row H3)', async () => {
    let seen = 0
    const listener = mount([requireHttps()], () => {
      seen++
      return 'secret'
    })
    const answer = await send(listener, { peer: STRANGER, headers: { Authorization: 'Basic YTpi' } })
    expect([answer.status, seen]).toEqual([403, 0])
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  it.each<[string, number, RequireHttpsOptions | undefined, Request]>([
    ['TLS', 200, undefined, { over: 'https', peer: STRANGER }],
    ['this machine', 200, undefined, {}],
    ['another address of this machine', 200, undefined, { peer: '127.8.9.10' }],
    ['this machine by IPv6', 200, undefined, { peer: '::1' }],
    ['a TCP connection whose peer has gone', 403, undefined, { peer: '' }],
    ['this machine by IPv4 in IPv6', 200, undefined, { peer: '::ffff:127.0.0.1' }],
    ['a program here that forwards', 403, undefined, { headers: { 'X-Forwarded-For': STRANGER } }],
    ['a program here that forwards and says https, untrusted', 403, undefined, { headers: { [XFP]: 'https' } }],
    ['a program here with Forwarded', 403, undefined, { headers: { Forwarded: 'proto=https' } }],
    ['a host that is forwarded alone, which marks no proxy', 200, undefined, { headers: { 'X-Forwarded-Host': 'a' } }],
    ['a stranger who says https', 403, undefined, { peer: STRANGER, headers: { [XFP]: 'https' } }],
    [
      'a stranger beside the trusted proxy',
      403,
      { trustProxy: '203.0.113.8' },
      { peer: STRANGER, headers: { [XFP]: 'https' } },
    ],
    ['a trusted proxy that says https', 200, { trustProxy: STRANGER }, { peer: STRANGER, headers: { [XFP]: 'https' } }],
    ['a trusted proxy that says HTTPS', 200, { trustProxy: STRANGER }, { peer: STRANGER, headers: { [XFP]: 'HTTPS' } }],
    [
      'a trusted block',
      200,
      { trustProxy: ['10.0.0.0/8', '203.0.113.0/24'] },
      { peer: STRANGER, headers: { [XFP]: 'https' } },
    ],
    [
      'a trusted block of IPv6',
      200,
      { trustProxy: '2001:db8::/32' },
      { peer: '2001:db8::7', headers: { [XFP]: 'https' } },
    ],
    [
      'a trusted proxy of one link',
      200,
      { trustProxy: 'fe80::/10' },
      { peer: 'fe80::7%eth0', headers: { [XFP]: 'https' } },
    ],
    [
      'a trusted proxy seen through IPv6',
      200,
      { trustProxy: STRANGER },
      { peer: `::ffff:${STRANGER}`, headers: { [XFP]: 'https' } },
    ],
    ['a trusted proxy that says http', 403, { trustProxy: STRANGER }, { peer: STRANGER, headers: { [XFP]: 'http' } }],
    ['a trusted proxy that says nothing', 403, { trustProxy: STRANGER }, { peer: STRANGER }],
    [
      'a client that wrote https before the proxy wrote http',
      403,
      { trustProxy: STRANGER },
      { peer: STRANGER, headers: { [XFP]: 'https, http' } },
    ],
    [
      'a client that wrote http before the proxy wrote https',
      200,
      { trustProxy: STRANGER },
      { peer: STRANGER, headers: { [XFP]: 'http, https' } },
    ],
    [
      'Forwarded of a trusted proxy',
      200,
      { trustProxy: STRANGER },
      { peer: STRANGER, headers: { Forwarded: 'for="[::1]";proto=https' } },
    ],
    [
      'Forwarded and X-Forwarded-Proto that differ',
      403,
      { trustProxy: STRANGER },
      { peer: STRANGER, headers: { Forwarded: 'proto=https', [XFP]: 'http' } },
    ],
    [
      'Forwarded that is malformed',
      403,
      { trustProxy: STRANGER },
      { peer: STRANGER, headers: { Forwarded: 'proto="https' } },
    ],
    ['a trusted proxy here that says https', 200, { trustProxy: 'loopback' }, { headers: { [XFP]: 'https' } }],
    ['a trusted proxy here that says http', 403, { trustProxy: 'loopback' }, { headers: { [XFP]: 'http' } }],
    [
      'a trusted proxy here that says nothing',
      403,
      { trustProxy: 'loopback' },
      { headers: { 'X-Forwarded-For': 'a' } },
    ],
    ['a program here beside the trusted proxy', 200, { trustProxy: 'loopback' }, {}],
    [
      'a function that trusts',
      200,
      { trustProxy: (a) => a === STRANGER },
      { peer: STRANGER, headers: { [XFP]: 'https' } },
    ],
    [
      'TLS from a trusted proxy whose client came in the open',
      403,
      { trustProxy: STRANGER },
      { over: 'https', peer: STRANGER, headers: { [XFP]: 'http' } },
    ],
    ['TLS from a trusted proxy that says nothing', 200, { trustProxy: STRANGER }, { over: 'https', peer: STRANGER }],
    [
      'TLS from a stranger who says http',
      200,
      { trustProxy: '10.0.0.1' },
      { over: 'https', peer: STRANGER, headers: { [XFP]: 'http' } },
    ],
  ])('%s: %i', async (_who, status, options, req) => {
    expect(await statusOf(options, req)).toBe(status)
  })
})

describe('requireHttps', () => {
  it('may answer 426 with what to upgrade to (RFC 9110 §15.5.22)', async () => {
    const answer = await send(requireHttps({ status: 426 }), { peer: STRANGER })
    expect([answer.status, answer.headers.upgrade]).toEqual([426, 'TLS/1.2, HTTP/1.1'])
    expect(answer.headers.connection!.toLowerCase()).toContain('upgrade')
  })

  it('answers 403 over HTTP/2, which has no Upgrade (RFC 9113 §8.6)', async () => {
    const server = createHttp2Server(requireHttps({ status: 426 })).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closeAfterTest(() => server.close())
    closeAfterTest(() => session.destroy())
    const stream = session.request({ ':path': '/', 'x-forwarded-for': STRANGER })
    const [answer] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect([answer[':status'], answer['upgrade']]).toEqual([403, undefined])
  })

  it.each([
    ['after its request', ''],
    ['amid its content; the operator hears nothing of it', 'part'],
  ])(
    'has no address of a client that has left, and does not take it for one of this machine: %s',
    async (_when, content) => {
      const lines: string[] = []
      const piece = requireHttps({ log: ({ message }) => lines.push(message) })
      let decide = (_: string): void => {}
      const decision = new Promise((resolve) => (decide = resolve))
      const server = createServer(async (req, res) => {
        await new Promise((resolve) => req.socket.once('close', resolve))
        piece(req, res, () => decide('passed'))
        setImmediate(decide, 'refused')
      })
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      closeAfterTest(() => new Promise((resolve) => server.close(resolve)))
      const { port } = server.address() as AddressInfo
      const req = request({ host: '127.0.0.1', port, agent: false, method: 'POST' }).on('error', () => {})
      if (content === '') req.end()
      else req.write(content)
      await once(server, 'request')
      req.destroy()
      expect([await decision, lines]).toEqual(['refused', []])
    },
  )

  it('says nothing to the operator of a client whose reset Node has not noticed yet', async () => {
    const lines: string[] = []
    const piece = requireHttps({ log: ({ message }) => lines.push(message) })
    let decide = (_: unknown): void => {}
    const decision = new Promise((resolve) => (decide = resolve))
    const server = createServer((req, res) => {
      const { remoteAddress, destroyed } = req.socket
      piece(req, res, () => decide('passed'))
      decide([remoteAddress, destroyed, res.statusCode])
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    closeAfterTest(() => new Promise((resolve) => server.close(resolve)))
    const socket = createConnection((server.address() as AddressInfo).port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: demo.test\r\n\r\n', () => socket.resetAndDestroy())
    expect([await decision, lines]).toEqual([[undefined, false, 403], []])
  })

  it.each(['HTTP/1.1', 'HTTP/2'])('lets a Unix socket pass (%s)', async (version) => {
    const folder = await mkdtemp(join(tmpdir(), 'https-'))
    const socketPath = join(folder, 'socket')
    const handler = requireHttps()
    const listener: RequestListener = (req, res) => handler(req, res, () => res.end('here'))
    const server = version === 'HTTP/2' ? createHttp2Server(listener as never) : createServer(listener)
    server.listen(socketPath)
    await once(server, 'listening')
    closeAfterTest(async () => {
      await new Promise((resolve) => server.close(resolve))
      await rm(folder, { recursive: true, force: true })
    })
    const ask = async (headers: Record<string, string>): Promise<number> => {
      if (version === 'HTTP/2') {
        const session = connect('http://unix.test', { createConnection: () => createConnection(socketPath) })
        const [fields] = (await once(session.request(headers).resume(), 'response')) as [{ ':status': number }]
        session.destroy()
        return fields[':status']
      }
      const req = request({ socketPath, headers, agent: false })
      req.end()
      const [res] = (await once(req, 'response')) as [IncomingMessage]
      res.resume()
      return res.statusCode!
    }
    expect([await ask({}), await ask({ [XFP]: 'https' })]).toEqual([200, 403])
  })

  it.each<[string, object]>([
    ['a name instead of an address', { trustProxy: 'proxy.test' }],
    ['a prefix that is too long', { trustProxy: '10.0.0.0/33' }],
    ['a prefix that is none', { trustProxy: '10.0.0.0/' }],
    ['true, which would trust everybody', { trustProxy: true }],
    ['another status', { status: 401 }],
    ['an option that does not exist', { trustproxy: '10.0.0.1' }],
  ])('refuses %s at construction', (_what, options) => {
    expect(() => requireHttps(options)).toThrow(TypeError)
  })
})
