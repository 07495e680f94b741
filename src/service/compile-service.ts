import type { Route, RouteContext } from '../actions/route.ts'
import { describeValue } from '../core/describe-value.ts'
import { createTurns } from '../core/turns.ts'
import type { ResourceStore } from '../stores/types.ts'
import { compileDefinition, compileMonitor, compileOpenRoute } from './compile-definition.ts'
import type { ServiceDefaults } from './compile-route.ts'
import { STORE } from './definition-values.ts'
import { createOperations, type Operations } from './operations.ts'
import { type Process, type ResourceDefinition, readDefinition } from './resource-definitions.ts'
import { createRouteTable, type RouteEntry, type RouteTable } from './routes.ts'
import type { ServiceSettings } from './service-options.ts'
import { watchStore } from './watch-store.ts'

/** The routes of a service, and its accepted work where any definition has some. */
export function compileService(
  given: ResourceStore,
  settings: ServiceSettings,
): { readonly routes: RouteTable; readonly operations: Operations | undefined } {
  if (!STORE.accepts(given)) {
    const call = typeof given === 'function' ? `; call it: ${(given as { name: string }).name}()` : ''
    throw new TypeError(
      `createResourceService takes a store first, such as memoryStore(), not ${describeValue(given)}${call}. A store has ` +
        'read, write, create, remove and list.',
    )
  }
  const { limits, patchFormats, codings, now, cacheControl, resources } = settings
  const store = watchStore(given, settings.log)
  const facts = {
    ...{ store, limits, patchFormats, codings, now },
    turns: createTurns(),
    findRoute: (path: string) => routes.find(path),
    findRoutesBelow: (pattern: string) => routes.findBelow(pattern),
  }
  let routes: RouteTable
  const entries: RouteEntry[] = []
  const definitions = new Map<string, ResourceDefinition>()
  for (const [pattern, definition] of Object.entries(resources ?? {})) {
    definitions.set(pattern, readDefinition(definition))
  }
  const operations = [...definitions.values()].some(hasWork)
    ? createOperations(facts, settings, (pattern) => {
        const entry = entries.find((entry) => entry.route.pattern === pattern)
        return entry && { route: entry.route, process: findProcess(definitions.get(pattern)) }
      })
    : undefined
  const context: RouteContext = { ...facts, work: operations?.work }
  const require = settings.authentication === undefined ? 'none' : (settings.authentication.require ?? 'all')
  const defaults: ServiceDefaults = { context, cacheControl, authorize: settings.authorize, require }
  if (resources === undefined) {
    const route = compileOpenRoute(defaults)
    // Every path, but not one that ends with a slash: it would name a second time what is named without it.
    const find = (path: string): Route | undefined => (path.length > 1 && path.endsWith('/') ? undefined : route)
    routes = { isOpen: true, find, findBelow: () => [route] }
    return { routes, operations }
  }
  if (settings.authentication === undefined) refuseRequire(definitions)
  for (const [pattern, definition] of definitions) entries.push(...compileDefinition(pattern, definition, defaults))
  if (operations !== undefined) entries.push(compileMonitor(operations, defaults))
  const table = createRouteTable(entries)
  routes = table
  if (operations === undefined || definitions.has(operations.path)) return { routes, operations }
  // A pattern such as "/{tenant}" stands for other names than that of the monitors.
  routes = {
    isOpen: false,
    find: (path) => (path === operations.path ? undefined : table.find(path)),
    findBelow: (pattern) => table.findBelow(pattern).filter((route) => route.pattern !== `${operations.path}/{id}`),
  }
  return { routes, operations }
}

/** @throws TypeError for a definition that asks for credentials which nobody checks: it would be open to everybody */
function refuseRequire(definitions: ReadonlyMap<string, ResourceDefinition>): void {
  for (const [pattern, { options }] of definitions) {
    if (options.require === undefined || options.require === 'none') continue
    throw new TypeError(`${pattern} requires credentials, and the service has no "auth" that could check them.`)
  }
}

function hasWork({ options }: ResourceDefinition): boolean {
  return options.remove === 'queued' || ('create' in options && options.create === 'accepted')
}

/** The hook of a collection that accepts work. */
function findProcess(definition: ResourceDefinition | undefined): Process | undefined {
  return definition?.kind === 'collection' ? definition.options.process : undefined
}
