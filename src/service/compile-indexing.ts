import { hash } from 'node:crypto'
import type { Indexing } from '../actions/indexing.ts'
import { MOST_PROPERTIES, QUERY_TYPES, type QueryProperty, type QueryRules, takeAny } from '../actions/query-rules.ts'
import { fetchJson, parseStored } from '../actions/resource-view.ts'
import { invalid } from '../actions/validation.ts'
import type { ContentError } from '../core/errors.ts'
import { equalJson, formatPointerStep, isJsonObject, type JsonValue, readMember } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { formatPointer, parseArrayIndex, parsePointer } from '../patch-formats/json-pointer.ts'
import type { CollectionIndex, IndexedValue, IndexedValues } from '../stores/lists.ts'
import type { StoredResource } from '../stores/types.ts'
import type { CollectionOptions } from './collection-options.ts'
import type { ServiceDefaults } from './compile-route.ts'
import { createScopeNames } from './scope-names.ts'

const NO_NAMES: readonly string[] = []

/** Raised where values are taken in another way by the same options: items are indexed again then. */
const RULES = 1

/** A property as it is indexed. */
interface IndexedProperty {
  readonly name: string
  readonly pointer: readonly string[]
  readonly type: QueryProperty['type'] | 'any'
}

/** What the index has, by the names of the scope that are known. */
interface Built {
  readonly scopeNames: readonly string[]
  /** Names in the index by names of the scope. */
  readonly inIndex: ReadonlyMap<string, string>
  readonly properties: readonly IndexedProperty[]
  readonly names: readonly string[]
  readonly scope: readonly string[]
  readonly version: string
  readonly hasId: boolean
}

/** Bytes: an id, an owner, what is said of files and the result of work may make an item larger than `limits.bodySize`. */
const LARGEST_INDEXED = 64 * 1024 * 1024

/** The indexing of a collection; `undefined` for one without any. */
export function compileIndexing(
  pattern: string,
  options: Readonly<CollectionOptions<JsonValue>>,
  { context, report }: Pick<ServiceDefaults, 'context' | 'report'>,
): Indexing | undefined {
  const rules = readRules(options)
  const { scope } = options
  if (rules === undefined && scope === undefined) return undefined
  const declared = typeof scope === 'object' ? scope.properties : undefined
  const known = scope === undefined ? undefined : createScopeNames(context.store, pattern, declared)
  const queried = [...(rules?.properties.values() ?? [])]
  let built = build(queried, known?.names ?? NO_NAMES)
  let last: CollectionIndex | undefined
  let lastCollection: string | undefined

  function current(): Built {
    const names = known?.names ?? NO_NAMES
    if (built.scopeNames !== names) {
      built = build(queried, names)
      last = undefined
    }
    return built
  }

  /** At once where the content is: a store in memory indexes many items in one turn. */
  function readValues(item: StoredResource, properties: Built['properties']): MaybePromise<IndexedValues> {
    const { bodySize } = context.limits
    const isOwn = context.findRoute(item.path)?.definition === pattern
    const limit = isOwn ? Math.max(bodySize, LARGEST_INDEXED) : bodySize
    const value = item.size > limit ? undefined : andThen(fetchJson(item, limit, undefined), parseStored)
    return andThen(value, (value) => collect(properties, value ?? null, () => undefined))
  }

  return {
    query: rules,
    scope: typeof scope === 'object' ? scope.values : scope,
    declaredScope: declared,
    get scopeNames() {
      return current().scopeNames
    },
    get version() {
      return current().version
    },
    get hasId() {
      return current().hasId
    },
    load: () => known?.load(),
    learn(names): MaybePromise<void> {
      const { inIndex } = current()
      if (names.every((name) => inIndex.has(name))) return undefined
      const missing = names.filter((name) => !inIndex.has(name))
      const count = build(queried, [...current().scopeNames, ...missing]).names.length
      if (count > MOST_PROPERTIES) {
        throw new TypeError(
          `${pattern} has ${count} properties in query and scope; an index has at most ${MOST_PROPERTIES}.`,
        )
      }
      return known!.learn(missing)
    },
    indexOf(collection) {
      const { properties, names, scope, version } = current()
      if (last === undefined || lastCollection !== collection) {
        lastCollection = collection
        last = {
          version,
          properties: names,
          scope,
          valuesOf: (item) => readValues(item, properties),
          report: (progress) => report(collection, progress),
        }
      }
      return last
    },
    nameInIndex: (name) => current().inIndex.get(name)!,
    takeValues(value, kept = null) {
      const faults: ContentError[] = []
      const values = collect(current().properties, value, (property) => {
        if (equalJson(readIndexed(kept, property), readIndexed(value, property))) return
        const { pointer, type } = property
        const text = type === 'any' ? 'text of at most 256 bytes, a number or a boolean' : QUERY_TYPES[type].text
        faults.push({ pointer: formatPointer(pointer), detail: `The value must be ${text}.` })
      })
      if (faults.length > 0) throw invalid(faults)
      return values
    },
    takeIndexable: (value) => collect(current().properties, value, () => undefined),
    valuesOf: (item) => readValues(item, current().properties),
  }
}

