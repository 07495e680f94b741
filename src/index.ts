export type {
  AcceptedMember,
  Authorize,
  ConflictHook,
  FileFacts,
  FileOptions,
  Process,
  Rendition,
  ResourceState,
} from './actions/hook-types.ts'
export {
  type AfterCommit,
  type BeforeWrite,
  type Change,
  type ChangeKind,
  type ChangeState,
  type CurrentState,
  json,
  type Outbox,
  type OutboxWrite,
  type WriteContext,
} from './actions/hook-types.ts'
export type { ScopeHook, ScopeProperties } from './actions/indexing.ts'
export type { QueryType } from './actions/query-rules.ts'
export { entityTagOf } from './actions/representation.ts'
export {
  type Adapted,
  type AdapterOptions,
  createAdapter,
  type HostAnswer,
  type HostFields,
} from './adapters/create-adapter.ts'
export { type AttachOptions, attach, mount } from './adapters/node.ts'
export * from './auth.ts'
export type { FilePart, FormField, FormPart } from './body-types/form.ts'
export type { CollectedParts } from './body-types/multipart.ts'
export type { StandardSchema } from './core/definition-types.ts'
export type { FailureEvent, RequestEvent } from './core/diagnostics.ts'
export {
  type ContentError,
  HttpError,
  type HttpErrorCode,
  type HttpErrorOptions,
  isHttpError,
  type ParameterError,
  type Problem,
} from './core/errors.ts'
export type { Exchange } from './core/exchange.ts'
export type { ErrorHook } from './core/failures.ts'
export type { Decision, Handler, HandlerRole, Next } from './core/handler.ts'
export type { JsonArray, JsonObject, JsonValue } from './core/json.ts'
export type { MaybePromise } from './core/maybe-promise.ts'
export type { Log, LogEntry } from './core/operator-log.ts'
export type { TrustProxy } from './core/peer.ts'
export type { Place } from './core/place.ts'
export type { Reply } from './core/reply.ts'
export type { AnyRequest, AnyResponse, Principal, RequestView } from './core/request-view.ts'
export { type BodyKind, type BodyParseOptions, bodyParse, type MultipartBody } from './handlers/body-parse.ts'
export { type ConditionalOptions, conditional } from './handlers/conditional.ts'
export { type DigestFieldOptions, digestFields } from './handlers/digest-fields.ts'
export { methodOverride } from './handlers/method-override.ts'
export { type CorsOptions, type Origins, type PreflightOptions, preflight } from './handlers/preflight.ts'
export { openFile, type RangeOptions, type RangeReader, type RangeSource, range } from './handlers/range.ts'
export { type RequireHttpsOptions, requireHttps } from './handlers/require-https.ts'
export * from './patch.ts'
export type { Method } from './protocol/request-line.ts'
export type { CollectionOptions } from './service/collection-options.ts'
export { createResourceService, type ResourceService } from './service/create-resource-service.ts'
export type { DocumentOptions, SingletonOptions } from './service/document-options.ts'
export type { NamedScope, QueryOptions, QueryPropertyOptions } from './service/query-options.ts'
export {
  type CollectionDefinition,
  collection,
  type DocumentDefinition,
  document,
  type ResourceDefinition,
  type SingletonDefinition,
  singleton,
} from './service/resource-definitions.ts'
export type { ResourceOptions } from './service/resource-options.ts'
export type { ServedDescription, ServiceAuthOptions, ServiceOptions } from './service/service-options.ts'
// By name: a bundler of declarations takes the functions of the file for values otherwise.
export type {
  CollectionIndex,
  Condition,
  IndexedValue,
  IndexedValues,
  ListQuery,
  OrderKey,
} from './stores/lists.ts'
export { type MemoryStoreOptions, memoryStore } from './stores/memory.ts'
export type {
  Content,
  ContentFields,
  CreateOptions,
  CreateResult,
  Expectation,
  LargeBody,
  ListOptions,
  NewState,
  Page,
  ReadOptions,
  RelatedWrite,
  RemoveOptions,
  RemoveResult,
  ResourceStore,
  SmallBody,
  StagedBody,
  StoredResource,
  StoredState,
  StoreSupport,
  Tombstone,
  WriteConflict,
  WriteOptions,
  WriteResult,
} from './stores/types.ts'
export type { OperationsOptions } from './work/operations.ts'
