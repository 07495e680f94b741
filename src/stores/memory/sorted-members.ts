import { createRecentCache } from '../../core/caches.ts'
import type { ListOptions, Page } from '../lists.ts'
import { nameOf, parseIntegerName } from '../rules.ts'
import type { Collection, Entry } from './member-index.ts'

const CHUNK = 512

/**
 * Items in the order of their keys.
 * Chunks of at most 512 keep inserting and seeking cheap, however many items there are. A record and functions on it,
 * for there may be as many lists as resources.
 */
interface SortedList<Key extends number | string, Item> {
  size: number
  readonly chunks: Chunk<Key, Item>[]
}

/** Keys and items side by side: a search then touches keys only. */
interface Chunk<Key, Item> {
  readonly keys: Key[]
  readonly items: Item[]
}

export function createSortedList<Key extends number | string, Item>(): SortedList<Key, Item> {
  return { size: 0, chunks: [] }
}

/** Adds an item, or puts it in the place of the one with the same key. */
export function setItem<Key extends number | string, Item>(list: SortedList<Key, Item>, key: Key, item: Item): void {
  const { chunks } = list
  const index = findChunk(chunks, key)
  const chunk = chunks[index]
  if (chunk === undefined) {
    chunks.push({ keys: [key], items: [item] })
    list.size = 1
    return
  }
  const at = lowerBound(chunk.keys, key)
  if (chunk.keys[at] === key) {
    chunk.items[at] = item
    return
  }
  list.size++
  if (at >= CHUNK && index === chunks.length - 1) {
    chunks.push({ keys: [key], items: [item] }) // ascending keys fill whole chunks
    return
  }
  if (at === chunk.keys.length) {
    chunk.keys.push(key)
    chunk.items.push(item)
  } else {
    chunk.keys.splice(at, 0, key)
    chunk.items.splice(at, 0, item)
  }
  if (chunk.keys.length <= CHUNK) return
  const half = CHUNK >> 1
  chunks.splice(index + 1, 0, { keys: chunk.keys.splice(half), items: chunk.items.splice(half) })
}

export function deleteItem<Key extends number | string, Item>(list: SortedList<Key, Item>, key: Key): void {
  const { chunks } = list
  const index = findChunk(chunks, key)
  const chunk = chunks[index]
  if (chunk === undefined) return
  const at = lowerBound(chunk.keys, key)
  if (chunk.keys[at] !== key) return
  chunk.keys.splice(at, 1)
  chunk.items.splice(at, 1)
  if (chunk.keys.length === 0) chunks.splice(index, 1)
  list.size--
}

/** Appends items whose keys come after one, from the first when it is left out, until there are `limit` of them. */
export function collectItems<Key extends number | string, Item>(
  { chunks }: SortedList<Key, Item>,
  after: Key | undefined,
  limit: number,
  items: Item[],
): void {
  if (chunks.length === 0) return
  let index = 0
  let at = 0
  if (after !== undefined) {
    index = findChunk(chunks, after)
    const { keys } = chunks[index]!
    at = lowerBound(keys, after)
    if (keys[at] === after) at++
  }
  for (; index < chunks.length && items.length < limit; index++, at = 0) {
    const chunk = chunks[index]!
    for (; at < chunk.items.length && items.length < limit; at++) items.push(chunk.items[at]!)
  }
}

export function itemsBelow<Item>({ chunks }: SortedList<string, Item>, prefix: string): Item[] {
  const items: Item[] = []
  if (chunks.length === 0) return items
  let index = findChunk(chunks, prefix)
  let at = lowerBound(chunks[index]!.keys, prefix)
  for (; index < chunks.length; index++, at = 0) {
    const chunk = chunks[index]!
    for (; at < chunk.keys.length; at++) {
      if (!chunk.keys[at]!.startsWith(prefix)) return items
      items.push(chunk.items[at]!)
    }
  }
  return items
}

/** Index of the chunk in which a key stands or would stand. */
function findChunk<Key extends number | string, Item>(chunks: readonly Chunk<Key, Item>[], key: Key): number {
  let low = 0
  let high = chunks.length - 1
  // Mostly it is the last one: names are assigned in ascending order.
  if (high > 0 && key >= chunks[high]!.keys[0]!) return high
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (chunks[middle]!.keys[0]! <= key) low = middle
    else high = middle - 1
  }
  return low
}

/** Index of the first key that is not before a given one. */
function lowerBound<Key extends number | string>(keys: readonly Key[], key: Key): number {
  let low = 0
  let high = keys.length
  if (high > 0 && key > keys[high - 1]!) return high
  while (low < high) {
    const middle = (low + high) >>> 1
    if (keys[middle]! < key) low = middle + 1
    else high = middle
  }
  return low
}

/** The members of one collection in listing order: integer names by value, then all others by code unit. */
export interface SortedMembers {
  /** What every path begins with before the name: the path of the collection and a slash. */
  readonly prefix: string
  readonly integers: SortedList<number, Entry>
  /** By path: all paths share the prefix, so whole paths are in the order of the names. */
  readonly others: SortedList<string, Entry>
}

export function createSortedMembers(prefix: string): SortedMembers {
  return { prefix, integers: createSortedList(), others: createSortedList() }
}

export function countMembers({ integers, others }: SortedMembers): number {
  return integers.size + others.size
}

/**
 * Adds a member, or puts it in the place of the one with the same path.
 * @param integer the value of its name, where that is an integer
 */
export function setMember({ integers, others }: SortedMembers, entry: Entry, integer: number | undefined): void {
  if (integer === undefined) setItem(others, entry.path, entry)
  else setItem(integers, integer, entry)
}

export function deleteMember({ integers, others }: SortedMembers, path: string, integer: number | undefined): void {
  if (integer === undefined) deleteItem(others, path)
  else deleteItem(integers, integer)
}

/** At most `limit` members after a name, in order; the first ones when it is left out. */
export function pageOfMembers(members: SortedMembers, after: string | undefined, limit: number): Entry[] {
  const { prefix, integers, others } = members
  const items: Entry[] = []
  const integer = after === undefined ? undefined : parseIntegerName(after)
  const isAmongOthers = after !== undefined && integer === undefined
  if (!isAmongOthers) collectItems(integers, integer, limit, items)
  collectItems(others, isAmongOthers ? prefix + after : undefined, limit, items)
  return items
}

/** Compares two different names: integers by value, then all others by code unit. */
export function compareNames(a: string, b: string): number {
  const x = parseIntegerName(a) ?? Number.POSITIVE_INFINITY
  const y = parseIntegerName(b) ?? Number.POSITIVE_INFINITY
  if (x !== y) return x - y
  return a < b ? -1 : 1
}

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

  return (collection, { after, limit, hidden = false }) => {
    const key = `${limit} ${hidden} ${after?.length} ${after}${collection.path}`
    const known = pages.get(key)
    if (known !== undefined && isCurrent(known, collection)) return known.page
    // One more than the page holds tells whether there is another page.
    let entries = pageOfMembers(collection.visible, after, limit + 1)
    if (hidden && collection.hidden !== undefined) {
      entries = entries.concat(pageOfMembers(collection.hidden, after, limit + 1))
      entries.sort((a, b) => compareNames(nameOf(a.path), nameOf(b.path)))
    }
    const hasMore = entries.length > limit
    if (hasMore) entries.length = limit
    const items = entries.map((entry) => entry.state)
    const page: Page = hasMore ? { items, next: nameOf(items[limit - 1]!.path) } : { items }
    // A caller that keeps a page keeps its entries, although it may have been replaced or removed since.
    const size = items.reduce((sum, item) => sum + item.size, 1024)
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
