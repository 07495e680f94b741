import { describe, expect, it } from 'vitest'
import { ByteBlocks, collectWhole, readUpTo } from '../../src/core/byte-blocks.ts'

/** Bytes that differ from place to place. @param from the place of the first */
function bytesFrom(from: number, size: number): Buffer {
  return Buffer.from(Array.from({ length: size }, (_, i) => ((from + i) * 31 + ((from + i) >> 8)) & 0xff))
}

/** Each chunk has a buffer of its own. */
function cut(sizes: readonly number[]): Buffer[] {
  let from = 0
  return sizes.map((size) => {
    from += size
    return Buffer.from(new Uint8Array(bytesFrom(from - size, size)).buffer)
  })
}

describe('ByteBlocks', () => {
  const orders: readonly (readonly number[])[] = [
    [10, 9000, 10, 70_000, 10],
    [9000, 10, 9000, 9000],
    [1, 4096, 8191, 8192, 1, 70_000, 70_000],
  ]

  it.each(orders)('gives chunks of %j, %j and so on in the order in which they came', (...sizes) => {
    for (const how of ['push', 'copy'] as const) {
      const whole = bytesFrom(
        0,
        sizes.reduce((sum, size) => sum + size, 0),
      )
      const blocks = new ByteBlocks()
      for (const chunk of cut(sizes)) blocks[how](chunk)
      expect(blocks.size).toBe(whole.length)
      expect(whole.equals(blocks.drain())).toBe(true)

      // All of them were taken out; the next may be taken in pieces.
      expect(blocks.size).toBe(0)
      const pieces: Uint8Array[] = []
      for (const [i, chunk] of cut(sizes).entries()) {
        blocks[how](chunk)
        if (i % 2 === 1) pieces.push(Buffer.from(blocks.shift()!))
      }
      for (let piece = blocks.shift(); piece !== undefined; piece = blocks.shift()) pieces.push(piece)
      expect(whole.equals(Buffer.concat(pieces))).toBe(true)
      expect(blocks.size).toBe(0)
    }
  })

  it('keeps no large buffer for the sake of a small part of it', () => {
    const blocks = new ByteBlocks()
    const large = Buffer.alloc(1024 * 1024)
    for (let i = 0; i < 3; i++) blocks.push(large.subarray(i * 10_000, (i + 1) * 10_000))
    for (let piece = blocks.shift(); piece !== undefined; piece = blocks.shift()) {
      expect(piece.buffer.byteLength).toBeLessThanOrEqual(64 * 1024)
    }
  })
})

describe('collectWhole', () => {
  it('ends with the first byte beyond the size: a source may never end', async () => {
    let given = 0
    async function* endless() {
      for (; given < 1000; given++) yield Buffer.alloc(10)
    }
    await expect(collectWhole(endless(), 10, undefined)).rejects.toThrow('more bytes than its size')
    expect(given).toBe(1)
  })

  it('ends with the signal where the source gives empty chunks only', async () => {
    const controller = new AbortController()
    let given = 0
    async function* empty() {
      for (; given < 1000; given++) {
        if (given === 3) controller.abort(new Error('gone'))
        yield Buffer.alloc(0)
      }
    }
    await expect(collectWhole(empty(), 10, controller.signal)).rejects.toThrow('gone')
    expect(given).toBeLessThan(10)
  })

  it('keeps a copy of what its source has given', async () => {
    async function* source() {
      const buffer = Buffer.from('abc')
      yield buffer
      buffer.fill('x')
    }
    expect(String(await collectWhole(source(), 3, undefined))).toBe('abc')
  })
})

it('content that is as long as readUpTo may read is one value, and longer content is not', async () => {
  async function* source(size: number) {
    yield Buffer.alloc(size)
  }
  expect(await readUpTo(source(10), 10)).toHaveLength(10)
  expect(await readUpTo(source(11), 10)).not.toBeInstanceOf(Uint8Array)
})
