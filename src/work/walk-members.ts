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
