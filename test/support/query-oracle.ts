import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { isHttpError } from '../../src/core/errors.ts'
import type {
  CollectionIndex,
  Condition,
  IndexedValue,
  IndexedValues,
  ListQuery,
  OrderKey,
} from '../../src/stores/lists.ts'
import type { Content, Page, ResourceStore } from '../../src/stores/types.ts'
import { createRandom, type Random } from '../stress/fuzzer.ts'

/**
 * Generated queries over generated items, compared with `filter` and `sort` over an array. Nothing here comes from the
 * code of the stores: values are compared in a way of its own.
 */
export interface QueryCheck {
  /** Items at the start. */
  readonly items: number
  /** Queries over items that stay, each walked through page by page. */
  readonly queries: number
  /** Changes, during each of which one page is read, and one after it. */
  readonly changes: number
  /** Default 1. */
  readonly seed?: number
}

interface Item {
  readonly values: IndexedValues
  readonly hidden: boolean
}

type Items = Map<string, Item>

interface Question {
  readonly query: ListQuery
  readonly limit: number
  readonly hidden: boolean
}

const COLLECTION = '/things'
const VALUES: Readonly<Record<string, readonly IndexedValue[]>> = {
  due: Array.from({ length: 300 }, (_, day) => new Date(Date.UTC(2026, 0, 1 + day)).toISOString()),
  flag: [null, false, true],
  mixed: [null, false, true, -1, 0, 1, 1.5, 2 ** 53, '', '0', '1', 'true', 'z', '\uffff', '\u{10000}'],
  owner: ['ann', 'bob', 'ann ', 'Ann', 'cy', null],
  rank: [null, ...Array.from({ length: 40 }, (_, i) => (i - 20) * 0.75), 1e300, -1e300],
  status: ['open', 'done', 'late'],
  text: ['a', 'A', 'ab', 'abc', 'b', 'é', 'e\u0301', '%', '_', "'", '\\', '', ' ', '🜚', '\ue000', 'a'.repeat(256)],
}
const PROPERTIES = Object.keys(VALUES)
export const ORACLE_INDEX: CollectionIndex = {
  version: 'oracle',
  properties: PROPERTIES,
  scope: ['owner'],
  valuesOf: ({ body }) => JSON.parse(typeof body === 'string' ? body : Buffer.from(body as Uint8Array).toString()),
}

/** @throws AssertionError with the query and the seed where the answer of the store is another */
export async function checkQueries(store: ResourceStore, check: QueryCheck): Promise<void> {
  const { items: size, queries, changes, seed = 1 } = check
  const random = createRandom(seed)
  const items: Items = new Map()
  for (let i = 0; i < size; i++) await applyChange(store, items, createChange(random, items, 'write'))
  for (let i = 0; i < queries; i++) {
    const question = createQuestion(random)
    await checkWalk(store, question, answer(items, question), `query ${i} of seed ${seed}`)
  }
  for (let i = 0; i < changes; i++) {
    const [during, after] = [createQuestion(random), createQuestion(random)]
    const before = answer(items, during)
    const change = createChange(random, items)
    const [page] = await Promise.all([readPage(store, during, undefined), applyChange(store, items, change)])
    const names = namesOn(page)
    const expected = [before, answer(items, during)].map((names) => names.slice(0, during.limit))
    expect(expected, `${describeQuestion(during)} during change ${i} of seed ${seed}`).toContainEqual(names)
    await checkWalk(store, after, answer(items, after), `after change ${i} of seed ${seed}`)
  }
}

function pick<Value>(random: Random, values: readonly Value[]): Value {
  return values[random(values.length)]!
}

/** What the store should answer: the names of all members, in order. */
function answer(items: Items, { query: { where, orderBy }, hidden }: Question): string[] {
  return [...items]
    .filter(([, item]) => (hidden || !item.hidden) && where.every((condition) => matches(item.values, condition)))
    .sort(([a, x], [b, y]) => {
      for (const { property, direction } of orderBy) {
        const order = compare(valueIn(x.values, property), valueIn(y.values, property))
        if (order !== 0) return direction === 'descending' ? -order : order
      }
      return compareNames(a, b)
    })
    .map(([name]) => name)
}

function valueIn(values: IndexedValues, property: string): IndexedValue {
  return values[property] ?? null
}

function matches(values: IndexedValues, condition: Condition): boolean {
  const value = valueIn(values, condition.property)
  if ('values' in condition) {
    const isNamed = value !== null && condition.values.includes(value)
    return isNamed === (condition.operator === 'in')
  }
  if (condition.operator === 'exists') return condition.value === (value !== null)
  if (condition.operator === 'prefix') return typeof value === 'string' && value.startsWith(condition.value)
  if (value === null || typeof value !== typeof condition.value) return false
  const order = compare(value, condition.value)
  return { gt: order > 0, gte: order >= 0, lt: order < 0, lte: order <= 0 }[condition.operator]
}

/** Types in their order; numbers by value, strings by the bytes of UTF-8. */
function compare(a: IndexedValue, b: IndexedValue): number {
  const types = ['object', 'boolean', 'number', 'string']
  const order = types.indexOf(typeof a) - types.indexOf(typeof b)
  if (order !== 0) return order
  return typeof a === 'string' ? Buffer.compare(Buffer.from(a), Buffer.from(b as string)) : Number(a) - Number(b)
}

