import { andThen, type MaybePromise } from '../../core/maybe-promise.ts'
import type { RecentCache } from '../recent-cache.ts'
import type { ContentId } from './intake.ts'
import type { ReadPiece } from './large-body.ts'

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
