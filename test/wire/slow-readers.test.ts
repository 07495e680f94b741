import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createServer as createHttp2Server,
  type ServerHttp2Session,
} from 'node:http2'
import { type AddressInfo, connect, type Server, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Handler } from '../../src/core/handler.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import { type ContentSource, contentReply } from '../../src/core/reply.ts'
import { createDrain, createReadPace, watchStream } from '../../src/core/stalled-reader.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { runListener, runServer, startHost } from '../support/hosts.ts'
import { get, HTTP1_HOSTS, openSilent, readSlowly } from './connections.ts'
import { openRawClient } from './raw-client.ts'

/** Without its errors, which `once` would throw. */
function closed(emitter: EventEmitter): Promise<unknown> {
  emitter.on('error', () => {})
  return new Promise((resolve) => emitter.once('close', resolve))
}

const TEXT = ['Content-Type', 'text/plain']
const SIZE = 900_000

/** Answers of 900 kB in one piece, to readers of `slowestReader` bytes a second. */
function createAnswers(idleTimeout: number, slowestReader: number): Handler {
  const body = 'x'.repeat(SIZE)
  return createHandler({
    run(exchange) {
      exchange.idleTimeout = idleTimeout
      exchange.slowestReader = slowestReader
      return contentReply(200, exchange.req.url === '/small' ? 'x' : body, TEXT)
    },
    forwardErrors: false,
  })
}

describe.each(HTTP1_HOSTS)('small answers on %s', (name) => {
  it('end the connection of a client that never reads them, not before idleTimeout (issue 16)', async () => {
    const host = await startHost(name, createAnswers(500, 20_000_000))
    closeAfterTest(() => host.close())
    const [[served], socket] = await Promise.all([
      once(host.server, name === 'https' ? 'secureConnection' : 'connection'),
      openSilent(name, host.port),
    ])
    closeAfterTest(() => socket.destroy())
    const start = performance.now()
    socket.write(get('/').repeat(12))
    await once(served, 'close')
    expect(performance.now() - start).toBeGreaterThan(500)
  })

  it('are sent to the end where the client reads slowly, but steadily (issue 16, issue 17)', async () => {
    const host = await startHost(name, createAnswers(400, 3_000_000))
    closeAfterTest(() => host.close())
    const socket = await openSilent(name, host.port)
    closeAfterTest(() => socket.destroy())
    socket.write(get('/').repeat(10))
    const seen = readSlowly(socket, 3_500_000)
    closeAfterTest(seen.stop)
    await expect.poll(() => seen.bytes >= 10 * SIZE || socket.destroyed).toBe(true)
    expect(seen.bytes).toBeGreaterThanOrEqual(10 * SIZE)
  })
})

describe('a connection that stays open', () => {
  it('is watched once, however many answers it has had', async () => {
    const host = await startHost('plain', createAnswers(200, 20_000_000))
    closeAfterTest(() => host.close())
    const [[served], socket] = (await Promise.all([
      once(host.server, 'connection'),
      openSilent('plain', host.port),
    ])) as [[Socket], Socket]
    closeAfterTest(() => socket.destroy())
    for (let i = 0; i < 10; i++) {
      socket.write(get('/small'))
      await once(socket.resume(), 'data')
    }
    // Between requests only sweeps look whether it is still there.
    let looks = 0
    let sweeps = 0
    let isSweeping = false
    Object.defineProperty(served, 'destroyed', {
      configurable: true,
      get() {
        looks++
        if (!isSweeping) {
          sweeps++
          isSweeping = true
          setImmediate(() => {
            isSweeping = false
          })
        }
        return false
      },
    })
    await expect.poll(() => sweeps).toBeGreaterThan(2)
    expect(looks).toBe(sweeps)
    Reflect.deleteProperty(served, 'destroyed')
  })

  it('ends where the client reads no answer to errors that the host does not take', async () => {
    const handler = createHandler({
      run(exchange) {
        exchange.idleTimeout = 400
        exchange.slowestReader = 20_000_000
        throw new Error('for the host')
      },
      formatError: () => contentReply(500, 'x'.repeat(SIZE), TEXT),
      onError() {},
      forwardErrors: true,
    })
    const host = await startHost('plain', handler)
    closeAfterTest(() => host.close())
    const connected = once(host.server, 'connection')
    const socket = await openSilent('plain', host.port)
    closeAfterTest(() => socket.destroy())
    socket.write(get('/').repeat(12))
    const [served] = (await connected) as [Socket]
    await expect.poll(() => served.destroyed).toBe(true)
  })
})

