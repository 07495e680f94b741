/// <reference path="./json-merge-patch.d.cts" />

// Not the whole packages: a page needs no other part of json-merge-patch, and the ES module of fast-json-patch makes rollup warn
// of a top-level `this`.
import { applyPatch } from 'fast-json-patch/commonjs/core.js'
import { compare } from 'fast-json-patch/commonjs/duplex.js'
import generate from 'json-merge-patch/lib/generate.js'
import { defineMember, equalJson, isJsonObject, type JsonArray, type JsonValue, readMember } from '../core/json.ts'

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
  const patch = attempt(() => compare(before as object, after as object))
  // It changes the document, and puts parts of the patch into it.
  const apply = () => applyPatch(structuredClone(before), structuredClone(patch!)).newDocument
  // Where the documents are of two kinds, each member makes an operation that replaces the whole.
  if (patch?.every(({ path }) => path) && leadsTo(apply, after)) {
    return { contentType, patch: patch as unknown as JsonArray }
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
