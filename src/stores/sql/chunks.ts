/** Large content: how it is taken in, read from chunks, and moved to a content store. */

import { createHash, type Hash } from 'node:crypto'
import { type ContentStore, createGoneError, isUnavailable } from '../../contents/types.ts'
import { HttpError } from '../../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../../core/maybe-promise.ts'
import type { Pieces } from '../../core/reply.ts'
import type { RecentCache } from '../recent-cache.ts'
import { splitHead, untilAborted } from '../streams.ts'
import type { LargeBody } from '../types.ts'
import { tryTo } from './background.ts'
import type { BesideContents } from './beside.ts'
import type { ChunkSink, ChunkSource, ContentId, Taken } from './dialect.ts'
import type { MoveOptions } from './options.ts'

export interface IntakeOptions {
  /** Content up to this many bytes is kept as one value. */
  readonly inlineLimit: number
  /** Bytes gathered before they are appended: a multiple of the size of a chunk. */
  readonly batchSize: number
  /** Where larger content goes instead of into chunks. */
  readonly beside?: BesideContents | undefined
}

/** Takes a stream in. */
export type Collect = (stream: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) => Promise<Taken>

const FIRST_BUFFER = 16 * 1024

/** Takes streams in: a part in memory, the rest as chunks. At most one batch of each stream is in memory at a time. */
export function createCollector(sink: ChunkSink, { inlineLimit, batchSize, beside }: IntakeOptions): Collect {
  if (beside === undefined) return collectChunks
  return async (stream, signal) => {
    const { head, size, rest } = await splitHead(untilAborted(stream, signal), inlineLimit)
    if (rest !== undefined) return beside.put(rest, signal)
    signal?.throwIfAborted()
    return { size, body: head, id: undefined }
  }

  async function collectChunks(stream: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<Taken> {
    const chunks = { id: undefined as ContentId | undefined, end: 0 }
    let hash: Hash | undefined
    let buffer = Buffer.allocUnsafeSlow(Math.min(FIRST_BUFFER, batchSize))
    let used = 0
    let size = 0

    async function append(bytes: Uint8Array): Promise<void> {
      chunks.id ??= await sink.begin()
      hash ??= createHash('sha256')
      hash.update(bytes)
      await sink.append(chunks.id, chunks.end, bytes)
      chunks.end += batchSize
    }

    try {
      for await (const chunk of untilAborted(stream, signal)) {
        size += chunk.length
        for (let from = 0; from < chunk.length; ) {
          if (used === buffer.length && used === batchSize) {
            await append(buffer)
            used = 0
          } else if (used === buffer.length) {
            buffer = enlarge(buffer, Math.min(batchSize, Math.max(2 * used, size)))
          }
          const part = chunk.subarray(from, from + buffer.length - used)
          buffer.set(part, used)
          used += part.length
          from += part.length
        }
      }
      signal?.throwIfAborted()
      // Where inlineLimit is above a batch, some of it may lie in chunks already.
      if (size <= inlineLimit && chunks.id === undefined) return { size, body: buffer.slice(0, used), id: undefined }
      if (used > 0) await append(buffer.subarray(0, used))
      const id = chunks.id!
      return { size, body: sink.open(id, size), id, sha256: hash!.digest() }
    } catch (error) {
      const abandoned = chunks.id === undefined ? undefined : abandonLater(sink, chunks.id)
      // The database is away: the caller need not wait for it once more.
      if (!isUnavailable(error)) await abandoned
      throw error
    }
  }
}

/** Best effort: what cannot be given up now is swept later. */
export function abandonLater(sink: Pick<ChunkSink, 'abandon'>, id: ContentId): Promise<void> {
  return tryTo(() => sink.abandon(id))
}

function enlarge(buffer: Buffer<ArrayBuffer>, size: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(size)
  larger.set(buffer)
  return larger
}

/** Staged content that is not there any more. */
export function createLostContentError(): HttpError {
  return new HttpError(500, 'ERR_INTERNAL', {
    detail: 'Staged content was used by another write already, was given up, or was left until it was swept.',
  })
}

export interface SqlContentsOptions {
  /** Milliseconds for which content that no path shows is kept: for readers that are still on it, and for slow uploads. */
  readonly grace: number
  readonly chunks: ChunkCache
  /** Where content lies that has a key. */
  readonly contentStore: ContentStore | undefined
  /** Called when content was given up. */
  readonly onRelease: () => void
}

/**
 * Reads `length` bytes from an offset in a chunk on, at most as many as a chunk has; they may end in the next chunk.
 * `undefined` when a chunk is gone.
 */
export type ReadPiece = (index: number, offset: number, length: number) => MaybePromise<Pieces | undefined>

/** Content in chunks of one size that never change. A range touches only the chunks that it lies in. */
export function createLargeBody(size: number, chunkSize: number, readPiece: ReadPiece): LargeBody {
  async function* readChunks(first: number, last: number): AsyncGenerator<Uint8Array> {
    const end = Math.min(last + 1, size)

    // What is short comes in one piece, and is sent with one write; of what is long each chunk is read once.
    function lengthAt(at: number): number {
      return end - at <= chunkSize ? end - at : chunkSize - (at % chunkSize)
    }

    function readAt(at: number): MaybePromise<Pieces | undefined> {
      return readPiece(Math.floor(at / chunkSize), at % chunkSize, lengthAt(at))
    }

    let ahead: MaybePromise<Pieces | undefined> | undefined
    for (let at = first; at < end; ) {
      const reading = ahead ?? readAt(at)
      const length = lengthAt(at)
      const pieces = requireBytes(isPromise(reading) ? await reading : reading, length)
      at += length
      ahead = isPromise(reading) && at < end ? readAhead(at) : undefined
      if (pieces instanceof Uint8Array) yield pieces
      else yield* pieces
    }

    /** While one piece is on its way to the client the next one comes from the database. */
    function readAhead(at: number): MaybePromise<Pieces | undefined> {
      const reading = readAt(at)
      // It may fail before a caller waits for it, or without one: that must not count as unhandled.
      if (isPromise(reading)) reading.then(undefined, () => {})
      return reading
    }
  }

  return {
    read(first, last) {
      const length = last + 1 - first
      const pieces = readPiece(Math.floor(first / chunkSize), first % chunkSize, length)
      return andThen(pieces, (pieces) => requireBytes(pieces, length))
    },

    open: (first, last, options) => untilAborted(readChunks(first, last), options?.signal),
  }
}

function requireBytes(pieces: Pieces | undefined, length: number): Pieces {
  // Several pieces come from memory, and are whole.
  if (pieces !== undefined && (!(pieces instanceof Uint8Array) || pieces.length === length)) return pieces
  throw createGoneError()
}

/** Chunks of large content. They never change, so nothing has to be asked before one is used. */
export type ChunkCache = RecentCache<string, Uint8Array>

/** Takes pieces from the chunks that are kept, and keeps those that are asked for again. */
export function readThroughCache(
  cache: ChunkCache,
  id: ContentId,
  size: number,
  chunkSize: number,
  readPiece: (index: number, offset: number, length: number) => MaybePromise<Uint8Array | undefined>,
): ReadPiece {
  function findChunk(index: number): MaybePromise<Uint8Array | undefined> {
    const key = `${id}/${index}`
    const length = Math.min(chunkSize, size - index * chunkSize)
    const kept = cache.get(key)
    if (kept !== undefined || !cache.isWanted(key, length)) return kept
    return andThen(readPiece(index, 0, length), (bytes) => {
      if (bytes?.length !== length) return undefined
      cache.set(key, bytes, length)
      return bytes
    })
  }

  return (index, offset, length) => {
    const end = offset + length
    return andThen(findChunk(index), (first) => {
      if (first === undefined) return readPiece(index, offset, length)
      if (end <= chunkSize) return first.subarray(offset, end)
      return andThen(findChunk(index + 1), (second) =>
        second === undefined
          ? readPiece(index, offset, length)
          : [first.subarray(offset), second.subarray(0, end - chunkSize)],
      )
    })
  }
}

export async function moveChunks(
  owner: string,
  source: ChunkSource,
  beside: BesideContents | undefined,
  { signal }: MoveOptions = {},
): Promise<number> {
  if (beside === undefined) throw new TypeError(`${owner}: moveContents needs the option contents.`)
  let moved = 0
  for (let last = ''; ; ) {
    signal?.throwIfAborted()
    const next = await source.findNext(last)
    if (next === undefined) return moved
    last = next.path
    try {
      const taken = await beside.put(next.body.open(0, next.size - 1), signal)
      if (await source.swap(next, taken)) moved++
    } catch (error) {
      // Replaced and swept while it was read: there is nothing left to move.
      if (await source.isCurrent(next)) throw error
    }
  }
}
