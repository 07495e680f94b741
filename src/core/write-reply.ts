import { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { closeIterator, giveBack, takeBuffer, toOwnBytes } from './byte-blocks.ts'
import { isOnSocket } from './connection.ts'
import type { Exchange } from './exchange.ts'
import type { ErrorHook } from './failures.ts'
import { isPromise } from './maybe-promise.ts'
import { streamOf } from './place.ts'
import { type ContentSource, type Pieces, type Reply, type ReplyBody, SHORT, sliceText } from './reply.ts'
import { awaitChunkedEnd, discardOnHttp2, discardUnreadBody, hasUnreadBody } from './request-content.ts'
import { createDrain, type Drain } from './stalled-reader.ts'
import { isPlainResponse, isReplaced, writeHead } from './write-head.ts'

/** More than this is written in pieces, each when the one before it has left: memory holds one of them. */
const PIECE = 1024 * 1024
/**
 * The same on HTTP/2, one frame: a hundred streams write at once, and Node refuses streams of a session in which more
 * than 10 MB wait to be sent (`maxSessionMemory`). It goes on counting what waited when a client reset the stream.
 */
const HTTP2_PIECE = 16 * 1024

/**
 * Writes a reply: the only function that does, apart from adapters whose host insists on writing itself.
 *
 * HEAD sends the same fields and opens no content. A source that fails before its first byte rejects, so that the
 * caller can still answer 500; later the connection is broken off, because a body that ends early must not look whole.
 * @param onLateFailure called with a failure after the head has left; the client sees a connection that breaks off
 * @returns a promise only for content that takes time, or for an answer that waits for the end of chunked content; it is
 *   fulfilled when everything has been handed to the host
 */
export function writeReply(exchange: Exchange, reply: Reply, onLateFailure: ErrorHook): undefined | Promise<void> {
  const { res } = exchange
  const { body } = reply
  if (res.headersSent || exchange.isClosed) {
    // The host waits for the end of an answer that cannot be written any more.
    if (exchange.isBegun && !res.writableEnded) exchange.breakOff()
    return undefined
  }
  const chunkedEnd = exchange.mayHaveContent ? awaitChunkedEnd(exchange) : undefined
  if (chunkedEnd !== undefined) return chunkedEnd.then(() => writeReply(exchange, reply, onLateFailure))
  if (body !== undefined && exchange.method !== 'HEAD') {
    const size = typeof body === 'string' || body instanceof Uint8Array ? body.length : body.size
    // Middleware that gathers content gets all of it at once.
    const isInTwo = keepsLastByte(exchange, size) && !holdsBytes(exchange) && !hasUnreadBody(exchange)
    if (isInOnePiece(exchange, body)) return (isInTwo ? writeInTwo : writePiece)(exchange, reply, body)
    const source = sourceOf(exchange, body)
    return source.read === undefined || isInTwo
      ? writeSource(exchange, reply, source, onLateFailure)
      : writeShort(exchange, reply, source, source.read)
  }
  if (answerEarly(exchange, reply, undefined)) return undefined
  writeHead(exchange, reply)
  res.end()
  return undefined
}

function writePiece(exchange: Exchange, reply: Reply, body: string | Uint8Array, written?: () => void): undefined {
  if (answerEarly(exchange, reply, body)) return
  writeHead(exchange, reply)
  if (typeof body === 'string') endWithText(exchange, body)
  else exchange.res.end(toOwnBytes(body), written)
}

/**
 * Sends ASCII as latin1: header section and content leave as one string. `end` with content adds an empty piece, for which
 * Node gathers both; `write` and `end` without content are one plain write, which saves 1 of the 12 us of a GET.
 */
function endWithText(exchange: Exchange, text: string): void {
  const { res } = exchange
  if (!(res.socket instanceof Socket) || holdsBytes(exchange)) {
    res.end(text, 'latin1')
    return
  }
  // Corked, `write` leaves no uncorking behind for the next tick.
  res.cork()
  res.write(text, 'latin1')
  res.uncork()
  res.end()
}

/** See {@link keepsLastByte}. */
function writeInTwo(exchange: Exchange, reply: Reply, body: string | Uint8Array): undefined | Promise<void> {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : toOwnBytes(body)
  writeHead(exchange, reply)
  // Middleware may have put its methods in place with the fields.
  if (holdsBytes(exchange)) return void exchange.res.end(bytes)
  return new Promise((resolve) => {
    exchange.onClose(resolve)
    exchange.res.write(bytes.subarray(0, -1), () => exchange.res.end(bytes.subarray(-1), resolve))
  })
}

/** Content that is read at once. Its buffer is used again only when the host has notified that the bytes left. */
function writeShort(
  exchange: Exchange,
  reply: Reply,
  { size }: ContentSource,
  read: NonNullable<ContentSource['read']>,
): undefined | Promise<void> {
  const buffer = exchange.isHttp2 || holdsBytes(exchange) ? undefined : takeBuffer()
  const write = (pieces: Pieces): undefined => {
    if (buffer === undefined) return exchange.isClosed ? undefined : writePieces(exchange, reply, size, pieces)
    const isInBuffer = pieces instanceof Uint8Array && pieces.buffer === buffer.buffer
    if (!isInBuffer || exchange.isClosed) giveBack(buffer)
    if (exchange.isClosed) return
    writePieces(exchange, reply, size, pieces, isInBuffer ? () => giveBack(buffer) : undefined)
  }
  const pieces = read(buffer)
  return isPromise(pieces) ? Promise.resolve(pieces).then(write) : write(pieces)
}

function writePieces(exchange: Exchange, reply: Reply, size: number, pieces: Pieces, written?: () => void): undefined {
  const list = pieces instanceof Uint8Array ? [pieces] : pieces
  const length = list.reduce((sum, piece) => sum + (piece instanceof Uint8Array ? piece.length : Number.NaN), 0)
  if (length !== size) throw new Error('A content source gave another number of bytes than its size.')
  if (list.length === 1) return writePiece(exchange, reply, list[0]!, written)
  if (exchange.isHttp2 || hasUnreadBody(exchange)) return writePiece(exchange, reply, Buffer.concat(list))
  // Node gathers what is written in one turn: all of it leaves in one call of the system, and none of it is copied.
  writeHead(exchange, reply)
  for (const piece of list.slice(0, -1)) exchange.res.write(toOwnBytes(piece))
  exchange.res.end(toOwnBytes(list.at(-1)))
}

/** Answers a request whose content has not been read to the end, where that takes more than the answer. */
function answerEarly(exchange: Exchange, reply: Reply, body: string | Uint8Array | undefined): boolean {
  if (!exchange.mayHaveContent || !hasUnreadBody(exchange)) return false
  return discardUnreadBody(exchange, () => writeHead(exchange, reply), body)
}

/** Whether content is written at once. */
export function isInOnePiece(exchange: Exchange, body: ReplyBody): body is string | Uint8Array {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return false
  return body.length <= (exchange.isHttp2 ? HTTP2_PIECE : PIECE)
}

function sourceOf(exchange: Exchange, body: ReplyBody): ContentSource {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return body
  return {
    size: body.length,
    async *open() {
      if (typeof body !== 'string') return yield body
      yield* sliceText(body, exchange.isHttp2 ? HTTP2_PIECE : PIECE)
    },
  }
}

async function writeSource(
  exchange: Exchange,
  reply: Reply,
  source: ContentSource,
  onLateFailure: ErrorHook,
): Promise<void> {
  const { res } = exchange
  const iterator = source.open(exchange.signal)[Symbol.asyncIterator]()
  const most = exchange.isHttp2 ? HTTP2_PIECE : PIECE
  let drain: Drain | undefined
  try {
    // The first chunk before the head: a source that cannot be read is still a clean 500.
    let chunk = await iterator.next()
    if (exchange.isClosed) return
    writeHead(exchange, reply)
    if (exchange.isHttp2) discardOnHttp2(exchange)
    drain = createDrain(exchange)
    const isInTwo = keepsLastByte(exchange, source.size)
    let rest = source.size
    if (rest === 0) res.end()
    while (rest > 0 && !exchange.isClosed) {
      if (chunk.done) throw new Error('A content source ended before its size.')
      const bytes = chunk.value
      if (!(bytes instanceof Uint8Array))
        throw new TypeError('A content source gave something that is not a Uint8Array.')
      rest -= bytes.length
      if (rest < 0) throw new Error('A content source gave more bytes than its size.')
      // Others have their turn, also where nothing but empty chunks follows.
      if (bytes.length === 0) await setImmediate()
      for (let at = 0, length = 0; at < bytes.length && !exchange.isClosed; at += length) {
        const left = bytes.length - at
        length = Math.min(most, isInTwo && rest === 0 && left > 1 ? left - 1 : left)
        const part = length === bytes.length ? bytes : bytes.subarray(at, at + length)
        const piece = holdsBytes(exchange) ? Buffer.from(part) : toOwnBytes(part)
        // Compressing middleware drops the function that is to be called. It may replace the method as late as with the head.
        const dropsCallbacks = isReplaced(res, 'write')
        const written = drain.next(piece.length)
        // The last piece ends the message in the same write.
        if (rest === 0 && length === left) res.end(piece, written)
        else if (takesMore(exchange, res.write(piece, written)) && dropsCallbacks) written()
        await drain.promise
      }
      // A source that has given all is not asked again; it is closed.
      if (rest > 0) chunk = await iterator.next()
    }
  } catch (error) {
    if (drain === undefined) throw error
    // A client that went away is not a failure. Otherwise never end(): a broken connection is the only sign that the
    // content is not whole.
    if (!exchange.isClosed) onLateFailure(error, exchange)
    exchange.breakOff()
  } finally {
    await closeIterator(iterator)
  }
}

/**
 * Whether the last byte waits until all before it has left. `server.close()` of Node cuts a connection whose response has been
 * ended, also while most of that still waits for a client that reads slowly; the kernel mostly takes what is short at once. Node
 * pauses a connection whose next request arrives while more waits than it likes to hold: over TLS what follows that request
 * then counts as malformed, and the connection is reset. The header section may wait as well.
 */
function keepsLastByte(exchange: Exchange, size: number): boolean {
  const { isHttp2, req, res } = exchange
  if (isHttp2 || !isOnSocket(exchange)) return false
  if (size > SHORT) return true
  const isLarge = size > 1 && size >= res.writableHighWaterMark / 2
  return isLarge && ((res.socket ?? req.socket) as TLSSocket).encrypted === true
}

/**
 * Whether middleware may hold what it is given after the call, to gather, cache or compress it: it has put its own methods in
 * place of those that write, or a class of the host has. It gets bytes that nothing else is read into.
 */
function holdsBytes({ res }: Exchange): boolean {
  return !isPlainResponse(res) && (isReplaced(res, 'write') || isReplaced(res, 'end'))
}

/**
 * Whether to go on after a write. Middleware that wraps the method may return nothing: as with `pipe` of Node, that does not
 * mean to wait. The response behind it knows whether it has room.
 */
function takesMore(exchange: Exchange, taken: boolean | undefined): boolean {
  if (typeof taken === 'boolean') return taken
  return !(exchange.isHttp2 ? streamOf(exchange) : exchange.res).writableNeedDrain
}
