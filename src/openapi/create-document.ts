import { MOST_CONDITIONS } from '../actions/query-rules.ts'
import { shapeOf } from '../actions/route-table.ts'
import type { JsonArray, JsonObject, JsonValue } from '../core/json.ts'
import { type Components, createComponents, createNamer, namePath, sortMembers, templateOf } from './components.ts'
import { type DescribedMethod, type Facts, isDeep, isRead, readFacts } from './facts.ts'
import type { OpenApiOptions, ServiceView } from './inputs.ts'
import { describeParameters, describePathParameters } from './parameters.ts'
import { describeRequest } from './requests.ts'
import { type DocumentContext, describeResponses } from './responses.ts'
import { createSchemas } from './schemas.ts'

/** A description: a plain object, to be written as JSON. */
export interface OpenApiDocument extends JsonObject {
  readonly openapi: string
  readonly info: JsonObject
  readonly servers: JsonArray
  readonly tags: JsonArray
  /** Path Item Objects by path. */
  readonly paths: Readonly<Record<string, JsonObject>>
  readonly components: JsonObject
}

const VERSIONS = { '3.1': '3.1.1', '3.2': '3.2.0' } as const

/**
 * Makes the description of a service. The same definitions give the same document, in whatever order they are written.
 * @throws TypeError for options that OpenAPI has no place for
 */
export function createDocument(view: ServiceView, options: OpenApiOptions): OpenApiDocument {
  const { info, version = '3.1', servers = [{ url: view.mountPath === '' ? '/' : view.mountPath }] } = options
  const components = createComponents()
  const schemas = createSchemas(components)
  const context: DocumentContext = { view, components, schemas, nameOperation: createNamer() }
  const routes = [...view.routes].sort((a, b) => (a.pattern < b.pattern ? -1 : 1))
  const all = routes.map(({ pattern, route }) => readFacts(view, pattern, route))
  const methodsOf = ({ methods }: Facts) => methods.filter((method) => method !== 'QUERY' || version === '3.2')
  const described = new Map(
    dropAmbiguous(all).map((facts) => [templateOf(facts.pattern), describePath(facts, methodsOf(facts), context)]),
  )
  const paths = sortMembers(described) as OpenApiDocument['paths']
  const tags = describeTags(all)
  return { openapi: VERSIONS[version], info, servers, tags, paths, components: components.toJson(paths) }
}

/**
 * Leaves out paths of any depth beside a name at the same place: templates that differ in their names alone are one for
 * OpenAPI, and the name is the more exact one.
 */
function dropAmbiguous(all: readonly Facts[]): readonly Facts[] {
  const shapes = new Set(all.filter((facts) => !isDeep(facts)).map(({ pattern }) => shapeOf(pattern)))
  return all.filter((facts) => !isDeep(facts) || !shapes.has(shapeOf(facts.pattern)))
}

function describePath(facts: Facts, methods: Facts['methods'], context: DocumentContext): JsonObject {
  const path: Record<string, JsonValue> = { ...describePathParameters(facts) }
  for (const method of methods) path[method.toLowerCase()] = describeOperation(facts, method, context)
  return path
}

function describeTags(all: readonly Facts[]): readonly JsonValue[] {
  const tags = new Map<string, JsonValue>()
  for (const facts of all) {
    const name = tagOf(facts)
    const { description } = facts.documentation
    if (!tags.has(name))
      tags.set(name, { name, description: description ?? `${WORDS[facts.kind]} at \`${facts.definition}\`.` })
  }
  return [...tags].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, tag]) => tag)
}

const WORDS: Readonly<Record<Facts['kind'], string>> = {
  collection: 'The collection',
  item: 'The items',
  file: 'The files of the items',
  document: 'The document',
  singleton: 'The document',
  operation: 'The monitors of accepted work',
  description: 'The description of this service',
  open: 'The resources',
}

const VERBS: Readonly<Record<DescribedMethod, string>> = {
  GET: 'read',
  PUT: 'replace',
  POST: 'create',
  DELETE: 'remove',
  PATCH: 'change',
  QUERY: 'query',
}

