import type { Authorize } from '../actions/hook-types.ts'
import type { Action, Documentation, Route, RouteContext } from '../actions/route.ts'
import type { JsonObject } from '../core/json.ts'
import { askRule, compileRule, type RequireRule } from '../handlers/authentication-options.ts'
import { formatCacheControls } from '../protocol/cache-control.ts'
import { formatHttpDate } from '../protocol/dates.ts'
import { completeMethods, type Method } from '../protocol/request-line.ts'
import type { SharedOptions } from './document-options.ts'
import type { ReportIndexing } from './operator-reports.ts'
import type { ResourceOptions } from './resource-options.ts'

/** What a service says for all its resources where a definition says nothing. */
export interface ServiceDefaults {
  readonly context: RouteContext
  /** What the service is configured to send; `undefined` for nothing. */
  readonly cacheControl: string | undefined
  readonly authorize: Authorize | undefined
  /** Which requests need credentials; `none` where nothing checks them. */
  readonly requireAuth: RequireRule
  /** Reports how far the indexing of a collection is. */
  readonly report: ReportIndexing
}

/** Caches keep answers to POST only where a definition says for how long (RFC 9110 §9.3.3). */
const NOT_STORED = formatCacheControls('no-store')

/** A route with everything that a definition leaves to the defaults. */
export function completeRoute(
  pattern: string,
  options: SharedOptions,
  defaults: ServiceDefaults,
  facts: Pick<Route, 'actions' | 'collection'> & Partial<Route>,
): Route {
  const { deletion = 'hard', idempotency, idempotencyRetention = DAY } = options
  const methods = completeMethods(Object.keys(facts.actions) as Method[])
  const { actions } = facts
  const route: Omit<Route, 'isComparedByWrite'> = {
    kind: 'document',
    definition: pattern,
    storePath: undefined,
    types: ['*/*'],
    isJson: true,
    maxSize: Number.POSITIVE_INFINITY,
    idMember: undefined,
    createsByPut: true,
    indexing: undefined,
    usualType: undefined,
    offers: [],
    renditions: [],
    accept: options.accept ?? 'strict',
    putResponse: options.putResponse ?? 'none',
    showsWork: false,
    fileNames: [],
    isFile: false,
    hasParent: false,
    patchFormats: defaults.context.patchFormats,
    schema: options.schema,
    postCacheControl: NOT_STORED,
    ...facts,
    actions: actions.GET === undefined ? actions : { ...actions, HEAD: actions.GET },
    pattern,
    methods,
    cacheControl: formatCacheControls(options.cacheControl ?? defaults.cacheControl),
    needsDigests: options.digests === 'required',
    preconditions: options.preconditions ?? 'optional',
    documentation: compileDocumentation(options),
    requiresCredentials: options.requireAuth && compileRule(options.requireAuth),
    readsNeedCredentials: compileReadRule(options.requireAuth, defaults.requireAuth),
    credentials: typeof options.requireAuth === 'function' ? 'some' : options.requireAuth,
    authorize: options.authorize ?? defaults.authorize,
    conflict: options.conflict,
    beforeWrite: options.beforeWrite,
    outbox: options.outbox,
    afterCommit: options.afterCommit,
    observesChanges: options.outbox !== undefined || options.afterCommit !== undefined,
    describesFiles: facts.idMember !== undefined && Array.isArray(facts.fileNames) && facts.fileNames.length > 0,
    deletion,
    deleteResponse: options.deleteResponse ?? 'none',
    retention: options.retention,
    idempotency: idempotency && { isRequired: idempotency === 'required', retention: idempotencyRetention },
    acceptQuery: acceptQueryOf(actions),
    capabilities: capabilitiesOf({ actions, methods, collection: facts.collection }),
    storedHeaders: options.storedHeaders ?? [],
    allowInline: options.allowInline ?? [],
    context: defaults.context,
  }
  return Object.freeze({ ...route, isComparedByWrite: isComparedByWrite(route) })
}

/** The fields that tell a client what a resource takes, derived from its actions. */
function capabilitiesOf({ actions, methods, collection }: Pick<Route, 'actions' | 'methods' | 'collection'>): string[] {
  const fields = ['Allow', methods.join(', ')]
  for (const method of ['POST', 'PATCH'] as const) {
    const content = actions[method]?.content
    if (content !== undefined) fields.push(content.hint, content.types.join(', '))
  }
  fields.push(...acceptQueryOf(actions))
  // A listing is sent whole; where any path may be one, another may be a resource.
  const isListing = collection !== undefined && collection.content !== 'any'
  if (actions.GET !== undefined && !isListing) fields.push('Accept-Ranges', 'bytes')
  return fields
}

/** Accept-Query, a list of the media types that QUERY takes (RFC 10008 §3); nothing for a route without QUERY. */
function acceptQueryOf({ QUERY }: Route['actions']): readonly string[] {
  return QUERY?.content === undefined ? [] : ['Accept-Query', QUERY.content.types.join(', ')]
}

function isComparedByWrite(route: Omit<Route, 'isComparedByWrite'>): boolean {
  if (route.context.store.supports?.tagsAreVersions !== true || !route.isJson || route.hasParent) return false
  if (route.authorize !== undefined || route.conflict !== undefined || route.beforeWrite !== undefined) return false
  return route.renditions.length === 0 && !route.describesFiles && !route.observesChanges
}

/** Milliseconds for which a first answer is kept, where a definition does not say. */
export const DAY: number = 24 * 3_600_000

/** The actions that a definition allows. */
export function restrict(
  actions: Partial<Record<Method, Action>>,
  methods: readonly Method[] | undefined,
): Partial<Record<Method, Action>> {
  if (methods === undefined) return actions
  return Object.fromEntries(Object.entries(actions).filter(([method]) => methods.includes(method as Method)))
}

/** What the rules say of reads: most say one thing of all of them. */
function compileReadRule(
  own: SharedOptions['requireAuth'],
  usual: ServiceDefaults['requireAuth'],
): Route['readsNeedCredentials'] {
  if (own === undefined) return typeof usual === 'function' ? askRule(usual) : usual === 'all'
  return typeof own === 'function' ? askRule(own) : own === 'all'
}

/** What a definition says about itself, with its dates as fields. */
function compileDocumentation(options: Readonly<ResourceOptions>): Documentation {
  const { title, description, examples = {}, jsonSchema, deprecated, sunset } = options
  const fields: string[] = []
  // RFC 9745 §2.1: a Date of Structured Fields, in seconds.
  if (deprecated !== undefined) fields.push('Deprecation', `@${Math.floor(new Date(deprecated).getTime() / 1000)}`)
  if (sunset !== undefined) fields.push('Sunset', formatHttpDate(new Date(sunset).getTime()))
  return {
    title,
    description,
    examples,
    jsonSchema: jsonSchema === undefined ? undefined : readDirections(jsonSchema),
    isDeprecated: deprecated !== undefined,
    fields,
  }
}

function readDirections(given: NonNullable<ResourceOptions['jsonSchema']>): Documentation['jsonSchema'] {
  const { input, output } = given as { readonly input?: JsonObject; readonly output?: JsonObject }
  return input === undefined || output === undefined ? { input: given, output: given } : { input, output }
}

export const JSON_ONLY: readonly string[] = ['application/json']
