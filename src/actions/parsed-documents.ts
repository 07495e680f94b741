import type { JsonValue } from '../core/json.ts'
import type { StoredResource } from '../stores/types.ts'

const MAX_SIZE = 16 * 1024

/** Documents that a patch has made, by the state that holds them: the next patch of that state does not parse them again. */
const documents = new WeakMap<StoredResource, JsonValue>()

export function rememberDocument(resource: StoredResource, value: JsonValue): void {
  if (resource.size <= MAX_SIZE) documents.set(resource, value)
}

/** The parsed content of a state, if a patch made that very state. Shared: never change it. */
export function recallDocument(resource: StoredResource): JsonValue | undefined {
  return documents.get(resource)
}