/** Content of 10.8 MB in small pieces, each when the one before has left. */
const STREAMED: ContentSource = {
  size: 12 * SIZE,
  async *open() {
    for (let sent = 0; sent < 12 * SIZE; sent += 9000) yield Buffer.alloc(9000)
  },
}

describe('a connection with requests for the handler and for the host', () => {
  /** Sends requests, and reads none of their answers. */
  async function sendSilently(...paths: readonly string[]): Promise<Socket> {
    const body = 'x'.repeat(SIZE)
    const handler = createHandler({
      run(exchange) {
        const { url } = exchange.req
        exchange.idleTimeout = url === '/patient' ? 600_000 : 400
        exchange.slowestReader = 20_000_000
        if (url === '/streamed') return { status: 200, headers: ['Content-Length', String(12 * SIZE)], body: STREAMED }
        return url === '/host' || url === '/large-of-host'
          ? undefined
          : contentReply(200, url === '/small' || url === '/patient' ? 'x' : body, TEXT)
      },
      forwardErrors: false,
    })
    const host = await runListener((req, res) => {
      const answer = (): unknown => res.end(Buffer.alloc(req.url === '/host' ? 1 : 12 * SIZE))
      if (req.url === '/unseen') answer()
      else handler(req, res, answer)
    })
    closeAfterTest(() => host.close())
    const connected = once(host.server, 'connection')
    const socket = await openSilent('plain', host.port)
    closeAfterTest(() => socket.destroy())
    socket.write(paths.map(get).join(''))
    return (await connected)[0]
  }

  it('ends where the client reads no answer of the handler that follows one of the host', async () => {
    const served = await sendSilently('/', '/host', ...Array.from({ length: 12 }, () => '/'))
    await expect.poll(() => served.destroyed).toBe(true)
  })

  it('ends where the client reads no answer of the handler, also one that an answer of the host follows', async () => {
    const served = await sendSilently('/streamed', '/host')
    await expect.poll(() => served.destroyed).toBe(true)
  })

  it('ends by the time of the handler that answers, not by that of the one before', async () => {
    const served = await sendSilently('/patient', ...Array.from({ length: 12 }, () => '/'))
    await expect.poll(() => served.destroyed).toBe(true)
  })

  it('goes on where the client reads no answer of the host that follows one of the handler', async () => {
    const served = await sendSilently('/', '/large-of-host')
    await wait(2000)
    expect(served.destroyed).toBe(false)
  })

  it('goes on where the client does not read what the host sends without asking the handler', async () => {
    const served = await sendSilently('/small', '/unseen')
    await wait(2000)
    expect(served.destroyed).toBe(false)
  })
})

/** Lets the connection alone hold answers back. */
async function widen(session: ClientHttp2Session): Promise<void> {
  if (session.connecting) await once(session, 'connect')
  session.setLocalWindowSize(2 ** 26)
  session.settings({ initialWindowSize: 2 ** 24 })
  await once(session, 'localSettings')
}

interface Handle {
  readonly _parent?: Handle
  readStart(): void
  readStop(): void
}

function handleOf({ socket }: ClientHttp2Session): Handle {
  const { _handle } = socket as unknown as { _handle: Handle }
  return _handle._parent ?? _handle
}

