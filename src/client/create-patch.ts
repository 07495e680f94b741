/// <reference path="./json-merge-patch.d.cts" />

// Not the whole packages: a page needs no other part of json-merge-patch, and the ES module of fast-json-patch makes rollup warn
// of a top-level `this`.
import { compare } from 'fast-json-patch/commonjs/duplex.js'
import generate from 'json-merge-patch/lib/generate.js'
import {
  defineMember,
  equalJson,
  isJsonObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  readMember,
} from '../core/json.ts'

/** A patch document and the media type that names its format. */
export interface PatchDocument {
  readonly contentType: 'application/merge-patch+json' | 'application/json-patch+json'
  readonly patch: JsonValue
}

/**
 * Makes a patch that leads from one document to another. Every patch is tried before it is returned.
 * @param prefer `merge`: a merge patch where one can say it (it cannot store null), else a JSON Patch; `json`: always a
 *   JSON Patch, which tells the parts of arrays that changed. Default `merge`
 * @returns the patch; `undefined` when the documents are equal
 */
export function createPatch(
  before: JsonValue,
  after: JsonValue,
  prefer: 'merge' | 'json' = 'merge',
): PatchDocument | undefined {
  if (equalJson(before, after)) return undefined
  if (prefer === 'merge') {
    const patch = attempt(() => (generate(before, after) ?? {}) as JsonValue)
    if (patch !== undefined && leadsTo(() => applyMergePatch(before, patch), after)) {
      return { contentType: 'application/merge-patch+json', patch }
    }
  }
  const contentType = 'application/json-patch+json'
  const patch = attempt(() => compare(before as object, after as object) as unknown as JsonArray)
  if (patch !== undefined && leadsTo(() => applyOperations(structuredClone(before), structuredClone(patch)), after)) {
    return { contentType, patch }
  }
  return { contentType, patch: [{ op: 'replace', path: '', value: after }] }
}

/** The libraries call members of the documents that happen to have the names of methods. */
function attempt<Result>(run: () => Result): Result | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}

/**
 * Whether a patch leads to a document: otherwise it is not sent. The libraries are not safe with every name, that of JSON
 * Patch takes objects and arrays only, and not every change can be said in a merge patch.
 */
function leadsTo(apply: () => JsonValue, after: JsonValue): boolean {
  return attempt(() => equalJson(apply(), after)) === true
}

/** Applies a merge patch (RFC 7396 §2) to a copy of the document. */
function applyMergePatch(document: JsonValue | undefined, patch: JsonValue): JsonValue {
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
function applyOperations(document: JsonValue, operations: JsonArray): JsonValue {
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
