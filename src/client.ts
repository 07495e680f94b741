/** A client for documents that are changed by more than one party. */

export { createPatch, type PatchDocument } from './client/create-patch.ts'
export {
  type CreatedDocument,
  createResourceClient,
  type DocumentChange,
  type Fetch,
  type FetchResponse,
  type ResourceClient,
  type ResourceClientOptions,
  type ResourceDocument,
} from './client/resource-client.ts'
export { ResponseError } from './client/response-error.ts'
export type { JsonArray, JsonObject, JsonValue } from './core/json.ts'
