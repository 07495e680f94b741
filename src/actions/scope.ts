import { describeValue } from '../core/describe-value.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { RequestView } from '../core/exchange.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import type { Condition } from '../stores/index-types.ts'
import { compareValues, indexedValueOf, isIndexedText } from '../stores/indexed-values.ts'
import { isResource, type ReadOptions, type StoredResource, type StoredState } from '../stores/types.ts'
import type { Indexing } from './indexing.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Properties and values that every item of a caller has. */
export type Scope = Readonly<Record<string, string | number | boolean>>

/**
 * Asks the definition whose items the caller sees, once a request.
 * @throws HttpError 403 for a scope with an undefined value; whatever the definition throws
 */
export function applyScope(exchange: ResourceExchange): MaybePromise<undefined> {
  const { indexing } = exchange.route
  if (indexing?.scope === undefined) return undefined
  // Whoever it is: another caller sees other items.
  exchange.sharing = 'private'
  return andThen(indexing.load(), () =>
    andThen(findScope(exchange, indexing, exchange), (scope) => {
      exchange.scope = scope
      // A write must find the very state that is in scope.
      if (scope !== undefined && !isSafeMethod(exchange.method)) exchange.isConditional = true
      return undefined
    }),
  )
}

/** The scope of a request; `undefined` for all items. */
function findScope(
  exchange: ResourceExchange,
  indexing: Indexing,
  request: RequestView,
): MaybePromise<Scope | undefined> {
  return andThen(indexing.scope!(request), (given) => {
    if (given === undefined) return undefined
    const scope = checkScope(exchange, given)
    return andThen(indexing.learn(Object.keys(scope)), () => scope)
  })
}

/** @throws TypeError for what is no scope; HttpError 403 for one that lacks a value, which must never mean everything */
function checkScope(exchange: ResourceExchange, given: unknown): Scope {
  const { definition } = exchange.route
  const isObject = typeof given === 'object' && given !== null && !Array.isArray(given)
  const entries = isObject ? Object.entries(given) : []
  if (entries.length === 0 || entries.some(([name]) => name === 'id' || name === '__proto__')) {
    const found = isObject ? `${JSON.stringify(Object.keys(given))} as properties` : describeValue(given)
    throw new TypeError(
      `scope of ${definition} gives properties and values, such as { owner: principal.id }, or undefined for all items, ` +
        `not ${found}.`,
    )
  }
  for (const [name, value] of entries) {
    const isMissing = value === undefined || value === null
    if (isMissing || (typeof value === 'string' && !isIndexedText(value))) {
      note(exchange, `the scope has no usable value for ${name}`)
      throw new HttpError(403, 'ERR_FORBIDDEN')
    }
    const isNumber = typeof value === 'number' && Number.isFinite(value)
    const isExact = isNumber && (!Number.isInteger(value) || Number.isSafeInteger(value))
    if (isExact || typeof value === 'string' || typeof value === 'boolean') continue
    throw new TypeError(
      `scope of ${definition} gives as ${name} text, a number or a boolean, not ${describeValue(value)}.`,
    )
  }
  return Object.freeze(Object.fromEntries(entries)) as Scope
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

/** Whether an entry of another collection's list is in the scope that its own definition gives the caller. */
export function isEntryInScope(
  exchange: ResourceExchange,
  indexing: Indexing,
  request: RequestView,
  item: StoredResource,
): MaybePromise<boolean> {
  return andThen(indexing.load(), () =>
    andThen(findScope(exchange, indexing, request), (scope) => scope === undefined || matches(indexing, scope, item)),
  )
}

/**
 * Reads a state as far as it is in the scope of the caller: any other does not exist. What was removed has no properties
 * any more, so it does not exist either, but where it is hidden.
 */
export function readInScope(exchange: ResourceExchange, path: string, options: ReadOptions): MaybePromise<StoredState> {
  const { scope, route } = exchange
  const { store, now } = route.context
  if (scope === undefined) return store.read(path, options)
  const indexing = route.indexing!
  return andThen(readJudgeable(exchange, indexing, path, options), (state) => {
    exchange.isTaken = isResource(state)
    if (!isResource(state)) return undefined
    return andThen(matches(indexing, scope, state), (isInScope): StoredState => {
      if (!isInScope) {
        note(exchange, 'out of scope')
        return undefined
      }
      exchange.isTaken = false
      if (state.hidden !== true || options.hidden === true) return state
      return { removed: true, path, removedAt: state.lastModified ?? now() }
    })
  })
}

/** Reads a state with its content, unless its indexed values tell whose it is. */
function readJudgeable(
  { route }: ResourceExchange,
  indexing: Indexing,
  path: string,
  options: ReadOptions,
): MaybePromise<StoredState> {
  const { store } = route.context
  const { metadataOnly = false } = options
  return andThen(store.read(path, new WithHidden(options, metadataOnly)), (state) => {
    const isEnough = !metadataOnly || !isResource(state) || state.indexed?.index.version === indexing.version
    return isEnough ? state : store.read(path, new WithHidden(options, false))
  })
}

/** Options of a read that sees hidden states as well. The signal, which costs more than a small request, is made when asked for. */
class WithHidden implements ReadOptions {
  readonly #options: ReadOptions
  readonly hidden = true
  readonly metadataOnly: boolean

  constructor(options: ReadOptions, metadataOnly: boolean) {
    this.#options = options
    this.metadataOnly = metadataOnly
  }

  // The contract has no undefined signal: every read for a request has one.
  get signal(): AbortSignal {
    return this.#options.signal!
  }
}

function matches(indexing: Indexing, scope: Scope, item: StoredResource): MaybePromise<boolean> {
  const { indexed } = item
  const values = indexed?.index.version === indexing.version ? indexed.values : indexing.valuesOf(item)
  return andThen(values, (values) =>
    Object.entries(scope).every(
      ([name, value]) => compareValues(indexedValueOf(values, indexing.nameInIndex(name)), value) === 0,
    ),
  )
}

/** @throws HttpError 404 where PUT would replace an item that is out of the caller's scope */
export function refuseTaken({ isTaken }: ResourceExchange): void {
  if (isTaken) throw new HttpError(404, 'ERR_NOT_FOUND')
}
