import { describe, expect, it } from 'vitest'
import { createRecentCache } from '../../src/stores/recent-cache.ts'
import { createLargeBody } from '../../src/stores/sql/chunks.ts'

const CHUNK = 10
const CONTENT = Buffer.from('0123456789abcdefghijklmno')

/** Content in three chunks, one of which may be shorter than it was written. */
function openContent(damaged?: number) {
  const reads: string[] = []
  const chunks = [0, 1, 2].map((index) => {
    const chunk = CONTENT.subarray(index * CHUNK, (index + 1) * CHUNK)
    return index === damaged ? chunk.subarray(0, 3) : chunk
  })
  const body = createLargeBody({
    id: 1,
    size: CONTENT.length,
    chunkSize: CHUNK,
    cache: createRecentCache(1000),
    readPiece(index, offset, length) {
      reads.push(`${index} ${offset} ${length}`)
      const next = chunks[index + 1] ?? Buffer.alloc(0)
      return Buffer.concat([
        chunks[index]!.subarray(offset, offset + length),
        next.subarray(0, Math.max(0, offset + length - CHUNK)),
      ])
    },
  })
  const read = async (first: number, last: number): Promise<string> => {
    const pieces = await body.read!(first, last)
    return Buffer.concat(pieces instanceof Uint8Array ? [pieces] : (pieces as Uint8Array[])).toString()
  }
  return { read, reads }
}

describe('content in chunks', () => {
  it('is read no more where it is kept, also across the end of a chunk', async () => {
    const { read, reads } = openContent()
    for (let i = 0; i < 4; i++) expect(await read(8, 12)).toBe('89abc')
    expect(await read(9, 18)).toBe('9abcdefghi')
    expect(reads).toEqual(['0 8 5', '0 0 10', '0 8 5', '1 0 10'])
  })

  it('is unavailable where a chunk is shorter than it was written, and is not kept', async () => {
    const { read } = openContent(2)
    expect(await read(0, 9)).toBe('0123456789')
    for (let i = 0; i < 4; i++) await expect(read(18, 24)).rejects.toMatchObject({ status: 503 })
    expect(await read(18, 22)).toBe('ijklm')
  })
})
