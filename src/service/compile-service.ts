import type { Route, RouteContext } from '../actions/route.ts'
import type { ResourceStore } from '../stores/types.ts'
import { compileDefinition, compileMonitor, compileOpenRoute } from './compile-definition.ts'
import type { ServiceDefaults } from './compile-route.ts'
import { STORE } from './definition-values.ts'
import { createOperations, type Operations } from './operations.ts'
import type { Process, ResourceDefinition } from './resource-definitions.ts'
import { createRouteTable, type RouteEntry, type RouteTable } from './routes.ts'
import type { ServiceSettings } from './service-options.ts'

/** The routes of a service, and its accepted work where any definition has some. */
export function compileService(
  store: ResourceStore,
  settings: ServiceSettings,
): { readonly routes: RouteTable; readonly operations: Operations | undefined } {
  if (!STORE.accepts(store)) throw new TypeError(`createResourceService takes a store: ${STORE.text}.`)
  const { limits, patchFormats, codings, now, cacheControl, resources } = settings
  const facts = { store, limits, patchFormats, codings, now }
  const entries: RouteEntry[] = []
  const definitions = resources === undefined ? [] : Object.entries(resources)
  const operations = definitions.some(hasWork)
    ? createOperations(facts, settings.operations, (pattern) => {
        const entry = entries.find((entry) => entry.route.pattern === pattern)
        return entry && { route: entry.route, process: findProcess(resources!, pattern) }
      })
    : undefined
  const context: RouteContext = { ...facts, work: operations?.work }
  const defaults: ServiceDefaults = { context, cacheControl, authorize: settings.auth?.authorize }
  if (resources === undefined) {
    const route = compileOpenRoute(defaults)
    // Every path, but not one that ends with a slash: it would name a second time what is named without it.
    const find = (path: string): Route | undefined => (path.length > 1 && path.endsWith('/') ? undefined : route)
    return { routes: { isOpen: true, find }, operations }
  }
  if (settings.auth === undefined) refuseRequire(definitions)
  for (const [pattern, definition] of definitions) entries.push(...compileDefinition(pattern, definition, defaults))
  if (operations !== undefined) entries.push(compileMonitor(operations, defaults))
  return { routes: createRouteTable(entries), operations }
}

/** @throws TypeError for a definition that asks for credentials which nobody checks: it would be open to everybody */
function refuseRequire(definitions: readonly [string, ResourceDefinition][]): void {
  for (const [pattern, { options }] of definitions) {
    if (options.require === undefined || options.require === 'none') continue
    throw new TypeError(`${pattern} requires credentials, and the service has no "auth" that could check them.`)
  }
}

function hasWork([, { options }]: [string, ResourceDefinition]): boolean {
  return options.remove === 'queued' || ('create' in options && options.create === 'accepted')
}

/** The hook of the collection whose own route has a pattern. */
function findProcess(resources: Readonly<Record<string, ResourceDefinition>>, pattern: string): Process | undefined {
  const definition = Object.hasOwn(resources, pattern) ? resources[pattern] : undefined
  return definition?.kind === 'collection' ? definition.options.process : undefined
}
