import {
  defineMember,
  isJsonObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  readMember,
} from '../core/json.ts'

/** Applies a merge patch (RFC 7396 §2) to a copy of the document. */
export function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) return patch
  const merged: Record<string, JsonValue> = {}
  const before = isJsonObject(document) ? document : {}
  for (const name of Object.keys(before)) {
    if (readMember(patch, name) === undefined) defineMember(merged, name, before[name]!)
  }
  for (const name of Object.keys(patch)) {
    const value = patch[name]!
    if (value !== null) defineMember(merged, name, applyMergePatch(readMember(before, name), value))
  }
  return merged
}

/**
 * Applies the operations that the generator of JSON Patch makes: add, remove and replace below the root.
 * @returns the document; it is changed where its parts are
 * @throws TypeError for a path that the document does not have
 */
export function applyOperations(document: JsonValue, operations: JsonArray): JsonValue {
  for (const operation of operations as readonly JsonObject[]) {
    const tokens = (operation['path'] as string).split('/').slice(1).map(unescapeToken)
    const last = tokens.pop()!
    const parent = tokens.reduce<JsonValue>((value, token) => childOf(value, token), document)
    change(parent, last, operation)
  }
  return document
}

function change(parent: JsonValue, token: string, { op, value }: JsonObject): void {
  if (Array.isArray(parent)) {
    if (op === 'replace') parent[Number(token)] = value
    else if (op === 'remove') parent.splice(Number(token), 1)
    else parent.splice(token === '-' ? parent.length : Number(token), 0, value)
  } else if (op === 'remove') delete (parent as Record<string, JsonValue>)[token]
  else defineMember(parent as Record<string, JsonValue>, token, value!)
}

function childOf(value: JsonValue, token: string): JsonValue {
  const child = readMember(value as JsonObject, token)
  if (typeof child !== 'object' || child === null) throw new TypeError()
  return child
}

function unescapeToken(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~')
}
