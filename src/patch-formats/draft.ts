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

/** 500 insertions at the front of an array of 100,000. They cost about twice what it costs to parse and write the array. */
const MAX_SHIFTS = 50e6

/**
 * A document that is being changed. Arrays and objects are copied when they are first changed and then changed in
 * place; whatever is not changed is shared with the original.
 */
export class Draft {
  /** Whether a value has been moved further down, so that the result may be too deep. */
  isDeepened = false
  readonly #original: JsonValue
  #root: JsonValue
  /** The copies. Everything above a copy is a copy too, so none of them is reached in two ways. */
  readonly #copies = new Set<unknown>()
  /** How many characters of JSON may still be added by copying. */
  #growth: number
  /** How many members and array items may still be added by copying. */
  #members: number
  /** How many array elements may still be shifted by insertions and removals. */
  #shifts = MAX_SHIFTS
  readonly #maxDepth: number

  constructor(document: JsonValue, limits: { maxGrowth: number; maxMembers: number; maxDepth: number }) {
    this.#original = this.#root = document
    this.#growth = limits.maxGrowth
    this.#members = limits.maxMembers
    this.#maxDepth = limits.maxDepth
  }

  /**
   * The result of all changes: the original itself where they come to nothing.
   * @throws HttpError 413 when it is nested too deep
   */
  finish(): JsonValue {
    // Before anything walks through the result, or its depth could use up the stack.
    if (this.isDeepened && isDeeperThan(this.#root, this.#maxDepth)) throw this.#tooDeep()
    return equalJson(this.#original, this.#root) ? this.#original : this.#root
  }

  /** The value at a location, or `undefined`. */
  find(tokens: readonly string[], length: number = tokens.length): JsonValue | undefined {
    let value: JsonValue | undefined = this.#root
    for (let i = 0; i < length && value !== undefined; i++) value = readChild(value, tokens[i]!)
    return value
  }

  /**
   * Inserts a value into an array, or sets a member of an object, or replaces the whole document (RFC 6902 §4.1).
   * @returns what is wrong with the location, or `undefined`
   */
  add(tokens: readonly string[], value: JsonValue): string | undefined {
    const parent = tokens.length === 0 ? undefined : this.find(tokens, tokens.length - 1)
    if (Array.isArray(parent)) {
      const token = tokens[tokens.length - 1]!
      const index = token === '-' ? parent.length : parseArrayIndex(token)
      if (index === undefined) return 'The last part is not an array index.'
      if (index > parent.length) return 'The array is shorter.'
      this.#shift(parent.length - index)
      ;(this.#openParent(tokens) as JsonValue[]).splice(index, 0, value)
    } else if (tokens.length === 0 || isJsonObject(parent)) this.replace(tokens, value)
    else return 'There is no array or object at the parent of this location.'
    return undefined
  }

  /** Puts another value in the place of the one that is at a location (RFC 6902 §4.3). There must be one. */
  replace(tokens: readonly string[], value: JsonValue): void {
    if (tokens.length === 0) this.#root = value
    else putChild(this.#openParent(tokens), tokens[tokens.length - 1]!, value)
  }

  /** Takes the value at a location out of its array or object (RFC 6902 §4.2). There must be one, below the root. */
  remove(tokens: readonly string[]): void {
    const parent = this.#openParent(tokens)
    const token = tokens[tokens.length - 1]!
    if (Array.isArray(parent)) {
      this.#shift(parent.length - Number(token))
      parent.splice(Number(token), 1)
    } else delete parent[token]
  }

  /**
   * Makes a value fit to stand in a second place. It is shared, not copied: from now on all of it counts as the original
   * does, and is copied when one of its places is changed.
   * @param depth how deep the second place is
   * @throws HttpError 413 when the document grows beyond the limit, or becomes too deep
   */
  share(value: JsonValue, depth: number): void {
    // What is shared is copied when one of its places is changed, and may then be shared again.
    if (--this.#members < 0) throw tooLarge('The patch copies too many members and array items.')
    this.#chargeGrowth(typeof value === 'string' ? value : '')
    if (typeof value !== 'object' || value === null) return
    if (depth >= this.#maxDepth) throw this.#tooDeep()
    this.#copies.delete(value)
    if (Array.isArray(value)) {
      for (let i = 0; i < value.length; i++) this.share(value[i], depth + 1)
      return
    }
    for (const name of Object.keys(value)) {
      this.#chargeGrowth(name)
      this.share((value as JsonObject)[name]!, depth + 1)
    }
  }

  /** About what a value takes in JSON: what surrounds it, and its text. */
  #chargeGrowth(text: string): void {
    this.#growth -= 8 + text.length
    // Characters that are written as escapes take up to six.
    if (this.#growth >= 0 && text.length > 2) this.#growth -= JSON.stringify(text).length - text.length
    if (this.#growth < 0) throw tooLarge('The patch makes copies that are too large together.')
  }

  /** The array or object that holds a location, as a copy that may be changed. It must exist. */
  #openParent(tokens: readonly string[]): Container {
    let parent = this.#copyOnce(this.#root)
    this.#root = parent
    for (let i = 0; i < tokens.length - 1; i++) {
      const token = tokens[i]!
      const child = readChild(parent, token)!
      const copy = this.#copyOnce(child)
      if (copy !== child) putChild(parent, token, copy)
      parent = copy
    }
    return parent
  }

  #copyOnce(value: JsonValue): Container {
    if (this.#copies.has(value)) return value as Container
    const copy = Array.isArray(value) ? value.slice() : { ...(value as JsonObject) }
    this.#copies.add(copy)
    return copy
  }

  #shift(elements: number): void {
    this.#shifts -= elements
    if (this.#shifts < 0) throw tooLarge('The patch inserts or removes too often in an array this long.')
  }

  #tooDeep(): HttpError {
    return tooLarge(`The patch nests the document more than ${this.#maxDepth} levels deep.`)
  }
}

function readChild(parent: JsonValue, token: string): JsonValue | undefined {
  if (Array.isArray(parent)) {
    const index = parseArrayIndex(token)
    return index === undefined ? undefined : parent[index]
  }
  return isJsonObject(parent) ? readMember(parent, token) : undefined
}

function putChild(parent: Container, token: string, value: JsonValue): void {
  if (Array.isArray(parent)) parent[Number(token)] = value
  else defineMember(parent, token, value)
}

function tooLarge(detail: string): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail })
}
