import type { FileOptions } from '../actions/hook-types.ts'
import type { ScopeHook } from '../actions/indexing.ts'
import { MOST_PROPERTIES, QUERY_TYPES, type QueryType, RESERVED_PARAMETERS } from '../actions/query-rules.ts'
import { propertiesOfServer } from '../actions/server-properties.ts'
import {
  BOOLEAN,
  checkValues,
  describeValue,
  either,
  FUNCTION,
  listOf,
  MEMBERS,
  oneOf,
  RECORD,
  required,
  shapedAs,
  TEXT,
  type ValueRule,
  writtenAs,
} from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { parsePointer } from '../patch-formats/json-pointer.ts'

/** A property by which a collection can be filtered and ordered: its type, or its type and more. */
export type QueryPropertyOptions =
  | QueryType
  | {
      readonly type: QueryType
      /** JSON Pointer (RFC 6901) to the value in an item. Default: the property of the same name. */
      readonly pointer?: string
      /** Whether the property must not be in a request target, which logs keep: QUERY alone takes it. Default false. */
      readonly sensitive?: boolean
    }

/** A scope whose properties are named. */
export interface NamedScope {
  /** Names of all properties that `values` gives. */
  readonly properties: readonly string[]
  /** Gives the properties and values that every item of the caller has, or `undefined` for all items. */
  readonly values: ScopeHook
}

/** What a collection knows of filters, order, counts and owners. */
export interface QueryOptions {
  /**
   * Properties by which lists can be filtered and ordered, each with its type: `{ status: 'string', dueAt: 'date-time' }`.
   * Lists then take `?status=open&dueAt[lt]=2026-01-01T00:00:00Z&sort=-dueAt`, and QUERY takes the same as content (RFC 10008);
   * other parameters are 400. A value of another type is 422. Needs items of JSON, and a store that supports `queries`, as
   * all three of this package do. At most 16 properties, those of the scope included. Default: none.
   */
  readonly query?: Readonly<Record<string, QueryPropertyOptions>>
  /**
   * Whose items these are: gives the properties and values that every item of the caller has, such as
   * `({ principal }) => ({ owner: principal?.id })`, or `undefined` for all items. Other items do not exist for the caller
   * (404). The server sets these properties; the `schema` does not see them, and a client that sends another value gets 403.
   * An undefined or empty value is 403. Throw an `HttpError` to refuse. `{ properties, values }` names the properties
   * beforehand. Needs what `query` needs. Default: all items exist for every caller.
   */
  readonly scope?: ScopeHook | NamedScope
  /**
   * Whether `?count=true` is answered with X-Total-Count, the number of items that match. As with `query`, other parameters are
   * 400 then, and QUERY is taken. Default false.
   */
  readonly count?: boolean
}

export const QUERY_OPTIONS: OptionTable<QueryOptions> = {
  query: writtenAs(MEMBERS, "an object of names and types, such as { status: 'string' }"),
  scope: either(
    FUNCTION,
    writtenAs(
      shapedAs({ properties: 'object', values: 'function' }),
      'an object with properties (a list of names) and values (a function)',
    ),
  ),
  count: BOOLEAN,
}

const NAME = /^[\p{L}_$][\p{L}\p{M}\p{N}_$.-]{0,63}$/u

const POINTER: ValueRule = {
  accepts: (value) => typeof value === 'string' && value !== '' && parsePointer(value) !== undefined,
  text: "a JSON Pointer to a property, such as '/address/city'",
}
const TYPE: ValueRule = oneOf(...Object.keys(QUERY_TYPES))

const PROPERTY_OPTIONS = {
  type: required(TYPE),
  pointer: POINTER,
  sensitive: BOOLEAN,
} satisfies OptionTable<Exclude<QueryPropertyOptions, string>>

const SCOPE_OPTIONS = {
  properties: required(listOf(TEXT, 1)),
  values: required(FUNCTION),
} satisfies OptionTable<NamedScope>

type CollectionFiles = Readonly<Record<string, FileOptions>>
type Ids = 'integer' | 'string' | 'uuid'

/** What else a collection says of the properties of its items. */
interface AboutItems {
  readonly files?: CollectionFiles
  readonly ids?: Ids
  readonly create?: 'created' | 'accepted'
}

/** The names of the properties that the server sets in items. */
export function ownProperties(create: AboutItems['create']): readonly string[] {
  return propertiesOfServer({ idMember: 'integer', showsWork: create === 'accepted' }, [])
}

