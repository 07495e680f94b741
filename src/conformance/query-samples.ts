import { setTimeout as sleep } from 'node:timers/promises'
import { isHttpError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { CollectionIndex, Condition, IndexedValues, ListQuery, OrderKey } from '../stores/lists.ts'
import { type Content, isLargeBody, type Page, type ResourceStore, type StoredResource } from '../stores/types.ts'
import { claim, claimEqual, readContent, toBuffer } from './claims.ts'
import { nameOf, put } from './samples.ts'

/** Milliseconds that a store may take to index the members of a case. */
const INDEX_LIMIT = 20_000

/** Rules for content that is the JSON object of its values. */
export function createIndex(
  version: string,
  properties: readonly string[],
  scope: readonly string[] = [],
): CollectionIndex {
  return { version, properties: properties.toSorted(), scope, valuesOf: (item) => readValues(item, properties) }
}

function readValues(item: StoredResource, properties: readonly string[]): MaybePromise<IndexedValues> {
  const parse = (text: string): IndexedValues => {
    const values = JSON.parse(text) as IndexedValues
    return Object.fromEntries(properties.map((name) => [name, Object.hasOwn(values, name) ? values[name]! : null]))
  }
  return isLargeBody(item.body)
    ? readContent(item).then((bytes) => parse(String(bytes)))
    : parse(String(toBuffer(item.body)))
}

/** Content from which the values can be taken as well. */
export function plain(values: IndexedValues): Content {
  return { contentType: 'application/json', body: JSON.stringify(values) }
}

/** Content that is passed with its values. */
export function indexed(index: CollectionIndex, values: IndexedValues): Content {
  return { ...plain(values), indexed: { index, values } }
}

export interface Question {
  readonly where?: readonly Condition[]
  /** Names of properties, with `-` before those in descending order. */
  readonly order?: readonly string[]
  readonly count?: boolean
  readonly limit?: number
  readonly after?: string | undefined
  readonly hidden?: boolean
}

export function createQuery(index: CollectionIndex, { where = [], order = [], count = false }: Question): ListQuery {
  const orderBy = order.map((key): OrderKey => {
    const isDescending = key.startsWith('-')
    return { property: isDescending ? key.slice(1) : key, direction: isDescending ? 'descending' : 'ascending' }
  })
  return { index, where, orderBy, count }
}

/** A page, as soon as the members that are there already are indexed. */
export async function ask(
  store: ResourceStore,
  collection: string,
  index: CollectionIndex,
  question: Question,
): Promise<Page> {
  for (const end = Date.now() + INDEX_LIMIT; ; await sleep(5)) {
    const page = await tryAsk(store, collection, index, question)
    if (page !== undefined) return page
    claim(Date.now() < end, 'A list with a query is still refused with 503: existing members are not indexed in time.')
  }
}

/** A page, or nothing while a store says that it is indexing. */
export async function tryAsk(
  store: ResourceStore,
  collection: string,
  index: CollectionIndex,
  question: Question,
): Promise<Page | undefined> {
  const { limit = 100, after, hidden = false } = question
  try {
    const page = await store.list(collection, { limit, after, hidden, query: createQuery(index, question) })
    claim(page.items.length <= limit, `A page of at most ${limit} items has ${page.items.length}.`)
    return page
  } catch (error) {
    if (!isHttpError(error) || error.status !== 503) throw error
    claim(error.headers['Retry-After'] !== undefined, 'A list is refused with 503 and without Retry-After.')
    return undefined
  }
}

/** The names of all members that a question finds, page by page; `between` runs after each page but the last. */
export async function walkNames(
  store: ResourceStore,
  collection: string,
  index: CollectionIndex,
  question: Question,
  between: () => unknown = () => {},
): Promise<string[]> {
  const names: string[] = []
  for (let after: string | undefined, pages = 0; ; pages++) {
    claim(pages < 2000, 'The walk through the pages never ends.')
    const page: Page = await ask(store, collection, index, { ...question, after })
    names.push(...page.items.map(nameOf))
    if (page.next === undefined) return names
    after = page.next
    await between()
  }
}

/** Fails unless a question finds these members, in this order, in one page and in many. */
export async function claimFound(
  store: ResourceStore,
  collection: string,
  index: CollectionIndex,
  question: Question,
  expected: readonly (string | number)[],
  sentence: string,
): Promise<void> {
  for (const limit of [100, 3, 1]) {
    const names = await walkNames(store, collection, index, { ...question, limit })
    claimEqual(names, expected.map(String), `${sentence} (pages of ${limit})`)
  }
}

/** Writes members whose content is their values, under the names 1, 2, 3 and so on, or under their own. */
export async function fill(
  store: ResourceStore,
  collection: string,
  index: CollectionIndex | undefined,
  members: readonly IndexedValues[] | Readonly<Record<string, IndexedValues>>,
): Promise<void> {
  const named = Array.isArray(members)
    ? members.map((values, at) => [String(at + 1), values as IndexedValues] as const)
    : Object.entries(members as Readonly<Record<string, IndexedValues>>)
  await Promise.all(
    named.map(([name, values]) =>
      put(store, `${collection}/${name}`, index === undefined ? plain(values) : indexed(index, values)),
    ),
  )
}

/** Members of which every fifth has the same value of `a`. */
export const createMembers = (count: number): IndexedValues[] =>
  Array.from({ length: count }, (_, i) => ({ a: i % 5, b: `b${i}` }))

/** The names of those whose value of `a` is one. */
export const namesWith = (count: number, a: number): number[] =>
  Array.from({ length: count }, (_, i) => i + 1).filter((name) => (name - 1) % 5 === a)

/** Rules that take their time over every item. */
export function slowDown(index: CollectionIndex, milliseconds = 3): CollectionIndex {
  return {
    ...index,
    async valuesOf(item) {
      await sleep(milliseconds)
      return index.valuesOf(item)
    },
  }
}
