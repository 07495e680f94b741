import type { JsonObject, JsonValue } from '../core/json.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { DescribedMethod, Facts } from './facts.ts'
import { findLists, openProperties, renameProperties, withProperties } from './json-schema.ts'
import { describeQueryForm } from './parameters.ts'
import type { Schemas } from './schemas.ts'
import { TEXT } from './shared-schemas.ts'
import { examplesOf } from './successes.ts'

const BYTES = { contentMediaType: 'application/octet-stream' }

/** The content that an operation takes, by media range; nothing where it takes none. */
export function describeRequest(facts: Facts, method: DescribedMethod, schemas: Schemas): JsonObject {
  const rule = facts.content[method]
  if (rule === undefined) return {}
  const content: Record<string, JsonValue> = {}
  for (const type of rule.types) content[type] = describeMedia(facts, method, type, schemas)
  const isAnything = !rule.types.some(isJsonType) && facts.json === 'some' && facts.schema !== undefined
  if (isAnything && method !== 'PATCH' && method !== 'QUERY')
    content['application/json'] = describeJson(facts, method, schemas)
  return { requestBody: { required: true, content } }
}

function describeMedia(facts: Facts, method: DescribedMethod, type: string, schemas: Schemas): JsonObject {
  if (method === 'PATCH') return describePatch(facts, type, schemas)
  if (method === 'QUERY') return describeFields(describeQueryForm(facts.query!))
  const { form, json } = facts
  if (method === 'POST' && form !== undefined && (json === 'all' || facts.kind === 'open')) {
    if (type === 'application/x-www-form-urlencoded') return describeFields(describeForm(facts, schemas, 'text'))
    if (type === 'multipart/form-data') return describeFields(describeForm(facts, schemas, 'parts'))
    if (type === 'text/plain') return { schema: TEXT }
  }
  if (method === 'POST' && facts.kind === 'open' && isJsonType(type)) return { schema: { type: 'object' } }
  // Without a schema, Swagger UI has no field for the content.
  if (isJsonType(type))
    return json === 'all' || facts.schema !== undefined ? describeJson(facts, method, schemas) : { schema: {} }
  return type.includes('*') ? {} : { schema: type.startsWith('text/') ? TEXT : BYTES }
}

function describeJson(facts: Facts, method: DescribedMethod, schemas: Schemas): JsonObject {
  const { input, replacement } = schemas.of(facts)
  return { schema: method === 'PUT' ? replacement : input, ...examplesOf(facts, 'input') }
}

function describePatch(facts: Facts, type: string, schemas: Schemas): JsonObject {
  if (type === 'application/json-patch+json') return { schema: schemas.shared('JsonPatch') }
  // Beside JSON Patch, plain JSON is a merge patch.
  if (type !== 'application/merge-patch+json' && type !== 'application/json') return {}
  const isKnown = facts.json === 'all' || facts.schema !== undefined
  return { schema: isKnown ? schemas.of(facts).patch : { type: 'object', additionalProperties: true } }
}

/** Each value of a list is a field of its own. Where a description does not say so, Swagger UI sends `a,b`. */
function describeFields(schema: JsonObject): JsonObject {
  const encoding = Object.fromEntries(findLists(schema).map((name) => [name, { style: 'form', explode: true }]))
  return { schema, ...(Object.keys(encoding).length > 0 && { encoding }) }
}

/** A form has the properties of the item under the names of its fields, and files as parts. */
function describeForm(facts: Facts, schemas: Schemas, kind: 'text' | 'parts'): JsonObject {
  const { formFields, files } = facts.form!
  const input = facts.kind === 'open' ? {} : schemas.of(facts).plainInput
  const named = renameProperties(input, (name) => {
    const fields = [...formFields].flatMap(([field, property]) => (property === name ? [field] : []))
    return fields.length > 0 ? fields : [name]
  })
  const parts = kind === 'text' || files === 'any' ? [] : [...files]
  const needed = parts.filter(([, file]) => file.required === true).map(([name]) => name)
  const form = withProperties(named, Object.fromEntries(parts.map(([name]) => [name, BYTES])), needed)
  return files === 'any' ? openProperties(form) : form
}
