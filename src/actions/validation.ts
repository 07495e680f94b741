import type { ParsedJson } from '../body-types/json.ts'
import type { StandardIssue, StandardResult, StandardSchema } from '../core/definition-types.ts'
import { type ContentError, HttpError } from '../core/errors.ts'
import {
  equalJson,
  formatPointerStep,
  hasMembers,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  keepsNumbers,
  readMember,
} from '../core/json.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { describeValue, hasProperties } from '../core/option-values.ts'
import { parseIntegerName } from '../stores/rules.ts'
import type { Route } from './route.ts'

/** A JSON document that may be stored: one that was sent, or one that the server writes. */
export type Document = ParsedJson

/**
 * A document that the server writes. Its text is made when it is first read: most documents are given further properties
 * before that.
 */
export class WrittenDocument implements Document {
  readonly value: JsonValue
  readonly isVerbatim = false
  #text: string | undefined

  constructor(value: JsonValue, text?: string) {
    this.value = value
    this.#text = text
  }

  get text(): string {
    return (this.#text ??= JSON.stringify(this.value))
  }
}

/** Faults that an answer lists, and characters of a pointer or message: an answer is not to outgrow its request. */
const MAX_ERRORS = 100
const MAX_LENGTH = 1024

/** A fault of the program: 500. */
const NO_VALUE = 'The schema must return { issues }, or { value } with what is stored: JSON, for an item a JSON object.'

/** 422 that names what is wrong with a document (RFC 9110 §15.5.21). */
export function invalid(errors: readonly ContentError[]): HttpError {
  return new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'The content is not valid for this resource.', errors })
}

/** @throws HttpError 422 for a number that would be another one when the document is written anew */
export function requireKeptNumbers(document: Document): void {
  if (keepsNumbers(document)) return
  throw invalid([{ pointer: '', detail: 'A number has more digits than are kept.' }])
}

/** The value of the `id` member of a resource under a name. */
export function idOf(name: string, kind: Route['idMember']): string | number {
  return kind === 'string' ? name : (parseIntegerName(name) ?? name)
}

/**
 * Validates a document by the schema of the route. What the schema returns is what is stored: defaults and stripped
 * members count. The id belongs to the server: the schema need not know it, and may be strict about members that it does not know.
 * @param unknown what becomes of members that the schema strips; `refuse` is `Prefer: handling=strict`
 * @throws HttpError 422 with a JSON Pointer for each issue
 * @throws TypeError where the schema gives what cannot be stored
 */
export function validateDocument(
  document: Document,
  { schema, idMember }: Pick<Route, 'schema' | 'idMember'>,
  unknown: 'strip' | 'refuse',
): MaybePromise<Document> {
  if (idMember !== undefined && !isJsonObject(document.value)) {
    throw invalid([{ pointer: '', detail: 'A JSON object is expected.' }])
  }
  if (schema === undefined) return document
  const withoutId = (value: JsonValue) => (idMember === undefined ? { id: undefined, input: value } : splitId(value))
  const { id, input } = withoutId(document.value)
  // A value of its own: the schema may change it in place, whatever object it gives back.
  const own = withoutId(JSON.parse(document.text) as JsonValue).input
  return andThen(validateValue(schema, own), (result) => {
    if (result?.issues !== undefined) throw invalid(atOnce(result.issues).slice(0, MAX_ERRORS).map(toContentError))
    const value = result?.value as JsonValue | undefined
    if (equalJson(value, input)) return document
    requireKeptNumbers(document)
    // Through text, so that the value is what the next reader of the text will see: dates are strings there.
    const text = formatGiven(value, 'The schema')
    const output = text === undefined ? undefined : (JSON.parse(text) as JsonValue)
    // insertId writes into the text of an object: any other text would be broken JSON.
    if (output === undefined || (idMember !== undefined && !isJsonObject(output))) throw new TypeError(NO_VALUE)
    checkStripped(findStripped(input, output), unknown)
    const complete = idMember === undefined ? output : joinId(id, output)
    return new WrittenDocument(complete, complete === output ? text : undefined)
  })
}

/**
 * The JSON text of what a function of the user gave; `undefined` where JSON has none.
 * @throws TypeError for a promise, a Map and the like, at any depth: `{}` would be stored in their place
 */
