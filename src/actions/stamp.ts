import { checkParsedJson } from '../body-types/json.ts'
import { defineMember, equalJson, isJsonObject, type JsonValue } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { StoredResource } from '../stores/types.ts'
import { viewReplaced } from './changes.ts'
import type { ChangeKind, WriteContext } from './hook-types.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { addProperties, splitProperties } from './server-properties.ts'
import { type Document, readGiven, requireKeptNumbers, validateDocument, WrittenDocument } from './validation.ts'

/** What `beforeWrite` is called about. */
export interface Stamp {
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
