import { type AfterCommits, createAfterCommits } from '../actions/change-hooks.ts'
import type { Indexing } from '../actions/indexing.ts'
import type { Route, RouteContext } from '../actions/route.ts'
import {
  createOpenTable,
  createRouteTable,
  NO_ROUTES,
  type RouteEntry,
  type RouteTable,
  reserve,
} from '../actions/route-table.ts'
import { createFailureReport } from '../core/failures.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { describeValue, STORE } from '../core/option-values.ts'
import { createByteBudget, createTurns } from '../core/turns.ts'
import type { ServiceView } from '../openapi/inputs.ts'
import { splitPath } from '../stores/rules.ts'
import type { ResourceStore, StoreSupport } from '../stores/types.ts'
import { createOperations, type Operations } from '../work/operations.ts'
import { createRecordSweeper, type Poll } from '../work/poll.ts'
import { compileDefinition, compileDescription, compileMonitor, compileOpenRoute } from './compile-definition.ts'
import { DAY, type ServiceDefaults } from './compile-route.ts'
import { createIndexReport, watchStore } from './operator-reports.ts'
import { QUERY_OPTIONS, type QueryOptions } from './query-options.ts'
import { type ResourceDefinition, readDefinition } from './resource-definitions.ts'
import type { ServiceSettings } from './service-options.ts'

/** A service as its steps use it, and as its description reads it. */
interface CompiledService {
  readonly routes: RouteTable
  readonly operations: Operations | undefined
  /** Clears away what idempotent requests have left; `undefined` where no definition has any. */
  readonly records: Poll | undefined
  readonly view: ServiceView
  readonly afterCommits: AfterCommits
}

/**
 * The routes of a service, and its accepted work where any definition has some. Routes look up one another when requests
 * come, so what they look it up in is filled last.
 */
export function compileService(given: ResourceStore, settings: ServiceSettings): CompiledService {
  checkStore(given)
  const { limits, maxTargetLength, patchFormats, contentCodings, now, cacheControl, authorize, resources } = settings
  const store = watchStore(given, settings.log)
  const compiled: Compiled = { entries: [], routes: NO_ROUTES, parents: new Set(), indexes: [], view: undefined }
  const afterCommits = createAfterCommits(createFailureReport(settings.onError))
  const facts = {
    ...{ store, limits, maxTargetLength, patchFormats, contentCodings, now, afterCommits },
    turns: createTurns(),
    largeContent: createByteBudget(),
    findRoute: (path: string) => compiled.routes.find(path),
    findRoutesBelow: (pattern: string) => compiled.routes.findBelow(pattern),
    isParent: (route: Route) => compiled.parents.has(route),
    loadIndexes: () => loadAll(compiled.indexes),
  }
  const definitions = new Map(
    Object.entries(resources ?? {}).map(([pattern, definition]) => [pattern, readDefinition(definition)] as const),
  )
  requireSupport(given, definitions)
  if (settings.authentication === undefined) refuseRequire(definitions)
  const records = createRecords(given, definitions, now)
  const operations = [...definitions.values()].some(hasWork)
    ? createOperations(facts, settings, (pattern) => {
        const entry = compiled.entries.find((entry) => entry.route.pattern === pattern)
        const definition = definitions.get(pattern)
        const process = definition?.kind === 'collection' ? definition.options.process : undefined
        return entry && { route: entry.route, process }
      })
    : undefined
  const context: RouteContext = { ...facts, work: operations?.work }
  const requireAuth = settings.authentication?.requireAuth ?? 'none'
  const report = createIndexReport(settings.log)
  const defaults: ServiceDefaults = { context, cacheControl, authorize, requireAuth, report }
  const description = settings.openapi && compileDescription(settings.openapi, () => compiled.view!, defaults)

  const { entries } = compiled
  if (resources === undefined) entries.push({ pattern: '/{path}', route: compileOpenRoute(defaults) })
  for (const [pattern, definition] of definitions) entries.push(...compileDefinition(pattern, definition, defaults))
  compiled.indexes = findIndexes(entries)
  if (operations !== undefined) entries.push(compileMonitor(operations, defaults))
  if (description !== undefined) entries.push(description)
  const view = createView(settings, requireAuth, entries)
  compiled.view = view
  const table = resources === undefined ? createOpenTable(entries) : createRouteTable(entries)
  compiled.parents = findParents(entries, table)
  const ownsMonitors = operations !== undefined && !definitions.has(operations.path)
  compiled.routes = ownsMonitors ? reserve(table, operations.path) : table
  return { routes: compiled.routes, operations, records, view, afterCommits }
}

