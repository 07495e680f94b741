import { remove } from '../actions/delete.ts'
import { get, loadResourceOrMembers } from '../actions/get.ts'
import { loadPage, loadPageIfConditional } from '../actions/list.ts'
import { capabilitiesOf } from '../actions/options.ts'
import { patch } from '../actions/patch.ts'
import { post } from '../actions/post.ts'
import { put } from '../actions/put.ts'
import type { Action, Authorize, CollectionFacts, ContentRule, Route, RouteContext } from '../actions/route.ts'
import { loadIfPresent, loadPresent } from '../actions/state.ts'
import type { RequestView } from '../core/exchange.ts'
import type { JsonValue } from '../core/json.ts'
import { isJsonType, isMediaRange, parseMediaType } from '../protocol/media-type.ts'
import { completeMethods, isSafeMethod, type Method } from '../protocol/methods.ts'
import { parseIntegerName } from '../stores/types.ts'
import type { Operations } from './operations.ts'
import type {
  CollectionOptions,
  DocumentOptions,
  ResourceDefinition,
  SingletonOptions,
} from './resource-definitions.ts'
import type { RouteEntry } from './routes.ts'

/** What a service says for all its resources where a definition says nothing. */
export interface ServiceDefaults {
  readonly context: RouteContext
  readonly cacheControl: string
  readonly authorize: Authorize | undefined
}

const JSON_ONLY: readonly string[] = ['application/json']
const FORMS: readonly string[] = ['application/x-www-form-urlencoded', 'multipart/form-data']
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

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

function compileSingleton(
  pattern: string,
  options: Readonly<SingletonOptions>,
  defaults: ServiceDefaults,
): readonly RouteEntry[] {
  const { aliases = [] } = options
  const json = { ...options, types: JSON_ONLY }
  const route = compileDocument(pattern, json, defaults, ['GET', 'PUT', 'PATCH'], {
    storePath: pattern,
    replaced: options.replaced ?? 'representation',
  })
  return [pattern, ...aliases].map((path) => ({ pattern: path, route }))
}

function compileCollection(
  pattern: string,
  options: Readonly<CollectionOptions<JsonValue>>,
  defaults: ServiceDefaults,
): readonly RouteEntry[] {
  const isAccepting = options.create === 'accepted'
  const types = options.types ?? JSON_ONLY
  const isJson = types.every(isJsonRange)
  const names = options.names ?? (isJson ? 'integer' : 'string')
  const files = options.files === undefined ? (isAccepting ? 'any' : new Map()) : new Map(Object.entries(options.files))
  const facts: CollectionFacts = {
    content: isJson ? 'json' : 'raw',
    names,
    form: new Map(Object.entries(options.form ?? {})),
    textMember: options.text,
    files,
    create: options.create ?? 'created',
    pageSize: {
      default: options.pageSize?.default ?? Math.min(50, options.pageSize?.max ?? 50),
      max: options.pageSize?.max ?? 500,
    },
  }
  const collection = compileCollectionItself(pattern, options, defaults, facts, types)
  const byClient = options.clientIds ?? (names !== 'uuid' && !isAccepting)
  const memberMethods = options.memberMethods ?? (isAccepting ? ['GET', 'DELETE'] : ['GET', 'PUT', 'PATCH', 'DELETE'])
  const { methods: _, ...memberOptions } = options
  const member = compileDocument(
    `${pattern === '/' ? '' : pattern}/{id}`,
    { ...memberOptions, types },
    defaults,
    memberMethods,
    {
      idMember: isJson ? (names === 'uuid' ? 'string' : 'integer') : undefined,
      showsWork: isAccepting,
      createsByPut: byClient,
      fileNames: files === 'any' ? 'any' : [...files.keys()],
    },
  )
  const entries: RouteEntry[] = [
    { pattern, route: collection },
    { pattern: member.pattern, route: member, accepts: acceptsName(names) },
  ]
  if (files === 'any' || files.size > 0) entries.push(...compileFiles(member.pattern, memberOptions, defaults, files))
  return entries
}

