import { HttpError } from '../core/errors.ts'
import { isPromise, type MaybePromise } from '../core/handler.ts'
import type { LargeBody } from './types.ts'

/** Reads `length` bytes of one chunk from an offset; `undefined` when the chunk is gone. */
export type ReadChunk = (index: number, offset: number, length: number) => MaybePromise<Uint8Array | undefined>

/** Content in chunks of one size that never change. A range touches only the chunks that it lies in. */
export function createLargeBody(size: number, chunkSize: number, readChunk: ReadChunk): LargeBody {
  return {
    async *open(first, last) {
      const end = Math.min(last + 1, size)
      for (let at = first; at < end; ) {
        const index = Math.floor(at / chunkSize)
        const offset = at - index * chunkSize
        const length = Math.min(chunkSize - offset, end - at)
        const reading = readChunk(index, offset, length)
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
