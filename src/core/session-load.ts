import type { Http2Session, ServerHttp2Stream } from 'node:http2'
import { isSafeMethod } from '../protocol/request-line.ts'
import { RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { streamOf } from './place.ts'
import { type ReplyBody, SHORT } from './reply.ts'

/** Bytes of answers that may wait on a session before its next stream is taken. */
const MOST_BYTES = 4 * 1024 * 1024
/** Streams of a session that may wait; more are refused. */
const MOST_WAITING = 1000
/** Counted for a safe request that is being decided: the content of its answer is not known yet. */
const EXPECTED = SHORT
/** Larger content than this is the store's own memory, not a copy for the answer. */
const LARGEST_COPY = 256 * 1024
/** What waits of content that is read while it is sent. */
const PIECE = 16 * 1024
/** Counted at most of what a source holds: one answer that is not read must not hold up all others. */
const MOST_HELD = 1024 * 1024
/** RFC 9113 §7. */
const REFUSED_STREAM = 7

interface Waiter {
  readonly exchange: Exchange
  readonly resume: () => void
  readonly abort: (error: Error) => void
}

/** What the answers of one HTTP/2 session hold in memory. */
interface SessionLoad {
  bytes: number
  /** Streams whose request was taken, and the bytes that each counts. */
  readonly taken: Map<ServerHttp2Stream, number>
  readonly waiting: Map<ServerHttp2Stream, Waiter>
  isAdmitting: boolean
}

const loads = new WeakMap<Http2Session, SessionLoad>()

function loadOf(session: Http2Session): SessionLoad {
  let load = loads.get(session)
  if (load === undefined) {
    load = { bytes: 0, taken: new Map(), waiting: new Map(), isAdmitting: false }
    loads.set(session, load)
  }
  return load
}

/**
 * Holds the request of a stream back while the answers of its session that were not sent take too much memory.
 * @returns `undefined` when it may be taken at once; rejects when the client leaves
 */
export function waitInSession(exchange: Exchange): undefined | Promise<void> {
  const stream = streamOf(exchange)
  const { session } = stream
  if (session === undefined || stream.destroyed) return undefined
  const load = loadOf(session)
  if (load.taken.has(stream)) return undefined // by a middleware before
  stream.once('close', () => forget(load, stream))
  if (load.waiting.size === 0 && load.bytes < MOST_BYTES) return void take(load, stream, exchange)
  if (load.waiting.size >= MOST_WAITING) {
    // RFC 9113 §8.7: nothing was done, and the client may try again.
    stream.close(REFUSED_STREAM)
    return Promise.reject(new RequestAborted())
  }
  return new Promise((resume, abort) => load.waiting.set(stream, { exchange, resume, abort }))
}

function take(load: SessionLoad, stream: ServerHttp2Stream, { method }: Exchange): void {
  const bytes = isSafeMethod(method) ? EXPECTED : 0
  load.taken.set(stream, bytes)
  load.bytes += bytes
}

function forget(load: SessionLoad, stream: ServerHttp2Stream): void {
  load.bytes -= load.taken.get(stream) ?? 0
  load.taken.delete(stream)
  load.waiting.get(stream)?.abort(new RequestAborted())
  load.waiting.delete(stream)
  admitLater(load)
}

/** One stream a turn: how much its answer adds is seen only when it is there. */
function admitLater(load: SessionLoad): void {
  if (load.isAdmitting || load.waiting.size === 0) return
  load.isAdmitting = true
  setImmediate(() => {
    load.isAdmitting = false
    const [first] = load.waiting
    if (first === undefined || load.bytes >= MOST_BYTES) return
    const [stream, { exchange, resume }] = first
    load.waiting.delete(stream)
    take(load, stream, exchange)
    resume()
    admitLater(load)
  })
}

/** Counts what the answer of a stream holds; nothing for one that the host gives. */
export function countAnswer(exchange: Exchange, body: ReplyBody | undefined): void {
  const stream = streamOf(exchange)
  const load = stream.session === undefined ? undefined : loads.get(stream.session)
  const before = load?.taken.get(stream)
  if (load === undefined || before === undefined) return
  const bytes = exchange.method === 'HEAD' ? 0 : bytesOf(body)
  load.bytes += bytes - before
  load.taken.set(stream, bytes)
  admitLater(load)
}

function bytesOf(body: ReplyBody | undefined): number {
  if (body === undefined) return 0
  if (typeof body === 'string' || body instanceof Uint8Array) return Math.min(body.length, LARGEST_COPY)
  return Math.min(body.size, PIECE) + Math.min(body.held ?? 0, MOST_HELD)
}
