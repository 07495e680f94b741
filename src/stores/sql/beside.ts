import { randomBytes } from 'node:crypto'
import { type ContentStore, createGoneError, type ListedContent } from '../../contents/types.ts'
import { andThen, atOnce, type MaybePromise } from '../../core/maybe-promise.ts'
import { LONGEST_TIMER } from '../../core/time.ts'
import { measure, untilAborted } from '../streams.ts'
import type { LargeBody } from '../types.ts'
import { tryTo } from './background.ts'
import { abandonAfter } from './chunks.ts'
import type { ContentId, ContentLedger, LostContent, Swept, Taken } from './dialect.ts'

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

export function createBesideContents(contents: ContentStore, ledger: ContentLedger, grace: number): BesideContents {
  const orphans = createOrphanSearch(contents, ledger, grace)

  async function remove({ id, key }: LostContent): Promise<void> {
    await contents.remove(key)
    await ledger.forget([id])
  }

  return {
    open: (key) => openBeside(contents, key),
    remove,
    close: orphans.close,

    async sweep() {
      const lost = await ledger.claim()
      const removals = await Promise.allSettled(lost.map(async ({ key }) => contents.remove(key)))
      const gone = lost.filter((_, index) => removals[index]!.status === 'fulfilled')
      if (gone.length > 0) await ledger.forget(gone.map(({ id }) => id))
      const failed = removals.find((removal) => removal.status === 'rejected')
      if (failed !== undefined) {
        // Content that can never be removed keeps no other content waiting.
        await tryTo(orphans.step)
        throw failed.reason
      }
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
        // Without its row the write fails when it links the content.
        timer = keepContents(ledger, [id], grace)
        const { size } = await contents.put(key, { [Symbol.asyncIterator]: () => source }, { signal })
        if (size !== count()) {
          throw new Error(`The content store reports ${size} bytes of content that has ${count()}.`)
        }
        signal?.throwIfAborted()
        return { size, body: openBeside(contents, key), id, sha256: digest() }
      } catch (error) {
        await abandonAfter(error, ledger, id)
        throw error
      } finally {
        clearInterval(timer)
        // Also when the database has failed before any of it was read.
        await source.return?.()
      }
    },
  }
}

/** Keeps content that is not linked yet from the sweep, until the timer is cleared. */
export function keepContents({ touch }: ContentLedger, ids: readonly ContentId[], grace: number): NodeJS.Timeout {
  const touchAll = (): void => {
    for (const id of ids) void tryTo(() => touch(id))
  }
  return setInterval(touchAll, Math.min(Math.max(grace / 3, 10), LONGEST_TIMER)).unref()
}

/** The content of a key, read exactly. */
function openBeside(contents: ContentStore, key: string): LargeBody {
  return {
    open(first, last, { signal } = {}) {
      // Opened when the first chunk is asked for: what is opened before would stay open where the reader has left.
      const openRange = () => atOnce(contents.open(key, first, last, { signal }))
      return untilAborted(exactly(openRange, last - first + 1), signal)
    },
    ...(contents.read && {
      read: (first, last, options) =>
        andThen(contents.read!(key, first, last, options), (bytes) => {
          if (bytes.length !== last - first + 1) throw createOtherLengthError()
          return bytes
        }),
    }),
    ...(contents.locate && { locate: (request) => contents.locate!(key, request) }),
  }
}

/** Content that lies beside the tables, and no option that says where. */
export function createNoContentsError(owner: string): Error {
  return new Error(`${owner} has content in a content store: pass the option contents, as where it was written.`)
}

async function* exactly(open: () => AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let rest = length
  for await (const chunk of open()) {
    rest -= chunk.length
    if (rest < 0) break
    yield chunk
  }
  if (rest !== 0) throw createOtherLengthError()
}

/** Too short or too long: never bytes of another range. */
function createOtherLengthError(): Error {
  return createGoneError(new Error('The content store has not the bytes that were put.'))
}

/** Keys that one step looks at: a page of S3. */
const STEP_SIZE = 1000

/**
 * Looks through a content store for content that the database does not know, in bounded steps: a pass through all keys takes
 * as many as it needs. Every key has its row before anything is put under it, and loses it only after its content is gone. What is found
 * without a row comes from a database that was restored from an earlier backup, or from a `put` that ended after its row
 * was swept.
 * @param grace milliseconds for which content that the database does not know is left alone; and between two passes
 */
export function createOrphanSearch(
  contents: ContentStore,
  { readIdentity, findKnown }: Pick<ContentLedger, 'readIdentity' | 'findKnown'>,
  grace: number,
): { step(): Promise<void>; close(): Promise<void> } {
  /** What could not be removed: it is passed over until a pass has come to its end. */
  const stuck = new Set<string>()
  let pass: AsyncIterator<ListedContent> | undefined
  let nextPass = 0

  async function readStep(identity: string): Promise<ListedContent[]> {
    const found: ListedContent[] = []
    pass ??= contents.list()[Symbol.asyncIterator]()
    for (let count = 0; count < STEP_SIZE; count++) {
      const next = await pass.next()
      if (next.done === true) {
        pass = undefined
        stuck.clear()
        nextPass = performance.now() + grace
        break
      }
      const { key, age } = next.value
      if (age > grace && key.startsWith(identity) && !stuck.has(key)) found.push(next.value)
    }
    return found
  }

  async function close(): Promise<void> {
    const open = pass
    pass = undefined
    await open?.return?.()
  }

  return {
    async step() {
      if (pass === undefined && performance.now() < nextPass) return
      try {
        const found = await readStep(await readIdentity())
        if (found.length === 0) return
        const known = await findKnown(found.map(({ key }) => key))
        for (const one of found) {
          if (known.has(one.key)) continue
          stuck.add(one.key)
          await one.remove()
          stuck.delete(one.key)
        }
      } catch (error) {
        await close()
        throw error
      }
    },
    close,
  }
}