/** The files below a member: raw, read-only, gone with the member. */
function compileFiles(
  pattern: string,
  options: Readonly<CollectionOptions<JsonValue>>,
  defaults: ServiceDefaults,
  files: CollectionFacts['files'],
): readonly RouteEntry[] {
  const { schema: _, types: __, representations: ___, ...fileOptions } = options
  const names = files === 'any' ? ['{file}'] : [...files.keys()]
  return names.map((name) => {
    const path = `${pattern}/${name}`
    return { pattern: path, route: compileDocument(path, fileOptions, defaults, ['GET']) }
  })
}

function acceptsName(names: CollectionFacts['names']): RouteEntry['accepts'] {
  if (names === 'integer') return (name) => parseIntegerName(name) !== undefined
  return names === 'uuid' ? (name) => UUID.test(name) : undefined
}

function compileCollectionItself(
  pattern: string,
  options: Readonly<CollectionOptions<JsonValue>>,
  defaults: ServiceDefaults,
  facts: CollectionFacts,
  types: readonly string[],
): Route {
  const { limits } = defaults.context
  const hasFiles = facts.files !== 'any' && [...facts.files.values()].some((file) => file.required === true)
  const text = facts.textMember === undefined ? [] : ['text/plain']
  const accepted = facts.content === 'raw' ? types : hasFiles ? ['multipart/form-data'] : [...types, ...FORMS, ...text]
  const content: ContentRule = {
    types: accepted,
    hint: 'Accept-Post',
    limit: (essence) => {
      if (facts.content === 'raw') return options.maxSize ?? Number.POSITIVE_INFINITY
      return essence === 'multipart/form-data' ? Number.POSITIVE_INFINITY : limits.parsedSize
    },
  }
  return completeRoute(pattern, options, defaults, {
    actions: restrict(
      { GET: { load: loadPage, perform: get }, POST: { load: loadPageIfConditional, perform: post, content } },
      options.methods,
    ),
    collection: facts,
    offers: [{ essence: 'application/json', parameters: new Map() }],
  })
}

interface DocumentFacts {
  readonly storePath?: string
  readonly replaced?: 'representation' | 'none'
  readonly idMember?: Route['idMember']
  readonly showsWork?: boolean
  readonly createsByPut?: boolean
  readonly fileNames?: Route['fileNames']
}

function compileDocument(
  pattern: string,
  options: Readonly<DocumentOptions>,
  defaults: ServiceDefaults,
  methods: readonly Method[],
  facts: DocumentFacts = {},
): Route {
  const { types = ['*/*'], representations = [] } = options
  for (const type of types) {
    if (!isMediaRange(type)) throw new TypeError(`${pattern} takes types such as "text/plain" or "*/*", not "${type}".`)
  }
  const isJson = types.every(isJsonRange)
  const { limits, patchFormats } = defaults.context
  const replacement: ContentRule = {
    types,
    hint: 'Accept',
    limit: () => (isJson ? limits.parsedSize : (options.maxSize ?? Number.POSITIVE_INFINITY)),
    ...(types.includes('*/*') || types.includes('application/octet-stream')
      ? { defaultType: 'application/octet-stream' }
      : {}),
  }
  const patches: ContentRule = {
    types: patchFormats.map((format) => format.mediaType),
    hint: 'Accept-Patch',
    limit: () => limits.parsedSize,
  }
  const actions: Partial<Record<Method, Action>> = {
    GET: { load: loadPresent, perform: get },
    PUT: { load: facts.createsByPut === false ? loadPresent : loadIfPresent, perform: put, content: replacement },
    DELETE: { load: loadPresent, perform: remove },
  }
  if (types.some(takesJson)) actions.PATCH = { load: loadPresent, perform: patch, content: patches }
  const stored = isJson ? [{ essence: types[0]!, parameters: new Map<string, string>() }] : []
  return completeRoute(pattern, options, defaults, {
    ...facts,
    actions: restrict(actions, options.methods === undefined ? methods : options.methods),
    isJson,
    offers: [...stored, ...representations.map(({ type }) => requireMediaType(type, pattern))],
    renditions: representations,
  })
}

