import { get, loadResourceOrMembers } from '../actions/get.ts'
import { loadPageIfConditional } from '../actions/list.ts'
import { post } from '../actions/post.ts'
import type { Action, CollectionFacts, ContentRule, Route } from '../actions/route.ts'
import { loadPresent } from '../actions/state.ts'
import { changeOptions } from '../core/options.ts'
import { isJsonType } from '../protocol/media-type.ts'
import { readPageSize } from './collection-options.ts'
import { compileCollection, FORMS } from './compile-collection.ts'
import { compileDocument, compileSingleton } from './compile-document.ts'
import { completeRoute, type ServiceDefaults } from './compile-route.ts'
import { readDocumentOptions } from './document-options.ts'
import { JSON_ONLY } from './json-types.ts'
import type { Operations } from './operations.ts'
import type { ResourceDefinition } from './resource-definitions.ts'
import type { RouteEntry } from './routes.ts'

/** Without a prototype that could have some. */
const NO_OPTIONS = readDocumentOptions(undefined)

/** The routes that a definition stands for. */
export function compileDefinition(
  pattern: string,
  definition: ResourceDefinition,
  defaults: ServiceDefaults,
): readonly RouteEntry[] {
  if (definition.kind === 'collection') return compileCollection(pattern, definition.options, defaults)
  if (definition.kind === 'singleton') return compileSingleton(pattern, definition.options, defaults)
  return [{ pattern, route: compileDocument(pattern, definition.options, defaults, ['GET', 'PUT', 'PATCH', 'DELETE']) }]
}

/** The route of a service without definitions: every path can be written, and lists the paths below it. */
export function compileOpenRoute(defaults: ServiceDefaults): Route {
  const document = compileDocument('', NO_OPTIONS, defaults, ['GET', 'PUT', 'PATCH', 'DELETE'], {
    fileNames: 'filename',
  })
  const facts: CollectionFacts = {
    content: 'any',
    ids: 'string',
    formFields: new Map(),
    textProperty: undefined,
    files: 'any',
    create: 'created',
    pageSize: readPageSize(undefined),
  }
  const { limits } = defaults.context
  const content: ContentRule = {
    types: ['application/json', ...FORMS, 'text/plain'],
    hint: 'Accept-Post',
    limit: (essence) => (isParsed(essence) ? limits.bodySize : Number.POSITIVE_INFINITY),
  }
  return completeRoute('', NO_OPTIONS, defaults, {
    ...document,
    kind: 'open',
    actions: {
      ...document.actions,
      GET: { load: loadResourceOrMembers, perform: get, content: undefined },
      POST: { load: loadPageIfConditional, perform: post, content },
    },
    collection: facts,
    isJson: false,
  })
}

/** The monitor of accepted work: what it says, and its cancellation. */
export function compileMonitor(operations: Operations, defaults: ServiceDefaults): RouteEntry {
  const pattern = `${operations.path}/{id}`
  const options = changeOptions(NO_OPTIONS, { types: JSON_ONLY })
  const { authorize, store } = operations.monitors
  const own = { ...defaults, context: { ...defaults.context, store }, authorize }
  const route = compileDocument(pattern, options, own, ['GET', 'DELETE'], { kind: 'operation', showsWork: true })
  const DELETE: Action = { load: loadPresent, perform: operations.cancel, content: undefined }
  return { pattern, route: Object.freeze({ ...route, actions: { ...route.actions, DELETE } }) }
}

function isParsed(essence: string): boolean {
  return isJsonType(essence) || essence === FORMS[0]
}
