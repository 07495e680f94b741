/** A client of a service, for browsers, Node, Bun and Deno. */

export type { ResourceClientOptions } from './client/client-options.ts'
export type {
  DocumentChange,
  ResourceClient,
} from './client/client-types.ts'
export type { CreateContent, CreateOptions, CreateResult } from './client/create.ts'
export { createPatch, type PatchDocument } from './client/create-patch.ts'
export type { AnyResources, ClientDefinition, ClientDefinitions, JsonOf } from './client/definition-paths.ts'
export type { DownloadOptions, DownloadResult, ResourceFile } from './client/download.ts'
export type { EditOptions, EditResult } from './client/edit.ts'
export type { ContentReader, Fetch, FetchOptions, FetchResponse } from './client/fetch.ts'
export type { List, ListedContent, ListOptions, PageResult } from './client/list.ts'
export { type Conflict, type Merge, merge } from './client/merge.ts'
export type { ReadResult, RequestOptions } from './client/read.ts'
export { createResourceClient } from './client/resource-client.ts'
export { ResponseError } from './client/response-error.ts'
export {
  type ChangeConflict,
  expectSuccess,
  type Failure,
  type Operation,
  type Problem,
  type ResourceDocument,
  type ResourceHandle,
  type Success,
} from './client/results.ts'
export type { UploadContent, UploadOptions, UploadResult } from './client/upload.ts'
export type { WaitResult } from './client/wait.ts'
export type { RemovalMonitor, RemoveResult, ReplaceResult } from './client/write.ts'
export type { JsonArray, JsonObject, JsonValue } from './core/json.ts'
