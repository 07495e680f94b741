import { checkParsedJson } from '../body-types/json.ts'
import { HttpError } from '../core/errors.ts'
import { defineMember, equalJson, isJsonObject, type JsonValue } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { describeValue } from '../core/option-values.ts'
import { isLargeBody, isResource, isStaged, sizeOf } from '../stores/rules.ts'
import type {
  Content,
  ContentFields,
  Expectation,
  NewState,
  SmallBody,
  StoredResource,
  StoredState,
} from '../stores/types.ts'
import { viewReplaced } from './changes.ts'
import type { ChangeKind, WriteContext } from './hook-types.ts'
import { HIDDEN, ReadUntilLeft, type ResourceExchange } from './resource-exchange.ts'
import { fetchJson, StateView } from './resource-view.ts'
import type { Route } from './route.ts'
import { readInScope, refuseOutOfScope, tombstoneOf } from './scope.ts'
import { addProperties, splitProperties } from './server-properties.ts'
import { setState } from './state.ts'
import { type Document, readGiven, requireKeptNumbers, validateDocument, WrittenDocument } from './validation.ts'

/** The state that a write replaces, as it was seen: the write happens on no other. */
export interface SeenState {
  /** The resource, one that is softly deleted as well; its content is at hand where it is JSON that may be parsed. */
  readonly resource: StoredResource | undefined
  readonly expect: Exclude<Expectation, 'any' | 'present'>
}

/**
 * Reads the state that PUT is about to replace.
 * @returns `undefined` where it is another one than was judged; the exchange has it then
 */
export function readSeenState(exchange: ResourceExchange): MaybePromise<SeenState | undefined> {
  const { describesFiles, context } = exchange.route
  // A form may have made it larger than what is taken at once, and what it says of its files stays.
  const limit = describesFiles ? Number.POSITIVE_INFINITY : context.limits.bodySize
  // What the server keeps of a softly deleted item comes back with it.
  return andThen(readInScope(exchange, exchange.storePath, new ReadUntilLeft(exchange, HIDDEN)), (state) => {
    refuseOutOfScope(exchange)
    if (isJudgedAnew(exchange, state)) return undefined
    if (!isResource(state)) return { resource: undefined, expect: 'absent' }
    const expect = state.hidden === true ? 'absent' : { version: state.version }
    return andThen(fetchJson(state, limit, exchange), (resource) => ({ resource, expect }))
  })
}

/** Takes a state as the current one. @returns whether another one was judged before */
function isJudgedAnew(exchange: ResourceExchange, state: StoredState): boolean {
  const shown = isResource(state) && state.hidden === true ? tombstoneOf(exchange, state) : state
  const version = isResource(shown) ? shown.version : undefined
  const isOther = exchange.isStateRead && exchange.current?.version !== version
  if (isOther || !exchange.isStateRead) setState(exchange, shown)
  return isOther
}

/** What a PUT over a state is called. */
export function kindOf({ resource }: SeenState): 'created' | 'replaced' | 'restored' {
  if (resource === undefined) return 'created'
  return resource.hidden === true ? 'restored' : 'replaced'
}

/**
 * A state that is about to be written, without its dates. Of content that is not at hand the answer shows nothing.
 * @throws TypeError for a store that supports `relatedExpect` and does not say how the state will be called
 */
export function foresee(
  path: string,
  { body, contentType, contentLanguage, filename }: ContentFields & { readonly body: Content['body'] },
  state: NewState | undefined,
): StoredResource {
  if (state === undefined) throw new TypeError('The store supports relatedExpect and passes no new state to related.')
  const small: SmallBody = typeof body === 'string' || body instanceof Uint8Array ? body : ''
  const size = isStaged(body) ? body.size : sizeOf(small)
  return { path, ...state, contentType, contentLanguage, filename, size, body: small }
}

/** A state that has been written, with its content at hand where that was written at once and the store gives it in pieces. */
export function withContent(resource: StoredResource, content: () => Content): StoredResource {
  if (!isLargeBody(resource.body)) return resource
  const { body } = content()
  return typeof body === 'string' || body instanceof Uint8Array ? { ...resource, body } : resource
}

const UNWRITTEN: NewState = { version: '' }

/**
 * Asks `conflict` of the definition about a change of its resource. The write that follows has to insist on `current`.
 * @param path of the resource
 * @param current the state that the change replaces; `undefined` where it creates
 * @throws HttpError 409 with the sentence that the hook gives; TypeError for a verdict of another kind
 */
