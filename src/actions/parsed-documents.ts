import type { JsonValue } from '../core/json.ts'
import type { StoredResource } from '../stores/types.ts'

const MAX_DOCUMENTS = 256
const MAX_SIZE = 16 * 1024

/** Documents that a patch has just made, by the state that holds them: the next patch need not parse them again. */
const documents = new Map<StoredResource, JsonValue>()

export function rememberDocument(resource: StoredResource, value: JsonValue): void {
  if (resource.size > MAX_SIZE) return
  documents.set(resource, value)
  if (documents.size > MAX_DOCUMENTS) documents.delete(documents.keys().next().value!)
}

/** The parsed content of a state, if a patch made that very state not long ago. Shared: never change it. */
export function recallDocument(resource: StoredResource): JsonValue | undefined {
  return documents.get(resource)
}
