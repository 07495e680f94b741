import { HttpError } from '../../../src/core/errors.ts'
import {
  type CollectionIndex,
  type Condition,
  compareText,
  compareValues,
  formatPosition,
  type IndexedValue,
  type IndexedValues,
  type ListPosition,
  type ListQuery,
  meetsCondition,
  type OrderKey,
  parsePosition,
} from '../../../src/stores/lists.ts'
import { memoryStore } from '../../../src/stores/memory.ts'
import { nameOf, parseIntegerName } from '../../../src/stores/rules.ts'
import type { Content, ListOptions, Page, ResourceStore, StoredResource } from '../../../src/stores/types.ts'

/** A member and the values that it has in the eyes of the store. */
export interface Candidate {
  readonly item: StoredResource
  readonly name: string
  readonly values: IndexedValues
}

/** What a store that answers queries by looking at every member consists of. A mutant has another piece in place of one. */
export interface Pieces {
  /** Values by which a member is found. */
  valuesOf(item: StoredResource, index: CollectionIndex, sound: ResourceStore): IndexedValues | Promise<IndexedValues>
  value(values: IndexedValues, property: string): IndexedValue
  meets(value: IndexedValue, condition: Condition): boolean
  meetsAll(values: IndexedValues, where: readonly Condition[], pieces: Pieces): boolean
  isListed(item: StoredResource, hidden: boolean): boolean
  compareKeys(a: IndexedValue, b: IndexedValue): number
  direct(order: number, key: OrderKey, orderBy: readonly OrderKey[]): number
  compareNames(a: string, b: string, orderBy: readonly OrderKey[]): number
  format(position: ListPosition, query: ListQuery): string
  parse(cursor: string, query: ListQuery): ListPosition
  page(matching: readonly Candidate[], rest: readonly Candidate[], options: ListOptions): Page
  total(matching: readonly Candidate[], page: Page, rest: readonly Candidate[], query: ListQuery): number | undefined
}

/** Compares names of one collection: integers by value, then others by code point. */
export function compareNames(a: string, b: string): number {
  const x = parseIntegerName(a)
  const y = parseIntegerName(b)
  if (x !== undefined && y !== undefined) return x - y
  if (x !== undefined) return -1
  return y !== undefined ? 1 : compareText(a, b)
}

const SOUND: Pieces = {
  valuesOf: (item, index) =>
    item.indexed?.index.version === index.version ? item.indexed.values : Promise.resolve(index.valuesOf(item)),
  value: (values, property) => (Object.hasOwn(values, property) ? values[property]! : null),
  meets: meetsCondition,
  meetsAll: (values, where, pieces) =>
    where.every((condition) => pieces.meets(pieces.value(values, condition.property), condition)),
  isListed: (item, hidden) => hidden || item.hidden !== true,
  compareKeys: compareValues,
  direct: (order, { direction }) => (direction === 'descending' ? -order : order),
  compareNames,
  format: formatPosition,
  parse: parsePosition,
  page: (_, rest, { limit }) => ({ items: rest.slice(0, limit).map(({ item }) => item) }),
  total: (matching, _, __, { count }) => (count ? matching.length : undefined),
}

/** A store whose queries are made of pieces, some of which are others. */
export function naive(
  changed: (pieces: Pieces) => Partial<Pieces>,
  wrap: (sound: ResourceStore) => Partial<ResourceStore> = () => ({}),
) {
  return (): ResourceStore => {
    const pieces = { ...SOUND, ...changed(SOUND) }
    const own = memoryStore()
    const sound = { ...own, ...wrap(own) }
    return {
      ...sound,
      list(collection, options) {
        const { query } = options
        return query === undefined ? sound.list(collection, options) : answer(sound, collection, options, query, pieces)
      },
    }
  }
}

async function answer(
  sound: ResourceStore,
  collection: string,
  options: ListOptions,
  query: ListQuery,
  pieces: Pieces,
) {
  const { after, hidden = false } = options
  const { where, orderBy, index } = query
  const positionOf = ({ values, name }: Candidate): ListPosition => ({
    keys: orderBy.map(({ property }) => pieces.value(values, property)),
    name,
  })
  const compare = (a: ListPosition, b: ListPosition): number => {
    for (const [at, key] of orderBy.entries()) {
      const order = pieces.direct(pieces.compareKeys(a.keys[at]!, b.keys[at]!), key, orderBy)
      if (order !== 0) return order
    }
    return pieces.compareNames(a.name, b.name, orderBy)
  }
  const start = after === undefined ? undefined : pieces.parse(after, query)
  const { items } = await sound.list(collection, { limit: 1_000_000, hidden: true })
  const candidates = await Promise.all(
    items.map(async (item) => ({ item, name: nameOf(item.path), values: await pieces.valuesOf(item, index, sound) })),
  )
  index.report?.({ indexed: candidates.length, isDone: true })
  const matching = candidates
    .filter(({ item, values }) => pieces.isListed(item, hidden) && pieces.meetsAll(values, where, pieces))
    .sort((a, b) => compare(positionOf(a), positionOf(b)))
  const rest = start === undefined ? matching : matching.filter((one) => compare(positionOf(one), start) > 0)
  const page = pieces.page(matching, rest, options)
  const last = rest[page.items.length - 1]
  const total = pieces.total(matching, page, rest, query)
  return {
    ...(page.items.length < rest.length && last && { next: pieces.format(positionOf(last), query) }),
    ...page,
    ...(total !== undefined && { total }),
  }
}

/** A store that indexes members that exist already wrongly. */
export const refuse = (headers: Record<string, string> = { 'Retry-After': '1' }): never => {
  throw new HttpError(503, 'ERR_UNAVAILABLE', { headers })
}

/** The same content without its values. */
export function stripped({ indexed: _, ...content }: Content): Content {
  return content
}
