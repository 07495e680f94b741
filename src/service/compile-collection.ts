import { get } from '../actions/get.ts'
import type { Indexing } from '../actions/indexing.ts'
import { loadPage, loadQueriedPage } from '../actions/list.ts'
import { post } from '../actions/post.ts'
import type { Action, CollectionFacts, ContentRule, Route } from '../actions/route.ts'
import { NAME_RULES, type RouteEntry } from '../actions/route-table.ts'
import { whereConditional } from '../actions/state.ts'
import type { JsonValue } from '../core/json.ts'
import { changeOptions, omitOptions } from '../core/options.ts'
import { formatCacheControls } from '../protocol/cache-control.ts'
import { isJsonRange, isJsonType, NO_PARAMETERS } from '../protocol/media-type.ts'
import type { Method } from '../protocol/request-line.ts'
import type { CollectionOptions } from './collection-options.ts'
import { compileDocument } from './compile-document.ts'
import { compileIndexing } from './compile-indexing.ts'
import { completeRoute, JSON_ONLY, restrict, type ServiceDefaults } from './compile-route.ts'

export const FORMS: readonly string[] = ['application/x-www-form-urlencoded', 'multipart/form-data']

/** The routes of a collection, its members, and their files. */
export function compileCollection(
  pattern: string,
  options: Readonly<CollectionOptions<JsonValue>>,
  defaults: ServiceDefaults,
): readonly RouteEntry[] {
  if (pattern.endsWith('...}')) {
    throw new TypeError(`${pattern} cannot be a collection, which has its items below it: use document().`)
  }
  const { limits } = defaults.context
  const isAccepting = options.create === 'accepted'
  const types = options.types ?? JSON_ONLY
  const isJson = types.every(isJsonRange)
  const names = options.ids ?? (isJson ? 'integer' : 'string')
  const files = options.files === undefined ? (isAccepting ? 'any' : new Map()) : new Map(Object.entries(options.files))
  const facts: CollectionFacts = {
    content: isJson ? 'json' : 'raw',
    ids: names,
    formFields: new Map(Object.entries(options.formFields ?? {})),
    textProperty: options.textProperty,
    files,
    create: options.create ?? 'created',
    formLimits: { ...limits, fileSize: Math.min(options.maxSize ?? Number.POSITIVE_INFINITY, limits.fileSize) },
    pageSize: options.pageSize as CollectionFacts['pageSize'],
  }
  const indexing = compileIndexing(pattern, options, defaults)
  const collection = compileCollectionItself(pattern, options, defaults, facts, types, indexing)
  const byClient = options.clientIds ?? (names !== 'uuid' && !isAccepting && options.scope === undefined)
  const memberMethods = options.memberMethods ?? (isAccepting ? ['GET', 'DELETE'] : ['GET', 'PUT', 'PATCH', 'DELETE'])
  const memberOptions = omitOptions(options, 'methods')
  const member = compileDocument(
    `${pattern === '/' ? '' : pattern}/{id}`,
    changeOptions(memberOptions, { types }),
    defaults,
    memberMethods,
    {
      kind: 'item',
      definition: pattern,
      idMember: isJson ? (names === 'uuid' ? 'string' : 'integer') : undefined,
      showsWork: isAccepting,
      createsByPut: byClient,
      fileNames: fileNamesOf(facts),
      indexing,
      hasParent: options.parent === true,
    },
  )
  const entries: RouteEntry[] = [
    { pattern, route: collection },
    { pattern: member.pattern, route: member, accepts: NAME_RULES[names] },
  ]
  if (files === 'any' || files.size > 0) entries.push(...compileFiles(member, memberOptions, defaults, files))
  return entries
}

function fileNamesOf({ files }: CollectionFacts): Route['fileNames'] {
  return files === 'any' ? 'any' : [...files.keys()]
}

/** The files below a member: raw, gone with the member; PUT stores those anew that say so. */
function compileFiles(
  { pattern, definition, indexing, hasParent }: Route,
  options: Readonly<CollectionOptions<JsonValue>>,
  defaults: ServiceDefaults,
  files: CollectionFacts['files'],
): readonly RouteEntry[] {
  const hooks = ['beforeWrite', 'outbox', 'afterCommit'] as const
  const ofItem = ['schema', 'jsonSchema', 'types', 'representations', 'putResponse'] as const
  const fileOptions = omitOptions(options, ...ofItem, ...hooks)
  const names = files === 'any' ? ['{file}'] : [...files.keys()]
  return names.map((name) => {
    const path = `${pattern}/${name}`
    const file = files === 'any' ? undefined : files.get(name)
    const own = file?.replaceable === true ? { file } : {}
    const facts = { kind: 'file', definition, isFile: true, indexing, hasParent, ...own } as const
    const methods: readonly Method[] = file?.replaceable === true ? ['GET', 'PUT'] : ['GET']
    return { pattern: path, route: compileDocument(path, fileOptions, defaults, methods, facts) }
  })
}

/** The most bytes of a query as content: it has a few conditions, and each has bounds. */
const LONGEST_QUERY = 64 * 1024

/** QUERY takes the parameters of GET as content (RFC 10008). */
function queryAction(limit: number): Action {
  const content: ContentRule = {
    types: ['application/x-www-form-urlencoded'],
    hint: 'Accept-Query',
    limit: () => Math.min(limit, LONGEST_QUERY),
  }
  return { load: loadQueriedPage, perform: get, content }
}

function compileCollectionItself(
  pattern: string,
  options: Readonly<CollectionOptions<JsonValue>>,
  defaults: ServiceDefaults,
  facts: CollectionFacts,
  types: readonly string[],
  indexing: Indexing | undefined,
): Route {
  const { limits } = defaults.context
  const hasFiles = facts.files !== 'any' && [...facts.files.values()].some((file) => file.required === true)
  const text = facts.textProperty === undefined ? [] : ['text/plain']
  const accepted = facts.content === 'raw' ? types : hasFiles ? ['multipart/form-data'] : [...types, ...FORMS, ...text]
  const content: ContentRule = {
    types: accepted,
    hint: 'Accept-Post',
    limit: (essence) => {
      const isParsed = facts.content !== 'raw' || (options.schema !== undefined && isJsonType(essence))
      if (!isParsed) return options.maxSize ?? Number.POSITIVE_INFINITY
      return essence === 'multipart/form-data' ? Number.POSITIVE_INFINITY : limits.bodySize
    },
  }
  const isKeptAsSent = facts.content === 'raw' && (options.representations ?? []).length === 0
  const actions: Partial<Record<Method, Action>> = restrict(
    {
      GET: { load: loadPage, perform: get, content: undefined },
      POST: { load: whereConditional(loadPage), perform: post, content },
    },
    options.methods,
  )
  const hasQuery = indexing?.query !== undefined && actions.GET !== undefined
  return completeRoute(pattern, options, defaults, {
    kind: 'collection',
    actions: { ...actions, ...(hasQuery && { QUERY: queryAction(limits.bodySize) }) },
    indexing,
    ...(options.postCacheControl !== undefined && { postCacheControl: formatCacheControls(options.postCacheControl) }),
    collection: facts,
    fileNames: fileNamesOf(facts),
    hasParent: options.parent === true,
    types,
    usualType: { essence: 'application/json', parameters: NO_PARAMETERS },
    accept: options.accept ?? (isKeptAsSent ? 'lenient' : 'strict'),
  })
}
