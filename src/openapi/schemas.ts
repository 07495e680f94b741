import type { QueryType } from '../actions/query-rules.ts'
import { isJsonObject, type JsonObject, type JsonValue, readMember } from '../core/json.ts'
import { type Components, createNamer, nameDefinition } from './components.ts'
import type { Facts } from './facts.ts'
import {
  embedSchema,
  isClosed,
  objectOf,
  openProperties,
  patchOf,
  withoutProperties,
  withProperties,
} from './json-schema.ts'
import { SHARED, type SharedSchema, TEXT } from './shared-schemas.ts'

/** The schemas of one definition, as references or in place. */
interface DefinitionSchemas {
  /** JSON content of requests; `{}` where it is unknown. */
  readonly input: JsonObject
  /** JSON content of PUT, which may say of an item what the server says: it takes what GET has given. */
  readonly replacement: JsonObject
  /** JSON content of answers. */
  readonly output: JsonObject
  /** A merge patch. */
  readonly patch: JsonObject
  /** The properties of an item before references replace them, for forms. */
  readonly plainInput: JsonObject
  /** Whether the schema of the definition could not be read. */
  readonly isUnknown: boolean
}

export interface Schemas {
  of(facts: Facts): DefinitionSchemas
  /** The reference to a schema that is the same in every description. */
  shared(name: SharedSchema): JsonObject
}

/** Makes the schemas of definitions, each once, as components with names of their own. */
export function createSchemas(components: Components): Schemas {
  const uniqueName = createNamer()
  for (const name of Object.keys(SHARED)) uniqueName(name)
  const known = new Map<string, DefinitionSchemas>()

  function describe(facts: Facts): DefinitionSchemas {
    if (facts.kind === 'operation') {
      return { input: {}, replacement: {}, output: shared('Operation'), patch: {}, plainInput: {}, isUnknown: false }
    }
    const name = uniqueName(nameDefinition(facts.documentation.title, facts.definition))
    const read = { input: readJsonSchema(facts, 'input'), output: readJsonSchema(facts, 'output') }
    const isUnknown = facts.schema !== undefined && (read.input === undefined || read.output === undefined)
    const { hasId, showsWork } = facts
    const serverOwned = [...(hasId ? ['id', ...facts.files.keys()] : []), ...(showsWork ? ['state'] : [])]
    const anything: JsonObject = hasId || showsWork || facts.kind === 'description' ? { type: 'object' } : {}
    const embed = (schema: JsonObject | undefined, own: string): JsonObject =>
      withScope(facts, schema === undefined ? anything : embedSchema(schema, own, components))
    const inputName = uniqueName(`${name}Input`)
    const plainInput = withoutProperties(embed(read.input, inputName), serverOwned)
    const plainOutput = complete(facts, embed(read.output, name))
    const output = refer(name, plainOutput)
    const isSame = JSON.stringify(plainInput) === JSON.stringify(plainOutput)
    const hasInput = facts.kind !== 'file' && facts.kind !== 'description'
    const isKept = !isUnknown && !facts.changesContent
    const isSentAsStored = (name: string): boolean =>
      isKept && !serverOwned.includes(name) && textOf(read.input, name) === textOf(read.output, name)
    const take = (schema: JsonObject): JsonObject => withIndex(facts, schema, isSentAsStored)
    const input = isSame ? output : hasInput ? refer(inputName, take(plainInput)) : {}
    const owned = {
      id: describeName(facts.ids),
      ...Object.fromEntries([...facts.files.keys()].map((name) => [name, {}])),
    }
    const replacement =
      hasId && isClosed(plainInput)
        ? refer(uniqueName(`${name}Replacement`), take(withProperties(plainInput, owned, [])))
        : input
    return { output, input, replacement, patch: patchOf(plainInput, components.find), plainInput, isUnknown }
  }

  function shared(name: SharedSchema): JsonObject {
    return components.add('schemas', name, SHARED[name])
  }

  function refer(name: string, schema: JsonObject): JsonObject {
    return Object.keys(schema).length === 0 ? schema : components.add('schemas', name, schema)
  }

  return {
    of(facts) {
      // An item and its collection share one definition; the files below it have no content of their own to describe.
      const key = facts.kind === 'file' ? `${facts.definition} file` : facts.definition
      const made = known.get(key) ?? describe(facts)
      known.set(key, made)
      return made
    },
    shared,
  }
}

