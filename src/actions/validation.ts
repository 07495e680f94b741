import { type ContentError, HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { equalJson, isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { StandardIssue, StandardResult, StandardSchema } from '../core/standard-schema.ts'
import { parseIntegerName } from '../stores/types.ts'
import type { Route } from './route.ts'

/** A JSON document that may be stored: the value, and its text. */
export interface Document {
  readonly value: JsonValue
  readonly text: string
  /** Whether the text is what the client sent, byte for byte. */
  readonly isVerbatim: boolean
}

/** 422 that names what is wrong with a document (RFC 9110 §15.5.21). */
export function invalid(errors: readonly ContentError[]): HttpError {
  return new HttpError(422, 'ERR_INVALID_CONTENT', { detail: 'The content is not valid for this resource.', errors })
}

/** The value of the `id` member of a resource under a name. */
export function idOf(name: string, kind: Route['idMember']): string | number {
  return kind === 'string' ? name : (parseIntegerName(name) ?? name)
}

/**
 * Validates a document by the schema of the route. What the schema returns is what is stored: defaults and stripped
 * members count.
 * @throws HttpError 422 with a JSON Pointer for each issue
 */
export function validateDocument(document: Document, route: Route): MaybePromise<Document> {
  const { schema, idMember } = route
  if (idMember !== undefined && !isJsonObject(document.value)) {
    throw invalid([{ pointer: '', detail: 'A JSON object is expected.' }])
  }
  if (schema === undefined) return document
  return andThen(validateValue(schema, document.value), (result) => {
    if (result.issues !== undefined) throw invalid(result.issues.map(toContentError))
    const value = keepId(result.value as JsonValue, document.value, idMember)
    if (value === document.value || equalJson(value, document.value)) return document
    return { value, text: JSON.stringify(value), isVerbatim: false }
  })
}

export function validateValue(schema: StandardSchema, value: JsonValue): MaybePromise<StandardResult<unknown>> {
  return schema['~standard'].validate(value)
}

/** The id is ours, not the schema's: a schema that strips unknown members must not strip it. */
function keepId(output: JsonValue, input: JsonValue, idMember: Route['idMember']): JsonValue {
  if (idMember === undefined || !isJsonObject(output) || !isJsonObject(input)) return output
  const { id } = input
  return id === undefined || Object.hasOwn(output, 'id') ? output : { id, ...output }
}

export function toContentError(issue: StandardIssue): ContentError {
  const pointer = (issue.path ?? []).map((segment) => {
    const key = typeof segment === 'object' ? segment.key : segment
    return '/' + String(key).replaceAll('~', '~0').replaceAll('/', '~1')
  })
  return { pointer: pointer.join(''), detail: issue.message }
}

/** `text` of a JSON object with the member `id` put first. */
export function insertId(text: string, value: JsonObject, id: string | number): string {
  const rest = text.slice(text.indexOf('{') + 1)
  return `{"id":${JSON.stringify(id)}${Object.keys(value).length === 0 ? '' : ','}${rest}`
}