function compareNames(a: string, b: string): number {
  const [x, y] = [a, b].map((name) => /^(?:0|[1-9]\d*)$/.test(name))
  if (x && y) return Number(a) - Number(b)
  return x ? -1 : y ? 1 : compare(a, b)
}

type Change =
  | { readonly kind: 'write'; readonly name: string; readonly values: IndexedValues; readonly isPlain: boolean }
  | { readonly kind: 'erase' | 'tombstone' | 'hide'; readonly name: string }

function createChange(random: Random, items: Items, only?: 'write'): Change {
  const names = [...items.keys()]
  const known = names.length > 0 && random(3) > 0 && only === undefined
  const name = known ? pick(random, names) : pick(random, [String(random(5000)), `n${random(5000)}`, `é${random(99)}`])
  const kind = only ?? pick(random, ['write', 'write', 'write', 'erase', 'tombstone', 'hide'] as const)
  if (kind !== 'write') return { kind, name }
  // A value may be left out as well.
  const given = PROPERTIES.filter(() => random(12) > 0)
  const values = Object.fromEntries(given.map((property) => [property, pick(random, VALUES[property]!)]))
  return { kind, name, values, isPlain: random(8) === 0 }
}

async function applyChange(store: ResourceStore, items: Items, change: Change): Promise<void> {
  const { kind, name } = change
  const path = `${COLLECTION}/${name}`
  if (kind === 'write') {
    const { values, isPlain } = change
    const content: Content = { contentType: 'application/json', body: JSON.stringify(values) }
    const indexed = { index: ORACLE_INDEX, values }
    const result = await store.write(path, isPlain ? content : { ...content, indexed }, { expect: 'any' })
    expect(result.outcome).not.toBe('conflict')
    items.set(name, { values, hidden: false })
    return
  }
  const item = items.get(name)
  const isVisible = item !== undefined && !item.hidden
  const result = await store.remove(path, { expect: 'any', mode: kind })
  expect(result.outcome).toBe(isVisible ? 'removed' : 'absent')
  if (!isVisible) return
  if (kind === 'hide') items.set(name, { ...item, hidden: true })
  else items.delete(name)
}

function createQuestion(random: Random): Question {
  const where = Array.from({ length: random(4) }, () => createCondition(random))
  // As the service does it for a scope.
  if (random(2) === 0) where.push({ property: 'owner', operator: 'in', values: [pick(random, ['ann', 'bob', 'cy'])] })
  const keys = Array.from({ length: random(3) }, () => pick(random, PROPERTIES))
  const orderBy = [...new Set(keys)].map((property): OrderKey => {
    return { property, direction: pick(random, ['ascending', 'descending']) }
  })
  const query = { index: ORACLE_INDEX, where, orderBy, count: random(2) === 0 }
  return { query, limit: pick(random, [1, 2, 3, 7, 20, 100, 1000]), hidden: random(4) === 0 }
}

function createCondition(random: Random): Condition {
  const property = pick(random, PROPERTIES)
  const wanted = VALUES[property]!.filter((value) => value !== null)
  const operator = pick(random, ['in', 'in', 'notIn', 'gt', 'gte', 'lt', 'lte', 'exists', 'prefix'] as const)
  if (operator === 'in' || operator === 'notIn')
    return { property, operator, values: Array.from({ length: 1 + random(8) }, () => pick(random, wanted)) }
  if (operator === 'exists') return { property, operator, value: random(2) === 0 }
  const value = pick(random, wanted)
  if (operator === 'prefix') return { property, operator, value: [...String(value)].slice(0, random(9)).join('') }
  return { property, operator, value }
}

/** Reads page by page, at most forty of them, and compares each. */
async function checkWalk(store: ResourceStore, question: Question, expected: readonly string[], where: string) {
  const { query, limit } = question
  const note = `${describeQuestion(question)}, ${where}`
  let after: string | undefined
  for (let from = 0, pages = 0; pages < 40; from += limit, pages++) {
    const page = await readPage(store, question, after)
    expect(namesOn(page), `${note}, from ${from}`).toEqual(expected.slice(from, from + limit))
    expect(page.total, note).toBe(query.count ? expected.length : undefined)
    expect(page.next !== undefined, `${note}: a cursor exactly while there is more`).toBe(
      from + limit < expected.length,
    )
    if (page.next === undefined) return
    after = page.next
  }
}

function namesOn({ items }: Page): string[] {
  return items.map(({ path }) => path.slice(COLLECTION.length + 1))
}

/** A page, as soon as it is there: a member that was written without values may have to be indexed first. */
async function readPage(store: ResourceStore, { query, limit, hidden }: Question, after: string | undefined) {
  for (const end = Date.now() + 20_000; ; await sleep(2)) {
    try {
      return await store.list(COLLECTION, { query, limit, hidden, after })
    } catch (error) {
      if (!isHttpError(error) || error.status !== 503 || Date.now() > end) throw error
    }
  }
}

function describeQuestion({ query: { where, orderBy }, limit, hidden }: Question): string {
  return JSON.stringify({ where, orderBy, limit, hidden })
}
