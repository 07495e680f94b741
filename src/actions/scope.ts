import { refuse } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { formatPointerStep, isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { describeValue } from '../core/option-values.ts'
import { asJudged, type RequestView } from '../core/request-view.ts'
import { isSafeMethod } from '../protocol/request-line.ts'
import { type Condition, compareValues, type IndexedValues, indexedValueOf, isIndexedText } from '../stores/lists.ts'
import { isResource } from '../stores/rules.ts'
import type { ReadOptions, StoredResource, StoredState, Tombstone } from '../stores/types.ts'
import type { Indexing } from './indexing.ts'
import { HIDDEN, type Reading, ReadUntilLeft, type ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { splitProperties } from './server-properties.ts'
import { type Document, requireKeptNumbers, WrittenDocument } from './validation.ts'

/** Properties and values that every item of a caller has. */
export type Scope = Readonly<Record<string, string | number | boolean>>

/**
 * Asks the definition whose items the caller sees, once a request.
 * @throws HttpError 403 for a scope with an undefined value; whatever the definition throws
 */
export function applyScope(exchange: ResourceExchange): MaybePromise<undefined> {
  const { indexing, outbox, isFile, context } = exchange.route
  // The outbox, that of the item for a file, is not waited for, and may write into any collection.
  const mayWrite = (outbox !== undefined || isFile) && !isSafeMethod(exchange.method)
  if (!mayWrite) return takeScope(exchange, indexing)
  return andThen(context.loadIndexes(), () => takeScope(exchange, indexing))
}

function takeScope(exchange: ResourceExchange, indexing: Indexing | undefined): MaybePromise<undefined> {
  if (indexing?.scope === undefined) return undefined
  // For every caller: another one sees other items.
  exchange.sharing = 'private'
  return andThen(indexing.load(), () =>
    andThen(findScope(exchange, exchange.route, asJudged(exchange)), (scope) => {
      exchange.scope = scope
      // A write must find the very state that is in scope.
      if (scope !== undefined && !isSafeMethod(exchange.method)) exchange.isConditional = true
      return undefined
    }),
  )
}

/** The scope that the definition of a route gives a request; `undefined` for all items. */
function findScope(exchange: ResourceExchange, route: Route, request: RequestView): MaybePromise<Scope | undefined> {
  const { indexing } = route
  return andThen(indexing!.scope!(request), (given) => {
    if (given === undefined) return undefined
    const scope = checkScope(exchange, route, given)
    return andThen(indexing!.learn(Object.keys(scope)), () => scope)
  })
}

/** @throws TypeError for a value that is not a scope; HttpError 403 for one that lacks a value, which must never mean everything */
function checkScope(exchange: ResourceExchange, { definition, fileNames }: Route, given: unknown): Scope {
  const isObject = typeof given === 'object' && given !== null && !Array.isArray(given)
  const names = isObject ? Object.keys(given) : []
  if (names.length === 0 || names.includes('id') || names.includes('__proto__')) {
    const found = isObject ? `${JSON.stringify(names)} as properties` : describeValue(given)
    throw new TypeError(
      `scope of ${definition} gives properties and values, such as { owner: principal.id }, or undefined for all items, ` +
        `not ${found}.`,
    )
  }
  const scope: Record<string, string | number | boolean> = {}
  for (const name of names) {
    if (typeof fileNames !== 'string' && fileNames.includes(name)) {
      throw new TypeError(`scope of ${definition} gives ${name}, which says what is known of a file.`)
    }
    const value = (given as Record<string, unknown>)[name]
    // The id of a principal that has no name is empty: all of these would share their items.
    const isMissing = value === undefined || value === null || value === ''
    if (isMissing || (typeof value === 'string' && !isIndexedText(value))) {
      refuse(exchange, `the scope has no usable value for ${name}`, new HttpError(403, 'ERR_FORBIDDEN'))
    }
    const isNumber = typeof value === 'number' && Number.isFinite(value)
    const isExact = isNumber && (!Number.isInteger(value) || Number.isSafeInteger(value))
    if (!isExact && typeof value !== 'string' && typeof value !== 'boolean') {
      throw new TypeError(
        `scope of ${definition} gives as ${name} text, a number or a boolean, not ${describeValue(value)}.`,
      )
    }
    scope[name] = value as string | number | boolean
  }
  return scope
}

/** The conditions that show a list's items of the caller alone. */
export function scopeConditions({ scope, route }: ResourceExchange): readonly Condition[] {
  if (scope === undefined) return []
  return Object.entries(scope).map(([name, value]) => ({
    property: route.indexing!.nameInIndex(name),
    operator: 'in',
    values: [value],
  }))
}

/** Whether an entry of another collection's list is in the scope that its own route gives the caller. */
export function isEntryInScope(
  exchange: ResourceExchange,
  own: Route,
  request: RequestView,
  item: StoredResource,
): MaybePromise<boolean> {
  const indexing = own.indexing!
  // What is below an item of one caller, or lists it, is not for a cache of others either.
  exchange.sharing = 'private'
  return andThen(indexing.load(), () =>
    andThen(findScope(exchange, own, request), (scope) => scope === undefined || matches(indexing, scope, item)),
  )
}

/**
 * Reads a state; `undefined` for one that is outside of the scope of the caller. A tombstone has no properties and is
 * outside as well. A hidden state still has its properties.
 */
export function readInScope(exchange: ResourceExchange, path: string, options: ReadOptions): MaybePromise<StoredState> {
  const { scope, route } = exchange
  const { store } = route.context
  if (scope === undefined) return store.read(path, options)
  const { metadataOnly = false } = options
  const state = store.read(path, new ReadUntilLeft(exchange, { hidden: true, metadataOnly }))
  if (isPromise(state)) return state.then((state) => judgeByScope(exchange, scope, path, options, state))
  return judgeByScope(exchange, scope, path, options, state)
}

/** Written out where it is not asynchronous, which it seldom is: this is a part of every GET of an item. */
function judgeByScope(
  exchange: ResourceExchange,
  scope: Scope,
  path: string,
  options: ReadOptions,
  state: StoredState,
): MaybePromise<StoredState> {
  exchange.isOutOfScope = isResource(state)
  if (!isResource(state)) return undefined
  const { route } = exchange
  const indexing = route.indexing!
  const isCurrent = state.indexed?.index.version === indexing.version
  if (options.metadataOnly === true && !isCurrent) {
    // Without its content nothing tells whose it is.
    const { store } = route.context
    const wanted: Reading = { hidden: options.hidden === true, metadataOnly: false }
    return andThen(store.read(path, new ReadUntilLeft(exchange, HIDDEN)), (state) =>
      judgeByScope(exchange, scope, path, wanted, state),
    )
  }
  const isInScope = isCurrent ? matchesValues(indexing, scope, state.indexed!.values) : matches(indexing, scope, state)
  return andThen(isInScope, (isInScope) => {
    if (!isInScope) return undefined
    exchange.isOutOfScope = false
    return state.hidden !== true || options.hidden === true ? state : tombstoneOf(exchange, state)
  })
}

/** What a hidden resource is for those who do not see it: one that was removed. */
export function tombstoneOf(exchange: ResourceExchange, { path, lastModified }: StoredResource): Tombstone {
  return { removed: true, path, removedAt: lastModified ?? exchange.route.context.now() }
}

function matches(indexing: Indexing, scope: Scope, item: StoredResource): MaybePromise<boolean> {
  const { indexed } = item
  const values = indexed?.index.version === indexing.version ? indexed.values : indexing.valuesOf(item)
  return andThen(values, (values) => matchesValues(indexing, scope, values))
}

function matchesValues(indexing: Indexing, scope: Scope, values: IndexedValues): boolean {
  for (const name of Object.keys(scope)) {
    if (compareValues(indexedValueOf(values, indexing.nameInIndex(name)), scope[name]!) !== 0) return false
  }
  return true
}

/** @throws HttpError 404 where PUT would replace an item that is out of the caller's scope */
export function refuseOutOfScope(exchange: ResourceExchange): void {
  if (exchange.isOutOfScope) refuse(exchange, 'out of scope', new HttpError(404, 'ERR_NOT_FOUND'))
}

const NO_PROPERTIES: JsonObject = Object.freeze({})

/** Names of the properties that a scope may set: the schema does not see them. */
export function scopeNamesOf({ indexing }: Route): readonly string[] {
  return indexing?.scopeNames ?? []
}

/**
 * Takes the properties of the scope off a document that a client sends. Those of the caller's scope are set by the server;
 * others stay as they are.
 * @returns the document without the properties of the scope, and those that it is to have in the end
 * @throws HttpError 403 for another value than that of the scope
 */
export function splitScope(
  exchange: ResourceExchange,
  document: Document,
): { readonly document: Document; readonly owned: JsonObject } {
  const { scope = NO_PROPERTIES } = exchange
  const names = scopeNamesOf(exchange.route)
  if (names.length === 0 || !isJsonObject(document.value)) return { document, owned: NO_PROPERTIES }
  const { value } = document
  requireScope(exchange, value, 'or-absent')
  if (!names.some((name) => Object.hasOwn(value, name))) return { document, owned: scope }
  // Without a schema and a hook, which are not to see them, they would be taken off and added again.
  const { schema, beforeWrite } = exchange.route
  const isUnseen = schema === undefined && beforeWrite === undefined
  if (isUnseen && Object.keys(scope).every((name) => Object.hasOwn(value, name)))
    return { document, owned: NO_PROPERTIES }
  requireKeptNumbers(document)
  const { owned, rest } = splitProperties(value, names)
  return { document: new WrittenDocument(rest), owned: { ...owned, ...scope } }
}

/**
 * Checks that an item says of its scope what the scope of the caller says: it never leaves it.
 * @throws HttpError 403
 */
export function requireScope({ scope }: ResourceExchange, value: JsonValue, presence: 'present' | 'or-absent'): void {
  if (scope === undefined || !isJsonObject(value)) return
  const wrong = Object.keys(scope).filter((name) => {
    const given = readMember(value, name)
    return given === undefined ? presence === 'present' : given !== scope[name]
  })
  if (wrong.length === 0) return
  throw new HttpError(403, 'ERR_FORBIDDEN', {
    detail: 'The server sets the properties of the scope.',
    errors: wrong.map((name) => ({ pointer: formatPointerStep(name), detail: 'This is set by the server.' })),
  })
}
