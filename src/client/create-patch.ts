import { equalJson, type JsonValue } from '../core/json.ts'
import { compareDocuments } from './compare-documents.ts'
import { generateMergePatch } from './generate-merge-patch.ts'
import { applyMergePatch, applyOperations } from './verify-patch.ts'

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
    const patch = attempt(() => generateMergePatch(before, after))
    if (patch !== undefined && leadsTo(() => applyMergePatch(before, patch), after)) {
      return { contentType: 'application/merge-patch+json', patch }
    }
  }
  const contentType = 'application/json-patch+json'
  const patch = attempt(() => compareDocuments(before, after))
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

/** The libraries are not safe with every name: a patch that does not lead to the document is not sent. */
function leadsTo(apply: () => JsonValue, after: JsonValue): boolean {
  return attempt(() => equalJson(apply(), after)) === true
}