export function formatGiven(value: unknown, giver: string): string | undefined {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part) || hasProperties(part)) return part
    throw new TypeError(`${giver} gave ${describeValue(part)}, of which JSON has no properties.`)
  })
}

/** The JSON that a function of the user gave, as a value of its own. @see formatGiven */
export function readGiven(value: unknown, giver: string): JsonValue | undefined {
  const text = formatGiven(value, giver)
  return text === undefined ? undefined : (JSON.parse(text) as JsonValue)
}

/** @returns nothing where a schema written by hand returns nothing */
export function validateValue(
  schema: StandardSchema,
  value: JsonValue,
): MaybePromise<StandardResult<unknown> | undefined> {
  return schema['~standard'].validate(value)
}

function splitId(value: JsonValue): { readonly id: JsonValue | undefined; readonly input: JsonValue } {
  if (!isJsonObject(value) || !Object.hasOwn(value, 'id')) return { id: undefined, input: value }
  const { id, ...input } = value
  return { id, input }
}

function joinId(id: JsonValue | undefined, output: JsonValue): JsonValue {
  const { input: members } = splitId(output)
  return id === undefined || !isJsonObject(members) ? members : { id, ...members }
}

/** Names of members that schemas leave out for their own safety, even where they keep all others. */
const UNSAFE: readonly string[] = ['__proto__', 'constructor', 'prototype']

/** Pointers to members that a schema has left out: the first of all, and the first of those with an unsafe name. */
interface Stripped {
  readonly all: string[]
  readonly unsafe: string[]
}

function checkStripped({ all, unsafe }: Stripped, unknown: 'strip' | 'refuse'): void {
  if (unknown === 'refuse' && all.length > 0) {
    throw invalid(all.map((pointer) => ({ pointer, detail: 'This property is not known.' })))
  }
  // Accepted with a part missing would be worse than refused.
  if (unsafe.length === 0) return
  throw new HttpError(400, 'ERR_MALFORMED_BODY', {
    detail: 'The content has a property whose name cannot be stored.',
    errors: unsafe.map((pointer) => ({ pointer, detail: 'This name cannot be stored.' })),
  })
}

function findStripped(
  input: JsonValue,
  output: JsonValue,
  path: (string | number)[] = [],
  found: Stripped = { all: [], unsafe: [] },
): Stripped {
  if (Array.isArray(input)) {
    if (!Array.isArray(output) || output.length !== input.length) return found
    for (let i = 0; i < input.length; i++) {
      path.push(i)
      findStripped(input[i], output[i], path, found)
      path.pop()
    }
  } else if (isJsonObject(input) && isJsonObject(output)) {
    for (const name of Object.keys(input)) {
      const kept = readMember(output, name)
      path.push(name)
      if (kept !== undefined) findStripped(input[name]!, kept, path, found)
      else {
        if (found.all.length < MAX_ERRORS) found.all.push(formatShortPointer(path))
        if (UNSAFE.includes(name) && found.unsafe.length < MAX_ERRORS) found.unsafe.push(formatShortPointer(path))
      }
      path.pop()
    }
  }
  return found
}

/** A pointer to a place, or to the nearest one around it whose pointer is not too long: each fault below repeats it. */
function formatShortPointer(path: readonly (string | number)[]): string {
  let pointer = ''
  for (const token of path) {
    const step = String(token).length > MAX_LENGTH ? undefined : formatPointerStep(token)
    if (step === undefined || pointer.length + step.length > MAX_LENGTH) break
    pointer += step
  }
  return pointer
}

export function toContentError(issue: StandardIssue): ContentError {
  const path = (issue.path ?? []).map((segment) => String(typeof segment === 'object' ? segment.key : segment))
  return { pointer: formatShortPointer(path), detail: issue.message.slice(0, MAX_LENGTH) }
}

/** `text` of a JSON object with the member `id` put first. */
export function insertId(text: string, value: JsonObject, id: string | number): string {
  const rest = text.slice(text.indexOf('{') + 1)
  return `{"id":${typeof id === 'number' ? id : JSON.stringify(id)}${hasMembers(value) ? ',' : ''}${rest}`
}
