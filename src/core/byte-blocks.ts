/** From here on a block has its final size. */
const LARGEST_BLOCK = 64 * 1024
const FIRST_BLOCK = 4 * 1024
/** A chunk from this size on is worth an entry of its own. */
const WHOLE_CHUNK = 8 * 1024

/**
 * Bytes that arrive in chunks, gathered into blocks. Memory and time depend on the number of bytes, not on the number of
 * chunks: a client that sends one byte a chunk would otherwise have the server keep an object of 100 bytes for each.
 */
export interface ByteBlocks {
  /** Bytes that are held. */
  readonly size: number
  /** Adds bytes that do not change afterwards: they may be kept without a copy. */
  push(chunk: Uint8Array): void
  /** Adds a copy of bytes: their source may use the buffer again. */
  copy(chunk: Uint8Array): void
  /** Takes the first bytes out: a block, or the bytes of one that is not full. `undefined` when nothing is held. */
  shift(): Uint8Array | undefined
  /** Takes all bytes out, as one value. */
  drain(): Uint8Array
}

export function createByteBlocks(): ByteBlocks {
  /** The only chunk so far. Most content is one chunk, which needs no copy. */
  let sole: Uint8Array | undefined
  /** Blocks that are full, and chunks that are large. At most two for each 8 KiB. */
  let ready: Uint8Array[] = []
  let block: Uint8Array | undefined
  /** The part of `block` that holds bytes that are not taken yet. */
  let start = 0
  let end = 0
  let size = 0

  function add(chunk: Uint8Array): void {
    if (isWhole(chunk)) {
      flush()
      ready.push(chunk)
    } else fill(chunk)
  }

  function fill(chunk: Uint8Array): void {
    for (let from = 0; from < chunk.length; ) {
      const into = block !== undefined && end < block.length ? block : openBlock()
      const rest = from === 0 ? chunk : chunk.subarray(from)
      const part = rest.length <= into.length - end ? rest : rest.subarray(0, into.length - end)
      into.set(part, end)
      end += part.length
      from += part.length
    }
  }

  function addSole(): void {
    if (sole !== undefined) add(sole)
    sole = undefined
  }

  function openBlock(): Uint8Array {
    flush()
    start = 0
    end = 0
    return (block = Buffer.allocUnsafeSlow(Math.min(LARGEST_BLOCK, Math.max(FIRST_BLOCK, size))))
  }

  function flush(): void {
    if (end > start) ready.push(block!.subarray(start, end))
    start = end
  }

  return {
    get size() {
      return size
    },
    push(chunk) {
      if (chunk.length === 0) return
      size += chunk.length
      if (size === chunk.length) {
        sole = chunk
        return
      }
      addSole()
      add(chunk)
    },
    copy(chunk) {
      size += chunk.length
      addSole()
      fill(chunk)
    },
    shift() {
      let first = sole
      if (first !== undefined) sole = undefined
      else if (ready.length > 0) first = ready.shift()!
      else if (end > start) {
        first = block!.subarray(start, end)
        start = end
      }
      size -= first?.length ?? 0
      return first
    },
    drain() {
      flush()
      const whole = sole ?? (ready.length === 1 ? ready[0]! : Buffer.concat(ready, size))
      sole = undefined
      ready = []
      block = undefined
      start = 0
      end = 0
      size = 0
      return whole
    },
  }
}

/** Whether a chunk is large, and not a small part of a buffer that it would keep in memory. */
function isWhole({ length, buffer }: Uint8Array): boolean {
  return length >= WHOLE_CHUNK && 2 * length >= buffer.byteLength
}