/** Checks and copies what a collection says of its queries. @throws TypeError for what could have no effect */
export function readQueryOptions({
  query,
  scope,
  files,
  ids = 'integer',
  create,
}: QueryOptions & AboutItems): Pick<QueryOptions, 'query' | 'scope'> {
  const properties = Object.entries(query ?? {}).map(([name, given]) => [name, readQueryProperty(name, given)] as const)
  for (const [name, property] of properties) {
    refuseFacts(name, property, files)
    refuseOtherType(name, property, ids, create === 'accepted')
  }
  const named = readScope(scope, ownProperties(create))
  const both = typeof named === 'object' && named.properties.find((name) => Object.hasOwn(files ?? {}, name))
  if (both) {
    throw new TypeError(`collection has ${both} in files and in the properties of scope: an item has one of them.`)
  }
  const count = properties.length + (typeof named === 'object' ? named.properties.length : 0)
  if (count > MOST_PROPERTIES) {
    throw new TypeError(
      `collection has ${count} properties in query and scope; at most ${MOST_PROPERTIES} are indexed.`,
    )
  }
  return {
    ...(query !== undefined && { query: Object.freeze(Object.fromEntries(properties)) }),
    ...(named !== undefined && { scope: named }),
  }
}

function readQueryProperty(name: string, given: unknown): QueryPropertyOptions {
  if (!NAME.test(name) || name === '__proto__' || RESERVED_PARAMETERS.includes(name)) {
    throw new TypeError(
      `collection has in query the name ${JSON.stringify(name)}. A name is a letter, then letters, digits, "_", "$", "." and "-", ` +
        `and none of ${RESERVED_PARAMETERS.join(', ')}; { type, pointer } gives a property another name.`,
    )
  }
  const owner = `query.${name}`
  if (typeof given === 'string') {
    checkValues(owner, { type: given }, { type: TYPE })
    return given as QueryType
  }
  if (!RECORD.accepts(given) || !Object.hasOwn(given as object, 'type')) {
    throw new TypeError(
      `collection takes as ${owner}, a property of its items: ${TYPE.text}, or { type, pointer, sensitive }; it is ${describeValue(given)}.`,
    )
  }
  return resolveOptions(owner, given as Exclude<QueryPropertyOptions, string>, PROPERTY_OPTIONS)
}

/** @throws TypeError for a property that is an object in every item with the file: each upload of it would be 422 */
function refuseFacts(name: string, property: QueryPropertyOptions, files: CollectionFiles = {}): void {
  const [file, ...rest] = parsePointer(pointerOf(name, property)) ?? []
  if (file === undefined || rest.length > 0 || !Object.hasOwn(files, file)) return
  if (files[file]!.describe !== undefined) return
  throw new TypeError(
    `collection has in query the property ${name}, which says of the file ${file}: { name, type, size }. Give it a pointer ` +
      `such as '/${file}/type', or the file a describe that returns one value.`,
  )
}

/** @throws TypeError for a type that the id, or the state of accepted work, never has: each creation would be 422 */
function refuseOtherType(name: string, property: QueryPropertyOptions, ids: Ids, isAccepted: boolean): void {
  const pointer = pointerOf(name, property)
  const isId = pointer === '/id' && ids !== 'string'
  if (!isId && !(isAccepted && pointer === '/state')) return
  const type = typeof property === 'string' ? property : property.type
  const own = isId && ids === 'integer' ? 'number' : 'string'
  if (type === own) return
  const what = isId ? 'its ids are' : 'the state of its work is'
  throw new TypeError(`collection has in query the property ${name} of type '${type}'; ${what} of type '${own}'.`)
}

function pointerOf(name: string, property: QueryPropertyOptions): string {
  return (typeof property === 'object' && property.pointer) || `/${name}`
}

/** @param own the properties that the server sets */
function readScope(scope: QueryOptions['scope'], own: readonly string[]): QueryOptions['scope'] {
  if (scope === undefined || typeof scope === 'function') return scope
  const read = resolveOptions('scope', scope, SCOPE_OPTIONS)
  const reserved = read.properties.find((name) => own.includes(name) || name === '__proto__')
  if (reserved === '__proto__') throw new TypeError('scope has the property __proto__, which values cannot give.')
  if (reserved !== undefined) throw new TypeError(`scope has the property ${reserved}, which the server sets.`)
  return Object.freeze({ properties: Object.freeze([...new Set(read.properties)]), values: read.values })
}
