/// <reference path="./json-merge-patch.d.cts" />

// Not the whole package: a page needs no other part of it.
import generate from 'json-merge-patch/lib/generate.js'
import type { JsonValue } from '../core/json.ts'

/**
 * A merge patch (RFC 7396) that leads from one document to another, or to something close: not every change can be said
 * in a merge patch, and not every name is safe with the library. Verify it.
 */
export function generateMergePatch(before: JsonValue, after: JsonValue): JsonValue {
  return (generate(before, after) ?? {}) as JsonValue
}
