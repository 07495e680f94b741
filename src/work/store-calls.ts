/** Calls of the store by accepted work, none of which may go on for ever. */

import { atOnce } from '../core/maybe-promise.ts'
import { isStoreFailure } from '../core/operator-log.ts'
import type { ResourceStore, StoredResource } from '../stores/types.ts'

const PAGE = 100
/** Empty pages after which a walk ends: a store that counts its pages may give them for ever. */
const MOST_EMPTY = 100

/** Reads the members of a collection, page by page. */
export async function* walkMembers(store: ResourceStore, collection: string): AsyncGenerator<StoredResource> {
  let after: string | undefined
  let empty = 0
  do {
    const { items, next } = await store.list(collection, { limit: PAGE, after })
    yield* items
    empty = items.length === 0 ? empty + 1 : 0
    after = next
  } while (after !== undefined && empty < MOST_EMPTY)
}

/** Milliseconds that a step of accepted work may take in the store: more than any that is answered at all. */
export const PATIENCE = 600_000

/**
 * Waits for a step of the store. It may never end, where its connection was lost silently: the work would keep its place
 * for good.
 * @throws Error where it has not ended in time; what it does later counts all the same
 */
export async function inTime<Result>(step: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, PATIENCE, new Error('The store has not answered for ten minutes.')).unref()
  })
  try {
    return await Promise.race([step, late])
  } catch (error) {
    if (isStoreFailure(error)) noteStoreFailure(error)
    throw error
  } finally {
    clearTimeout(timer)
  }
}

const storeFailures = new WeakSet<object>()

/** Whether a step in the store has failed with an error, and not the work itself. `fetch` gives that of its body as the cause. */
export function isOfStore(error: unknown): boolean {
  return isNoted(error) || isNoted((error as { readonly cause?: unknown } | null | undefined)?.cause)
}

function isNoted(error: unknown): boolean {
  return storeFailures.has(error as object)
}

function noteStoreFailure(error: unknown): void {
  if (error instanceof Error) storeFailures.add(error)
}

/** Gives content of the store, and notes what the store fails with: not what a stream of the work throws into it. */
export async function* readNoting(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isReading = true
  try {
    for await (const chunk of atOnce(content)) {
      isReading = false
      yield chunk
      isReading = true
    }
  } catch (error) {
    if (isReading) noteStoreFailure(error)
    throw error
  }
}
