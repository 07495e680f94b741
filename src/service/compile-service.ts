import { type AfterCommits, createAfterCommits } from '../actions/after-commits.ts'
import type { Indexing } from '../actions/indexing.ts'
import type { Route, RouteContext } from '../actions/route.ts'
import { describeValue } from '../core/describe-value.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { shapedAs } from '../core/option-values.ts'
import { createFailureReport } from '../core/report-failure.ts'
import { createTurns } from '../core/turns.ts'
import type { ServiceView } from '../openapi/service-view.ts'
import { type ResourceStore, splitPath } from '../stores/types.ts'
import type { Process } from './collection-options.ts'
import { compileDefinition, compileMonitor, compileOpenRoute } from './compile-definition.ts'
import { compileDescription } from './compile-description.ts'
import { DAY, type ServiceDefaults } from './compile-route.ts'
import { createRecordSweeper } from './idempotency-records.ts'
import { createIndexReport } from './index-report.ts'
import { createOperations, type Operations } from './operations.ts'
import { requireSupport } from './required-support.ts'
import { type ResourceDefinition, readDefinition } from './resource-definitions.ts'
import { createRouteTable, type RouteEntry, type RouteTable } from './routes.ts'
import type { ServiceSettings } from './service-options.ts'
import { watchStore } from './watch-store.ts'
import type { Poll } from './work-scheduler.ts'

/** A service as its steps use it, and as its description reads it. */
export interface CompiledService {
  readonly routes: RouteTable
  readonly operations: Operations | undefined
  /** Clears away what idempotent requests have left; `undefined` where no definition has any. */
  readonly records: Poll | undefined
  readonly view: ServiceView
  readonly afterCommits: AfterCommits
}

/** What every store has. */
const STORE = shapedAs({
  read: 'function',
  write: 'function',
  create: 'function',
  remove: 'function',
  list: 'function',
})

/** The routes of a service, and its accepted work where any definition has some. */
export function compileService(given: ResourceStore, settings: ServiceSettings): CompiledService {
  if (!STORE.accepts(given)) {
    const call = typeof given === 'function' ? `; call it: ${(given as { name: string }).name}()` : ''
    throw new TypeError(
      `createResourceService takes a store first, such as memoryStore(), not ${describeValue(given)}${call}. A store has ` +
        'read, write, create, remove and list.',
    )
  }
  const { limits, maxTargetLength, patchFormats, contentCodings, now, cacheControl, resources } = settings
  const store = watchStore(given, settings.log)
  const facts = {
    ...{ store, limits, maxTargetLength, patchFormats, contentCodings, now },
    turns: createTurns(),
    afterCommits: createAfterCommits(createFailureReport(settings.onError)),
    findRoute: (path: string) => routes.find(path),
    findRoutesBelow: (pattern: string) => routes.findBelow(pattern),
    isParent: (route: Route) => parents.has(route),
    loadIndexes: () => loadAll(indexes),
  }
  const { afterCommits } = facts
  let routes: RouteTable
  let parents: ReadonlySet<Route> = new Set()
  let indexes: readonly Indexing[] = []
  const entries: RouteEntry[] = []
  const definitions = new Map<string, ResourceDefinition>()
  for (const [pattern, definition] of Object.entries(resources ?? {})) {
    definitions.set(pattern, readDefinition(definition))
  }
  requireSupport(given, definitions)
  const records = createRecords(given, definitions, settings.now)
  const operations = [...definitions.values()].some(hasWork)
    ? createOperations(facts, settings, (pattern) => {
        const entry = entries.find((entry) => entry.route.pattern === pattern)
        return entry && { route: entry.route, process: findProcess(definitions.get(pattern)) }
      })
    : undefined
  const context: RouteContext = { ...facts, work: operations?.work }
  const requireAuth = settings.authentication === undefined ? 'none' : (settings.authentication.requireAuth ?? 'all')
  const report = createIndexReport(settings.log)
  const defaults: ServiceDefaults = { context, cacheControl, authorize: settings.authorize, requireAuth, report }
  let view: ServiceView
  const describe = (): ServiceView => view
  const served = settings.openapi && compileDescription(settings.openapi, describe, defaults)
  if (resources === undefined) {
    const route = compileOpenRoute(defaults)
    // Every path, but not one that ends with a slash: it would name a second time what is named without it.
    const find = (path: string): Route | undefined => {
      if (path === served?.pattern) return served.route
      return path.length > 1 && path.endsWith('/') ? undefined : route
    }
    const entries = [{ pattern: '/{path}', route }, ...(served === undefined ? [] : [served])]
    view = createView(settings, entries)
    routes = {
      isOpen: true,
      hasQuery: false,
      find,
      findBelow: () => entries.map(({ route }) => route),
    }
    return { routes, operations, records, view, afterCommits }
  }
  if (settings.authentication === undefined) refuseRequire(definitions)
  for (const [pattern, definition] of definitions) entries.push(...compileDefinition(pattern, definition, defaults))
  indexes = [
    ...new Set(entries.flatMap(({ route: { indexing } }) => (indexing?.scope === undefined ? [] : [indexing]))),
  ]
  if (operations !== undefined) entries.push(compileMonitor(operations, defaults))
  if (served !== undefined) entries.push(served)
  view = createView(settings, entries)
  const table = createRouteTable(entries)
  routes = table
  parents = findParents(entries, table)
  if (operations === undefined || definitions.has(operations.path))
    return { routes, operations, records, view, afterCommits }
  // A pattern such as "/{tenant}" stands for other names than that of the monitors.
  routes = {
    isOpen: false,
    hasQuery: table.hasQuery,
    find: (path) => (path === operations.path ? undefined : table.find(path)),
    findBelow: (pattern) => table.findBelow(pattern).filter((route) => route.pattern !== `${operations.path}/{id}`),
  }
  return { routes, operations, records, view, afterCommits }
}

