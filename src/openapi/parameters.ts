import { SHORTEST_SECRET } from '../actions/keyed-request.ts'
import {
  describeOperators,
  MOST_VALUES,
  QUERY_TYPES,
  type QueryProperty,
  type QueryRules,
  type QueryType,
} from '../actions/query-rules.ts'
import type { JsonObject, JsonValue } from '../core/json.ts'
import { KEY_CHARACTER } from '../protocol/structured-fields.ts'
import type { Components } from './components.ts'
import { type DescribedMethod, type Facts, isRead, takesKey } from './facts.ts'
import { objectOf } from './json-schema.ts'
import { describeName, INDEXED } from './schemas.ts'
import { DATE, TEXT } from './shared-schemas.ts'

const SEGMENTS = { type: 'string', minLength: 1 }
/**
 * One segment of a path, decoded: see parseRequestTarget. Without looking ahead or back, as all patterns here: Go has neither.
 */
const SEGMENT = {
  type: 'string',
  pattern: String.raw`^(?:\.?[^./\\\x00-\x1f\x7f]|\.\.[^/\\\x00-\x1f\x7f])[^/\\\x00-\x1f\x7f]*$`,
}
const TAGS = { type: 'string', description: 'Entity tags, or `*`.' }
const BOOLEAN = { type: 'boolean' }
const PAGE_SIZE = { type: 'integer', minimum: 1, maximum: 999_999_999 }

const HEADERS: Readonly<Record<string, readonly [text: string, schema: JsonObject]>> = {
  'If-Match': ['Goes on only while the current entity tag is one of these (412 otherwise).', TAGS],
  'If-None-Match': ['Goes on only while the current entity tag is none of these.', TAGS],
  'If-Modified-Since': ['Answers 304 where nothing has changed since.', DATE],
  'If-Unmodified-Since': ['Goes on only where nothing has changed since (412 otherwise).', DATE],
  Range: ['Asks for ranges of bytes: `bytes=0-99`.', TEXT],
  'If-Range': ['Sends the ranges only while this is the current entity tag or date; the whole otherwise.', TEXT],
  'Want-Repr-Digest': ['Asks for a digest of the representation: `sha-256=1` (RFC 9530).', TEXT],
  'Want-Content-Digest': ['Asks for a digest of the content: `sha-256=1` (RFC 9530).', TEXT],
  'Content-Digest': ['Digests of the content by sha-256 or sha-512; 400 where one differs (RFC 9530).', TEXT],
  'Repr-Digest': ['The same as Content-Digest, of the representation that is sent.', TEXT],
  'Content-Language': ['The language of the content; it is kept.', TEXT],
  'Content-Disposition': ['The file name of the content; it is kept.', TEXT],
}

/** The parameters in the path of a pattern. */
export function describePathParameters({ pattern, names }: Facts): JsonObject {
  const parameters = [...pattern.matchAll(/\{(\w+)(\.\.\.)?\}/g)].map(([, name, dots], index): JsonValue => {
    const parameter = { name: name!, in: 'path', required: true }
    if (dots !== undefined) {
      const description = 'Segments, each percent-encoded, with slashes between them: `a/b%20c`.'
      return { ...parameter, description, schema: SEGMENTS }
    }
    const ids = names[index] ?? 'string'
    return { ...parameter, schema: ids === 'string' ? SEGMENT : describeName(ids) }
  })
  return parameters.length === 0 ? {} : { parameters }
}

/** The header and query parameters of an operation, those alone that have an effect there. */
export function describeParameters(facts: Facts, method: DescribedMethod, components: Components): JsonObject {
  const share = (parameter: JsonObject): JsonValue => components.add('parameters', String(parameter['name']), parameter)
  const header = (name: string): JsonValue => {
    const [description, schema] = HEADERS[name]!
    return share({ name, in: 'header', description, schema })
  }
  const parameters: JsonValue[] = []
  if (method === 'GET' && (facts.isListing || facts.kind === 'open')) {
    parameters.push(share(inQuery('limit', 'The most items on a page.', PAGE_SIZE)))
    parameters.push(share(inQuery('after', 'A cursor from the Link of the page before; opaque.', TEXT)))
  }
  if (method === 'GET' && facts.query !== undefined) parameters.push(...describeFilters(facts.query))
  if (isRead(method) && facts.deletion === 'soft' && facts.isGuarded) {
    const description = 'Whether resources that were removed are shown, to those who may see them.'
    parameters.push(share(inQuery('deleted', description, BOOLEAN)))
  }
  parameters.push(header('If-Match'), header('If-None-Match'))
  if (isRead(method) && facts.hasState) parameters.push(header('If-Modified-Since'))
  if (facts.hasState) parameters.push(header('If-Unmodified-Since'))
  if (isRead(method) && !facts.isListing) parameters.push(header('Range'), header('If-Range'))
  const preferences = findPreferences(facts, method)
  if (preferences.length > 0) {
    const description = `Preferences (RFC 7240): ${preferences.join(', ')}.`
    parameters.push({ name: 'Prefer', in: 'header', description, schema: TEXT })
  }
  if (mayAnswerContent(facts, method)) parameters.push(header('Want-Repr-Digest'), header('Want-Content-Digest'))
  if (facts.content[method] !== undefined) parameters.push(header('Content-Digest'), header('Repr-Digest'))
  if (takesKey(facts, method)) parameters.push(describeKey(facts, method, components))
  if (method === 'PUT' || method === 'POST') for (const name of findStored(facts)) parameters.push(header(name))
  return { parameters }
}

