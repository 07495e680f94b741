import { randomBytes } from 'node:crypto'
import { type ContentStore, createGoneError } from '../../contents/types.ts'
import { isHttpError } from '../../core/errors.ts'
import { LONGEST_TIMER } from '../../core/longest-timer.ts'
import { andThen, type MaybePromise } from '../../core/maybe-promise.ts'
import { shapedAs, type ValueRule, writtenAs } from '../../core/option-values.ts'
import { measure, untilAborted } from '../streams.ts'
import type { LargeBody } from '../types.ts'
import type { ContentId, Taken } from './intake.ts'
import { createOrphanSearch } from './orphans.ts'
import type { Swept } from './sweeper.ts'

/** The rows that name content beside the tables. A key has its row before anything is put under it. */
export interface ContentLedger {
  /** Makes the row of a key; its content is swept unless a write links the row in time. */
  begin(key: string): MaybePromise<ContentId>
  /** Puts the sweep off for the grace period. */
  touch(id: ContentId): MaybePromise<void>
  /** Gives content up that no path shows. */
  abandon(id: ContentId): MaybePromise<void>
  /** Marks content as lost whose time is over, a few of the rows; no write can link them any more. */
  claim(): MaybePromise<readonly LostContent[]>
  /** Removes the row of content that is gone. */
  forget(id: ContentId): MaybePromise<void>
  /** Which of some keys have a row. */
  findKnown(keys: readonly string[]): MaybePromise<ReadonlySet<string>>
  /** What the keys of this database begin with: several may keep their contents in one place. */
  readIdentity(): MaybePromise<string>
}

/** Content whose row is marked as lost. */
export interface LostContent {
  readonly id: ContentId
  readonly key: string
}

/** Large content in a content store beside the tables. */
export interface BesideContents {
  /** Takes content in; its row is not linked yet. */
  put(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): Promise<Taken>
  open(key: string): LargeBody
  /** Removes lost content. The row stays until the content is gone. */
  remove(lost: LostContent): Promise<void>
  /** One bounded step of clearing away; several processes may take it at the same time. */
  sweep(): Promise<Swept>
  close(): MaybePromise<void>
}

export const CONTENT_STORE: ValueRule = writtenAs(
  shapedAs({ put: 'function', open: 'function', remove: 'function', list: 'function' }),
  'a ContentStore, as in fileContents({ directory })',
)

export function createBesideContents(contents: ContentStore, ledger: ContentLedger, grace: number): BesideContents {
  const { readIdentity, findKnown } = ledger
  const orphans = createOrphanSearch(contents, { grace, readIdentity, findKnown })

  async function remove({ id, key }: LostContent): Promise<void> {
    await contents.remove(key)
    await ledger.forget(id)
  }

  return {
    open: (key) => openBeside(contents, key),
    remove,
    close: orphans.close,

    async sweep() {
      const lost = await ledger.claim()
      const removals = await Promise.allSettled(lost.map(remove))
      const failed = removals.find((removal) => removal.status === 'rejected')
      if (failed !== undefined) throw failed.reason
      if (lost.length > 0) return 'part'
      await orphans.step()
      return 'all'
    },

    async put(body, signal) {
      const { source, count, digest } = measure(body)
      let id: ContentId | undefined
      let timer: NodeJS.Timeout | undefined
      try {
        const key = (await ledger.readIdentity()) + randomBytes(16).toString('hex')
        id = await ledger.begin(key)
        const row = id
        timer = setInterval(() => void touch(row), Math.min(Math.max(grace / 3, 10), LONGEST_TIMER)).unref()
        const { size } = await contents.put(key, { [Symbol.asyncIterator]: () => source }, { signal })
        if (size !== count()) {
          throw new Error(`The content store reports ${size} bytes of content that has ${count()}.`)
        }
        signal?.throwIfAborted()
        return { size, body: openBeside(contents, key), id, sha256: digest() }
      } catch (error) {
        const abandoned = id === undefined ? undefined : abandon(id)
        // The database or the content store is away: the caller need not wait for it once more.
        if (!isUnavailable(error)) await abandoned
        throw error
      } finally {
        clearInterval(timer)
        // Also when the database has failed before any of it was read.
        await source.return?.()
      }
    },
  }

  /** Best effort, as below: without its row the write fails when it links the content. */
  async function touch(id: ContentId): Promise<void> {
    try {
      await ledger.touch(id)
    } catch {}
  }

  /** Best effort: what cannot be given up now is swept later. */
  async function abandon(id: ContentId): Promise<void> {
    try {
      await ledger.abandon(id)
    } catch {}
  }
}

/** The database or the content store is away. */
export function isUnavailable(error: unknown): boolean {
  return isHttpError(error) && error.status === 503
}

/** The content of a key, read exactly. */
function openBeside(contents: ContentStore, key: string): LargeBody {
  return {
    open(first, last, { signal } = {}) {
      return untilAborted(exactly(contents.open(key, first, last, { signal }), last - first + 1), signal)
    },
    ...(contents.read === undefined
      ? {}
      : {
          read: (first, last, options) =>
            andThen(contents.read!(key, first, last, options), (bytes) => requireLength(bytes, last - first + 1)),
        }),
    ...(contents.locate === undefined ? {} : { locate: (request) => contents.locate!(key, request) }),
  }
}

/** What a store supports with a content store. */
export function supportOf(contents: ContentStore | undefined): { readonly redirects?: true } {
  return contents?.locate === undefined ? {} : { redirects: true }
}

/** Content that lies beside the tables, and no option that says where. */
export function createNoContentsError(owner: string): Error {
  return new Error(`${owner} has content in a content store: pass the option contents, as where it was written.`)
}

async function* exactly(stream: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let rest = length
  for await (const chunk of stream) {
    rest -= chunk.length
    if (rest < 0) break
    yield chunk
  }
  if (rest !== 0) throw createOtherLengthError()
}

function requireLength(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length === length) return bytes
  throw createOtherLengthError()
}

/** Too short or too long: never bytes of another range. */
function createOtherLengthError(): Error {
  return createGoneError(new Error('The content store has not the bytes that were put.'))
}
