import { Buffer } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import { closeIterator } from '../core/byte-blocks.ts'
import type { StoredContent } from './rules.ts'
import type { Content, LargeBody } from './types.ts'

/** Streams of bytes: until they are given up, counted, and gathered. */

/**
 * The chunks of a stream until a signal aborts.
 * A check at every chunk would not do: a source that has fallen silent would hold the call for ever.
 * @throws the reason of the signal
 */
export function untilAborted(
  stream: AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  return signal === undefined ? stream : readUntilAborted(stream, signal)
}

async function* readUntilAborted(stream: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  signal.throwIfAborted()
  const iterator = stream[Symbol.asyncIterator]()
  let abort: (reason: unknown) => void = () => {}
  // One listener and one promise a chunk: racing every chunk against one lasting promise would keep them all.
  const onAbort = (): void => abort(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  let isOver = false
  try {
    for (;;) {
      signal.throwIfAborted()
      const next = await new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        abort = reject
        iterator.next().then(resolve, reject)
      })
      if (next.done === true) {
        isOver = true
        return
      }
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    // Not awaited: a source that is silent does not close before it speaks again.
    if (!isOver) void closeIterator(iterator)
  }
}

/** All bytes of a stream that is short enough to be held. */
export async function readWhole(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Buffer[] = []
  // Copied, because the buffer may be used again for the next chunk.
  for await (const chunk of stream) chunks.push(Buffer.from(chunk))
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

/** Counts and hashes what passes. Not a generator: one that has not begun would not close its source. */
export function measure(body: AsyncIterable<Uint8Array>): {
  readonly source: AsyncIterator<Uint8Array>
  readonly count: () => number
  readonly digest: () => Uint8Array
} {
  const hash = createHash('sha256')
  const iterator = body[Symbol.asyncIterator]()
  let size = 0
  async function next(): Promise<IteratorResult<Uint8Array>> {
    const next = await iterator.next()
    if (next.done === true) return next
    size += next.value.length
    hash.update(next.value)
    return next
  }
  async function close(): Promise<IteratorResult<Uint8Array>> {
    await iterator.return?.()
    return { done: true, value: undefined }
  }
  return { source: { next, return: close }, count: () => size, digest: () => hash.digest() }
}

const FIRST_BLOCK = 16 * 1024
const LARGEST_BLOCK = 1024 * 1024

/**
 * Gathers a stream in blocks, so that neither many small chunks nor one huge copy has to be held. Copies: a source may use
 * its buffer again.
 * @returns all bytes: as one value up to 1 MiB, in blocks beyond, with their SHA-256 digest
 */
export async function collectBlocks(stream: AsyncIterable<Uint8Array>): Promise<StoredContent> {
  const blocks: Uint8Array[] = []
  let block: Uint8Array = new Uint8Array(0)
  let used = 0
  let size = 0
  let hash: Hash | undefined
  let hashed = 0

  /** Blocks that are full, once the content is known to be large. */
  function hashBlocks(): void {
    if (size <= LARGEST_BLOCK) return
    hash ??= createHash('sha256')
    for (; hashed < blocks.length; hashed++) hash.update(blocks[hashed]!)
  }

  for await (const chunk of stream) {
    size += chunk.length
    for (let from = 0; from < chunk.length; ) {
      if (used === block.length) {
        hashBlocks()
        block = Buffer.allocUnsafeSlow(Math.min(LARGEST_BLOCK, Math.max(FIRST_BLOCK, size)))
        blocks.push(block)
        used = 0
      }
      const part = chunk.subarray(from, from + block.length - used)
      block.set(part, used)
      used += part.length
      from += part.length
    }
  }
  if (size <= LARGEST_BLOCK) return { body: concat(blocks, size), size }
  // The rest of the last block would be held in vain.
  if (used < block.length) blocks[blocks.length - 1] = concat([block], used)
  hashBlocks()
  return { body: createBlockBody(blocks), size, sha256: hash!.digest() }
}

function concat(blocks: readonly Uint8Array[], size: number): Uint8Array {
  const whole = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const block of blocks) {
    const part = block.subarray(0, size - at)
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function createBlockBody(blocks: readonly Uint8Array[]): LargeBody {
  return {
    async *open(first, last) {
      let start = 0
      for (const block of blocks) {
        if (start > last) return
        const end = start + block.length
        if (end > first) yield block.subarray(Math.max(0, first - start), last + 1 - start)
        start = end
      }
    },
  }
}

export function toStream(body: Content['body']): AsyncIterable<Uint8Array> {
  if (typeof body === 'string') return single(Buffer.from(body, 'utf8'))
  if (body instanceof Uint8Array) return single(body)
  return body as AsyncIterable<Uint8Array>
}

async function* single(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}
