// Not the whole package: its ES module makes rollup warn of a top-level `this`.
import { compare } from 'fast-json-patch/commonjs/duplex.js'
import type { JsonArray, JsonObject } from '../core/json.ts'

/**
 * The operations of a JSON Patch (RFC 6902) that lead from one document to another, or to something close: not every name
 * is safe with the library. Verify them.
 */
export function compareDocuments(before: JsonObject | JsonArray, after: JsonObject | JsonArray): JsonArray {
  return compare(before, after) as unknown as JsonArray
}