function inQuery(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: 'query', description, schema }
}

/** Request fields that are stored. Content-Disposition names each file of an item, and is not sent again with JSON. */
function findStored({ kind, json, storedHeaders }: Facts): readonly string[] {
  const others = storedHeaders.filter((name) => name !== 'Content-Disposition')
  const isNamed = kind === 'file' || (json !== 'all' && others.length < storedHeaders.length)
  return isNamed ? [...others, 'Content-Disposition'] : others
}

/** Whether an answer other than an error may have content. */
function mayAnswerContent({ acceptsItems, deletion, kind }: Facts, method: DescribedMethod): boolean {
  if (method === 'POST') return !acceptsItems
  if (method === 'PUT') return kind !== 'file'
  return method !== 'DELETE' || (kind !== 'operation' && deletion !== 'queued')
}

/** Where every request needs one, a PATCH with a tag in If-Match does not. */
function describeKey({ idempotency, hasCallers }: Facts, method: DescribedMethod, components: Components): JsonValue {
  const required = idempotency === 'required' && method === 'POST'
  const unless = method === 'PATCH' ? ' Ignored beside If-Match with a tag.' : ''
  const key = `${KEY_CHARACTER}{${hasCallers ? 1 : SHORTEST_SECRET},255}`
  return components.add('parameters', `Idempotency-Key-${method}${required ? '-required' : ''}`, {
    name: 'Idempotency-Key',
    in: 'header',
    description: `A string of the client's own: however often the request is sent with it, it is done once.${unless}`,
    ...(required && { required }),
    schema: { type: 'string', pattern: `^(?:${key}|"${key}")$` },
  })
}

function findPreferences(facts: Facts, method: DescribedMethod): readonly string[] {
  const isPlain = facts.kind === 'operation' || facts.kind === 'file'
  if (isRead(method) || isPlain) return []
  const { acceptsItems, deletion, mayBeQueued } = facts
  const found: string[] = []
  const isAnsweredLater = (method === 'POST' && acceptsItems) || (method === 'DELETE' && deletion === 'queued')
  if (!isAnsweredLater) found.push('`return=minimal`', '`return=representation`')
  if ((method === 'DELETE' && mayBeQueued) || (method === 'POST' && acceptsItems)) found.push('`respond-async`')
  if (facts.schema !== undefined && method !== 'DELETE') found.push('`handling=strict`')
  return found
}

/**
 * The parameters by which a list is filtered, ordered and counted. One parameter stands for all conditions on a property: a
 * value or several for equality, an object for others, each of its members in brackets (deepObject).
 */
function describeFilters(rules: QueryRules): readonly JsonValue[] {
  // A property that is sensitive must not be in a target.
  const named = [...rules.properties.values()].filter(({ isSensitive }) => !isSensitive)
  const filters = named.map((property): JsonValue => {
    const { name, type } = property
    return {
      name,
      in: 'query',
      description: `A value, or several for any of them; other conditions in brackets. ${describeOperators(property)}`,
      style: 'deepObject',
      explode: true,
      schema: { anyOf: [INDEXED[type], listOf(type), describeConditions(property)] },
    }
  })
  const order = 'One or two properties in the order of their weight; `-` before a name descends. Ties go by id.'
  return [
    ...filters,
    ...(filters.length > 0 ? [inQuery('sort', order, describeSort(named))] : []),
    ...(rules.allowsCount ? [inQuery('count', 'Whether X-Total-Count says how many items match.', BOOLEAN)] : []),
  ]
}

/** The parameters of a list as the properties of a form, for QUERY. */
export function describeQueryForm(rules: QueryRules): JsonObject {
  const properties: Record<string, JsonValue> = {}
  for (const property of rules.properties.values()) {
    properties[property.name] = listOf(property.type)
    for (const operator of QUERY_TYPES[property.type].operators) {
      if (operator !== '') properties[`${property.name}[${operator}]`] = describeOperand(property.type, operator)
    }
  }
  properties['limit'] = PAGE_SIZE
  properties['after'] = TEXT
  if (rules.properties.size > 0) properties['sort'] = describeSort([...rules.properties.values()])
  if (rules.allowsCount) properties['count'] = BOOLEAN
  return { ...objectOf(properties, []), additionalProperties: false }
}

/** Two different properties at most. */
function describeSort(properties: readonly QueryProperty[]): JsonObject {
  const names = properties.map(({ name }) => name.replaceAll(/[.$]/g, '\\$&'))
  const orders = names.map((name) => {
    const others = names.filter((other) => other !== name)
    return others.length === 0 ? name : `${name}(?:,-?(?:${others.join('|')}))?`
  })
  return { type: 'string', pattern: `^-?(?:${orders.join('|')})$` }
}

function describeConditions({ type }: QueryProperty): JsonObject {
  const operators = QUERY_TYPES[type].operators.filter((operator) => operator !== '')
  const operands = operators.map((operator) => [operator, describeOperand(type, operator)])
  return { ...objectOf(Object.fromEntries(operands), []), additionalProperties: false }
}

function describeOperand(type: QueryType, operator: string): JsonObject {
  // One value too: makers of clients write the members of an object one by one, and refuse a list among them.
  if (operator === 'ne') return { anyOf: [INDEXED[type], listOf(type)] }
  return operator === 'exists' ? BOOLEAN : INDEXED[type]
}

function listOf(type: QueryType): JsonObject {
  return { type: 'array', items: INDEXED[type], minItems: 1, maxItems: MOST_VALUES }
}
