import type { ListOptions, Page } from '../lists.ts'
import { createRecentCache } from '../recent-cache.ts'
import { nameOf } from '../types.ts'
import type { Collection, Entry } from './member-index.ts'
import { compareNames, pageOfMembers } from './sorted-members.ts'

/** Bytes of content on the pages that are kept. */
const PAGES = 4 * 1024 * 1024

/** A page that was asked for more than once. */
interface KnownPage {
  readonly page: Page
  readonly entries: readonly Entry[]
  readonly collection: Collection
  readonly changes: number
}

/** Reads pages of collections; those that were asked for before are the same objects until something on them changes. */
export function createPageReader(): (collection: Collection, options: ListOptions) => Page {
  const pages = createRecentCache<string, KnownPage>(PAGES)

  return (collection, options) => {
    const { after, limit, hidden = false } = options
    const key = `${limit} ${hidden} ${after?.length} ${after}${collection.path}`
    const known = pages.get(key)
    if (known !== undefined && isCurrent(known, collection)) return known.page
    const { entries, page } = readPage(collection, options)
    // A caller that keeps a page keeps its entries, although it may have been replaced or removed since.
    const size = page.items.reduce((sum, item) => sum + item.size, 1024)
    if (pages.isWanted(key, size)) pages.set(key, { page, entries, collection, changes: collection.changes }, size)
    return page
  }
}

function isCurrent({ page, entries, collection, changes }: KnownPage, now: Collection): boolean {
  if (collection !== now || changes !== now.changes) return false
  const { items } = page
  for (let i = 0; i < items.length; i++) if (items[i] !== entries[i]!.state) return false
  return true
}

function readPage({ visible, hidden }: Collection, { after, limit, hidden: withHidden = false }: ListOptions) {
  // One more than the page holds tells whether there is another page.
  let entries = pageOfMembers(visible, after, limit + 1)
  if (withHidden && hidden !== undefined) entries = merge(entries, pageOfMembers(hidden, after, limit + 1))
  const hasMore = entries.length > limit
  if (hasMore) entries.length = limit
  const items = entries.map((entry) => entry.state)
  const page: Page = hasMore ? { items, next: nameOf(items[limit - 1]!.path) } : { items }
  return { entries, page }
}

function merge(a: readonly Entry[], b: readonly Entry[]): Entry[] {
  return [...a, ...b].sort((x, y) => compareNames(nameOf(x.path), nameOf(y.path)))
}
