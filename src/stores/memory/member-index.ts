import { HttpError } from '../../core/errors.ts'
import { type ListOptions, type Page, parseIntegerName, type StoredResource, splitPath } from '../types.ts'
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

interface Collection {
  readonly path: string
  readonly visible: SortedMembers<StoredResource>
  /** Apart from the others, so that a page costs what it shows, however many are hidden. */
  hidden: SortedMembers<StoredResource> | undefined
  /** The next name to assign: above every integer that was ever a name here. */
  next: number
  /** Names that creations have taken whose content is still on its way. */
  reserved: Set<number> | undefined
}

/** Which resources are members of which collection, and which names are free there. */
export interface MemberIndex {
  /** Adds a resource to its collection, or puts it in the place of the one with the same path. */
  add(resource: StoredResource): void
  remove(path: string): void
  page(collection: string, options: ListOptions): Page
  /**
   * Reserves a name that was never used.
   * @throws HttpError 507 when there is none left
   */
  reserve(collection: string): string
  /** Whether nobody has written a reserved name meanwhile. */
  isReserved(collection: string, name: string): boolean
  /** Gives a reservation up. The name stays unused: that is better than two resources that shared it. */
  release(collection: string, name: string): void
}

export function createMemberIndex(): MemberIndex {
  const collections = new Map<string, Collection>()
  let firstId = 1
  /** Of emptied collections. Of too many the oldest go, and new collections start above them. */
  const idleCounters = createBoundedMap<number>(MAX_IDLE_COUNTERS, (_, next) => {
    firstId = Math.max(firstId, next)
  })

  function open(path: string): Collection {
    const known = collections.get(path)
    if (known !== undefined) return known
    const collection: Collection = {
      path,
      visible: createSortedMembers(path + '/'),
      hidden: undefined,
      next: idleCounters.get(path) ?? firstId,
      reserved: undefined,
    }
    idleCounters.delete(path)
    collections.set(path, collection)
    return collection
  }

  /** An empty collection is reduced to its counter. */
  function closeIfEmpty({ path, visible, hidden, reserved, next }: Collection): void {
    const hiddenCount = hidden === undefined ? 0 : countMembers(hidden)
    if (countMembers(visible) + hiddenCount + (reserved?.size ?? 0) > 0) return
    collections.delete(path)
    if (next > firstId) idleCounters.set(path, next)
  }

  return {
    add(resource) {
      const place = placeOf(resource.path)
      if (place === undefined) return
      const collection = open(place.collection)
      if (resource.hidden === true) {
        collection.hidden ??= createSortedMembers(collection.visible.prefix)
        setMember(collection.hidden, resource)
        deleteMember(collection.visible, resource.path)
      } else {
        setMember(collection.visible, resource)
        if (collection.hidden !== undefined) deleteMember(collection.hidden, resource.path)
      }
      const id = parseIntegerName(place.name)
      if (id === undefined) return
      if (id >= collection.next) collection.next = id + 1
      else collection.reserved?.delete(id)
    },

    remove(path) {
      const place = placeOf(path)
      const collection = place && collections.get(place.collection)
      if (collection === undefined) return
      deleteMember(collection.visible, path)
      if (collection.hidden !== undefined) deleteMember(collection.hidden, path)
      closeIfEmpty(collection)
    },

    page(path, { after, limit, hidden = false }) {
      const collection = collections.get(path)
      if (collection === undefined) return { items: [] }
      // One more than the page holds tells whether there is another page.
      let items = pageOfMembers(collection.visible, after, limit + 1)
      if (hidden && collection.hidden !== undefined) {
        items = merge(items, pageOfMembers(collection.hidden, after, limit + 1))
      }
      if (items.length <= limit) return { items }
      items.length = limit
      return { items, next: nameOf(items[limit - 1]!) }
    },

    reserve(path) {
      const collection = open(path)
      const id = collection.next
      if (!Number.isSafeInteger(id)) {
        closeIfEmpty(collection)
        throw new HttpError(507, 'ERR_OUT_OF_SPACE', { detail: 'The collection has no names left.' })
      }
      collection.next = id + 1
      collection.reserved ??= new Set()
      collection.reserved.add(id)
      return String(id)
    },

    isReserved(path, name) {
      return collections.get(path)?.reserved?.has(Number(name)) === true
    },

    release(path, name) {
      const collection = collections.get(path)
      if (collection?.reserved?.delete(Number(name))) closeIfEmpty(collection)
    },
  }
}

/** Paths that are members of nothing have no place: without a slash, or with one at the end. */
function placeOf(path: string): { readonly collection: string; readonly name: string } | undefined {
  const place = path.includes('/') ? splitPath(path) : undefined
  return place?.name === '' ? undefined : place
}

function merge(a: readonly StoredResource[], b: readonly StoredResource[]): StoredResource[] {
  return [...a, ...b].sort((x, y) => compareNames(nameOf(x), nameOf(y)))
}

function nameOf({ path }: StoredResource): string {
  return splitPath(path).name
}
