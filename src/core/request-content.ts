import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ServerHttp2Stream } from 'node:http2'
import { splitList } from '../protocol/field-value.ts'
import { toOwnBytes } from './byte-blocks.ts'
import { HttpError, RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { streamOf } from './place.ts'
import type { HostRequest } from './request-view.ts'

/** What is known of the content of a request before it is read, and what becomes of content that is not read. */

/** How much of an unwanted body is read so that the client gets to read our answer. */
const DRAIN_LIMIT = 512 * 1024
/** How long, in milliseconds, a client that is still sending may take to notice the answer. */
const LINGER = 1000
/** How long, in milliseconds, an answer waits for the end of content whose length is not declared. */
const END_WAIT = 100

/** Whether a request announces content (RFC 9112 §6.3). */
export function hasBody(exchange: Exchange): boolean {
  if (!exchange.mayHaveContent) return false
  if (exchange.field('transfer-encoding') !== undefined) return true
  const length = declaredLength(exchange)
  if (length !== undefined) return length !== 0
  return exchange.isHttp2 && !streamOf(exchange).endAfterHeaders
}

/** The declared length of the content, or `undefined` when it is not declared. */
export function declaredLength(exchange: Exchange): number | undefined {
  if (exchange.contentLength === null) {
    const length = exchange.field('content-length')
    exchange.contentLength = length === undefined ? undefined : parseDigits(length)
  }
  return exchange.contentLength
}

/** Reads a decimal number, as in Content-Length: `Number` takes 330 instructions for three digits. */
function parseDigits(text: string): number {
  let value = 0
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30
    if (digit < 0 || digit > 9) return Number(text)
    value = value * 10 + digit
  }
  return value
}

/** A content coding that can be decoded (RFC 9110 §8.4.1). */
export type ContentCoding = 'gzip' | 'deflate' | 'br'

/**
 * Judges Content-Encoding, before any content is read.
 * @param field the value of the field, or `undefined` when there is none
 * @returns the coding to decode, `undefined` when there is none
 * @throws HttpError 415 with Accept-Encoding for any other coding, and for more than one (RFC 9110 §15.5.16)
 */
export function checkContentCoding(
  field: string | undefined,
  accepted: readonly ContentCoding[],
): ContentCoding | undefined {
  if (field === undefined) return undefined
  // An empty list is as one that is not there.
  const [first = 'identity', ...others] = splitList(field)
  const name = others.length === 0 ? first.toLowerCase() : ''
  if (name === 'identity') return undefined
  // RFC 9110 §8.4.1.3: "x-gzip" is equivalent to "gzip"
  const coding = accepted.find((coding) => coding === (name === 'x-gzip' ? 'gzip' : name))
  if (coding !== undefined) return coding
  throw new HttpError(415, 'ERR_UNSUPPORTED_CODING', {
    detail: 'The content coding is not supported.',
    headers: { 'Accept-Encoding': accepted.length === 0 ? 'identity' : accepted.join(', ') },
  })
}

/** Whether the content has a content coding: `identity` is none, in a list with empty members as well (RFC 9110 §5.6.1.2). */
export function isCoded(exchange: Exchange): boolean {
  const codings = exchange.field('content-encoding')
  return codings !== undefined && splitList(codings).some((coding) => coding.toLowerCase() !== 'identity')
}

/** What a body parser before us left, or `undefined` while the content is still to be read. */
export interface ConsumedBody {
  readonly value: unknown
}

/**
 * What another body parser has made of the content, for hosts where one ran before us (`express.json()`, Nest).
 * @throws what {@link contentGone} gives when the content has been read and nothing was left of it
 */
export function findConsumedBody(exchange: Exchange): ConsumedBody | undefined {
  const req: IncomingMessage & HostRequest = exchange.req
  if (!wasRead(exchange)) return undefined
  // What has not been read is not in `req.body`: parsers of Express 4 leave `{}` there for types that they do not take.
  if (req.body !== undefined && (req.readableDidRead || req.readableEnded)) return { value: req.body }
  throw contentGone(exchange)
}

/**
 * Whether the bytes of the content are no longer to be had: some have been read, or a host has Node decode them as text. A request
 * without content has lost none: a host may have read it to its end, and with `optimizeEmptyRequests` Node ends it by itself.
 */
export function wasRead(exchange: Exchange): boolean {
  const { req } = exchange
  return req.readableDidRead || ((req.readableEnded || typeof req.readableEncoding === 'string') && hasBody(exchange))
}

/** For content that was read before, of which nothing is left: waiting for it would never end. */
export function contentGone(exchange: Exchange): Error {
  // Node reads, and drops, what a stream of HTTP/2 has not given when its client resets it.
  if (exchange.hasLeft) return new RequestAborted()
  if (typeof exchange.req.readableEncoding === 'string' && !exchange.req.readableDidRead) {
    return new TypeError('req.setEncoding was called before http-resource-service saw the request: its bytes are lost.')
  }
  return new TypeError(
    'The request content was read before http-resource-service saw it, and req.body does not hold it. ' +
      'Mount the service before the body parser, or let the parser set req.body.',
  )
}

/**
 * Whether a request is about to be answered before its content was read to the end. On HTTP/2 that end may come later than the
 * head also where the content is empty (RFC 9113 §8.1.1).
 */