export function checkConflict(
  exchange: ResourceExchange,
  path: string,
  content: Content,
  current: StoredResource | undefined,
  route: Route = exchange.route,
): MaybePromise<void> {
  const { conflict, context } = route
  if (conflict === undefined) return undefined
  const { bodySize } = context.limits
  const proposed = new StateView(foresee(path, content, UNWRITTEN), bodySize)
  const verdict = andThen(current && fetchJson(current, bodySize, exchange), (state) =>
    conflict(proposed, state && new StateView(state, bodySize), exchange),
  )
  return andThen(verdict, (detail) => {
    if (detail === undefined) return
    if (typeof detail === 'string') throw new HttpError(409, 'ERR_CONFLICT', { detail })
    throw new TypeError(
      `conflict of ${route.definition} must return a sentence for the client, or undefined for no conflict, not ${describeValue(detail)}.`,
    )
  })
}

/** What `beforeWrite` is called about. */
interface Stamp {
  readonly kind: Exclude<ChangeKind, 'deleted'>
  readonly current: StoredResource | undefined
  /** Names of the properties of the server. */
  readonly properties: readonly string[]
}

/**
 * Lets `beforeWrite` change a document that is valid, and validates what it gave.
 * @param route that has the hook. Default: that of the request
 * @returns the same document where it changes nothing, so that its text stays as it was sent
 * @throws HttpError what the hook throws; 422 where its result is not valid
 * @throws TypeError where the schema leaves out a property of the result: it would get lost at every write
 */
export function stamp(
  exchange: ResourceExchange,
  document: Document,
  about: Stamp,
  route: Route = exchange.route,
): MaybePromise<Document> {
  const { beforeWrite, schema, definition } = route
  if (beforeWrite === undefined) return document
  const { properties } = about
  const { owned, rest } = splitProperties(document.value, properties)
  // A value of its own: the hook may change it in place, and another attempt begins with what was sent.
  const value = JSON.parse(JSON.stringify(rest)) as JsonValue
  const { now, limits } = exchange.route.context
  const { kind, current: replaced } = about
  const current = replaced && viewReplaced(replaced, limits.bodySize)
  const { principal, params } = exchange
  const context: WriteContext = { kind, current, principal, request: exchange, now: new Date(now()), params }
  return andThen(beforeWrite(value, context), (result: unknown) => {
    const kept = readGiven(result, `beforeWrite of ${definition}`)
    const given = kept === undefined ? undefined : splitProperties(kept, properties).rest
    // An item has an id, and is an object.
    if (given === undefined || (properties.includes('id') && !isJsonObject(given))) {
      throw new TypeError(`beforeWrite of ${definition} must return the value to store.`)
    }
    if (equalJson(given, rest)) return document
    requireKeptNumbers(document)
    checkParsedJson(given, route.context.limits)
    const draft = new WrittenDocument(given)
    return andThen(validateDocument(draft, { schema, idMember: undefined }, 'strip'), (valid) => {
      // A file is stored beside its item: what the schema of before or `process` has left there stays, as without the hook.
      const isBesideItem = route !== exchange.route
      requireAllKept(given, valid.value, isBesideItem ? rest : {}, definition)
      return joinProperties(isBesideItem ? new WrittenDocument(restore(given, valid.value)) : valid, owned)
    })
  })
}

/** Puts the properties of the server back: the id in front, where clients expect it. */
function joinProperties(document: Document, owned: { readonly [name: string]: JsonValue }): Document {
  const { id, ...others } = owned
  const complete = addProperties(document, others)
  if (id === undefined || !isJsonObject(complete.value)) return complete
  return new WrittenDocument({ id, ...complete.value })
}

/** What a schema gives, with the properties that it has left out, at any depth. */
function restore(given: JsonValue, kept: JsonValue): JsonValue {
  if (Array.isArray(given) && Array.isArray(kept) && given.length === kept.length) {
    return kept.map((item, i) => restore(given[i]!, item))
  }
  if (!isJsonObject(given) || !isJsonObject(kept)) return kept
  const whole: Record<string, JsonValue> = {}
  for (const name of Object.keys(kept)) {
    defineMember(whole, name, Object.hasOwn(given, name) ? restore(given[name]!, kept[name]!) : kept[name]!)
  }
  for (const name of Object.keys(given)) if (!Object.hasOwn(kept, name)) defineMember(whole, name, given[name]!)
  return whole
}

/**
 * @param before what the hook was called with, where that may have more than the schema gives
 * @throws TypeError for a property that the hook has added and the schema leaves out
 */
function requireAllKept(given: JsonValue, kept: JsonValue, before: JsonValue, definition: string): void {
  if (!isJsonObject(given) || !isJsonObject(kept) || !isJsonObject(before)) return
  const lost = Object.keys(given).filter((name) => !Object.hasOwn(kept, name) && !Object.hasOwn(before, name))
  if (lost.length === 0) return
  const names = lost.map((name) => JSON.stringify(name)).join(', ')
  const them = lost.length === 1 ? 'it' : 'them'
  throw new TypeError(
    `beforeWrite of ${definition} adds ${names}, which the schema leaves out. ` +
      `Add ${them} to the schema as optional: clients need not send ${them}.`,
  )
}