function completeRoute(
  pattern: string,
  options: Readonly<DocumentOptions>,
  defaults: ServiceDefaults,
  facts: Pick<Route, 'actions'> & Partial<Omit<Route, 'collection'>> & { collection?: CollectionFacts },
): Route {
  const cacheControl = options.cacheControl ?? defaults.cacheControl
  const { remove: removal = 'erase' } = options
  const methods = completeMethods(Object.keys(facts.actions) as Method[])
  const { actions } = facts
  const route: Route = {
    storePath: undefined,
    isJson: true,
    idMember: undefined,
    offers: [],
    renditions: [],
    replaced: options.replaced ?? 'none',
    showsWork: false,
    fileNames: [],
    schema: options.schema,
    ...facts,
    actions: actions.GET === undefined ? actions : { ...actions, HEAD: actions.GET },
    collection: facts.collection,
    pattern,
    methods,
    cacheControl,
    privateCacheControl: makePrivate(cacheControl),
    createdCacheControl: options.createdCacheControl ?? 'no-store',
    preconditions: options.preconditions ?? 'optional',
    requiresCredentials: compileRequire(options.require),
    authorize: options.authorize ?? defaults.authorize,
    conflict: options.conflict,
    removal,
    removed: options.removed ?? 'none',
    retention: options.retention,
    capabilities: capabilitiesOf({ actions, methods, collection: facts.collection }),
    keeps: options.keeps ?? [],
    inline: options.inline ?? [],
    context: defaults.context,
  }
  return Object.freeze(route)
}

/** The route of a service without definitions: any path can be written, and lists what lies below it. */
export function compileOpenRoute(defaults: ServiceDefaults): Route {
  const document = compileDocument('', {}, defaults, ['GET', 'PUT', 'PATCH', 'DELETE'])
  const facts: CollectionFacts = {
    content: 'any',
    names: 'string',
    form: new Map(),
    textMember: undefined,
    files: 'any',
    create: 'created',
    pageSize: { default: 50, max: 500 },
  }
  const { limits } = defaults.context
  const content: ContentRule = {
    types: ['application/json', ...FORMS, 'text/plain'],
    hint: 'Accept-Post',
    limit: (essence) => (isParsed(essence) ? limits.parsedSize : Number.POSITIVE_INFINITY),
  }
  return completeRoute('', {}, defaults, {
    ...document,
    actions: {
      ...document.actions,
      GET: { load: loadResourceOrMembers, perform: get },
      POST: { load: loadPageIfConditional, perform: post, content },
    },
    collection: facts,
    isJson: false,
  })
}

/** The monitor of accepted work: what it says, and its cancellation. */
export function compileMonitor(operations: Operations, defaults: ServiceDefaults): RouteEntry {
  const pattern = `${operations.path}/{id}`
  const options = { types: JSON_ONLY }
  const route = compileDocument(pattern, options, defaults, ['GET', 'DELETE'], { showsWork: true })
  const DELETE: Action = { load: loadPresent, perform: operations.cancel }
  return { pattern, route: Object.freeze({ ...route, actions: { ...route.actions, DELETE } }) }
}

function isParsed(essence: string): boolean {
  return isJsonType(essence) || essence === FORMS[0]
}

function restrict(
  actions: Partial<Record<Method, Action>>,
  methods: readonly Method[] | undefined,
): Partial<Record<Method, Action>> {
  if (methods === undefined) return actions
  return Object.fromEntries(Object.entries(actions).filter(([method]) => methods.includes(method as Method)))
}

function compileRequire(require: DocumentOptions['require']): Route['requiresCredentials'] {
  if (require === undefined || typeof require === 'function') return require
  if (require === 'all') return () => true
  return require === 'none' ? () => false : (request: RequestView) => !isSafeMethod(request.method)
}

/** What an authorised request got is not for others, unless the definition says so in so many words. */
function makePrivate(cacheControl: string): string {
  return /(?:^|[,\s])(?:public|private|no-store|s-maxage)/i.test(cacheControl)
    ? cacheControl
    : `private, ${cacheControl}`
}

function isJsonRange(range: string): boolean {
  return isJsonType(range) || range === '*/*+json'
}

function takesJson(range: string): boolean {
  return isJsonRange(range) || range === '*/*' || range === 'application/*'
}

function requireMediaType(type: string, pattern: string) {
  const parsed = parseMediaType(type)
  if (parsed === undefined) throw new TypeError(`${pattern} offers a representation of no valid media type: "${type}".`)
  return parsed
}
