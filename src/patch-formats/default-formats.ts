import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './merge-patch.ts'
import type { PatchFormat } from './types.ts'

/**
 * The formats that are taken where nobody says which: JSON Patch and JSON Merge Patch.
 * @param depth how deep documents may be nested elsewhere; a patch makes none that could not be sent whole
 */
export function createDefaultFormats(depth: number): readonly PatchFormat[] {
  const maxDepth = Math.max(1, Math.min(depth, 1000))
  return [jsonPatch({ maxDepth }), mergePatch({ maxDepth })]
}
