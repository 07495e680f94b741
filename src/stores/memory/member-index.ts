import { HttpError } from '../../core/errors.ts'
import { type CollectionIndex, type ListOptions, type Page, parsePosition } from '../lists.ts'
import { parseIntegerName, splitPath } from '../rules.ts'
import type { StoredResource } from '../types.ts'
import { type CollectionIndexes, createCollectionIndexes } from './collection-indexes.ts'
import { createBoundedMap } from './expiring.ts'
import {
  countMembers,
  createPageReader,
  createSortedList,
  createSortedMembers,
  deleteItem,
  deleteMember,
  itemsBelow,
  pageOfMembers,
  type SortedMembers,
  setItem,
  setMember,
} from './sorted-members.ts'

const MAX_IDLE_COUNTERS = 10_000
/** Counting from 1 does not come this far: a client has chosen a name up there, or the start was random. */
const FAR = 2 ** 48

/** A path at which something is stored. Its state changes; its place in the collection does not. */
export interface Entry {
  readonly path: string
  state: StoredResource
  /** Whether listings show it, where it is not hidden. */
  isListed: boolean
}

export interface Collection {
  readonly path: string
  readonly visible: SortedMembers
  /** Apart from the others, so that a page costs what it shows, however many are hidden. */
  hidden: SortedMembers | undefined
  /** From the first query or the first write with values on. */
  indexes: CollectionIndexes | undefined
  /** The next name to assign: above every integer that was ever a name here. */
  next: number
  /** Names that creations have taken whose content is still on its way. */
  reserved: Set<number> | undefined
  /** Counts the members that came and went. */
  changes: number
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

export type MemberIndex = ReturnType<typeof createMemberIndex>

/** Which resources are members of which collection, and which names are free there. */
export function createMemberIndex() {
  const collections = new Map<string, Collection>()
  let firstId = 1
  /**
   * Of emptied collections. Of too many the oldest go, and new collections start above them. Above one that is far, few
   * names or none may be left: the start is then a random one, where no client can have chosen names beforehand.
   */
  const idleCounters = createBoundedMap<number>(MAX_IDLE_COUNTERS, (_, next) => {
    if (next > firstId) firstId = next < FAR ? next : FAR + Math.floor(Math.random() * 2 ** 52)
  })

  /** Whether any collection has indexes. */
  let hasIndexes = false
  const readPage = createPageReader()
  /** By path: those below one path stand together. */
  const sorted = createSortedList<string, Collection>()
  /** Paths that are members of nothing. */
  const outside = createSortedList<string, string>()

  function open(path: string): Collection {
    const known = collections.get(path)
    if (known !== undefined) return known
    const collection: Collection = {
      path,
      visible: createSortedMembers(path + '/'),
      hidden: undefined,
      indexes: undefined,
      next: idleCounters.get(path) ?? firstId,
      reserved: undefined,
      changes: 0,
    }
    idleCounters.delete(path)
    collections.set(path, collection)
    setItem(sorted, path, collection)
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
    deleteItem(sorted, path)
    if (next > firstId) idleCounters.set(path, next)
  }

  function openIndexes(collection: Collection): CollectionIndexes {
    hasIndexes = true
    collection.indexes ??= createCollectionIndexes((name, limit, isHidden) => {
      const members = isHidden ? collection.hidden : collection.visible
      return members === undefined ? [] : pageOfMembers(members, name, limit)
    })
    return collection.indexes
  }

  return {
    /** Adds an entry to its collection, or moves it between the visible and the hidden ones. */
    add(entry: Entry, place: Place | undefined = placeOf(entry.path)): void {
      if (place === undefined) {
        setItem(outside, entry.path, entry.path)
        return
      }
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

    remove(path: string): void {
      const place = placeOf(path)
      if (place === undefined) {
        deleteItem(outside, path)
        return
      }
      const { collection, integer } = place
      collection.changes++
      collection.indexes?.remove(path)
      deleteMember(collection.visible, path, integer)
      if (collection.hidden !== undefined) deleteMember(collection.hidden, path, integer)
      closeIfEmpty(collection)
    },

    /**
     * Indexes a new state of an entry by the rules that its collection has, and by others that it was written with.
     * @param isNew whether it is the first state of the entry
     */
    index(entry: Entry, index: CollectionIndex | undefined, isNew: boolean): void {
      if (!hasIndexes && index === undefined) return
      const collection = placeOf(entry.path)?.collection
      if (collection === undefined) return
      if (index === undefined) collection.indexes?.update(entry, undefined, isNew)
      else openIndexes(collection).update(entry, index, isNew)
    },

    /** All paths below a path: those that begin with it and a slash. */
    below(path: string): readonly string[] {
      const prefix = `${path}/`
      const paths = itemsBelow(outside, prefix)
      const own = collections.get(path)
      for (const { visible, hidden } of [...(own === undefined ? [] : [own]), ...itemsBelow(sorted, prefix)]) {
        for (const members of hidden === undefined ? [visible] : [visible, hidden]) {
          for (const entry of pageOfMembers(members, undefined, Number.POSITIVE_INFINITY)) paths.push(entry.path)
        }
      }
      return paths
    },

    page(path: string, options: ListOptions): Page {
      const { query } = options
      const collection = collections.get(path)
      if (collection === undefined) {
        if (query !== undefined && options.after !== undefined) parsePosition(options.after, query)
        return query?.count === true ? { items: [], total: 0 } : { items: [] }
      }
      return query === undefined ? readPage(collection, options) : openIndexes(collection).page(query.index, options)
    },

    /** Takes a name that was never used. @throws HttpError 507 when there is none left */
    take(path: string): MemberPlace {
      const collection = open(path)
      const integer = collection.next
      if (!Number.isSafeInteger(integer)) {
        closeIfEmpty(collection)
        throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
      }
      collection.next = integer + 1
      return { collection, integer }
    },

    /** Keeps a name that was taken for content that is still on its way. */
    reserve({ collection, integer }: MemberPlace): void {
      collection.reserved ??= new Set()
      collection.reserved.add(integer)
    },

    /** Whether a reserved name has not been written meanwhile. */
    isReserved({ collection, integer }: MemberPlace): boolean {
      return collection.reserved?.has(integer) === true
    },

    /** Gives up a name that was taken. It stays unused: that is better than two resources that shared it. */
    release({ collection, integer }: MemberPlace): void {
      collection.reserved?.delete(integer)
      closeIfEmpty(collection)
    },
  }
}
