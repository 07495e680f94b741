import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, createSecureServer, type Http2Session } from 'node:http2'
import { createServer as createSecureServer1 } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setImmediate as immediate } from 'node:timers/promises'
import type { Exchange } from '../../src/core/exchange.ts'
import type { Handler } from '../../src/core/handler.ts'
import type { MaybePromise } from '../../src/core/maybe-promise.ts'
import { createHandler } from '../../src/core/node-handler.ts'
import type { ContentSource, Reply } from '../../src/core/reply.ts'
import { closeAfterTest } from '../support/close-after-test.ts'
import { TLS } from '../support/hosts.ts'
import { openHttp2Client } from './http2-client.ts'
import { openRawClient, type RawClient, type WireClient } from './raw-client.ts'

/** Bytes a second of the slowest reader: what the kernel takes without a reader is forgiven in a moment. */
export const FAST = 100_000_000

export type Listener = (req: IncomingMessage, res: ServerResponse) => void

/** A version of HTTP on a kind of connection. */
export interface Transport {
  readonly name: string
  create(listener: Listener): Server
  connect(port: number): Promise<WireClient>
}

/** HTTP/1.1, where tests send bytes of their own. */
export interface Http1Transport extends Transport {
  connect(port: number): Promise<RawClient>
}

export const HTTP1: readonly Http1Transport[] = [
  { name: 'HTTP/1.1', create: (listener) => createServer(listener), connect: (port) => openRawClient(port) },
  {
    name: 'HTTP/1.1 over TLS',
    create: (listener) => createSecureServer1(TLS, listener),
    connect: (port) => openRawClient(port, 'secure'),
  },
]
export const HTTP2: readonly Transport[] = [
  {
    name: 'HTTP/2',
    create: (listener) => createHttp2Server(listener as never) as unknown as Server,
    connect: (port) => openHttp2Client(port, false),
  },
  {
    name: 'HTTP/2 over TLS',
    create: (listener) => createSecureServer(TLS, listener as never) as unknown as Server,
    connect: (port) => openHttp2Client(port, true),
  },
]
export const TRANSPORTS: readonly Transport[] = [...HTTP1, ...HTTP2]

export interface Service {
  readonly port: number
  readonly server: Server
  readonly handler: Handler
  /** The errors that the hook was given. */
  readonly errors: unknown[]
}

export type Run = (exchange: Exchange) => MaybePromise<Reply | undefined>

/** Serves what a function decides. @param around puts something before the handler */
export async function serveOn(
  { create }: Transport,
  run: Run,
  around: (handler: Handler) => Listener = (handler) => handler,
): Promise<Service> {
  const errors: unknown[] = []
  const handler = createHandler({ run, forwardErrors: false, onError: (error) => errors.push(error) })
  const server = create(around(handler))
  const sessions = new Set<Http2Session>()
  server.on('session', (session: Http2Session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closeAfterTest(() => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    for (const session of sessions) session.destroy()
    return new Promise((resolve) => server.close(resolve))
  })
  return { server, handler, errors, port: (server.address() as AddressInfo).port }
}

/** A client that ends with the test. */
export async function openOn<T extends Transport>(
  transport: T,
  port: number,
): Promise<Awaited<ReturnType<T['connect']>>> {
  const client = await transport.connect(port)
  closeAfterTest(() => client.leave())
  return client as Awaited<ReturnType<T['connect']>>
}

export function request(method: string, path = '/', more = '', body = ''): string {
  return `${method} ${path} HTTP/1.1\r\nHost: a.test\r\n${more}\r\n${body}`
}

/** A source that records what becomes of it. */
export function recordedSource(size: number, chunks: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
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

export function sourceReply(source: ContentSource, status = 200): Reply {
  return { status, headers: ['Content-Length', String(source.size)], body: source }
}

/** Chunks for ever; what a client that goes away leaves behind. */
export function* endless(size = 64 * 1024): Iterable<Uint8Array> {
  const chunk = new Uint8Array(size)
  for (;;) yield chunk
}

/** A source that cannot be read. */
export function failing(error: Error): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]: () => ({
      async next() {
        await immediate()
        throw error
      },
    }),
  }
}

export const TEXT = ['Content-Type', 'text/plain']
/** Whether it is the source, not the client, that ends: never. */
export const HUGE = 2 ** 40

export function countConnections(server: Server): Promise<number> {
  return new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
}
