import { HttpError } from '../core/errors.ts'
import { formatPointerStep, isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { splitProperties } from './server-properties.ts'
import { type Document, requireKeptNumbers, WrittenDocument } from './validation.ts'

/** A document without the properties of the scope, and those that it is to have in the end. */
export interface ScopedDocument {
  readonly document: Document
  readonly owned: JsonObject
}

const NONE: JsonObject = Object.freeze({})

/** Names of the properties that a scope may set: the schema does not see them. */
export function scopeNamesOf({ route }: ResourceExchange): readonly string[] {
  return route.indexing?.scopeNames ?? []
}

/**
 * Takes the properties of the scope off a document that a client sends. Those of the caller's scope are set by the server;
 * others stay as they are.
 * @throws HttpError 403 for another value than that of the scope
 */
export function splitScope(exchange: ResourceExchange, document: Document): ScopedDocument {
  const { scope = NONE } = exchange
  const names = scopeNamesOf(exchange)
  if (names.length === 0 || !isJsonObject(document.value)) return { document, owned: NONE }
  const { value } = document
  requireScope(exchange, value, 'or-absent')
  if (!names.some((name) => Object.hasOwn(value, name))) return { document, owned: scope }
  // Without a schema and a hook, which are not to see them, they would be taken off and added again.
  const { schema, beforeWrite } = exchange.route
  const isUnseen = schema === undefined && beforeWrite === undefined
  if (isUnseen && Object.keys(scope).every((name) => Object.hasOwn(value, name))) return { document, owned: NONE }
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
    detail: 'The server sets whose item this is.',
    errors: wrong.map((name) => ({ pointer: formatPointerStep(name), detail: 'This is set by the server.' })),
  })
}