export function hasUnreadBody(exchange: Exchange): boolean {
  if (exchange.bodyState === 'read' || exchange.req.readableEnded) return false
  return exchange.isHttp2 ? !streamOf(exchange).endAfterHeaders : hasBody(exchange)
}

/**
 * Ends a stream whose answer is complete. NO_ERROR asks a client that still sends to stop (RFC 9113 §8.1); at once it would
 * cut the answer off.
 */
export function closeAnswered(req: IncomingMessage, stream: ServerHttp2Stream): void {
  const timer = setTimeout(() => {
    // Where the client has ended its request, what waits is the end of the answer: for room in a window.
    if (!req.readableEnded) stream.close(0)
    // Node keeps the stream, and its session, until all that has arrived is read.
    req.resume()
  }, LINGER).unref()
  stream.once('close', () => clearTimeout(timer))
}

/**
 * Waits for the end of chunked content that is not read. The connection lives on only where that end comes soon, and
 * the head of the answer has to say which (RFC 9112 §9.6): so it is drained before the answer, not after it.
 * @returns `undefined` where nothing has to be awaited
 */
export function awaitChunkedEnd(exchange: Exchange): undefined | Promise<void> {
  const { req, res } = exchange
  if (exchange.isHttp2 || exchange.bodyState !== 'unread' || req.readableEnded) return undefined
  if (exchange.field('transfer-encoding') === undefined) return undefined
  // Either way the answer is the last on its connection.
  if (exchange.sendContinue !== undefined || !res.shouldKeepAlive) return undefined
  return new Promise((resolve) => {
    const goOn = () => {
      clearTimeout(timer)
      req.off('end', goOn).off('close', goOn)
      exchange.bodyState = req.readableEnded ? 'read' : 'reading'
      resolve()
    }
    // What has arrived meanwhile is read first: the process may have been busy. Without a connection, as with `inject` of
    // Fastify, nothing else keeps the process alive.
    const timer = setTimeout(() => setImmediate(goOn), END_WAIT)
    req.once('end', goOn).once('close', goOn)
    drain(req, goOn)
  })
}

/**
 * Sees to the content of a request that is answered before it was read to its end.
 *
 * Little of it is drained, and the connection lives on. Much of it, or content that waits for 100 Continue, ends the
 * connection: the answer is sent whole and announced as the last, then the client has a moment to read it. A
 * connection closed at once would be reset, and the client would lose the answer.
 * @param writeHead writes the head
 * @param body what the answer carries
 * @returns whether the answer has been written here
 */
export function discardUnreadBody(
  exchange: Exchange,
  writeHead: () => void,
  body: string | Uint8Array | undefined,
): boolean {
  const { req, res } = exchange
  if (exchange.isHttp2) {
    discardOnHttp2(exchange)
    return false
  }
  const waitsForContinue = exchange.sendContinue !== undefined
  const isLarge = exchange.bodyState === 'reading' || (declaredLength(exchange) ?? 0) > DRAIN_LIMIT
  // A connection that ends anyway must not end before the content does either: proxies ask for one request on each.
  if (!waitsForContinue && !isLarge && res.shouldKeepAlive) {
    drain(req, () => {
      req.pause()
      setTimeout(() => req.socket.destroy(), LINGER).unref()
    })
    return false
  }
  res.shouldKeepAlive = false
  writeHead()
  if (body !== undefined) {
    // Corked, `write` leaves no uncorking behind for the next tick: bytes behind the content make Node end the connection before.
    res.cork()
    if (typeof body === 'string') res.write(body, 'latin1')
    else res.write(toOwnBytes(body))
    res.uncork()
    // Middleware that compresses would hold it back until the end.
    if (Object.hasOwn(res, 'flush')) (res as ServerResponse & { flush(): void }).flush()
  } else res.flushHeaders()
  const end = () => {
    clearTimeout(timer)
    req.off('end', end).off('error', end).off('close', end)
    if (!res.writableEnded) res.end()
  }
  // Keeps the process alive, as in `awaitChunkedEnd`.
  const timer = setTimeout(end, LINGER)
  req.once('end', end).once('error', end).once('close', end)
  drain(req, () => req.pause())
  return true
}

/**
 * The same on HTTP/2, where the answer is written as any other. To be called also where nothing is unread: Node resets a stream
 * when all is written and nothing of its request was read, also while END_STREAM still waits.
 */
export function discardOnHttp2(exchange: Exchange): void {
  const { req } = exchange
  if (!hasUnreadBody(exchange)) return void req.resume()
  const stream = streamOf(exchange)
  const start = (): void => drain(req, () => req.pause())
  // Reading tells a client that waits to send its content: not before the answer has left (RFC 9110 §10.1.1).
  if (exchange.sendContinue === undefined) start()
  else stream.once('finish', start)
  // The response before the stream is finished only when the client is. For HEAD Node has ended the stream already.
  if (stream.writableEnded) closeAnswered(req, stream)
  else stream.once('finish', () => closeAnswered(req, stream))
}

function drain(req: IncomingMessage, onLimit: () => void): void {
  let bytes = 0
  req.on('data', (chunk: Uint8Array) => {
    bytes += chunk.length
    if (bytes > DRAIN_LIMIT) {
      bytes = Number.NEGATIVE_INFINITY
      onLimit()
    }
  })
  req.on('error', () => {}) // an aborted request that is not read any more
  req.resume()
}
