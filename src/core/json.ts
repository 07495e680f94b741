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

/** Whether an object has a member. */
export function hasMembers(object: JsonObject): boolean {
  // biome-ignore lint/suspicious/noPrototypeBuiltins: the compiler knows this call in for-in; Object.hasOwn costs twice.
  for (const name in object) if (Object.prototype.hasOwnProperty.call(object, name)) return true
  return false
}

/** What `{ ...a, ...b }` gives, in a fifth of its time in Node 20. */
export function joinMembers(a: JsonObject, b: JsonObject): JsonObject {
  const joined: Record<string, JsonValue> = {}
  for (const name of Object.keys(a)) defineMember(joined, name, a[name]!)
  for (const name of Object.keys(b)) defineMember(joined, name, b[name]!)
  return joined
}

/** The member of an object under a name, or `undefined`. What the object inherits is not a member. */
export function readMember(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/**
 * Gives an object a member, whatever its name. An assignment to `__proto__` would exchange the prototype instead,
 * and one to `toString` fails where the prototypes are frozen.
 */
export function defineMember(object: Record<string, JsonValue>, name: string, value: JsonValue): void {
  if (name in Object.prototype) {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
  } else object[name] = value
}

/**
 * Whether two values are equal as JSON: numbers by value, strings by characters, arrays in order, objects in any order.
 * Absent values, which are `undefined`, are equal to each other alone.
 * Calls nothing on the values, so members called `toJSON` or `hasOwnProperty` are data like any other.
 */
export function equalJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    for (let i = 0; i < a.length; i++) if (!equalJson(a[i], b[i])) return false
    return true
  }
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  for (const name of names) {
    if (!Object.hasOwn(b, name) || !equalJson((a as JsonObject)[name], (b as JsonObject)[name])) return false
  }
  return true
}

/** Whether arrays and objects in a value lie more than `limit` deep; `[]` is one deep. */
export function isDeeperThan(value: JsonValue, limit: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (limit === 0) return true
  for (const child of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof child === 'object' && isDeeperThan(child, limit - 1)) return true
  }
  return false
}

/** One step of a JSON Pointer: a slash and the escaped name or index (RFC 6901 §3). */
export function formatPointerStep(token: string | number): string {
  const text = String(token)
  return '/' + (/[~/]/.test(text) ? text.replaceAll('~', '~0').replaceAll('/', '~1') : text)
}
