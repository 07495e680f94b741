import { hash } from 'node:crypto'
import { setState } from '../actions/state.ts'
import type { JsonObject } from '../core/json.ts'
import { andThen, isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import type { ServiceView } from '../openapi/inputs.ts'
import type { ResourceStore, StoredResource } from '../stores/types.ts'
import { compileDocument } from './compile-document.ts'
import type { ServiceDefaults } from './compile-route.ts'
import { JSON_ONLY } from './json-types.ts'
import { readDefinition } from './resource-definitions.ts'
import type { RouteEntry } from './routes.ts'
import type { ServedDescription } from './service-options.ts'

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
  const GET = {
    ...route.actions.GET!,
    load: (exchange: Parameters<NonNullable<typeof route.actions.GET>['load']>[0]): MaybePromise<void> =>
      andThen(states(exchange.mount), (state) => setState(exchange, state)),
  }
  return { pattern: path, route: Object.freeze({ ...route, actions: { GET, HEAD: GET } }) }
}

/**
 * The states of the description by the mount that its `servers` name. The last one is kept: a host may mount a service
 * at any number of paths.
 */
function createStates(
  path: string,
  describe: () => Promise<JsonObject>,
  namesMount: boolean,
): (mount: string) => MaybePromise<StoredResource> {
  let description: MaybePromise<JsonObject> | undefined
  let last: { readonly mount: string; readonly state: StoredResource } | undefined
  const makeState = (description: JsonObject, mount: string): StoredResource => {
    const servers = namesMount ? { servers: [{ url: mount === '' ? '/' : mount }] } : {}
    const body = Buffer.from(JSON.stringify({ ...description, ...servers }))
    const state = {
      path,
      version: hash('sha256', body, 'base64url').slice(0, 27),
      contentType: 'application/json',
      size: body.length,
      body,
    }
    last = { mount, state }
    return state
  }
  return (mount) => {
    if (last?.mount === mount) return last.state
    if (description === undefined) {
      const pending = describe().then((made) => (description = made))
      description = pending
      // The next request tries again.
      pending.catch(() => {
        if (description === pending) description = undefined
      })
    }
    return isPromise(description) ? description.then((made) => makeState(made, mount)) : makeState(description, mount)
  }
}

/** A store that has one resource, and takes no other. */
function createStore(read: () => MaybePromise<StoredResource>): ResourceStore {
  const refuse = (): never => {
    throw new TypeError('The description of a service cannot be written.')
  }
  return { read, list: () => ({ items: [] }), write: refuse, create: refuse, remove: refuse }
}
