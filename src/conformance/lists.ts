import { setTimeout as sleep } from 'node:timers/promises'
import { isHttpError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { CollectionIndex, Condition, IndexedValue, IndexedValues, ListQuery, OrderKey } from '../stores/lists.ts'
import { isLargeBody } from '../stores/rules.ts'
import type { Content, Page, ResourceStore, StoredResource } from '../stores/types.ts'
import { nameOf, put } from './calls.ts'
import { claim, claimEqual, readContent, toBuffer } from './claims.ts'

/** Pages after which a walk is taken for endless. */
const MOST_PAGES = 2000

/**
 * The pages of a list, from the first to the last.
 * @param read gives the page after a cursor
 * @param between runs after each page but the last
 */
export async function* walk(
  read: (after: string | undefined) => MaybePromise<Page>,
  between: (page: number) => unknown = () => {},
): AsyncGenerator<Page, void, void> {
  for (let after: string | undefined, pages = 0; ; pages++) {
    claim(pages < MOST_PAGES, 'The walk through the pages never ends.')
    const page = await read(after)
    yield page
    if (page.next === undefined) return
    after = page.next
    await between(pages)
  }
}

export async function listAll(
  store: ResourceStore,
  collection: string,
  limit: number,
  hidden = false,
): Promise<StoredResource[]> {
  const all: StoredResource[] = []
  for await (const { items } of walk((after) => store.list(collection, { limit, after, hidden }))) {
    claim(items.length <= limit, `A page of at most ${limit} items has ${items.length}.`)
    all.push(...items)
  }
  return all
}

/** The name, and the value, of a member behind a cursor: no other text has it by chance. */
export const BEHIND = 48_151_623

/** Fails if clients can read of a member behind it from a cursor: plain, or in an encoding that is usual for cursors. */
export function claimUntold(cursor: string | undefined): void {
  claim(cursor !== undefined, 'A page that has more members behind it has no cursor.')
  const readings = [cursor, ...(['base64', 'hex'] as const).map((encoding) => String(Buffer.from(cursor, encoding)))]
  const isTold = readings.some((text) => text.includes(String(BEHIND)))
  claim(!isTold, `A cursor names no member behind its page, which a client may not be allowed to see: ${cursor}.`)
}

/** Milliseconds that a store may take to index the members of a case. */
const INDEX_LIMIT = 20_000

/** A list as a case asks for it. */
export interface Question {
  readonly where?: readonly Condition[]
  /** Names of properties, with `-` before those in descending order. */
  readonly order?: readonly string[]
  readonly count?: boolean
  readonly limit?: number
  readonly after?: string | undefined
  readonly hidden?: boolean
}

/** A collection and the index under which it is asked. */
export function listUnder(store: ResourceStore, collection: string, index: CollectionIndex) {
  return {
    /** Writes members whose content is their values, under the names 1, 2, 3 and so on, or under their own. */
    async fill(members: readonly IndexedValues[] | Readonly<Record<string, IndexedValues>>): Promise<void> {
      const name = (key: string) => (Array.isArray(members) ? Number(key) + 1 : key)
      await Promise.all(
        Object.entries(members).map(([key, values]) =>
          put(store, `${collection}/${name(key)}`, indexed(index, values)),
        ),
      )
    },
    /** A page, as soon as the members that are there already are indexed. */
    async ask(question?: Question): Promise<Page> {
      for (const end = Date.now() + INDEX_LIMIT; ; await sleep(5)) {
        const page = await this.tryAsk(question)
        if (page !== undefined) return page
        const late = 'A list with a query is still refused with 503: existing members are not indexed in time.'
        claim(Date.now() < end, late)
      }
    },
    /** A page, or nothing while the store says that it is indexing. */
    async tryAsk(question: Question = {}): Promise<Page | undefined> {
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
    },
    /** The names of all members that a question finds, page by page; `between` runs after each page but the last. */
    async walkNames(question: Question, between?: (page: number) => unknown): Promise<string[]> {
      const names: string[] = []
      for await (const { items } of walk((after) => this.ask({ ...question, after }), between))
        names.push(...items.map(nameOf))
      return names
    },
    /** Fails unless a question finds these members, in this order, in one page and in many. */
    async claimFound(question: Question, expected: readonly (string | number)[], sentence: string): Promise<void> {
      for (const limit of [100, 3, 1]) {
        const names = await this.walkNames({ ...question, limit })
        claimEqual(names, expected.map(String), `${sentence} (pages of ${limit})`)
      }
    },
  }
}

export function createQuery(index: CollectionIndex, { where = [], order = [], count = false }: Question): ListQuery {
  const orderBy = order.map((key): OrderKey => {
    const isDescending = key.startsWith('-')
    return { property: isDescending ? key.slice(1) : key, direction: isDescending ? 'descending' : 'ascending' }
  })
  return { index, where, orderBy, count }
}

/** The condition that a property has one of some values. */
export function is(property: string, ...values: readonly IndexedValue[]): Condition {
  return { property, operator: 'in', values }
}

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
