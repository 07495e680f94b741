import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import { atOnce } from './maybe-promise.ts'
import { SHORT } from './reply.ts'

/** From here on a block has its final size. */
const LARGEST_BLOCK = 64 * 1024
const FIRST_BLOCK = 4 * 1024
/** A chunk from this size on is worth an entry of its own. */
const WHOLE_CHUNK = 8 * 1024

/**
 * Bytes that arrive in chunks, gathered into blocks. Memory and time depend on the number of bytes, not on the number of
 * chunks: a client that sends one byte a chunk would otherwise have the server keep an object of 100 bytes for each.
 *
 * A class: an object literal with a getter has a hidden class of its own, which only a full collection frees.
 */
export class ByteBlocks {
  /** The only chunk so far. Most content is one chunk, which needs no copy. */
  #sole: Uint8Array | undefined = undefined
  /** Blocks that are full, and chunks that are large. At most two for each 8 KiB. */
  #ready: Uint8Array[] = []
  #block: Uint8Array | undefined = undefined
  /** The part of the block that holds bytes that are not taken yet. */
  #start = 0
  #end = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds bytes that do not change afterwards: they may be kept without a copy. */
  push(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    this.#size += chunk.length
    if (this.#size === chunk.length) {
      this.#sole = chunk
      return
    }
    this.#addSole()
    this.#add(chunk)
  }

  /** Adds a copy of bytes: their source may use the buffer again. */
  copy(chunk: Uint8Array): void {
    this.#size += chunk.length
    this.#addSole()
    this.#fill(chunk)
  }

  /** Takes the first bytes out: a block, or the bytes of one that is not full. `undefined` when nothing is held. */
  shift(): Uint8Array | undefined {
    let first = this.#sole
    if (first !== undefined) this.#sole = undefined
    else if (this.#ready.length > 0) first = this.#ready.shift()!
    else if (this.#end > this.#start) {
      first = this.#block!.subarray(this.#start, this.#end)
      this.#start = this.#end
    }
    this.#size -= first?.length ?? 0
    return first
  }

  /** Takes all bytes out, as one value. */
  drain(): Uint8Array {
    this.#flush()
    const ready = this.#ready
    const whole = this.#sole ?? (ready.length === 1 ? ready[0]! : Buffer.concat(ready, this.#size))
    this.#sole = undefined
    this.#ready = []
    this.#block = undefined
    this.#size = 0
    return whole
  }

  #add(chunk: Uint8Array): void {
    // A small part of a buffer would keep all of that in memory.
    if (chunk.length >= WHOLE_CHUNK && 2 * chunk.length >= chunk.buffer.byteLength) {
      this.#flush()
      this.#ready.push(chunk)
    } else this.#fill(chunk)
  }

  #addSole(): void {
    if (this.#sole !== undefined) this.#add(this.#sole)
    this.#sole = undefined
  }

  #fill(chunk: Uint8Array): void {
    for (let from = 0; from < chunk.length; ) {
      const block = this.#block
      const into = block !== undefined && this.#end < block.length ? block : this.#openBlock()
      const rest = from === 0 ? chunk : chunk.subarray(from)
      const room = into.length - this.#end
      const part = rest.length <= room ? rest : rest.subarray(0, room)
      into.set(part, this.#end)
      this.#end += part.length
      from += part.length
    }
  }

  #openBlock(): Uint8Array {
    this.#flush()
    this.#start = 0
    this.#end = 0
    return (this.#block = Buffer.allocUnsafeSlow(Math.min(LARGEST_BLOCK, Math.max(FIRST_BLOCK, this.#size))))
  }

  #flush(): void {
    if (this.#end > this.#start) this.#ready.push(this.#block!.subarray(this.#start, this.#end))
    this.#start = this.#end
  }
}

/**
 * Collects content of a known size.
 * @param signal ends it where the source gives empty chunks only
 * @throws TypeError for another number of bytes, and for what is not bytes: part of a document may be a document as well
 */
