import { HttpError } from '../core/errors.ts'
import {
  defineMember,
  equalJson,
  isDeeperThan,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  readMember,
} from '../core/json.ts'
import { parseArrayIndex } from './json-pointer.ts'

type Container = JsonValue[] | Record<string, JsonValue>

/**
 * A document that is being changed. Arrays and objects are copied when they are first changed and then changed in
 * place; whatever is not changed is shared with the original.
 */
export interface Draft {
  root: JsonValue
  /** The copies. Everything above a copy is a copy too, so none of them is reached in two ways. */
  readonly copies: Set<unknown>
  /** How many characters of JSON may still be added by copying. */
  growth: number
  /** How many members and array items may still be added by copying. */
  members: number
  /** How many array elements may still be shifted by insertions and removals. */
  shifts: number
  readonly maxDepth: number
  /** Whether a value has been moved further down, so that the result may be too deep. */
  isDeepened: boolean
}

/** 500 insertions at the front of an array of 100,000. They cost about twice what it costs to parse and write the array. */
const MAX_SHIFTS = 50e6

export function createDraft(
  document: JsonValue,
  limits: { maxGrowth: number; maxMembers: number; maxDepth: number },
): Draft {
  return {
    root: document,
    copies: new Set(),
    growth: limits.maxGrowth,
    members: limits.maxMembers,
    shifts: MAX_SHIFTS,
    maxDepth: limits.maxDepth,
    isDeepened: false,
  }
}

/**
 * The result of all changes: the original itself where they come to nothing.
 * @throws HttpError 413 when it is nested too deep
 */
export function finishDraft(draft: Draft, original: JsonValue): JsonValue {
  // Before anything walks through the result, or its depth could use up the stack.
  if (draft.isDeepened && isDeeperThan(draft.root, draft.maxDepth)) throw tooDeep(draft)
  return equalJson(original, draft.root) ? original : draft.root
}

/** The value at a location, or `undefined`. */
export function findValue(
  draft: Draft,
  tokens: readonly string[],
  length: number = tokens.length,
): JsonValue | undefined {
  let value: JsonValue | undefined = draft.root
  for (let i = 0; i < length && value !== undefined; i++) value = readChild(value, tokens[i]!)
  return value
}

function readChild(parent: JsonValue, token: string): JsonValue | undefined {
  if (Array.isArray(parent)) {
    const index = parseArrayIndex(token)
    return index === undefined ? undefined : parent[index]
  }
  return isJsonObject(parent) ? readMember(parent, token) : undefined
}

/**
 * Inserts a value into an array, or sets a member of an object, or replaces the whole document (RFC 6902 §4.1).
 * @returns what is wrong with the location, or `undefined`
 */
export function addValue(draft: Draft, tokens: readonly string[], value: JsonValue): string | undefined {
  if (tokens.length === 0) {
    draft.root = value
    return undefined
  }
  const token = tokens[tokens.length - 1]!
  const parent = findValue(draft, tokens, tokens.length - 1)
  if (Array.isArray(parent)) {
    const index = token === '-' ? parent.length : parseArrayIndex(token)
    if (index === undefined) return 'The last part is not an array index.'
    if (index > parent.length) return 'The array is shorter.'
    shift(draft, parent.length - index)
    ;(openParent(draft, tokens) as JsonValue[]).splice(index, 0, value)
    return undefined
  }
  if (!isJsonObject(parent)) return 'There is no array or object at the parent of this location.'
  putChild(openParent(draft, tokens), token, value)
  return undefined
}

/** Puts another value in the place of the one that is at a location (RFC 6902 §4.3). There must be one. */
export function replaceValue(draft: Draft, tokens: readonly string[], value: JsonValue): void {
  if (tokens.length === 0) draft.root = value
  else putChild(openParent(draft, tokens), tokens[tokens.length - 1]!, value)
}

/** Takes the value at a location out of its array or object (RFC 6902 §4.2). There must be one, below the root. */
export function removeValue(draft: Draft, tokens: readonly string[]): void {
  const parent = openParent(draft, tokens)
  const token = tokens[tokens.length - 1]!
  if (Array.isArray(parent)) {
    shift(draft, parent.length - Number(token))
    parent.splice(Number(token), 1)
  } else delete parent[token]
}

/**
 * Makes a value fit to stand in a second place. It is shared, not copied: from now on all of it counts as the original
 * does, and is copied when one of its places is changed.
 * @param depth how deep the second place is
 * @throws HttpError 413 when the document grows beyond the limit, or becomes too deep
 */
export function shareValue(draft: Draft, value: JsonValue, depth: number): void {
  // What is shared is copied when one of its places is changed, and may then be shared again.
  if (--draft.members < 0) throw tooLarge('The patch copies too many members and array items.')
  chargeGrowth(draft, typeof value === 'string' ? value : '')
  if (typeof value !== 'object' || value === null) return
  if (depth >= draft.maxDepth) throw tooDeep(draft)
  draft.copies.delete(value)
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) shareValue(draft, value[i], depth + 1)
    return
  }
  for (const name of Object.keys(value)) {
    chargeGrowth(draft, name)
    shareValue(draft, (value as JsonObject)[name]!, depth + 1)
  }
}

/** About what a value takes in JSON: what surrounds it, and its text. */
function chargeGrowth(draft: Draft, text: string): void {
  draft.growth -= 8 + text.length
  // Characters that are written as escapes take up to six.
  if (draft.growth >= 0 && text.length > 2) draft.growth -= JSON.stringify(text).length - text.length
  if (draft.growth < 0) throw tooLarge('The patch makes copies that are too large together.')
}

/** The array or object that holds a location, as a copy that may be changed. It must exist. */
function openParent(draft: Draft, tokens: readonly string[]): Container {
  let parent = copyOnce(draft, draft.root)
  draft.root = parent
  for (let i = 0; i < tokens.length - 1; i++) {
    const token = tokens[i]!
    const child = readChild(parent, token)!
    const copy = copyOnce(draft, child)
    if (copy !== child) putChild(parent, token, copy)
    parent = copy
  }
  return parent
}

function copyOnce(draft: Draft, value: JsonValue): Container {
  if (draft.copies.has(value)) return value as Container
  const copy = Array.isArray(value) ? value.slice() : { ...(value as JsonObject) }
  draft.copies.add(copy)
  return copy
}

function putChild(parent: Container, token: string, value: JsonValue): void {
  if (Array.isArray(parent)) parent[Number(token)] = value
  else defineMember(parent, token, value)
}

function shift(draft: Draft, elements: number): void {
  draft.shifts -= elements
  if (draft.shifts < 0) throw tooLarge('The patch inserts or removes too often in an array this long.')
}

function tooDeep(draft: Draft): HttpError {
  return tooLarge(`The patch nests the document more than ${draft.maxDepth} levels deep.`)
}

function tooLarge(detail: string): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail })
}