/** Finds out what the indexes have, one after the other: seldom is any of it to be read. */
function loadAll(indexes: readonly Indexing[], at = 0): MaybePromise<void> {
  const indexing = indexes[at]
  return indexing && andThen(indexing.load(), () => loadAll(indexes, at + 1))
}

/** The sweeper of first answers, where a definition keeps any. */
function createRecords(
  store: ResourceStore,
  definitions: ReadonlyMap<string, ResourceDefinition>,
  now: () => number,
): Poll | undefined {
  const retentions = [...definitions.values()].flatMap(({ options: { idempotency, idempotencyRetention = DAY } }) =>
    idempotency === undefined ? [] : [idempotencyRetention],
  )
  return retentions.length === 0 ? undefined : createRecordSweeper(store, now, Math.min(...retentions))
}

/** @throws TypeError for a definition that asks for credentials which no scheme checks: it would be open to every client */
function refuseRequire(definitions: ReadonlyMap<string, ResourceDefinition>): void {
  for (const [pattern, { options }] of definitions) {
    if (options.requireAuth === undefined || options.requireAuth === 'none') continue
    throw new TypeError(`${pattern} requires credentials, and the service has no "auth" that could check them.`)
  }
}

function hasWork({ options }: ResourceDefinition): boolean {
  return options.deletion === 'queued' || ('create' in options && options.create === 'accepted')
}

/** The hook of a collection that accepts work. */
function findProcess(definition: ResourceDefinition | undefined): Process | undefined {
  return definition?.kind === 'collection' ? definition.options.process : undefined
}

/** What the description of a service reads of its settings: the one place where options become a description. */
function createView(settings: ServiceSettings, routes: readonly RouteEntry[]): ServiceView {
  const { authentication } = settings
  const requireAuth = authentication?.requireAuth ?? 'all'
  return {
    routes,
    schemes: authentication && (authentication.schemes ?? []).map(({ name }) => name),
    credentials: authentication === undefined ? 'none' : typeof requireAuth === 'function' ? 'some' : requireAuth,
    refusesCleartext: settings.https === 'required',
    refusesOrigins: settings.cors?.rejectOrigin === true,
    formatsErrors: settings.formatError !== undefined,
    mountPath: settings.mountPath ?? '',
  }
}

/**
 * The routes of the resources that collections with a parent are below.
 * @throws TypeError for a collection that is below no resource of the service
 */
function findParents(entries: readonly RouteEntry[], table: RouteTable): ReadonlySet<Route> {
  const parents = new Set<Route>()
  for (const { pattern, route } of entries) {
    if (route.kind !== 'collection' || !route.hasParent) continue
    const { collection: parent } = splitPath(pattern)
    const { collection, name } = splitPath(parent)
    const found = parent === '' ? [] : table.findBelow(collection === '' ? '/' : collection).filter(mayBeAt(name))
    if (found.length === 0) {
      const place = parent === '' ? 'it is below no path' : `no definition has a resource at ${parent}`
      throw new TypeError(`${pattern} has parent: true, and ${place}.`)
    }
    for (const route of found) parents.add(route)
  }
  return parents
}

/** Whether paths of a route may have a name, or the name that stands for them, at their end. */
function mayBeAt(name: string): (route: Route) => boolean {
  return ({ kind, pattern }) => {
    if (kind !== 'item' && kind !== 'document' && kind !== 'singleton') return false
    const own = splitPath(pattern).name
    return own === name || own.startsWith('{') || name.startsWith('{')
  }
}
