import { collectBytes } from '../body-types/collect-bytes.ts'
import { tooLarge } from '../body-types/read-body.ts'
import type { BodyLimits } from '../body-types/types.ts'
import { ByteBlocks } from '../core/byte-blocks.ts'
import { resumeStream } from '../core/resume-stream.ts'
import type { ResourceStore, StagedBody } from '../stores/types.ts'

/** Content up to this size is passed to the store as one value. */
export const SMALL: number = 64 * 1024

/** Content that is ready to be stored. */
export interface TakenContent {
  readonly body: Uint8Array | StagedBody
  readonly size: number
}

/** Takes in small content that is at hand. @throws HttpError 413 above what a store that stages nothing may be given */
export function holdSmall(body: Uint8Array, limits: BodyLimits, store: ResourceStore): TakenContent {
  if (store.stage === undefined && body.length > limits.bodySize) throw tooLarge(limits.bodySize)
  return { body, size: body.length }
}

/** Takes in a stream of unknown length: a small one as a value, a large one by staging it. */
export async function readSmall(
  source: AsyncIterable<Uint8Array>,
  limits: BodyLimits,
  store: ResourceStore,
  signal: AbortSignal,
): Promise<TakenContent> {
  if (store.stage === undefined) {
    const body = await collectBytes(source, limits.bodySize)
    return { body, size: body.length }
  }
  const content = await readUpTo(source, SMALL)
  const body = content instanceof Uint8Array ? content : await store.stage(content, { signal })
  return { body, size: body instanceof Uint8Array ? body.length : body.size }
}

/**
 * Reads a stream of unknown length: as one value where it has at most `most` bytes, else as a stream again, to be read or
 * closed.
 */
export async function readUpTo(
  source: AsyncIterable<Uint8Array>,
  most: number,
): Promise<Uint8Array | AsyncIterable<Uint8Array>> {
  const iterator = source[Symbol.asyncIterator]()
  const head = new ByteBlocks()
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    head.push(next.value)
    if (head.size > most) return resumeStream(head, iterator)
  }
  return head.drain()
}
