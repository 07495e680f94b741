import { HttpError } from '../core/errors.ts'
import { isPromise, type MaybePromise } from '../core/handler.ts'
import type { LargeBody } from './types.ts'

/**
 * Reads `length` bytes from an offset in a chunk on, at most as many as a chunk has; they may end in the next chunk.
 * `undefined` when a chunk is gone.
 */
export type ReadPiece = (index: number, offset: number, length: number) => MaybePromise<Uint8Array | undefined>

/** Content in chunks of one size that never change. A range touches only the chunks that it lies in. */
export function createLargeBody(size: number, chunkSize: number, readPiece: ReadPiece): LargeBody {
  return {
    async *open(first, last) {
      const end = Math.min(last + 1, size)
      for (let at = first; at < end; ) {
        const index = Math.floor(at / chunkSize)
        const offset = at - index * chunkSize
        // What is short comes in one piece, and is sent with one write; of what is long each chunk is read once.
        const length = end - at <= chunkSize ? end - at : chunkSize - offset
        const reading = readPiece(index, offset, length)
        const bytes = isPromise(reading) ? await reading : reading
        if (bytes?.length !== length) {
          throw new HttpError(503, 'ERR_UNAVAILABLE', {
            detail: 'The content was replaced or removed while it was being read.',
            headers: ['Retry-After', '0'],
          })
        }
        yield bytes
        at += length
      }
    },
  }
}
