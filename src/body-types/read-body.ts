import { Socket } from 'node:net'
import { ByteBlocks } from '../core/byte-blocks.ts'
import { HttpError, RequestAborted } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { contentGone, declaredLength, wasRead } from '../core/request-content.ts'
import { stopWatch, watchIdle } from '../core/time.ts'
import { tooLarge } from './limits.ts'

export const NO_BYTES: Uint8Array = new Uint8Array(0)

/** Tells a client that waits for it to send its content (RFC 9110 §10.1.1). */
function sendContinue(exchange: Exchange): void {
  const send = exchange.sendContinue
  exchange.sendContinue = undefined
  send?.()
}

function aborted(): RequestAborted {
  return new RequestAborted('The client went away before its content was complete.')
}

/**
 * Reads the whole content of a request.
 * @param limit the most bytes to take; one more is 413
 * @param use goes on with it, in the asynchronous context of the request and not in that of its last byte: hooks and
 *   stores find their AsyncLocalStorage there
 * @throws HttpError 413, 408, 400 for content with another digest than the request states; {@link RequestAborted} when the
 *   client goes away; TypeError when the content has been read
 */
export function readBytes<E extends Exchange, Result>(
  exchange: E,
  limit: number,
  use: (exchange: E, bytes: Uint8Array) => MaybePromise<Result>,
): Promise<Result> {
  const { req, verifier } = exchange
  if (wasRead(exchange)) throw contentGone(exchange)
  const length = declaredLength(exchange)
  if (length !== undefined && length > limit) throw tooLarge(limit)
  sendContinue(exchange)
  exchange.bodyState = 'reading'
  let bytes = NO_BYTES
  const reading = new Promise<void>((resolve, reject) => {
    let first: Uint8Array | undefined
    let blocks: ByteBlocks | undefined
    let size = 0
    const onData = (chunk: Uint8Array): void => {
      size += chunk.length
      verifier?.update(chunk)
      if (size > limit) fail(tooLarge(limit))
      else if (first === undefined) first = chunk
      else {
        if (blocks === undefined) (blocks = new ByteBlocks()).push(first)
        blocks.push(chunk)
      }
      watch.moved = true
    }
    const onEnd = (): void => {
      // Node ends the content of a stream of HTTP/2 that its client has reset with NO_ERROR as well.
      if (req.aborted) return onClose()
      stopWatch(watch)
      exchange.bodyState = 'read'
      bytes = blocks?.drain() ?? first ?? NO_BYTES
      // With no value: of bytes, a promise would look for a "then" in four prototypes.
      resolve()
    }
    // Comes after every end as well: the listeners go with the request, taking them off would cost more than they do.
    const onClose = (): void => {
      if (exchange.bodyState === 'reading') fail(aborted())
    }
    const watch = watchIdle(exchange.idleTimeout, () => fail(new HttpError(408, 'ERR_TIMEOUT')))
    const fail = (error: unknown): void => {
      stopWatch(watch)
      req.off('data', onData).off('end', onEnd).off('close', onClose)
      req.pause()
      reject(error)
    }
    if (req.destroyed) return onClose()
    req.on('data', onData).on('end', onEnd).on('close', onClose)
    // The requests of Node's HTTP/1.1 tell of errors only those who listen; others would end the process. To listen takes
    // 900 instructions.
    if (exchange.isHttp2 || !(req.socket instanceof Socket)) req.on('error', onClose)
  })
  return reading.then(() => {
    verifier?.verify()
    return use(exchange, bytes)
  })
}

/** How much may wait for a slow consumer before the client is made to wait. */
const HIGH_WATER = 256 * 1024
/** So much is passed on at once; less waits for what else has arrived with it. */
const LOW_WATER = 16 * 1024

/**
 * The content of a request as a stream, with back-pressure; ends only when all of it has arrived, with the digests that the
 * request states.
 * @param limit the most bytes to take; one more is 413
 * @throws HttpError 413, 408, 400 for another digest, at the end; {@link RequestAborted} when the client goes away; TypeError
 *   when the content has been read; all of them while it is being read
 */
export function streamBytes(exchange: Exchange, limit: number): AsyncIterable<Uint8Array> {
  return { [Symbol.asyncIterator]: () => createBodyIterator(exchange, limit) }
}

function createBodyIterator(exchange: Exchange, limit: number): AsyncIterator<Uint8Array, undefined> {
  const { req, verifier } = exchange
  if (wasRead(exchange)) throw contentGone(exchange)
  const blocks = new ByteBlocks()
  let size = 0
  let ended = req.readableEnded
  let failure: unknown
  let wake: (() => void) | undefined
  let willNotify = false

  const notify = (): void => {
    willNotify = false
    wake?.()
    wake = undefined
  }
  /** Node gives each chunk of a message in a tick of its own: promises for each would cost more than to read it. */
  const notifySoon = (): void => {
    if (blocks.size >= LOW_WATER) return notify()
    if (wake === undefined || willNotify) return
    willNotify = true
    setImmediate(notify)
  }
  const settle = (): void => {
    stopWatch(watch)
    req.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
    notify()
  }
  const fail = (error: unknown): void => {
    if (ended || failure !== undefined) return
    failure = error
    settle()
    req.on('error', () => {}) // no other listener is left, and the connection may still break
    req.pause()
  }
  const onData = (chunk: Uint8Array): void => {
    watch.moved = true
    size += chunk.length
    if (size > limit) return fail(tooLarge(limit))
    verifier?.update(chunk)
    blocks.push(chunk)
    if (blocks.size >= HIGH_WATER) req.pause()
    notifySoon()
  }
  const onEnd = (): void => {
    if (req.aborted) return onClose()
    exchange.bodyState = 'read'
    try {
      verifier?.verify()
      ended = true
    } catch (error) {
      failure = error
    }
    settle()
  }
  const onClose = (): void => fail(aborted())
  // A client that is held back by a slow consumer is not idle.
  const watch = watchIdle(exchange.idleTimeout, () => {
    if (req.isPaused()) watch.moved = true
    else fail(new HttpError(408, 'ERR_TIMEOUT'))
  })

  const length = declaredLength(exchange)
  if (length !== undefined && length > limit) fail(tooLarge(limit))
  else if (ended) settle()
  else if (req.destroyed) onClose()
  else {
    sendContinue(exchange)
    exchange.bodyState = 'reading'
    req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  }

  return {
    async next() {
      for (;;) {
        if (failure !== undefined) throw failure
        const block = blocks.shift()
        if (block !== undefined) {
          if (blocks.size === 0 && req.isPaused()) req.resume()
          return { done: false, value: block }
        }
        if (ended) return { done: true, value: undefined }
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    async return() {
      fail(new Error('The content is not read any further.'))
      return { done: true, value: undefined }
    },
  }
}

/**
 * Reads a stream into memory. Its chunks are copied: a source may use its buffer again.
 * @param limit the most bytes; one more is 413, and the source is closed
 * @param taken bytes that other streams have used of the limit
 */
export async function collectBytes(source: AsyncIterable<Uint8Array>, limit: number, taken = 0): Promise<Uint8Array> {
  const blocks = new ByteBlocks()
  for await (const chunk of source) {
    if (taken + blocks.size + chunk.length > limit) throw tooLarge(limit)
    blocks.copy(chunk)
  }
  return blocks.drain()
}
