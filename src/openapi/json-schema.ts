import { formatPointerStep, isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { type Components, createNamer } from './components.ts'

/** A schema that takes an object with the properties given. */
export function objectOf(properties: JsonObject, required: readonly string[] = Object.keys(properties)): JsonObject {
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}

/** Keywords whose members are schemas by their names, which are not keywords. */
const NAMED: readonly string[] = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions']
/** Keywords whose values are not schemas, whatever they look like. */
const VALUES: readonly string[] = ['const', 'default', 'enum', 'example', 'examples']

/**
 * Takes a schema into the components of a description: its own definitions become components, and references follow
 * them, since `#` is the whole description there. `$id` and `$anchor` are left out: requests and responses would have
 * one twice.
 */
export function embedSchema(schema: JsonObject, name: string, components: Components): JsonObject {
  const { $schema: _, $id, $defs, definitions, ...root } = schema
  const uniqueName = createNamer()
  const selfName = uniqueName(`${name}.Self`)
  // By what stands behind `#/$defs` in a reference: names are escaped there (RFC 6901 §4).
  const own = new Map(
    Object.entries({ ...(isJsonObject(definitions) && definitions), ...(isJsonObject($defs) && $defs) }).map(
      ([key, member]) => [
        formatPointerStep(key),
        { name: uniqueName(`${name}.${key.replaceAll(/[^\w.-]/g, '_')}`), member: member as JsonObject },
      ],
    ),
  )
  /** A reference by `$id` or `$anchor` as one by `#/$defs`. */
  const locate = (reference: string): string => {
    const [base = '', fragment = ''] = reference.split('#')
    const isWithin = base === '' || base === $id
    for (const [step, { member }] of own) {
      const isNamed = member['$anchor'] === fragment
      if (member['$id'] === base || (isNamed && isWithin)) return `#/$defs${step}${isNamed ? '' : fragment}`
    }
    if (!isWithin) return reference
    return root['$anchor'] === fragment ? '#' : `#${fragment}`
  }
  const findOwn = (reference: JsonValue | undefined) => {
    const [, step = '', rest = ''] = /^#\/(?:\$defs|definitions)(\/[^/]+)(\/.*)?$/.exec(locate(String(reference))) ?? []
    const definition = own.get(step)
    return definition && { ...definition, rest }
  }
  /** @param isSchema whether the members are keywords: those of `properties` are schemas under names of their own */
  const follow = (value: JsonValue, isSchema = true): JsonValue => {
    if (Array.isArray(value)) return value.map((member: JsonValue) => follow(member))
    if (!isJsonObject(value)) return value
    const members = Object.entries(value).flatMap(([key, member]) => {
      if (!isSchema) return [[key, follow(member)]]
      if (typeof member === 'string' && key === '$ref') return [[key, followReference(member)]]
      if (typeof member === 'string' && (key === '$id' || key === '$anchor')) return []
      if (VALUES.includes(key)) return [[key, member]]
      return [[key, key === 'discriminator' ? followMapping(member) : follow(member, !NAMED.includes(key))]]
    })
    return Object.fromEntries(members)
  }
  /** The references of a Discriminator Object. */
  const followMapping = (discriminator: JsonValue): JsonValue => {
    const mapping = isJsonObject(discriminator) ? discriminator['mapping'] : undefined
    if (!isJsonObject(mapping)) return discriminator
    const references = Object.entries(mapping).map(([name, reference]) => [name, followReference(String(reference))])
    return { ...(discriminator as JsonObject), mapping: Object.fromEntries(references) }
  }
  const followReference = (reference: string): string => {
    const found = findOwn(reference)
    if (found !== undefined) return `#/components/schemas/${found.name}${found.rest}`
    const place = locate(reference)
    if (!place.startsWith('#')) return reference
    components.add('schemas', selfName, selfPlaceholder)
    return `#/components/schemas/${selfName}${place.slice(1)}`
  }
  const selfPlaceholder: Record<string, JsonValue> = {}
  for (const { name, member } of own.values()) components.add('schemas', name, follow(member) as JsonObject)
  // A reference stands for what it refers to where it is the schema or an alternative, so that properties can be added to it.
  const inline = (schema: JsonObject, outer: readonly string[] = []): JsonObject =>
    mapAlternatives(schema, (schema) => {
      const { $ref, ...rest } = schema
      const found = findOwn($ref)
      if (found === undefined || found.rest !== '' || outer.includes(found.name)) return schema
      const base = inline(found.member, [...outer, found.name])
      // Both count.
      const properties = { ...(base['properties'] as JsonObject), ...(rest['properties'] as JsonObject) }
      const required = new Set([base, rest].flatMap(({ required = [] }) => required as readonly JsonValue[]))
      return {
        ...base,
        ...rest,
        ...(Object.keys(properties).length > 0 && { properties }),
        ...(required.size > 0 && { required: [...required] }),
      }
    })
  const embedded = follow(inline(root)) as JsonObject
  Object.assign(selfPlaceholder, embedded)
  return embedded
}

/** Changes each alternative of a schema that is one of several, or else the schema itself; both where it has properties. */
function mapAlternatives(schema: JsonObject, change: (schema: JsonObject) => JsonObject): JsonObject {
  for (const keyword of ['anyOf', 'oneOf']) {
    const alternatives = readMember(schema, keyword)
    if (!Array.isArray(alternatives)) continue
    const changed = alternatives.map((member: JsonValue) =>
      isJsonObject(member) ? mapAlternatives(member, change) : member,
    )
    const { [keyword]: _, ...rest } = schema
    return { ...(isJsonObject(rest['properties']) ? change(rest) : rest), [keyword]: changed }
  }
  return change(schema)
}

/** The schema of what has further properties. Those that are there already are replaced. */
export function withProperties(schema: JsonObject, added: JsonObject, required: readonly string[]): JsonObject {
  return mapAlternatives(schema, (schema) => {
    if (readMember(schema, '$ref') !== undefined) return { allOf: [schema, objectOf(added, required)] }
    const { properties, required: names, propertyNames, ...rest } = schema
    const known = Array.isArray(names) ? names.filter((name) => !Object.hasOwn(added, String(name))) : []
    const addedNames = Object.keys(added).map((name) => ({ const: name }))
    return {
      ...rest,
      ...(propertyNames !== undefined && { propertyNames: { anyOf: [propertyNames, ...addedNames] } }),
      type: 'object',
      properties: { ...added, ...withoutNames(properties, added) },
      ...(required.length + known.length > 0 && { required: [...required, ...known] }),
    }
  })
}

const RESTRICTIONS = ['additionalProperties', 'unevaluatedProperties', 'propertyNames']

/** Whether a schema, or one of its alternatives, refuses properties for their names or values although it does not name them. */
export function isClosed(schema: JsonObject): boolean {
  const found = alternativesOf(schema).flatMap((one) => RESTRICTIONS.map((name) => readMember(one, name) ?? true))
  return found.some((rule) => rule !== true && JSON.stringify(rule) !== '{}')
}

/** The names of the properties that may be arrays. */
export function findLists(schema: JsonObject): readonly string[] {
  return alternativesOf(schema).flatMap(({ properties }) => {
    const named = isJsonObject(properties) ? Object.entries(properties) : []
    return named.flatMap(([name, property]) => {
      const alternatives = isJsonObject(property) ? alternativesOf(property) : []
      return alternatives.some(({ type }) => [type].flat().includes('array')) ? [name] : []
    })
  })
}

function alternativesOf(schema: JsonObject): readonly JsonObject[] {
  const found: JsonObject[] = []
  mapAlternatives(schema, (one) => {
    found.push(one)
    return one
  })
  return found
}

/** The schema of what lacks some properties. */
export function withoutProperties(schema: JsonObject, removed: readonly string[]): JsonObject {
  const names = Object.fromEntries(removed.map((name) => [name, true]))
  return mapAlternatives(schema, (schema) => {
    const { properties, required, ...rest } = schema
    const left = Array.isArray(required) ? required.filter((name) => !removed.includes(String(name))) : []
    return {
      ...rest,
      ...(isJsonObject(properties) && { properties: withoutNames(properties, names) }),
      ...(left.length > 0 && { required: left }),
    }
  })
}

/**
 * The schema of what has its properties under other names. One that has several may have each: none of them is required.
 * @param namesOf the names that stand for a property
 */
export function renameProperties(schema: JsonObject, namesOf: (name: string) => readonly string[]): JsonObject {
  return mapAlternatives(schema, ({ properties, required, ...rest }) => ({
    ...rest,
    ...(isJsonObject(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).flatMap(([name, property]) => namesOf(name).map((other) => [other, property])),
      ),
    }),
    ...(Array.isArray(required) && {
      required: required.flatMap((name) => (namesOf(String(name)).length > 1 ? [] : namesOf(String(name)))),
    }),
  }))
}