function describeOperation(facts: Facts, method: DescribedMethod, context: DocumentContext): JsonObject {
  const { view, components, schemas } = context
  const verb = facts.isListing && method === 'GET' ? 'list' : VERBS[method]
  const isReplaceOrCreate = method === 'PUT' && facts.createsByPut
  const name = facts.documentation.title ?? facts.pattern
  return {
    operationId: context.nameOperation(verb + namePath(facts.pattern)),
    summary: `${verb[0]!.toUpperCase()}${verb.slice(1)}${isReplaceOrCreate ? ' or create' : ''} ${name}`,
    description: describeInWords(facts, method, context),
    tags: [tagOf(facts)],
    ...(facts.documentation.isDeprecated && { deprecated: true }),
    ...describeParameters(facts, method, components),
    ...describeRequest(facts, method, schemas),
    responses: describeResponses(facts, method, context),
    ...describeSecurity(view, facts, method, components),
  }
}

/** The name that groups the operations of one definition. */
function tagOf({ documentation, definition }: Facts): string {
  return documentation.title ?? definition
}

function describeInWords(facts: Facts, method: DescribedMethod, { view, schemas }: DocumentContext): string {
  const sentences = [describeVerb(facts, method), ...explainSecurity(view, facts)]
  if (!isRead(method) && method !== 'POST' && facts.preconditions === 'required') {
    sentences.push('A change needs If-Match, If-None-Match or If-Unmodified-Since (428 otherwise).')
  }
  if (method !== 'DELETE' && facts.json !== 'none' && schemas.of(facts).isUnknown) {
    sentences.push('The content is validated by a schema that cannot be described here.')
  }
  if (isRead(method) && (facts.query?.properties.size ?? 0) > 0)
    sentences.push(`A query has at most ${MOST_CONDITIONS} conditions.`)
  if (facts.kind === 'open' || isDeep(facts))
    sentences.push('The path may have any number of segments, which OpenAPI cannot express.')
  return sentences.join(' ')
}

function describeVerb(facts: Facts, method: DescribedMethod): string {
  const { deletion, kind } = facts
  switch (method) {
    case 'GET':
      if (facts.isListing) return 'Lists the items, a page at a time; Link leads to the next page.'
      return 'Gives the representation, or ranges of its bytes.'
    case 'POST':
      return facts.acceptsItems
        ? 'Accepts a new item and works on it later; the service chooses its id.'
        : 'Makes a new item; the service chooses its id.'
    case 'PUT':
      return facts.createsByPut
        ? 'Creates the resource, or replaces it as a whole.'
        : 'Replaces the resource as a whole.'
    case 'QUERY':
      return 'Lists the items that match the query in the content, as GET does with the same query in its target (RFC 10008).'
    case 'PATCH':
      return 'Applies a patch to the resource: all of it or nothing.'
    case 'DELETE':
      if (kind === 'operation') return 'Cancels work that has not been started, or forgets work that has ended.'
      if (deletion === 'queued') return 'Has the resource removed later.'
      return deletion === 'soft' ? 'Hides the resource; PUT restores it.' : 'Removes the resource.'
  }
}

/** The credentials that an operation takes; `{}` among them where it goes on without, or for a user of the host. */
function describeSecurity(
  { schemes = [], hasHostUsers }: ServiceView,
  { credentials }: Facts,
  method: DescribedMethod,
  components: Components,
): JsonObject {
  const isNeeded = !hasHostUsers && (credentials === 'all' || (credentials === 'writes' && !isRead(method)))
  const requirements = schemes.map((name) => {
    // RFC 9110 §16.4.1: the names are those of the registry of authentication schemes.
    components.add('securitySchemes', name, { type: 'http', scheme: name.toLowerCase() })
    return { [name]: [] }
  })
  return { security: isNeeded || requirements.length === 0 ? requirements : [...requirements, {}] }
}

/** A sentence on credentials, where the requirement alone does not say it. */
function explainSecurity({ schemes, hasHostUsers }: ServiceView, { credentials }: Facts): readonly string[] {
  if (schemes === undefined || credentials === 'none') return []
  return [
    ...(credentials === 'some' ? ['May need credentials: a function of the service decides.'] : []),
    ...(hasHostUsers ? [`Users are found by the host of the service${schemes.length > 0 ? ', too' : ''}.`] : []),
  ]
}
