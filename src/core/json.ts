/** A value that JSON can hold. */
export type JsonValue = string | number | boolean | null | JsonArray | JsonObject
export type JsonArray = readonly JsonValue[]
export interface JsonObject {
  readonly [name: string]: JsonValue
}

/** Whether a value is a JSON object: neither an array nor null. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
