import { ByteBlocks } from '../core/byte-blocks.ts'
import { tooLarge } from './read-body.ts'

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
