import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './merge-patch.ts'
import type { PatchFormat } from './types.ts'

interface DocumentLimits {
  readonly depth: number
  readonly jsonMembers: number
}

/**
 * The formats that are taken by default: JSON Patch and JSON Merge Patch.
 * @param limits how deep documents may be nested elsewhere, and how many members they may have; a patch makes none that
 *   could not be sent whole
 */
export function createDefaultFormats(limits: DocumentLimits): readonly PatchFormat[] {
  const maxDepth = Math.max(1, Math.min(limits.depth, 1000))
  return [jsonPatch({ maxDepth, maxMembers: limits.jsonMembers }), mergePatch({ maxDepth })]
}
