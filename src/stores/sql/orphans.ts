import type { ContentStore, ListedContent } from '../../contents/types.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'

/** Looks through a content store for content that the database does not know. */
export interface OrphanSearch {
  /** One bounded step; a pass through all keys takes as many as it needs. */
  step(): Promise<void>
  close(): MaybePromise<void>
}

export interface OrphanSearchOptions {
  /** Milliseconds for which content that the database does not know is left alone; and between two passes. */
  readonly grace: number
  /** What the keys of this database begin with. */
  readonly readIdentity: () => MaybePromise<string>
  /** Which of some keys have a row, shown or not. */
  readonly findKnown: (keys: readonly string[]) => MaybePromise<ReadonlySet<string>>
}

/** Keys that one step looks at: a page of S3. */
const STEP_SIZE = 1000

/**
 * Every key has its row before anything is put under it, and loses it only after its content is gone. What is found
 * without a row comes from a database that was restored from an earlier backup, or from a `put` that ended after its row
 * was swept.
 */
export function createOrphanSearch(
  contents: ContentStore,
  { grace, readIdentity, findKnown }: OrphanSearchOptions,
): OrphanSearch {
  let pass: AsyncIterator<ListedContent> | undefined
  let nextPass = 0

  async function readStep(identity: string): Promise<ListedContent[]> {
    const found: ListedContent[] = []
    pass ??= contents.list()[Symbol.asyncIterator]()
    for (let count = 0; count < STEP_SIZE; count++) {
      const next = await pass.next()
      if (next.done === true) {
        pass = undefined
        nextPass = performance.now() + grace
        break
      }
      if (next.value.age > grace && next.value.key.startsWith(identity)) found.push(next.value)
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
        for (const one of found) if (!known.has(one.key)) await one.remove()
      } catch (error) {
        await close()
        throw error
      }
    },
    close,
  }
}