/** The rules of the query of a definition; `undefined` where it has none. */
function readRules({ query, count, deletion }: Readonly<CollectionOptions<JsonValue>>): QueryRules | undefined {
  if (query === undefined && count !== true) return undefined
  const properties = Object.entries(query ?? {}).map(([name, given]): [string, QueryProperty] => {
    const { type, pointer, sensitive = false } = typeof given === 'string' ? { type: given } : given
    return [name, { name, type, pointer: parsePointer(pointer ?? formatPointerStep(name))!, isSensitive: sensitive }]
  })
  return { properties: new Map(properties), allowsCount: count === true, allowsDeleted: deletion === 'soft' }
}

/**
 * The name of a property of the scope in the index: that of the same property in `query`, where its values are the same
 * there. Otherwise its pointer, which is not a name of `query`.
 */
function nameInIndex(queried: readonly QueryProperty[], name: string): string {
  const same = queried.find(({ pointer, type }) => pointer.length === 1 && pointer[0] === name && type !== 'date-time')
  return same?.name ?? formatPointerStep(name)
}

function build(queried: readonly QueryProperty[], scopeNames: readonly string[]): Built {
  const all = new Map<string, IndexedProperty>(
    queried.map(({ name, pointer, type }) => [name, { name, pointer, type }]),
  )
  const scope = scopeNames.map((scopeName) => nameInIndex(queried, scopeName))
  for (const [index, name] of scope.entries()) {
    if (!all.has(name)) all.set(name, { name, pointer: [scopeNames[index]!], type: 'any' })
  }
  const properties = [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  const rules = properties.map(({ name, pointer, type }) => [name, pointer, type])
  const version = hash('sha256', JSON.stringify([RULES, rules, scope]), 'base64url').slice(0, 27)
  const inIndex = new Map(scopeNames.map((name, index) => [name, scope[index]!]))
  return {
    scopeNames,
    inIndex,
    properties,
    names: properties.map(({ name }) => name),
    scope: [...scope].sort(),
    version,
    hasId: properties.some(({ pointer }) => pointer[0] === 'id'),
  }
}

/** @param fail called for a value that cannot be indexed, which is left out */
function collect(
  properties: readonly IndexedProperty[],
  value: JsonValue,
  fail: (property: IndexedProperty) => void,
): IndexedValues {
  const values: Record<string, IndexedValue> = {}
  for (const property of properties) {
    const found = readIndexed(value, property)
    if (found === undefined || found === null) continue
    const taken = property.type === 'any' ? takeAny(found) : QUERY_TYPES[property.type].take(found)
    if (taken === undefined) fail(property)
    else values[property.name] = taken
  }
  return values
}

/** The value of a property. Of ids that are text some are numbers, as `7` below `ids: 'string'`: those are text as well. */
function readIndexed(value: JsonValue, { pointer, type }: IndexedProperty): JsonValue | undefined {
  const found = resolve(value, pointer)
  const isId = pointer.length === 1 && pointer[0] === 'id'
  return isId && type === 'string' && typeof found === 'number' ? String(found) : found
}

/** The value at a pointer; `undefined` where there is none. */
function resolve(value: JsonValue, pointer: readonly string[]): JsonValue | undefined {
  let found: JsonValue | undefined = value
  for (const token of pointer) {
    if (Array.isArray(found)) found = found[parseArrayIndex(token) ?? -1]
    else found = isJsonObject(found) ? readMember(found, token) : undefined
  }
  return found
}
