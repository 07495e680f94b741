import { createHash, type Hash } from 'node:crypto'
import { HttpError } from '../../core/errors.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'
import { splitHead, untilAborted } from '../streams.ts'
import { type Content, isStaged, type LargeBody, type SmallBody, type StagedBody, sizeOf } from '../types.ts'
import { type BesideContents, isUnavailable } from './beside.ts'

/** Names a set of chunks. */
export type ContentId = number | string

/** Content that the store has: small content as one value, large content under the name of its chunks. */
export type Taken =
  | { readonly size: number; readonly body: SmallBody; readonly id: undefined; readonly sha256?: undefined }
  | { readonly size: number; readonly body: LargeBody; readonly id: ContentId; readonly sha256: Uint8Array }

/** Where chunks go. Nothing of it is visible before a write links the id to a path. */
export interface ChunkSink {
  /** Makes an id; its chunks are swept unless they are linked in time. */
  begin(): MaybePromise<ContentId>
  /** Adds whole chunks; only the last chunk of all may be shorter. Puts the sweep off. The bytes may change afterwards. */
  append(id: ContentId, index: number, bytes: Uint8Array): MaybePromise<void>
  /** Gives chunks to the sweep at once. */
  abandon(id: ContentId): MaybePromise<void>
  open(id: ContentId, size: number): LargeBody
}

export interface IntakeOptions {
  /** Content up to this many bytes is kept as one value. */
  readonly inlineLimit: number
  /** Bytes gathered before they are appended: a multiple of the size of a chunk. */
  readonly batchSize: number
  /** Where larger content goes instead of into chunks. */
  readonly beside?: BesideContents | undefined
}

/** The content of one call of the store. */
export interface Intake {
  /** Content that is there already; `undefined` when some of it has to be taken in first. */
  held(contents: readonly Content[]): readonly Taken[] | undefined
  /** Takes in what is not there yet; each body once, however often it is asked for. */
  take(contents: readonly Content[], signal: AbortSignal | undefined): Promise<readonly Taken[]>
  /** Gives up all that was taken in and is not among the content used. */
  close(used: readonly Taken[]): void
}

