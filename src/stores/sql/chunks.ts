/** Large content: how it is taken in, read from chunks, and moved to a content store. */

import { createHash, type Hash } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createGoneError } from '../../contents/types.ts'
import { readUpTo } from '../../core/byte-blocks.ts'
import type { RecentCache } from '../../core/caches.ts'
import { HttpError } from '../../core/errors.ts'
import { andThen, isPromise, type MaybePromise } from '../../core/maybe-promise.ts'
import { resolveOptions } from '../../core/options.ts'
import type { Pieces } from '../../core/reply.ts'
import { isUnavailable } from '../../core/unavailable.ts'
import { untilAborted } from '../streams.ts'
import type { LargeBody } from '../types.ts'
import { tryTo } from './background.ts'
import type { BesideContents } from './beside.ts'
import type { ChunkSink, ChunkSource, ContentId, SqlContents, Taken } from './dialect.ts'
import { MOVE_OPTIONS, type MoveOptions } from './options.ts'

export type IntakeSink = Omit<SqlContents, 'chunkSource'>

const FIRST_BUFFER = 16 * 1024

/**
 * Takes streams in: a part in memory, the rest as chunks. At most one batch of each stream is in memory at a time.
 * @param inlineLimit content up to this many bytes is kept as one value
 */
export function createCollector(
  sink: IntakeSink,
  inlineLimit: number,
): (stream: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) => Promise<Taken> {
  const { batchSize, beside } = sink
  if (beside === undefined) return collectChunks
  return async (stream, signal) => {
    const content = await readUpTo(untilAborted(stream, signal), inlineLimit, 'copy')
    if (!(content instanceof Uint8Array)) return beside.put(content, signal)
    return { size: content.length, body: content, id: undefined }
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
            const larger = Buffer.allocUnsafeSlow(Math.min(batchSize, Math.max(2 * used, size)))
            larger.set(buffer)
            buffer = larger
          }
          const part = chunk.subarray(from, from + buffer.length - used)
          buffer.set(part, used)
          used += part.length
          from += part.length
        }
      }
      // Where inlineLimit is above a batch, some of it may lie in chunks already.
      if (size <= inlineLimit && chunks.id === undefined) return { size, body: buffer.subarray(0, used), id: undefined }
      if (used > 0) await append(buffer.subarray(0, used))
      const id = chunks.id!
      return { size, body: sink.open(id, size), id, sha256: hash!.digest() }
    } catch (error) {
      await abandonAfter(error, sink, chunks.id)
      throw error
    }
  }
}

type Abandoning = Pick<ChunkSink, 'abandon'>

/** Gives content up, if there is any. Best effort: what cannot be given up now is swept later. */
export async function abandonLater(sink: Abandoning, id: ContentId | undefined): Promise<void> {
  if (id !== undefined) await tryTo(() => sink.abandon(id))
}

/** Gives up what a call has taken in that fails; `id` is `undefined` while that is nothing. */
export async function abandonAfter(error: unknown, sink: Abandoning, id: ContentId | undefined): Promise<void> {
  const abandoned = abandonLater(sink, id)
  // The database or the content store is away: the caller need not wait for it once more.
  if (!isUnavailable(error)) await abandoned
}

/** Content that is not there any more when it is to be shown. An upload that is sent again is taken in anew. */
export function createLostContentError(): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', {
    detail: 'Staged content was used by another write already, was given up, or was left until it was swept.',
    headers: { 'Retry-After': '0' },
  })
}

/** Content in chunks of one size. They never change, so nothing has to be asked before one that is kept is used. */
interface ChunkedBody {
  /** Names the content for the cache, among all that has ever been; `undefined` keeps none of its chunks. */
  readonly id: ContentId | undefined
  readonly size: number
  readonly chunkSize: number
  readonly cache: RecentCache<string, Uint8Array>
  /**
   * Reads `length` bytes from an offset in a chunk on, at most as many as a chunk has; they may end in the next chunk.
   * `undefined` when a chunk is gone.
   */
  readPiece(index: number, offset: number, length: number): MaybePromise<Uint8Array | undefined>
}

/** A range touches only the chunks that it lies in. */
export function createLargeBody({ id, size, chunkSize, cache, readPiece }: ChunkedBody): LargeBody {
  /** A chunk that is kept, or is to be kept. */
  function findChunk(index: number): MaybePromise<Uint8Array | undefined> {
    if (id === undefined) return undefined
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

  /** Reads at most as many bytes as a chunk has. */
  function readAt(at: number, length: number): MaybePromise<Pieces | undefined> {
    const index = Math.floor(at / chunkSize)
    const offset = at % chunkSize
    const end = offset + length
    return andThen(findChunk(index), (first): MaybePromise<Pieces | undefined> => {
      if (first === undefined) return readPiece(index, offset, length)
      if (end <= chunkSize) return first.subarray(offset, end)
      return andThen(findChunk(index + 1), (second) =>
        second === undefined
          ? readPiece(index, offset, length)
          : [first.subarray(offset), second.subarray(0, end - chunkSize)],
      )
    })
  }

  async function* readChunks(first: number, last: number): AsyncGenerator<Uint8Array> {
    const end = Math.min(last + 1, size)

    // What is short comes in one piece, and is sent with one write; of what is long each chunk is read once.
    function lengthAt(at: number): number {
      return end - at <= chunkSize ? end - at : chunkSize - (at % chunkSize)
    }

    let ahead: MaybePromise<Pieces | undefined> | undefined
    for (let at = first; at < end; ) {
      const length = lengthAt(at)
      const reading = ahead ?? readAt(at, length)
      const pieces = requireBytes(isPromise(reading) ? await reading : reading, length)
      at += length
      // While one piece is on its way to the client the next one comes from the database.
      ahead = isPromise(reading) && at < end ? readAt(at, lengthAt(at)) : undefined
      // It may fail before a caller waits for it, or without one: that must not count as unhandled.
      if (isPromise(ahead)) ahead.then(undefined, () => {})
      if (pieces instanceof Uint8Array) yield pieces
      else yield* pieces
    }
  }

  return {
    read(first, last) {
      const length = last + 1 - first
      return andThen(readAt(first, length), (pieces) => requireBytes(pieces, length))
    },

    open: (first, last, options) => untilAborted(readChunks(first, last), options?.signal),
  }
}

function requireBytes(pieces: Pieces | undefined, length: number): Pieces {
  // Several pieces come from memory, and are whole.
  if (pieces !== undefined && (!(pieces instanceof Uint8Array) || pieces.length === length)) return pieces
  throw createGoneError()
}

export async function moveChunks(
  owner: string,
  source: ChunkSource,
  beside: BesideContents | undefined,
  options?: MoveOptions,
): Promise<number> {
  const { signal } = resolveOptions('moveContents', options, MOVE_OPTIONS)
  if (beside === undefined) throw new TypeError(`${owner}: moveContents needs the option contents.`)
  let moved = 0
  for (let last = ''; ; ) {
    signal?.throwIfAborted()
    const next = await source.findNext(last)
    if (next === undefined) return moved
    if (typeof next === 'string') {
      last = next
      await nextTurn()
      continue
    }
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
