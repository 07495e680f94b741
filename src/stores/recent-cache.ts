import { createGenerations } from '../core/generations.ts'
import type { Page } from './lists.ts'
import type { RowHead } from './sql/rows.ts'
import { isLargeBody, type StoredResource } from './types.ts'

/**
 * Keeps what is asked for again, up to a number of bytes. What is asked for only once, as by a crawler or a long
 * download, drives nothing out.
 */
export interface RecentCache<Key, Value> {
  get(key: Key): Value | undefined
  /** Whether this was called for the key before, not long ago: the value is worth keeping then. */
  isWanted(key: Key, size: number): boolean
  /** @param size bytes that the value takes */
  set(key: Key, value: Value, size: number): void
}

/** @param limit bytes for all values together; 0 keeps nothing */
export function createRecentCache<Key, Value>(limit: number): RecentCache<Key, Value> {
  const kept = createGenerations<Key, Value>(limit)
  const asked = createGenerations<Key, true>(limit)
  return {
    get: kept.get,
    set: kept.set,
    isWanted(key, size) {
      if (asked.get(key) !== undefined) return true
      asked.set(key, true, size)
      return false
    },
  }
}

/** A live row, for those who replace it, and what its readers are given. */
export interface KnownState extends RowHead {
  readonly resource: StoredResource
}

/** A page of live members, and the versions that it was made of. */
interface KnownPage {
  readonly versions: string
  readonly page: Page
}

/**
 * States that are asked for repeatedly. Another process, or other code with the same handle, may have written
 * since, so a user of one asks the table for the version first, which costs a fraction of reading the row. No version
 * comes twice, so the same version is the same state.
 */
export interface KnownStates {
  find(path: string): KnownState | undefined
  /** The state of a path that has a version, where it is known. */
  resourceOf(path: string, version: string): StoredResource | undefined
  /** Keeps the state of a path that was offered before. */
  offer(row: Pick<RowHead, 'path' | 'state' | 'content_id'>, resource: StoredResource): void
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

    resourceOf(path, version) {
      const known = states.get(path)
      return known?.version === version ? known.resource : undefined
    },

    offer({ path, state, content_id }, resource) {
      const size = sizeInMemory(resource)
      if (!states.isWanted(resource.path, size)) return
      const { version, lastModified } = resource
      states.set(resource.path, { path, state, version, changed: lastModified!, content_id, resource }, size)
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
