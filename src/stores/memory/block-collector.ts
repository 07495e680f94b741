import { createHash, type Hash } from 'node:crypto'
import type { LargeBody } from '../types.ts'

const FIRST_BLOCK = 16 * 1024
const LARGEST_BLOCK = 1024 * 1024

/** Gathers a stream in blocks, so that neither many small chunks nor one huge copy has to be held. */
export interface BlockCollector {
  /** Copies a chunk; its buffer may be reused afterwards. */
  push(chunk: Uint8Array): void
  /** All bytes: as one value up to 1 MiB, in blocks beyond, with their SHA-256 digest. */
  finish(): { readonly body: Uint8Array | LargeBody; readonly size: number; readonly sha256?: Uint8Array }
}

export function createBlockCollector(): BlockCollector {
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

  return {
    push(chunk) {
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
    },
    finish() {
      if (size <= LARGEST_BLOCK) return { body: concat(blocks, size), size }
      // The rest of the last block would be held in vain.
      if (used < block.length) blocks[blocks.length - 1] = concat([block], used)
      hashBlocks()
      return { body: createBlockBody(blocks), size, sha256: hash!.digest() }
    },
  }
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

/** Content that lies in several blocks. */
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