export async function collectWhole(
  source: AsyncIterable<Uint8Array>,
  size: number,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const blocks = new ByteBlocks()
  for await (const chunk of atOnce(source)) {
    const isPart = chunk instanceof Uint8Array && blocks.size + chunk.length <= size
    if (!isPart) throw new TypeError('A content source gave more bytes than its size, or something else.')
    if (chunk.length === 0) {
      await setImmediate()
      signal?.throwIfAborted()
    }
    blocks.copy(chunk) // the source may use its buffer again
  }
  if (blocks.size === size) return blocks.drain()
  throw new TypeError('A content source ended before its size.')
}

/** The same bytes as a Buffer, without a copy. */
export function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

/** Bytes of its own for a function of the user, which may change them in place, or keep them. */
export function copyBytes(content: string | Uint8Array): Uint8Array {
  // No overload takes both.
  return typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
}

/** Decodes UTF-8 where it lies; `undefined` for bytes that are not UTF-8. */
export function decodeUtf8(data: Uint8Array, start = 0, end: number = data.length): string | undefined {
  const text = viewOf(data).toString('utf8', start, end)
  // Node puts U+FFFD in place of what is not UTF-8: only text that has one needs a second look.
  return text.includes('\ufffd') && !isUtf8(data.subarray(start, end)) ? undefined : text
}

const { navigator } = globalThis as { readonly navigator?: { readonly userAgent?: string } }
const isWorker = navigator?.userAgent === 'Cloudflare-Workers'

/** The bytes to hand to a response. Workers detach the buffer of what is written, which a store may keep: they get a copy. */
export function toOwnBytes<Bytes extends Uint8Array | undefined>(bytes: Bytes): Bytes | Uint8Array {
  return isWorker && bytes !== undefined ? Uint8Array.from(bytes) : bytes
}

/** Buffers that are kept: 2 MiB. */
const MOST = 32

const free: Uint8Array[] = []

/** Memory that a short range is read into and sent from. It is used again: 64 KiB of a file took 80 us without, and take 50. */
export function takeBuffer(): Uint8Array {
  return free.pop() ?? Buffer.allocUnsafeSlow(SHORT)
}

/** Only of a buffer that is neither sent from nor read into any more. */
export function giveBack(buffer: Uint8Array): void {
  if (free.length < MOST) free.push(buffer)
}

/**
 * Reads a stream of unknown length: as one value where it has at most `most` bytes, else as a stream again, to be read or
 * closed.
 * @param how what is done with its chunks: `copy` where the source may use its buffer again
 */
export async function readUpTo(
  source: AsyncIterable<Uint8Array>,
  most: number,
  how: 'push' | 'copy' = 'push',
): Promise<Uint8Array | AsyncIterable<Uint8Array>> {
  const iterator = source[Symbol.asyncIterator]()
  const head = new ByteBlocks()
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    head[how](next.value)
    if (head.size > most) return resumeStream(head, iterator)
  }
  return head.drain()
}

/**
 * A stream from its first byte on, of which some has been read. Not a generator: one that has not begun would not close its
 * source.
 * @param head what has been read, in pieces
 * @param source the rest
 */
function resumeStream(head: ByteBlocks, source: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  let isOver = false

  async function next(): Promise<IteratorResult<Uint8Array>> {
    if (isOver) return { done: true, value: undefined }
    const value = head.shift()
    if (value !== undefined) return { done: false, value }
    try {
      const next = await source.next()
      isOver = next.done === true
      return next
    } catch (error) {
      isOver = true
      throw error
    }
  }

  async function close(): Promise<IteratorResult<Uint8Array>> {
    const wasOver = isOver
    isOver = true
    if (!wasOver) await source.return?.()
    return { done: true, value: undefined }
  }

  return { [Symbol.asyncIterator]: () => ({ next, return: close }) }
}

/** Closes a source of which no more is read. */
export async function closeIterator(iterator: AsyncIterator<Uint8Array>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // What was read has been used, or the error that matters has been thrown: nothing depends on how the source closes.
  }
}
