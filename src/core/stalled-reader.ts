import { ServerResponse } from 'node:http'
import type { Http2Session, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { type Connection, connectionOf, isOnSocket } from './connection.ts'
import type { Exchange } from './exchange.ts'
import { streamOf } from './place.ts'
import { sweep } from './time.ts'

/** RFC 9113 §7. */
export const INTERNAL_ERROR = 2
/** NGHTTP2_STREAM_STATE_IDLE: what Node says of a stream whose reset has arrived, or has been sent. */
const IDLE = 1
/** NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE: the client has sent END_STREAM, and this side has not. */
const HALF_CLOSED_REMOTE = 6

/** Of all streams of a session together. The time without any of them counts too: a stream is judged by its own pace first. */
const sessions = new WeakMap<Http2Session, ReadPace>()
const paces = new WeakMap<ServerHttp2Stream, ReadPace>()

/**
 * Gives a client up that does not read its answers: the connection is ended. The answers of HTTP/1.1 leave one after the other,
 * so that the connection is watched, and not each answer.
 */
export function watchConnection(socket: Socket, connection: Connection, slowestReader: number): void {
  const pace = createReadPace(slowestReader, performance.now())
  let taken = 0
  connection.isWatched = true
  // What stands for a connection on AWS Lambda, and in `inject` of Fastify, is never destroyed.
  const watched = new WeakRef(socket)
  sweep(connection.idleTimeout, {
    check(now) {
      const socket = watched.deref()
      if (socket === undefined || socket.destroyed) return false
      const connection = connectionOf(socket)
      // The host may send the next answer without asking a handler.
      if (connection.answer?.writableFinished === true) connection.answer = undefined
      const before = taken
      taken = bytesTaken(socket)
      if (taken > before) pace.advance(taken - before, now)
      else if (connection.answer === undefined || !isBackedUp(socket)) pace.rest(now)
      else if (pace.isBroken(connection.idleTimeout, now)) {
        socket.destroy()
        return false
      }
      return true
    },
  })
}

/** The same on HTTP/2, where the stream is ended. */
export function watchStream(exchange: Exchange): void {
  const { idleTimeout, slowestReader } = exchange
  const stream = streamOf(exchange)
  const { session } = stream
  if (session === undefined || stream.destroyed || paces.has(stream)) return
  const now = performance.now()
  const pace = createReadPace(slowestReader, now)
  paces.set(stream, pace)
  const all = sessions.get(session) ?? createReadPace(slowestReader, now)
  sessions.set(session, all)
  // Node keeps a stream whose client has left until its last write has been sent, which a window of 0 never lets happen.
  // A stream that this side breaks off still has a reset to send. The stream is destroyed a turn later: where the connection has
  // ended, Node resets its streams one after the other, and hangs if one with content left to send is destroyed meanwhile.
  stream.once('aborted', () => {
    if (stream.rstCode !== INTERNAL_ERROR) setImmediate(() => stream.destroy())
  })
  sweep(idleTimeout, {
    check(now) {
      if (stream.destroyed) return false
      const { socket } = session
      // Nor is a stream 'aborted' whose client resets it with NO_ERROR: after the last write, or with content that was not read
      // yet. A stream that the host closes with NO_ERROR is not idle until all is sent: Node hangs if it is destroyed before.
      if (stream.closed && stream.state.state === IDLE && !isBackedUp(socket)) {
        stream.destroy()
        return false
      }
      // When all is written, END_STREAM may still wait for room in a window. Or it has left, and the client goes on sending.
      const waitsToEnd = stream.writableFinished && stream.state.state === HALF_CLOSED_REMOTE
      if (stream.writableLength === 0 && !waitsToEnd) pace.rest(now)
      if (!pace.isBroken(idleTimeout, now)) return true
      const waitsForOthers = isBackedUp(socket) || (session.state.remoteWindowSize ?? 1) <= 0
      // Where the connection is at fault, the pace of all its streams counts, since each has to wait for the others.
      if (waitsForOthers && !all.isBroken(idleTimeout, now)) return true
      // To a connection that takes nothing no reset could be sent. Node 20 sends none either after a fault of the client in
      // the protocol, and does not notice then that the connection has closed.
      const isStuck = stream.closed && all.isBroken(idleTimeout, now)
      if (!isStuck && !isBackedUp(socket)) {
        stream.close(INTERNAL_ERROR)
        return true
      }
      destroyConnection(session)
      return false
    },
  })
}

/** A session waits with its end until the connection has taken all: the connection has to end first. */
function destroyConnection(session: Http2Session): void {
  // That of TLS runs on another one; the socket of a session lets itself be destroyed by no other method.
  const socket = session.socket as Socket & { readonly _parent?: Socket | null }
  try {
    if (socket._parent) socket._parent.destroy()
    else socket.resetAndDestroy()
  } catch {
    // It is not TCP.
  }
  session.destroy()
}

/** Notes that bytes of an answer on HTTP/2 have left. */
function noteSent(exchange: Exchange, bytes: number): void {
  const stream = streamOf(exchange)
  const now = performance.now()
  paces.get(stream)?.advance(bytes, now)
  if (stream.session !== undefined) sessions.get(stream.session)?.advance(bytes, now)
}

/** Bytes a second that a reader needs at least. */
export const SLOWEST_READER = 15_000
/**
 * The most bytes that the kernel takes before it has to wait for the reader again: it asks for more when a third of its
 * send buffer is free, which on Linux is at most 1.3 MiB.
 */
const MOST_BUFFERED = 1.5 * 1024 * 1024

/**
 * Whether a reader keeps the slowest pace. Bytes that the kernel has taken may still be on their way: the reader has the
 * time for them that they need at that pace, and `idleTimeout` more.
 */
interface ReadPace {
  /** Notes bytes that the kernel took since the last call. */
  advance(bytes: number, now: number): void
  /** Notes that nothing waits to be sent: the time until now does not count. */
  rest(now: number): void
  isBroken(idleTimeout: number, now: number): boolean
}

/**
 * @param rate bytes a second
 * @param now milliseconds of a clock that never goes back
 */
export function createReadPace(rate: number, now: number): ReadPace {
  let since = now
  /** Bytes that were taken and may still be unread. */
  let unread = 0
  const settle = (now: number): void => {
    unread = Math.max(0, unread - ((now - since) * rate) / 1000)
    since = now
  }
  return {
    advance(bytes, now) {
      settle(now)
      unread = Math.min(MOST_BUFFERED, unread + bytes)
    },
    rest: settle,
    isBroken: (idleTimeout, now) => now - since > idleTimeout + (unread / rate) * 1000,
  }
}

/** What a handle of Node knows of its writes; TLS has that of the connection below it. */
interface StreamHandle {
  readonly bytesWritten?: number
  readonly writeQueueSize?: number
  readonly _parent?: StreamHandle
}

function handleOf(socket: Socket): StreamHandle | undefined {
  const handle = (socket as Socket & { _handle?: StreamHandle | null })._handle
  return handle?._parent ?? handle ?? undefined
}

/**
 * Bytes that the kernel has taken. The socket itself sees a write only when all of it has left, and an answer of 1 MiB is
 * one write; its handle sees each part of it.
 */
function bytesTaken(socket: Socket): number {
  const { bytesWritten, writeQueueSize } = handleOf(socket) ?? {}
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize
  return socket.bytesWritten - socket.writableLength
}

/** Whether bytes wait for the kernel to take them. */
function isBackedUp(socket: Socket): boolean {
  return socket.writableLength > 0 || (handleOf(socket)?.writeQueueSize ?? 0) > 0
}

/**
 * Waits until one write has left, or the connection has closed. 'finish' counts as well, and 'drain' where another method than
 * that of Node writes, or another runtime: what compresses emits them and calls no function. Node emits 'drain' also when the
 * response to a pipelined request is given bytes behind this one.
 */
export interface Drain {
  readonly promise: Promise<void>
  /** Starts to wait for a write. */
  next(size: number): () => void
}

export function createDrain(exchange: Exchange): Drain {
  const { res } = exchange
  let settle = () => {}
  const goOn = () => settle()
  exchange.onClose(goOn)
  res.once('finish', goOn)
  res.on('drain', () => {
    if (res.write !== ServerResponse.prototype.write || !isOnSocket(exchange)) settle()
  })
  const drain = {
    promise: Promise.resolve(),
    next(size: number): () => void {
      drain.promise = new Promise<void>((resolve) => {
        settle = resolve
      })
      if (!exchange.isHttp2) return settle
      const resolve = settle
      let isNoted = false
      // By 'drain' too: a client that reads what was compressed would otherwise look as if it did not read.
      settle = () => {
        if (!isNoted) noteSent(exchange, size)
        isNoted = true
        resolve()
      }
      return settle
    },
  }
  return drain
}
