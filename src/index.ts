export type { Authorize, ConflictHook, Rendition, ResourceState } from './actions/route.ts'
export { type AttachOptions, attach, mount } from './adapters/node.ts'
export {
  type ContentError,
  HttpError,
  type HttpErrorCode,
  type HttpErrorOptions,
  isHttpError,
  type Problem,
} from './core/errors.ts'
export type { Principal, RequestView } from './core/exchange.ts'
export type { JsonArray, JsonObject, JsonValue } from './core/json.ts'
export type { Handler, Next } from './core/node-handler.ts'
export type { StandardSchema } from './core/standard-schema.ts'
export { createResourceService, type ResourceService } from './service/create-resource-service.ts'
export {
  type AcceptedMember,
  type CollectionOptions,
  collection,
  type DocumentOptions,
  document,
  type Process,
  type ResourceDefinition,
  type ResourceOptions,
  type SingletonOptions,
  singleton,
} from './service/resource-definitions.ts'
export type { ServiceAuthOptions, ServiceOptions } from './service/service-options.ts'
export { type MemoryStoreOptions, memoryStore } from './stores/memory.ts'
export type * from './stores/types.ts'
