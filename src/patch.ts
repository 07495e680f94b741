// PATCH: the middleware, the patch formats, and JSON Pointer.

export type { BodyLimits } from './body-types/limits.ts'
export type { JsonArray, JsonObject, JsonValue } from './core/json.ts'
export { type PatchedTarget, type PatchOptions, type PatchResult, type PatchTarget, patch } from './handlers/patch.ts'
export type { KnownValidators } from './handlers/validators.ts'
export { type JsonPatchOptions, jsonPatch } from './patch-formats/json-patch.ts'
export { formatPointer, parsePointer } from './patch-formats/json-pointer.ts'
export { type MergePatchOptions, mergePatch } from './patch-formats/merge-patch.ts'
export type { ParsedPatch, PatchFormat } from './patch-formats/patch-format.ts'