/** What routes look up. */
interface Compiled {
  readonly entries: RouteEntry[]
  routes: RouteTable
  parents: ReadonlySet<Route>
  indexes: readonly Indexing[]
  view: ServiceView | undefined
}

/** @throws TypeError for anything but a store */
function checkStore(given: unknown): void {
  if (STORE.accepts(given)) return
  const isClass = typeof given === 'function' && /^class\b/.test(String(given))
  const call =
    typeof given === 'function' && given.name !== '' ? `; call it: ${isClass ? 'new ' : ''}${given.name}()` : ''
  throw new TypeError(
    `createResourceService takes a store first, such as memoryStore(), not ${describeValue(given)}${call}. A store has ` +
      'read, write, create, remove and list.',
  )
}

/** The indexes that scopes need, each once: the items of a collection share it with their files. */
function findIndexes(entries: readonly RouteEntry[]): readonly Indexing[] {
  const all = entries.flatMap(({ route: { indexing } }) => (indexing?.scope === undefined ? [] : [indexing]))
  return [...new Set(all)]
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
  return (
    ('deletion' in options && options.deletion === 'queued') || ('create' in options && options.create === 'accepted')
  )
}

/** What the description of a service reads of its settings: the one place where options become a description. */
function createView(
  settings: ServiceSettings,
  requireAuth: ServiceDefaults['requireAuth'],
  routes: readonly RouteEntry[],
): ServiceView {
  return {
    routes,
    schemes: settings.authentication?.schemes.map(({ name }) => name),
    hasHostUsers: settings.authentication?.principal !== undefined,
    credentials: typeof requireAuth === 'function' ? 'some' : requireAuth,
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

/** What a store that lacks a part cannot do, for the message. */
const PARTS: Readonly<Record<Exclude<keyof StoreSupport, 'redirects' | 'tagsAreVersions'>, string>> = {
  relatedExpect: 'related writes that expect a path to be absent',
  queries: 'lists that select and order by indexed values',
  parents: 'writes that require another path',
}

/** @throws TypeError that names the definition, the store and the part that the store lacks */
function requireSupport(store: ResourceStore, definitions: ReadonlyMap<string, ResourceDefinition>): void {
  for (const [pattern, { kind, options }] of definitions) {
    const wanted =
      kind === 'collection'
        ? (Object.keys(QUERY_OPTIONS) as (keyof QueryOptions)[]).find(
            (name) => options[name] !== undefined && options[name] !== false,
          )
        : undefined
    if (wanted !== undefined) requirePart(store, 'queries', `${pattern} has ${wanted}`)
    const { idempotency, outbox } = options
    if (idempotency !== undefined) requirePart(store, 'relatedExpect', `${pattern} has idempotency: '${idempotency}'`)
    const hasParent = 'parent' in options && options.parent === true
    if (hasParent) requirePart(store, 'parents', `${pattern} has parent: true`)
    if (outbox !== undefined) requirePart(store, 'relatedExpect', `${pattern} has an outbox`)
  }
}

function requirePart(store: ResourceStore, part: keyof typeof PARTS, user: string): void {
  if (store.supports?.[part] === true) return
  throw new TypeError(
    `${user}, which needs a store that supports ${part} (${PARTS[part]}); ${nameStore(store)} does not.`,
  )
}

function nameStore(store: ResourceStore): string {
  const name = store.constructor?.name ?? 'Object'
  return name === 'Object' ? 'the store of this service' : name
}