describe('answers on HTTP/2', () => {
  async function open(handler: Handler) {
    const host = await startHost('http2', handler)
    closeAfterTest(() => host.close())
    const session = connectHttp2(`http://127.0.0.1:${host.port}`)
    session.on('error', () => {})
    closeAfterTest(() => session.destroy())
    const [served] = (await once(host.server, 'session')) as [ServerHttp2Session]
    return { session, served }
  }

  it.each([
    ['a large answer', '/'],
    ['a small answer to a stream without a window', '/small'],
  ])('end the stream that is not read, not the session: %s (issue 16)', async (_, path) => {
    const { session } = await open(createAnswers(300, 1_000_000))
    if (path === '/small') {
      await once(session, 'remoteSettings')
      session.settings({ initialWindowSize: 0 })
      await once(session, 'localSettings')
    }
    const start = performance.now()
    const stream = session.request({ ':path': path })
    stream.on('error', () => {})
    await once(stream, 'response')
    // Others are answered meanwhile.
    const other = session.request({ ':path': '/small', ':method': 'HEAD' })
    other.resume()
    await once(other, 'end')
    await closed(stream)
    expect(stream.rstCode).toBe(2)
    expect(performance.now() - start).toBeGreaterThan(300)
    expect(session.destroyed).toBe(false)
  })

  it('end the session of a client that has left after a fault in the protocol, which Node 20 does not notice', async () => {
    const host = await startHost('http2', createAnswers(300, 1_000_000))
    closeAfterTest(() => host.close())
    const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer =>
      Buffer.concat([Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream]), payload])
    const field = (name: string, value: string): Buffer =>
      Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)])
    const head = [field(':method', 'GET'), field(':path', '/small'), field(':scheme', 'http'), field(':authority', 'h')]
    const client = connect(host.port, '127.0.0.1')
    closeAfterTest(() => client.destroy())
    client.on('error', () => {})
    client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    const noWindow = frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]))
    client.write(Buffer.concat([noWindow, frame(1, 5, 1, Buffer.concat(head))]))
    const [[served]] = await Promise.all([once(host.server, 'session'), once(host.server, 'stream')])
    // A PING has 8 bytes (RFC 9113 §6.7).
    client.write(frame(6, 0, 0, Buffer.alloc(7)))
    await wait(100)
    client.destroy()
    await expect.poll(() => (served as ServerHttp2Session).destroyed).toBe(true)
  })

  it('are sent to the end where the client reads slowly, but steadily (issue 16, issue 17)', async () => {
    const { session } = await open(createAnswers(400, 1_000_000))
    const stream = session.request({ ':path': '/' })
    const seen = readSlowly(stream, 1_100_000)
    closeAfterTest(seen.stop)
    await closed(stream)
    expect([stream.rstCode, seen.bytes]).toEqual([0, SIZE])
  })

  it('are sent to the end behind middleware that wraps the methods and calls nothing after a write', async () => {
    const handler = createAnswers(400, 1_000_000)
    const server = createHttp2Server((req, res) => {
      const native = { write: res.write.bind(res), end: res.end.bind(res) }
      res.write = (chunk: unknown) => native.write(chunk as Uint8Array)
      res.end = ((chunk: unknown) => native.end(chunk as Uint8Array)) as typeof res.end
      handler(req, res)
    })
    const host = await runServer(server as unknown as Server, 'http2')
    closeAfterTest(() => host.close())
    const session = connectHttp2(`http://127.0.0.1:${host.port}`)
    closeAfterTest(() => session.destroy())
    const stream = session.request({ ':path': '/' })
    const seen = readSlowly(stream, 1_100_000)
    closeAfterTest(seen.stop)
    await closed(stream)
    expect([stream.rstCode, seen.bytes]).toEqual([0, SIZE])
  })

  it('wait for one another: the pace of the connection counts (issue 16)', async () => {
    const { session } = await open(createAnswers(1500, 3_000_000))
    await widen(session)
    const streams = Array.from({ length: 15 }, () => session.request({ ':path': '/' }))
    const sizes = streams.map(() => 0)
    for (const [index, stream] of streams.entries()) {
      stream.on('data', (chunk: Buffer) => {
        sizes[index]! += chunk.length
      })
    }
    const { bytesRead } = session.socket
    const start = performance.now()
    const timer = setInterval(() => {
      const isDue = session.socket.bytesRead - bytesRead < (performance.now() - start) * 4000
      if (isDue) handleOf(session).readStart()
      else handleOf(session).readStop()
    }, 5)
    closeAfterTest(() => clearInterval(timer))
    await Promise.all(streams.map(closed))
    clearInterval(timer)
    expect(sizes).toEqual(streams.map(() => SIZE))
  })

  it('end the connection that takes nothing any more (issue 16)', async () => {
    const { session, served } = await open(createAnswers(300, 20_000_000))
    await widen(session)
    for (let i = 0; i < 12; i++) session.request({ ':path': '/' }).on('error', () => {})
    handleOf(session).readStop()
    await closed(served)
  })
})

