import type { JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { RequestView } from '../core/request-view.ts'
import type { CollectionIndex, IndexedValues } from '../stores/lists.ts'
import { splitPath } from '../stores/rules.ts'
import type { Content, StoredResource } from '../stores/types.ts'
import type { QueryRules } from './query-rules.ts'
import type { Route } from './route.ts'

/** Values that every item of a caller has, by the name of the property; `undefined` for all items. */
export type ScopeProperties = Readonly<Record<string, string | number | boolean | undefined>>

/** Gives the properties and values of the caller's items. */
export type ScopeHook = (request: RequestView) => MaybePromise<ScopeProperties | undefined>

/** How the items of a definition are indexed, and whose they are. */
export interface Indexing {
  /** What lists can be asked for; `undefined` leaves their queries as they are without any. */
  readonly query: QueryRules | undefined
  /** Whose items a caller sees; `undefined` where all are everybody's. */
  readonly scope: ScopeHook | undefined
  /** Names of the properties of the scope, where the definition says them. */
  readonly declaredScope: readonly string[] | undefined
  /** Names of the properties that any scope has had so far. */
  readonly scopeNames: readonly string[]
  /** The version of the index, by the names that are known. */
  readonly version: string
  /** Whether the values of an item depend on its id. */
  readonly hasId: boolean
  /** Finds out which names of the scope are known, where that is not known or may be old. */
  load(): MaybePromise<void>
  /** Keeps names of the scope, for all processes. @throws TypeError for more than an index can have */
  learn(names: readonly string[]): MaybePromise<void>
  /** The index of a collection. */
  indexOf(collection: string): CollectionIndex
  /** The name in the index of a property of the scope. */
  nameInIndex(scopeName: string): string
  /**
   * Takes the values of an item.
   * @param kept what the item has been already: a value that stays as it is there counts as absent where it cannot be indexed
   * @throws HttpError 422 with a pointer for any other value that cannot be indexed
   */
  takeValues(value: JsonValue, kept?: JsonValue): IndexedValues
  /** The same without a refusal: a value that cannot be indexed counts as absent. */
  takeIndexable(value: JsonValue): IndexedValues
  /** The same for an item that is stored already: a value that cannot be indexed counts as absent. */
  valuesOf(item: StoredResource): MaybePromise<IndexedValues>
}

/**
 * Content of an item with the values that it is indexed by.
 * @param value the content, parsed
 * @param kept see {@link Indexing.takeValues}
 * @throws HttpError 422 with a pointer for a value that cannot be indexed
 */
export function indexContent(
  { indexing }: Pick<Route, 'indexing'>,
  path: string,
  content: Content,
  value: JsonValue,
  kept?: JsonValue,
): Content {
  if (indexing === undefined) return content
  const { collection } = splitPath(path)
  return { ...content, indexed: { index: indexing.indexOf(collection), values: indexing.takeValues(value, kept) } }
}

/** The values of an item, and the rules that they were taken by. */
type TakenValues = NonNullable<Content['indexed']>

/**
 * Takes the values of a new member before it has its id.
 * @returns `undefined` where they depend on the id
 * @throws HttpError 422 with a pointer for a value that cannot be indexed
 */
export function takeBeforeId(indexing: Indexing, collection: string, value: JsonValue): TakenValues | undefined {
  const values = indexing.takeValues(value)
  return indexing.hasId ? undefined : { index: indexing.indexOf(collection), values }
}

/**
 * Content that the service itself makes for an item, such as that of finished work, with the values that it is indexed by. A
 * value that cannot be indexed is left out: no client waits for an error.
 */
export function indexOwnContent(route: Route | undefined, path: string, content: Content, value: JsonValue): Content {
  const indexing = route?.kind === 'item' ? route.indexing : undefined
  if (indexing === undefined) return content
  const { collection } = splitPath(path)
  return { ...content, indexed: { index: indexing.indexOf(collection), values: indexing.takeIndexable(value) } }
}