export interface IntakeFactory {
  /** Content that is there already, as for an intake: without one, while nothing has to be taken in. */
  held(contents: readonly Content[]): readonly Taken[] | undefined
  createIntake(): Intake
  stage(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<StagedBody>
}

const FIRST_BUFFER = 16 * 1024

export function createLostContentError(): HttpError {
  return new HttpError(500, 'ERR_INTERNAL', {
    detail: 'Staged content was used by another write already, was given up, or was left until it was swept.',
  })
}

/** Takes streams in: a part in memory, the rest as chunks. At most one batch of each stream is in memory at a time. */
export function createIntakeFactory(sink: ChunkSink, { inlineLimit, batchSize, beside }: IntakeOptions): IntakeFactory {
  const stagedContent = new WeakMap<StagedBody, Taken>()

  async function collectBeside(
    put: BesideContents['put'],
    stream: AsyncIterable<Uint8Array>,
    signal: AbortSignal | undefined,
  ): Promise<Taken> {
    const { head, size, rest } = await splitHead(untilAborted(stream, signal), inlineLimit)
    if (rest !== undefined) return put(rest, signal)
    signal?.throwIfAborted()
    return { size, body: head, id: undefined }
  }

  async function collectChunks(stream: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<Taken> {
    const chunks = createChunkWriter(sink, batchSize)
    let buffer = Buffer.allocUnsafeSlow(Math.min(FIRST_BUFFER, batchSize))
    let used = 0
    let size = 0
    try {
      for await (const chunk of untilAborted(stream, signal)) {
        size += chunk.length
        for (let from = 0; from < chunk.length; ) {
          if (used === buffer.length && used === batchSize) {
            await chunks.append(buffer)
            used = 0
          } else if (used === buffer.length) {
            buffer = enlarge(buffer, Math.min(batchSize, Math.max(2 * used, size)))
          }
          const part = chunk.subarray(from, from + buffer.length - used)
          buffer.set(part, used)
          used += part.length
          from += part.length
        }
      }
      signal?.throwIfAborted()
      // Where inlineLimit is above a batch, some of it may lie in chunks already.
      if (size <= inlineLimit && chunks.id === undefined) return { size, body: buffer.slice(0, used), id: undefined }
      if (used > 0) await chunks.append(buffer.subarray(0, used))
      const id = chunks.id!
      return { size, body: sink.open(id, size), id, sha256: chunks.digest() }
    } catch (error) {
      const abandoned = chunks.id === undefined ? undefined : abandon(chunks.id)
      // The database is away: the caller need not wait for it once more.
      if (!isUnavailable(error)) await abandoned
      throw error
    }
  }

  function collect(stream: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<Taken> {
    return beside === undefined ? collectChunks(stream, signal) : collectBeside(beside.put, stream, signal)
  }

  /** Best effort: what cannot be given up now is swept later. */
  async function abandon(id: ContentId): Promise<void> {
    try {
      await sink.abandon(id)
    } catch {}
  }

  function heldBody(body: Content['body']): Taken | undefined {
    if (typeof body === 'string' || body instanceof Uint8Array) {
      const size = sizeOf(body)
      return size > inlineLimit ? undefined : { size, body, id: undefined }
    }
    if (!isStaged(body)) return undefined
    const taken = stagedContent.get(body)
    if (taken === undefined) throw new TypeError('The staged content belongs to another store.')
    return taken
  }

  function held(contents: readonly Content[], taken?: ReadonlyMap<Content['body'], Taken>): Taken[] | undefined {
    const found: Taken[] = []
    for (const { body } of contents) {
      const one = taken?.get(body) ?? heldBody(body)
      if (one === undefined) return undefined
      found.push(one)
    }
    return found
  }

  function createIntake(): Intake {
    const taking = new Map<Content['body'], Promise<Taken>>()
    const taken = new Map<Content['body'], Taken>()
    let isClosed = false

    async function takeBody(body: Content['body'], signal: AbortSignal | undefined): Promise<Taken> {
      const result = await collect(toStream(body), signal)
      taken.set(body, result)
      // Other content of the same call has failed meanwhile.
      if (isClosed && result.id !== undefined) await abandon(result.id)
      return result
    }

    return {
      held: (contents) => held(contents, taken),

      take(contents, signal) {
        // All are looked at before the first is read: a failure here must leave no stream under way.
        const missing = contents.filter(({ body }) => !taking.has(body) && heldBody(body) === undefined)
        for (const { body } of missing) if (!taking.has(body)) taking.set(body, takeBody(body, signal))
        return Promise.all(contents.map(({ body }) => taking.get(body) ?? heldBody(body)!))
      },
      close(used) {
        isClosed = true
        for (const one of taken.values()) if (one.id !== undefined && !used.includes(one)) void abandon(one.id)
      },
    }
  }

  return {
    held,
    createIntake,

    async stage(stream, signal) {
      const taken = await collect(stream, signal)
      const staged: StagedBody = {
        staged: true,
        size: taken.size,
        async discard() {
          if (taken.id !== undefined) await abandon(taken.id)
        },
      }
      stagedContent.set(staged, taken)
      return staged
    },
  }
}

function createChunkWriter(sink: ChunkSink, batchSize: number) {
  let appended = 0
  let hash: Hash | undefined
  return {
    id: undefined as ContentId | undefined,
    async append(bytes: Uint8Array): Promise<void> {
      this.id ??= await sink.begin()
      hash ??= createHash('sha256')
      hash.update(bytes)
      await sink.append(this.id, appended, bytes)
      appended += batchSize
    },
    /** The SHA-256 digest of what was appended. */
    digest: (): Uint8Array => hash!.digest(),
  }
}

function enlarge(buffer: Buffer<ArrayBuffer>, size: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(size)
  larger.set(buffer)
  return larger
}

function toStream(body: Content['body']): AsyncIterable<Uint8Array> {
  if (typeof body === 'string') return single(Buffer.from(body, 'utf8'))
  if (body instanceof Uint8Array) return single(body)
  return body as AsyncIterable<Uint8Array>
}

async function* single(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes
}
