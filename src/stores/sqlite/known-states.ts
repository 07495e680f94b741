import { createRecentCache } from '../recent-cache.ts'
import type { RowHead } from '../sql/rows.ts'
import { isLargeBody, type Page, type StoredResource } from '../types.ts'

/** A live row, for those who replace it, and what its readers are given. */
export interface KnownState {
  readonly head: RowHead
  readonly resource: StoredResource
}

/** A page of live members, and the versions that it was made of. */
export interface KnownPage {
  readonly versions: string
  readonly page: Page
}

/**
 * States that are asked for repeatedly. Another process, or other code with the same handle, may have written
 * since, so a user of one asks the table for the version first, which costs a fraction of reading the row. No version
 * comes twice, so the same version is the same state.
 */
export interface KnownStates {
  /** @param path as it stands in the row */
  find(path: string): KnownState | undefined
  /** Keeps the state of a path that was offered before. */
  offer(row: RowHead, resource: StoredResource): void
  findPage(key: string): KnownPage | undefined
  /** Keeps a page that was offered before. */
  offerPage(key: string, rows: readonly RowHead[], page: Page): void
}

/** About what an entry takes beside its content: the objects, and the fields that are derived from them. */
const OVERHEAD = 1024

/** @param limit bytes for the states, and as many for the pages */
export function createKnownStates(limit: number): KnownStates {
  const states = createRecentCache<string, KnownState>(limit)
  const pages = createRecentCache<string, KnownPage>(limit)
  return {
    find: states.get,

    offer({ path, state, version, changed, content_id }, resource) {
      const size = sizeInMemory(resource)
      if (!states.isWanted(path, size)) return
      // The content is not kept a second time.
      states.set(path, { head: { path, state, version, changed, content_id }, resource }, size)
    },

    findPage: pages.get,

    offerPage(key, rows, page) {
      const size = page.items.reduce((sum, item) => sum + sizeInMemory(item), OVERHEAD)
      if (pages.isWanted(key, size)) pages.set(key, { versions: rows.map((row) => row.version).join(), page }, size)
    },
  }
}

function sizeInMemory({ body, size }: StoredResource): number {
  return isLargeBody(body) ? OVERHEAD : OVERHEAD + size
}