describe('streams of one session that wait for their connection', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  /** A session whose connection takes nothing. The clock stands still. */
  function createSession() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    const destroy = vi.fn()
    const session = { socket: { writableLength: 1, resetAndDestroy() {} }, state: {}, destroy }
    function open() {
      const facts = { session, destroyed: false, writableFinished: false, writableLength: 1, closed: false }
      const res = Object.assign(new EventEmitter(), { stream: Object.assign(new EventEmitter(), facts) })
      const options = { idleTimeout: 1000, slowestReader: 1000, isHttp2: true, onClose() {} }
      const exchange = { res, ...options } as unknown as Exchange
      watchStream(exchange)
      const drain = createDrain(exchange)
      closeAfterTest(() => Object.assign(res.stream, { destroyed: true }))
      return (bytes: number): void => {
        const written = drain.next(bytes)
        // Compressing middleware emits it, and calls the function as well.
        res.emit('drain')
        written()
      }
    }
    return { open, destroy }
  }

  it('are not given up while another one moves', () => {
    const { open, destroy } = createSession()
    open()
    const send = open()
    open()
    for (let time = 0; time < 10; time++) {
      vi.advanceTimersByTime(500)
      send(1)
    }
    expect(destroy).not.toHaveBeenCalled()
    vi.advanceTimersByTime(1500)
    expect(destroy).toHaveBeenCalled()
  })

  it('have the time for each write once, however often it is notified', () => {
    const { open, destroy } = createSession()
    open()(2000)
    vi.advanceTimersByTime(2900)
    expect(destroy).not.toHaveBeenCalled()
    vi.advanceTimersByTime(700)
    expect(destroy).toHaveBeenCalled()
  })
})

describe('the pace of a reader', () => {
  const IDLE = 30_000
  const MEBIBYTE = 1024 * 1024

  it('is broken 135 s after the kernel took 1.5 MiB or more, and not before (issue 16)', () => {
    for (const bytes of [1.5 * MEBIBYTE, 20 * MEBIBYTE]) {
      const pace = createReadPace(15_000, 0)
      pace.advance(bytes, 0)
      expect([134_857, 134_858].map((now) => pace.isBroken(IDLE, now))).toEqual([false, true])
    }
  })

  it('is broken after idleTimeout where the kernel took nothing (issue 16)', () => {
    const pace = createReadPace(15_000, 0)
    expect([30_000, 30_001].map((now) => pace.isBroken(IDLE, now))).toEqual([false, true])
  })

  it('is kept by 15 kB/s, however much of it the kernel takes at once (issue 16)', () => {
    for (const gulp of [1500, 15_000, 400_000, 1.3 * MEBIBYTE]) {
      const pace = createReadPace(15_000, 0)
      pace.advance(gulp, 0)
      for (let now = 0; now < 600_000; ) {
        now += (gulp / 15_000) * 1000
        expect(pace.isBroken(IDLE, now)).toBe(false)
        pace.advance(gulp, now)
      }
    }
  })

  it('forgets bytes that were read while nothing waited', () => {
    const pace = createReadPace(15_000, 0)
    pace.advance(MEBIBYTE, 0)
    pace.rest(200_000)
    expect([230_000, 230_001].map((now) => pace.isBroken(IDLE, now))).toEqual([false, true])
  })
})

describe('pipelined requests whose answers wait for a client that reads slowly', () => {
  it('get the bytes of a source that uses one buffer repeatedly', async () => {
    const chunk = 65_536
    const source: ContentSource = {
      size: 8 * chunk,
      async *open() {
        const buffer = Buffer.allocUnsafeSlow(chunk)
        for (let index = 0; index < 8; index++) yield buffer.fill(index)
      },
    }
    const expected = Buffer.concat(Array.from({ length: 8 }, (_, index) => Buffer.alloc(chunk, index)))
    const headers = [...TEXT, 'Content-Length', String(source.size)]
    const handler = createHandler({ run: () => ({ status: 200, headers, body: source }), forwardErrors: false })
    const server = createServer(handler).listen(0, '127.0.0.1')
    closeAfterTest(() => server.close().closeAllConnections())
    await once(server, 'listening')
    const client = await openRawClient((server.address() as AddressInfo).port)
    client.pause()
    client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(60))
    await wait(300)
    client.resume()
    for (let answer = 0; answer < 60; answer++) {
      expect((await client.read()).body.equals(expected), `answer ${answer}`).toBe(true)
    }
  })
})
