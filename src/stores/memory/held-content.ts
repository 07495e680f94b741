import { Buffer } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { untilAborted } from '../abortable-stream.ts'
import {
  type Content,
  isStaged,
  type LargeBody,
  type RelatedWrite,
  readAsText,
  type SmallBody,
  type StagedBody,
  sizeOf,
} from '../types.ts'

/** Content as it is kept in memory: the store's own, never a stream. */
export interface HeldBody {
  readonly body: SmallBody | LargeBody
  readonly size: number
  /** Of large content. */
  readonly sha256?: Uint8Array | undefined
}

type Stream = AsyncIterable<Uint8Array>

/** Streams that one call of the store has been given, and what they came to. */
export interface TakenStreams {
  streams?: Map<Stream, Promise<HeldBody>>
}

/** Takes content into memory. */
export interface ContentHolder {
  /**
   * Holds the body of a content, and those of what is written with it; at once when none of them is a stream.
   * @param taken streams that one call of the store has been given; each is read once, however often it is asked for
   * @throws TypeError for staged content of another store, or content that was given up
   */
  hold(
    content: Content,
    related: readonly RelatedWrite[],
    options: { readonly signal?: AbortSignal },
    taken?: TakenStreams,
  ): MaybePromise<readonly HeldBody[]>
  stage(body: Stream, signal: AbortSignal | undefined): Promise<StagedBody>
}

export function createContentHolder(): ContentHolder {
  const staged = new WeakMap<StagedBody, HeldBody>()

  /** Content that is there already; `undefined` for a stream. */
  function holdNow(body: Content['body']): HeldBody | undefined {
    if (typeof body === 'string') return holdText(body)
    if (body instanceof Uint8Array) return holdBytes(body)
    if (!isStaged(body)) return undefined
    const held = staged.get(body)
    if (held === undefined) throw new TypeError('The staged content was given up or belongs to another store.')
    return held
  }

  return {
    hold(content, related, options, taken) {
      const held = [holdNow(content.body)]
      for (const write of related) held.push(holdNow(write.content.body))
      if (!held.includes(undefined)) return held as HeldBody[]
      const streams = taken === undefined ? new Map() : (taken.streams ??= new Map())
      const bodies = held.map((now, index) => {
        if (now !== undefined) return now
        const stream = (index === 0 ? content : related[index - 1]!.content).body as Stream
        const known = streams.get(stream) ?? collect(stream, options.signal)
        streams.set(stream, known)
        return known
      })
      return Promise.all(bodies)
    },

    async stage(stream, signal) {
      const held = await collect(stream, signal)
      const body: StagedBody = { staged: true, size: held.size, discard: () => void staged.delete(body) }
      staged.set(body, held)
      return body
    },
  }
}

/** Text beyond ASCII is encoded once, here, and not by every reader. */
function holdText(text: string): HeldBody {
  const size = sizeOf(text)
  return { body: size === text.length ? text : Buffer.from(text), size }
}

/** Copies: what the caller does with its buffer afterwards must not reach what is stored. */
function holdBytes(bytes: Uint8Array): HeldBody {
  const { length } = bytes
  const text = readAsText(bytes)
  if (text !== undefined) return { body: text, size: length }
  const copy = Buffer.allocUnsafeSlow(length)
  copy.set(bytes)
  return { body: copy, size: length }
}

async function collect(stream: Stream, signal: AbortSignal | undefined): Promise<HeldBody> {
  const collector = createBlockCollector()
  for await (const chunk of untilAborted(stream, signal)) collector.push(chunk)
  return collector.finish()
}

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
