import { getEventListeners } from 'node:events'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isLargeBody } from '../../src/stores/rules.ts'
import { collectBlocks, untilAborted } from '../../src/stores/streams.ts'
import type { LargeBody } from '../../src/stores/types.ts'

async function* numbers(count: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i++) yield new Uint8Array([i])
}

async function gather(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

describe('collectBlocks', () => {
  it('gives back every byte and every range, however the chunks were cut', async () => {
    const sizes = fc.array(fc.oneof(fc.nat(20), fc.nat(70_000), fc.nat(1_200_000)), { maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(sizes, fc.nat(), fc.nat(), async (sizes, a, b) => {
        const chunks = sizes.map((size, index) => Buffer.alloc(size, `chunk ${index} `))
        const whole = Buffer.concat(chunks)
        async function* reused() {
          for (const chunk of chunks) {
            yield chunk
            chunk.fill(0)
          }
        }
        const { body, size } = await collectBlocks(reused())
        expect(size).toBe(whole.length)
        const [first = 0, last = 0] = [a % (size + 1), b % (size + 1)].sort((x, y) => x - y)
        const part = isLargeBody(body)
          ? await gather(body.open(first, last))
          : Buffer.from(body).subarray(first, last + 1)
        expect(Buffer.compare(part, whole.subarray(first, last + 1))).toBe(0)
      }),
      { numRuns: 60 },
    )
  })

  it('holds no more memory than there are bytes', async () => {
    async function* chunks() {
      yield new Uint8Array(100)
    }
    const { body } = await collectBlocks(chunks())
    expect((body as Uint8Array).buffer.byteLength).toBe(100)

    async function* more() {
      yield new Uint8Array(1024 * 1024 + 100)
    }
    const { body: large } = await collectBlocks(more())
    const held: number[] = []
    for await (const { buffer } of (large as LargeBody).open(0, 1024 * 1024 + 99)) held.push(buffer.byteLength)
    expect(held).toEqual([1024 * 1024, 100])
  })
})

describe('untilAborted', () => {
  it('is the stream itself without a signal', () => {
    const stream = numbers(1)
    expect(untilAborted(stream, undefined)).toBe(stream)
  })

  it('gives all chunks, and leaves no listener behind', async () => {
    const { signal } = new AbortController()
    expect([...(await gather(untilAborted(numbers(5), signal)))]).toEqual([0, 1, 2, 3, 4])
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('passes on the error of the source, and leaves no listener behind', async () => {
    const { signal } = new AbortController()
    async function* broken() {
      yield new Uint8Array(1)
      throw new Error('broken')
    }
    await expect(gather(untilAborted(broken(), signal))).rejects.toThrow('broken')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('does not open the source when the signal is aborted already', async () => {
    let isOpen = false
    const source = {
      [Symbol.asyncIterator]: () => {
        isOpen = true
        return numbers(1)
      },
    }
    await expect(gather(untilAborted(source, AbortSignal.abort(new Error('gone'))))).rejects.toThrow('gone')
    expect(isOpen).toBe(false)
  })

  it('ends where its reader has a chunk while the signal aborts, also of a source that falls silent', async () => {
    async function* silent() {
      yield new Uint8Array(1)
      await new Promise(() => {})
    }
    for (const source of [numbers(5), silent()]) {
      const controller = new AbortController()
      const chunks = untilAborted(source, controller.signal)[Symbol.asyncIterator]()
      expect((await chunks.next()).done).toBe(false)
      controller.abort(new Error('gone'))
      await expect(chunks.next()).rejects.toThrow('gone')
    }
  })

  it('closes the source when its reader stops', async () => {
    let isClosed = false
    async function* source() {
      try {
        yield* numbers(9)
      } finally {
        isClosed = true
      }
    }
    for await (const _ of untilAborted(source(), new AbortController().signal)) break
    await new Promise((resolve) => setImmediate(resolve))
    expect(isClosed).toBe(true)
  })
})
