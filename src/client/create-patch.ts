import { equalJson, type JsonValue } from '../core/json.ts'
import { jsonPatch } from '../patch-formats/json-patch.ts'
import { mergePatch } from '../patch-formats/merge-patch.ts'
import type { PatchFormat } from '../patch-formats/types.ts'
import { compareDocuments } from './compare-documents.ts'
import { generateMergePatch } from './generate-merge-patch.ts'

/** A patch document and the media type that names its format. */
export interface PatchDocument {
  readonly contentType: 'application/merge-patch+json' | 'application/json-patch+json'
  readonly patch: JsonValue
}

const MERGE_PATCH = mergePatch({ maxDepth: 1000 })
const JSON_PATCH = jsonPatch({ maxDepth: 1000 })

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
    const patch = attempt(() => generateMergePatch(before, after))
    if (patch !== undefined && leadsTo(MERGE_PATCH, patch, before, after)) {
      return { contentType: 'application/merge-patch+json', patch }
    }
  }
  const contentType = 'application/json-patch+json'
  if (typeof before === 'object' && typeof after === 'object' && before !== null && after !== null) {
    const patch = attempt(() => compareDocuments(before, after))
    if (patch !== undefined && leadsTo(JSON_PATCH, patch, before, after)) return { contentType, patch }
  }
  return { contentType, patch: [{ op: 'replace', path: '', value: after }] }
}

/** The libraries call members of the documents that happen to have the names of methods. */
function attempt(generate: () => JsonValue): JsonValue | undefined {
  try {
    return generate()
  } catch {
    return undefined
  }
}

function leadsTo(format: PatchFormat, patch: JsonValue, before: JsonValue, after: JsonValue): boolean {
  try {
    return equalJson(format.parse(patch).apply(before), after)
  } catch {
    return false
  }
}