function withoutNames(properties: JsonValue | undefined, names: JsonObject): JsonObject {
  if (!isJsonObject(properties)) return {}
  return Object.fromEntries(Object.entries(properties).filter(([name]) => !Object.hasOwn(names, name)))
}

/** Lets any further property be. */
export function openProperties(schema: JsonObject): JsonObject {
  return mapAlternatives(schema, ({ propertyNames: _, ...rest }) => ({ ...rest, additionalProperties: true }))
}

type Find = (reference: string) => JsonObject | undefined

/**
 * The schema of a merge patch (RFC 7396): every property may be left out, and one that need not be there may be null,
 * which removes it. The same holds for the properties of its parts.
 * @param find gives the component that a reference names
 */
export function patchOf(schema: JsonObject, find: Find, isNamed = false): JsonObject {
  const { properties, required } = schema
  const fallback = { type: 'object', additionalProperties: true }
  if (!isJsonObject(properties)) return fallback
  const needed = Array.isArray(required) ? required : []
  const partial = Object.entries(properties).map(([name, property]) => {
    const member = patchPart(property, find, isNamed)
    return [name, needed.includes(name) ? member : orNull(member)]
  })
  return { ...fallback, properties: Object.fromEntries(partial) as JsonObject }
}

/** @param isNamed whether it is in a named part: those within are not followed, which may go round in circles */
function patchPart(part: JsonValue, find: Find, isNamed: boolean): JsonValue {
  if (!isJsonObject(part) || isNeverObject(part)) return part
  const { $ref, additionalProperties, anyOf, oneOf = anyOf, patternProperties, properties, type } = part
  if (isJsonObject(properties)) return patchOf(part, find, isNamed)
  if (isJsonObject(additionalProperties) && patternProperties === undefined) {
    return { type: 'object', additionalProperties: orNull(patchPart(additionalProperties, find, isNamed)) }
  }
  if (type === 'object') return { type }
  if (Array.isArray(oneOf)) return { anyOf: oneOf.map((one: JsonValue) => patchPart(one, find, isNamed)) }
  const named = find(String($ref)) ?? {}
  if (isNeverObject(named)) return part
  return isNamed ? {} : patchPart(named, find, true)
}

function isNeverObject({ type, const: constant, enum: values }: JsonObject): boolean {
  return (type ?? constant ?? values) !== undefined && ![type].flat().includes('object')
}

function orNull(schema: JsonValue): JsonObject {
  return { anyOf: [schema, { type: 'null' }] }
}
