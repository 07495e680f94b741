import type { JsonObject, JsonValue } from '../core/json.ts'
import { createComponents, sortMembers } from './components.ts'
import { type Facts, isDeep, readFacts } from './facts.ts'
import { createNamer, templateOf } from './names.ts'
import { type DocumentContext, describeOperation, tagOf } from './operation.ts'
import type { OpenApiDocument, OpenApiOptions } from './options.ts'
import { describePathParameters } from './parameters.ts'
import { createSchemas } from './schemas.ts'
import type { ServiceView } from './service-view.ts'

const VERSIONS = { '3.1': '3.1.1', '3.2': '3.2.0' } as const

/**
 * Makes the description of a service. The same definitions give the same document, in whatever order they are written.
 * @throws TypeError for options that OpenAPI has no place for
 */
export function createDocument(view: ServiceView, options: OpenApiOptions): OpenApiDocument {
  const { info, version = '3.1', servers = [{ url: view.mountPath === '' ? '/' : view.mountPath }] } = options
  const components = createComponents()
  const context: DocumentContext = {
    view,
    components,
    schemas: createSchemas(components),
    nameOperation: createNamer(),
  }
  const routes = [...view.routes].sort((a, b) => (a.pattern < b.pattern ? -1 : 1))
  const all = routes.map(({ pattern, route }) => readFacts(view, pattern, route))
  const methodsOf = ({ methods }: Facts) => methods.filter((method) => method !== 'QUERY' || version === '3.2')
  const described = new Map(
    dropAmbiguous(all).map((facts) => [templateOf(facts.pattern), describePath(facts, methodsOf(facts), context)]),
  )
  const paths = sortMembers(described) as OpenApiDocument['paths']
  return {
    openapi: VERSIONS[version],
    info,
    servers,
    tags: describeTags(all),
    paths,
    components: components.toJson(paths),
  }
}

/**
 * Leaves out paths of any depth beside a name at the same place: templates that differ in their names alone are one for
 * OpenAPI, and the name is the more exact one.
 */
function dropAmbiguous(all: readonly Facts[]): readonly Facts[] {
  const shapeOf = ({ pattern }: Facts): string => pattern.replaceAll(/\{[^}]*\}/g, '{}')
  const shapes = new Set(all.filter((facts) => !isDeep(facts)).map(shapeOf))
  return all.filter((facts) => !isDeep(facts) || !shapes.has(shapeOf(facts)))
}

/** A path and its methods. */
function describePath(facts: Facts, methods: Facts['methods'], context: DocumentContext): JsonObject {
  const operations = methods.map((method): [string, JsonValue] => [
    method.toLowerCase(),
    describeOperation(facts, method, context),
  ])
  return { ...describePathParameters(facts), ...Object.fromEntries(operations) }
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
