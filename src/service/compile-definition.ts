import { hash } from 'node:crypto'
import { findResourceOrMembers, get, loadResourceOrMembers } from '../actions/get.ts'
import { post } from '../actions/post.ts'
import type { Action, CollectionFacts, ContentRule, Route } from '../actions/route.ts'
import type { RouteEntry } from '../actions/route-table.ts'
import { loadPresent, setState, whereConditional } from '../actions/state.ts'
import type { JsonObject } from '../core/json.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { changeOptions } from '../core/options.ts'
import type { ServiceView } from '../openapi/inputs.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { ResourceStore, StoredResource } from '../stores/types.ts'
import type { Operations } from '../work/operations.ts'
import { readPageSize } from './collection-options.ts'
import { compileCollection, FORMS } from './compile-collection.ts'
import { compileDocument, compileSingleton } from './compile-document.ts'
import { completeRoute, JSON_ONLY, type ServiceDefaults } from './compile-route.ts'
import { readDocumentOptions } from './document-options.ts'
import { type ResourceDefinition, readDefinition } from './resource-definitions.ts'
import type { ServedDescription } from './service-options.ts'

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
    formLimits: defaults.context.limits,
    pageSize: readPageSize(undefined),
  }
  const { limits } = defaults.context
  const content: ContentRule = {
    types: ['application/json', ...FORMS, 'text/plain'],
    hint: 'Accept-Post',
    limit: (essence) => (isJsonType(essence) || essence === FORMS[0] ? limits.bodySize : Number.POSITIVE_INFINITY),
  }
  return completeRoute('', NO_OPTIONS, defaults, {
    ...document,
    kind: 'open',
    actions: {
      ...document.actions,
      GET: { load: loadResourceOrMembers, perform: get, content: undefined },
      POST: { load: whereConditional(findResourceOrMembers), perform: post, content },
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

/** The info of a service without one. */
const UNNAMED = { title: 'Resources', version: '0.0.0' }

/**
 * The route of the description of a service: a resource whose store is the description itself.
 * It is made on the first request, and the code that makes it is loaded then.
 * @param view gives the service once it is compiled
 */
export function compileDescription(
  { path, info = UNNAMED, servers, version }: ServedDescription,
  view: () => ServiceView,
  defaults: ServiceDefaults,
): RouteEntry {
  const describe = async (): Promise<JsonObject> => {
    const { createDocument } = await import('../openapi/create-document.ts')
    return createDocument(view(), { info, ...(servers && { servers }), ...(version && { version }) })
  }
  const states = createStates(path, describe, servers === undefined)
  const { options } = readDefinition({ kind: 'document', options: { types: JSON_ONLY } })
  const own = { ...defaults, context: { ...defaults.context, store: createStore(() => states(view().mountPath)) } }
  const route = compileDocument(path, options, own, ['GET'], { kind: 'description' })
  const load: Action['load'] = (exchange) => andThen(states(exchange.mount), (state) => setState(exchange, state))
  const GET = { ...route.actions.GET!, load }
  return { pattern: path, route: Object.freeze({ ...route, actions: { GET, HEAD: GET } }) }
}

/**
 * The states of the description by the mount that its `servers` name. It is written once; for each mount the bytes are joined, and
 * those for the last one are kept: a host may mount a service at any number of paths, which clients choose where one has a parameter.
 */
function createStates(
  path: string,
  describe: () => Promise<JsonObject>,
  namesMount: boolean,
): (mount: string) => MaybePromise<StoredResource> {
  let description: MaybePromise<Written> | undefined
  let last: { readonly mount: string; readonly state: StoredResource } | undefined
  const makeState = ({ text, digest }: Written, mount: string): StoredResource => {
    const servers = namesMount ? `,"servers":${JSON.stringify([{ url: mount === '' ? '/' : mount }])}` : ''
    const body = Buffer.concat([text, Buffer.from(`${servers}}`)])
    const version = hash('sha256', digest + servers, 'base64url').slice(0, 27)
    const state = { path, version, contentType: 'application/json', size: body.length, body }
    last = { mount, state }
    return state
  }
  const write = (made: JsonObject): Written => {
    // Without the brace at its end.
    const text = Buffer.from(JSON.stringify(namesMount ? { ...made, servers: undefined } : made)).subarray(0, -1)
    return { text, digest: hash('sha256', text, 'base64url') }
  }
  return (mount) => {
    if (last?.mount === mount) return last.state
    if (description === undefined) {
      const pending = describe().then((made) => (description = write(made)))
      description = pending
      // The next request tries again.
      pending.catch(() => {
        if (description === pending) description = undefined
      })
    }
    return isPromise(description) ? description.then((made) => makeState(made, mount)) : makeState(description, mount)
  }
}

/** A description as text, up to what depends on the mount. */
interface Written {
  readonly text: Uint8Array
  readonly digest: string
}

/** A store that has one resource, and takes no other. */
function createStore(read: () => MaybePromise<StoredResource>): ResourceStore {
  const refuse = (): never => {
    throw new TypeError('The description of a service cannot be written.')
  }
  return { read, list: () => ({ items: [] }), write: refuse, create: refuse, remove: refuse }
}
