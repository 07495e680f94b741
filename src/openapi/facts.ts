import type { FileOptions } from '../actions/hook-types.ts'
import { createsBesideOthers, findParentItems, listsOthers } from '../actions/other-definitions.ts'
import type { QueryRules, QueryType } from '../actions/query-rules.ts'
import type { CollectionFacts, Route } from '../actions/route.ts'
import { includesJson } from '../protocol/media-type.ts'
import type { ServiceView } from './inputs.ts'

/** The methods that are described. HEAD answers as GET does, without content; OPTIONS says what Allow says. */
const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'QUERY'] as const
export type DescribedMethod = (typeof METHODS)[number]

/** What a method takes as content. */
interface ContentFacts {
  /** Media ranges. */
  readonly types: readonly string[]
  /** Whether content may be too large. */
  readonly isLimited: boolean
}

/** What a description takes over from a route as it is: what the resource is, some of its rules, and of its answers. */
const IDENTITY = ['kind', 'definition', 'documentation', 'schema', 'types'] as const
const RULES = ['createsByPut', 'deletion', 'hasParent', 'needsDigests', 'preconditions', 'storedHeaders'] as const
const ANSWERS = ['accept', 'deleteResponse', 'offers', 'putResponse'] as const
type Kept = (typeof IDENTITY | typeof RULES | typeof ANSWERS)[number]

/** A route in the words of its description. No other file of this folder reads a route. */
export interface Facts extends Pick<Route, Kept> {
  readonly pattern: string
  readonly methods: readonly DescribedMethod[]
  readonly content: Readonly<Partial<Record<DescribedMethod, ContentFacts>>>
  /** Whether content is parsed as JSON; `some` where other content is taken as well. */
  readonly json: 'all' | 'some' | 'none'
  /** The names below a collection. */
  readonly ids: 'integer' | 'string' | 'uuid'
  /** What the names in the pattern stand for, in their order, up to that of the item. */
  readonly names: readonly Facts['ids'][]
  /** Whether items say their id. */
  readonly hasId: boolean
  readonly isListing: boolean
  /** Whether there is a state, with a date: neither a page nor the description has one. */
  readonly hasState: boolean
  /** Whether a list may hold resources of other definitions. */
  readonly listsOthers: boolean
  /** What the form of a collection may hold beside the properties of the item. */
  readonly form: Pick<CollectionFacts, 'formFields' | 'files'> | undefined
  /** The files that items may have, of which the server says what is known. */
  readonly files: ReadonlyMap<string, FileOptions>
  /** Whether POST accepts an item and works on it later. */
  readonly acceptsItems: boolean
  /** Whether large content may lie elsewhere, to which GET is redirected. */
  readonly redirects: boolean
  /** Whether an item says how far the work on it is. */
  readonly showsWork: boolean
  /** Whether PUT restores what was deleted softly, although it creates nothing. */
  readonly restoresByPut: boolean
  /** Whether `Prefer: respond-async` has a removal done later. */
  readonly mayBeQueued: boolean
  /** Whether a resource that was removed is remembered. */
  readonly remembersRemoval: boolean
  /** Whether POST may come upon a path that another definition is for. */
  readonly createsBesideOthers: boolean
  /** Whether a hook makes other content of what is sent. */
  readonly changesContent: boolean
  /** Whether a hook of the definition may refuse a write. */
  readonly hooksMayRefuse: { readonly content: boolean; readonly any: boolean }
  /** Whether POST, and PATCH without a tag in If-Match, are done once for a key, and need one. */
  readonly idempotency: 'none' | 'optional' | 'required'
  /** Whether requests may have a principal. */
  readonly hasCallers: boolean
  /** The types of properties of items that are indexed, by name. */
  readonly indexed: ReadonlyMap<string, QueryType>
  /** What a list can be asked for, where there are rules. */
  readonly query: QueryRules | undefined
  /** Names of the properties that say whose an item is; `unknown` where the definition leaves them to its function. */
  readonly scope: 'none' | 'unknown' | readonly string[]
  /** Whether a hook decides who may do what. */
  readonly isGuarded: boolean
  readonly credentials: 'all' | 'writes' | 'none' | 'some'
}

const NO_FILES: ReadonlyMap<string, FileOptions> = new Map()

