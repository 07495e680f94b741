import { HttpError } from '../../core/errors.ts'
import { nameOf, parseIntegerName, splitPath } from '../paths.ts'
import { createRecentCache } from '../recent-cache.ts'
import type { ListOptions, Page, StoredResource } from '../types.ts'
import { createBoundedMap } from './bounded-map.ts'
import {
  compareNames,
  countMembers,
  createSortedMembers,
  deleteMember,
  pageOfMembers,
  type SortedMembers,
  setMember,
} from './sorted-members.ts'

const MAX_IDLE_COUNTERS = 10_000
/** Bytes of content on the pages that are kept. */
const PAGES = 4 * 1024 * 1024

/** A path at which something is stored. Its state changes; its place in the collection does not. */
export interface Entry {
  readonly path: string
  state: StoredResource
  /** Whether listings show it, where it is not hidden. */
  isListed: boolean
}

interface Collection {
  readonly path: string
  readonly visible: SortedMembers<Entry>
  /** Apart from the others, so that a page costs what it shows, however many are hidden. */
  hidden: SortedMembers<Entry> | undefined
  /** The next name to assign: above every integer that was ever a name here. */
  next: number
  /** Names that creations have taken whose content is still on its way. */
  reserved: Set<number> | undefined
  /** Counts the members that came and went. */
  changes: number
}

/** A page that was asked for more than once. */
interface KnownPage {
  readonly page: Page
  readonly entries: readonly Entry[]
  readonly collection: Collection
  readonly changes: number
}

/** Where a path stands: in which collection, and the value of its name where that is an integer. */
export interface Place {
  readonly collection: Collection
  readonly integer: number | undefined
}

/** The place of a new member under the next integer. */
export interface MemberPlace extends Place {
  readonly integer: number
}

/** Which resources are members of which collection, and which names are free there. */
export interface MemberIndex {
  /** Adds an entry to its collection, or moves it between the visible and the hidden ones. */
  add(entry: Entry, place?: Place): void
  remove(path: string): void
  page(collection: string, options: ListOptions): Page
  /**
   * Takes a name that was never used.
   * @throws HttpError 507 when there is none left
   */
  take(collection: string): MemberPlace
  /** Keeps a name that was taken for content that is still on its way. */
  reserve(place: MemberPlace): void
  /** Whether nobody has written a reserved name meanwhile. */
  isReserved(place: MemberPlace): boolean
  /** Gives up a name that was taken. It stays unused: that is better than two resources that shared it. */
  release(place: MemberPlace): void
}

export function createMemberIndex(): MemberIndex {
  const collections = new Map<string, Collection>()
  let firstId = 1
  /** Of emptied collections. Of too many the oldest go, and new collections start above them. */
  const idleCounters = createBoundedMap<number>(MAX_IDLE_COUNTERS, (_, next) => {
    firstId = Math.max(firstId, next)
  })

  const pages = createRecentCache<string, KnownPage>(PAGES)

  function open(path: string): Collection {
    const known = collections.get(path)
    if (known !== undefined) return known
    const collection: Collection = {
      path,
      visible: createSortedMembers(path + '/'),
      hidden: undefined,
      next: idleCounters.get(path) ?? firstId,
      reserved: undefined,
      changes: 0,
    }
    idleCounters.delete(path)
    collections.set(path, collection)
    return collection
  }

  /** Paths that are members of nothing have no place: without a slash, or with one at the end. */
  function placeOf(path: string): Place | undefined {
    const { collection, name } = splitPath(path)
    if (name === '' || name === path) return undefined
    return { collection: open(collection), integer: parseIntegerName(name) }
  }

  /** Whether a collection was dropped because it had become empty; its path may be another one by now. */
  const isClosed = (collection: Collection): boolean => collections.get(collection.path) !== collection

  /** An empty collection is reduced to its counter. */
  function closeIfEmpty(collection: Collection): void {
    const { path, visible, hidden, reserved, next } = collection
    if (isClosed(collection)) return
    const hiddenCount = hidden === undefined ? 0 : countMembers(hidden)
    if (countMembers(visible) + hiddenCount + (reserved?.size ?? 0) > 0) return
    collections.delete(path)
    if (next > firstId) idleCounters.set(path, next)
  }

  return {
    add(entry, place = placeOf(entry.path)) {
      if (place === undefined) return
      const { integer } = place
      const collection = isClosed(place.collection) ? open(place.collection.path) : place.collection
      collection.changes++
      if (entry.state.hidden === true) {
        collection.hidden ??= createSortedMembers(collection.visible.prefix)
        setMember(collection.hidden, entry, integer)
        deleteMember(collection.visible, entry.path, integer)
      } else {
        setMember(collection.visible, entry, integer)
        if (collection.hidden !== undefined) deleteMember(collection.hidden, entry.path, integer)
      }
      if (integer === undefined) return
      if (integer >= collection.next) collection.next = integer + 1
      else collection.reserved?.delete(integer)
    },

    remove(path) {
      const place = placeOf(path)
      if (place === undefined) return
      const { collection, integer } = place
      collection.changes++
      deleteMember(collection.visible, path, integer)
      if (collection.hidden !== undefined) deleteMember(collection.hidden, path, integer)
      closeIfEmpty(collection)
    },

    page(path, options) {
      const collection = collections.get(path)
      if (collection === undefined) return { items: [] }
      const { after, limit, hidden = false } = options
      const key = `${limit} ${hidden} ${after?.length} ${after}${path}`
      const known = pages.get(key)
      if (known !== undefined && isCurrent(known, collection)) return known.page
      const { entries, page } = readPage(collection, options)
      // Whoever keeps a page keeps what is on it, although it may have been replaced or removed since.
      const size = page.items.reduce((sum, item) => sum + item.size, 1024)
      if (pages.isWanted(key, size)) pages.set(key, { page, entries, collection, changes: collection.changes }, size)
      return page
    },

    take(path) {
      const collection = open(path)
      const integer = collection.next
      if (!Number.isSafeInteger(integer)) {
        closeIfEmpty(collection)
        throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
      }
      collection.next = integer + 1
      return { collection, integer }
    },

    reserve({ collection, integer }) {
      collection.reserved ??= new Set()
      collection.reserved.add(integer)
    },

    isReserved({ collection, integer }) {
      return collection.reserved?.has(integer) === true
    },

    release({ collection, integer }) {
      collection.reserved?.delete(integer)
      closeIfEmpty(collection)
    },
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