/** What an item says of a file, where the definition does not describe it by itself. */
const FILE: JsonObject = {
  ...objectOf({ name: TEXT, type: TEXT, size: { type: 'integer', minimum: 0 } }),
  readOnly: true,
}
const SUMMARY: JsonObject = { readOnly: true }

/** An item says its id and what is known of its files, and accepted work its state; the work may add properties that the schema does not know. */
function complete({ hasId, showsWork, ids: names, files }: Facts, schema: JsonObject): JsonObject {
  const known = hasId ? [...files].map(([name, { describe }]) => [name, describe === undefined ? FILE : SUMMARY]) : []
  const added: Record<string, JsonValue> = {
    ...(hasId && { id: describeName(names) }),
    ...(showsWork && { state: { enum: ['pending', 'ready', 'failed'], readOnly: true } }),
  }
  const members = Object.keys(added)
  if (members.length === 0) return schema
  const completed = withProperties(schema, { ...Object.fromEntries(known), ...added }, members)
  return showsWork ? openProperties(completed) : completed
}

const SCOPE: JsonObject = { type: ['string', 'number', 'boolean'] }

/** An item says whose it is, which its schema does not know; names that the definition does not say may be any. */
function withScope({ scope, hasId }: Facts, schema: JsonObject): JsonObject {
  if (scope === 'none' || !hasId) return schema
  if (scope === 'unknown') return openProperties(schema)
  return withProperties(schema, Object.fromEntries(scope.map((name) => [name, SCOPE])), [])
}

/** The values that can be indexed: no number beyond 2^53. */
export const INDEXED: Readonly<Record<QueryType, JsonObject>> = {
  string: { type: 'string', maxLength: 256 },
  number: { type: 'number', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  boolean: { type: 'boolean' },
  'date-time': { type: 'string', format: 'date-time' },
}

/** What a schema says of a property. */
function textOf(schema: JsonObject | undefined, name: string): string | undefined {
  const properties = schema?.['properties']
  return JSON.stringify(isJsonObject(properties) ? readMember(properties, name) : undefined)
}

/**
 * A property that lists are filtered by has its type in each item, or is not there.
 * @param isSentAsStored whether a property is the client's, and neither the schema nor a hook makes another value of it
 */
function withIndex({ indexed }: Facts, schema: JsonObject, isSentAsStored: (name: string) => boolean): JsonObject {
  const properties = [...indexed]
    .filter(([name]) => isSentAsStored(name))
    .map(([name, type]) => [name, { anyOf: [INDEXED[type], { type: 'null' }] }] as const)
  return properties.length === 0 ? schema : { allOf: [schema, objectOf(Object.fromEntries(properties), [])] }
}

/** The schema of a name below a collection. */
export function describeName(names: Facts['ids']): JsonObject {
  if (names === 'integer') return { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
  return names === 'uuid' ? { type: 'string', format: 'uuid' } : { type: ['integer', 'string'] }
}

type Direction = 'input' | 'output'
type Convert = (options: { readonly target: string }) => JsonValue

/**
 * The JSON Schema of a definition: its own, or that of its schema where that has the Standard JSON Schema interface.
 * @returns `undefined` where it is unknown: a validator may support one direction only, or use what JSON Schema cannot express
 */
function readJsonSchema({ documentation, schema }: Facts, direction: Direction): JsonObject | undefined {
  if (documentation.jsonSchema !== undefined) return documentation.jsonSchema[direction]
  const standard = schema?.['~standard'] as { readonly jsonSchema?: Partial<Record<Direction, Convert>> } | undefined
  const convert = standard?.jsonSchema?.[direction]
  if (typeof convert !== 'function') return undefined
  try {
    const converted = convert({ target: 'draft-2020-12' })
    // Through text, as it will be sent: without members that are undefined.
    return isJsonObject(converted) ? (JSON.parse(JSON.stringify(converted)) as JsonObject) : undefined
  } catch {
    return undefined // a transformation or a bigint, which JSON Schema cannot express
  }
}
