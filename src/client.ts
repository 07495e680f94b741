// A client of a service, for browsers, Node, Bun and Deno.

export type { ResourceClientOptions } from './client/client-options.ts'
export type {
  DocumentChange,
  ResourceClient,
} from './client/client-types.ts'
export type {
  DownloadOptions,
  DownloadResult,
  ResourceFile,
  UploadContent,
  UploadOptions,
  UploadResult,
} from './client/content.ts'
export { createPatch, type PatchDocument } from './client/create-patch.ts'
// Programs that export the results of a client need the names of all types in them.
export type {
  AnyPath,
  AnyResources,
  AnyTraits,
  ClientDefinition,
  ClientDefinitions,
  CollectionTypes,
  FileTypes,
  ItemTypes,
  JsonOf,
  PathTypes,
  SingleTypes,
} from './client/definition-paths.ts'
export type { EditOptions, EditResult } from './client/edit.ts'
export { type Merge, merge } from './client/edit.ts'
export type { ContentReader, Fetch, FetchOptions, FetchResponse } from './client/fetch.ts'
export type { List, ListedContent, ListOptions, PageResult } from './client/list.ts'
export type { ReadResult, WaitResult } from './client/read.ts'
export { createResourceClient } from './client/resource-client.ts'
export {
  type ChangeConflict,
  type Conflict,
  expectSuccess,
  type Failure,
  type Operation,
  type Problem,
  type ResourceDocument,
  type ResourceHandle,
  ResponseError,
  type Success,
} from './client/results.ts'
export type { RequestOptions } from './client/transport.ts'
export type {
  CreateContent,
  CreateOptions,
  CreateResult,
  RemovalMonitor,
  RemoveResult,
  ReplaceResult,
} from './client/write.ts'
export type { JsonArray, JsonObject, JsonValue } from './core/json.ts'
