import type { ContentStore } from '../../contents/types.ts'
import { HttpError } from '../../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../../core/maybe-promise.ts'
import type { Pieces } from '../../core/reply.ts'
import type { RecentCache } from '../recent-cache.ts'
import { untilAborted } from '../streams.ts'
import type { LargeBody } from '../types.ts'
import type { BesideContents } from './beside.ts'
import type { ChunkSink, ContentId } from './intake.ts'
import type { ChunkSource } from './move.ts'

/** Large content that never changes: in chunks, or in a content store. */
export interface SqlContents extends ChunkSink {
  /** Content in the content store; `undefined` without one. */
  readonly beside: BesideContents | undefined
  /** Chunks to move to the content store. */
  readonly chunkSource: ChunkSource
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
  throw new HttpError(503, 'ERR_UNAVAILABLE', {
    detail: 'The content was replaced or removed while it was being read.',
    headers: { 'Retry-After': '0' },
  })
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
