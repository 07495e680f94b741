import { tooLarge } from './read-body.ts'

/**
 * Reads a stream into memory.
 * @param limit the most bytes; one more is 413, and the source is closed
 * @param taken bytes that other streams have used of the limit
 */
export async function collectBytes(source: AsyncIterable<Uint8Array>, limit: number, taken = 0): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.length
    if (taken + size > limit) throw tooLarge(limit)
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)
}