/** Reads what a description says of a route. */
export function readFacts(view: ServiceView, pattern: string, route: Route): Facts {
  const { actions, collection, context, kind, deletion } = route
  const owner = collection ?? findCollection(view, route.definition)
  const methods = METHODS.filter((method) => actions[method] !== undefined)
  const content: Partial<Record<DescribedMethod, ContentFacts>> = {}
  for (const method of methods) {
    const rule = actions[method]?.content
    if (rule === undefined) continue
    const isLimited = [...rule.types, ...(rule.types.some(includesJson) ? ['application/json'] : [])].some(
      (type) => rule.limit(type) !== Number.POSITIVE_INFINITY,
    )
    // A multipart form is limited in its parts, and a store that stages nothing in all content that it holds at once.
    const isForm = rule.types.includes('multipart/form-data')
    content[method] = { types: rule.types, isLimited: isLimited || isForm || context.store.stage === undefined }
  }
  const kept = [...IDENTITY, ...RULES, ...ANSWERS].map((name) => [name, route[name]])
  const isJson = collection === undefined ? route.isJson : collection.content === 'json'
  return {
    ...(Object.fromEntries(kept) as Pick<Route, Kept>),
    pattern,
    methods,
    content,
    json: isJson ? 'all' : route.types.some(includesJson) ? 'some' : 'none',
    ids: owner?.ids ?? 'string',
    names: findNames(view, route),
    hasId: kind === 'item' ? route.idMember !== undefined : collection?.content === 'json',
    isListing: kind === 'collection',
    hasState: kind !== 'collection' && kind !== 'description',
    listsOthers: kind === 'collection' && listsOthers(route),
    files: owner === undefined || owner.files === 'any' || kind === 'file' ? NO_FILES : owner.files,
    form: collection,
    acceptsItems: collection?.create === 'accepted',
    redirects: context.store.supports?.redirects === true && !route.showsWork,
    showsWork: route.showsWork || collection?.create === 'accepted',
    restoresByPut: kind === 'item' && deletion === 'soft',
    mayBeQueued: context.work !== undefined,
    remembersRemoval: !['singleton', 'description', 'operation'].includes(kind) && route.retention !== 0,
    createsBesideOthers: createsBesideOthers(route),
    changesContent: route.beforeWrite !== undefined,
    hooksMayRefuse: {
      // A file is replaced together with its item, which has hooks and an index.
      content: route.beforeWrite !== undefined || route.outbox !== undefined || kind === 'file',
      any: route.outbox !== undefined,
    },
    idempotency: route.idempotency === undefined ? 'none' : route.idempotency.isRequired ? 'required' : 'optional',
    hasCallers: view.schemes !== undefined,
    indexed: findIndexed(route),
    query: kind === 'collection' ? route.indexing?.query : undefined,
    scope: route.indexing?.scope === undefined ? 'none' : (route.indexing.declaredScope ?? 'unknown'),
    // Monitors of accepted work have a rule of their own: what it refuses does not exist.
    isGuarded: route.authorize !== undefined && kind !== 'operation',
    credentials: route.credentials ?? view.credentials,
  }
}

export function isRead(method: DescribedMethod): boolean {
  return method === 'GET' || method === 'QUERY'
}

/** Whether the last name of a pattern stands for any number of segments. */
export function isDeep({ pattern }: Pick<Facts, 'pattern'>): boolean {
  return pattern.endsWith('...}')
}

function findIndexed({ indexing }: Route): Facts['indexed'] {
  const properties = [...(indexing?.query?.properties.values() ?? [])]
  return new Map(properties.flatMap(({ pointer, type }) => (pointer.length === 1 ? [[pointer[0]!, type]] : [])))
}

function findCollection(view: ServiceView, definition: string): Route['collection'] {
  return view.routes.find(({ pattern, route }) => pattern === definition && route.kind === 'collection')?.route
    .collection
}

function findNames(view: ServiceView, route: Route): Facts['names'] {
  const { definition, kind } = route
  const parents = findParentItems(route)
  const above = parents === undefined ? [] : findNames(view, parents)
  const others = [...definition.matchAll(/\{/g)].slice(above.length).map(() => 'string' as const)
  const own = kind === 'item' || kind === 'file' ? [findCollection(view, definition)!.ids] : []
  return [...above, ...others, ...own]
}

/** Whether a method is done once for a key. */
export function takesKey({ idempotency }: Facts, method: DescribedMethod): boolean {
  return idempotency !== 'none' && (method === 'POST' || method === 'PATCH')
}
