import {
  defineMember,
  equalJson,
  formatPointerStep,
  isJsonObject,
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
 * Makes a patch that leads from one document to another.
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
  const patch = prefer === 'merge' ? createMergePatch(before, after) : undefined
  if (patch !== undefined) return { contentType: 'application/merge-patch+json', patch }
  return { contentType: 'application/json-patch+json', patch: listOperations(before, after, '') }
}

/** A merge patch (RFC 7396) that leads to a value; `undefined` where a member is to be null, which removes it instead. */
function createMergePatch(before: JsonValue | undefined, after: JsonValue): JsonValue | undefined {
  if (!isJsonObject(after)) return after ?? undefined
  const base = isJsonObject(before) ? before : {}
  const patch: Record<string, JsonValue> = {}
  for (const name of Object.keys({ ...base, ...after })) {
    const [old, value] = [readMember(base, name), readMember(after, name)]
    if (equalJson(old, value)) continue
    const change = value === undefined ? null : createMergePatch(old, value)
    if (change === undefined) return undefined
    defineMember(patch, name, change)
  }
  return patch
}

/** The operations of a JSON Patch (RFC 6902) that lead to a value. Arrays are compared item by item. */
function listOperations(before: JsonValue, after: JsonValue, path: string): readonly JsonObject[] {
  if (equalJson(before, after)) return []
  if (isJsonObject(before) && isJsonObject(after)) {
    return Object.keys({ ...before, ...after }).flatMap((name) => {
      const [old, value] = [readMember(before, name), readMember(after, name)]
      const member = path + formatPointerStep(name)
      if (value === undefined) return { op: 'remove', path: member }
      return old === undefined ? { op: 'add', path: member, value } : listOperations(old, value, member)
    })
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const shared = Math.min(before.length, after.length)
    return [
      ...before.slice(0, shared).flatMap((item, index) => listOperations(item, after[index], `${path}/${index}`)),
      ...before.slice(shared).map(() => ({ op: 'remove', path: `${path}/${shared}` })),
      ...after.slice(shared).map((value) => ({ op: 'add', path: `${path}/-`, value })),
    ]
  }
  return [{ op: 'replace', path, value: after }]
}
