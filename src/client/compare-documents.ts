// Not the whole package: its ES module makes rollup warn of a top-level `this`.
import { compare } from 'fast-json-patch/commonjs/duplex.js'
import type { JsonArray, JsonValue } from '../core/json.ts'

/**
 * The operations of a JSON Patch (RFC 6902) that lead from one document to another, or to something close: not every name
 * is safe with the library, and it takes objects and arrays only. Verify them.
 */
export function compareDocuments(before: JsonValue, after: JsonValue): JsonArray {
  return compare(before as object, after as object) as unknown as JsonArray
}
