import { onceFor } from '../core/caches.ts'
import { isHttpError } from '../core/errors.ts'
import { andThen, type MaybePromise, orElse } from '../core/maybe-promise.ts'
import { refuseRenamedValue } from '../core/options.ts'
import { ReadView, type RequestView } from '../core/request-view.ts'
import { isResource, splitPath } from '../stores/rules.ts'
import type { StoredResource } from '../stores/types.ts'
import { ReadUntilLeft, type ResourceExchange, readParams } from './resource-exchange.ts'
import { askAbout } from './resource-view.ts'
import type { Route } from './route.ts'
import { isEntryInScope } from './scope.ts'

/** What the routes of the entries of a collection may do, by the definitions alone. */
interface Entries {
  /** Whether an entry can be refused to a caller who sends credentials, and to one who sends none. */
  readonly known: boolean
  readonly anonymous: boolean
  /** Whether one caller can see other entries than another one. */
  readonly differ: boolean
  /** Whether an entry can have another Cache-Control than the collection. */
  readonly hasOwnCaching: boolean
}

/** Made when a collection is first listed: the routes of a service do not change. */
export const entriesOf: (route: Route) => Entries = onceFor((route) => {
  const below = route.context.findRoutesBelow(route.pattern)
  const known = below.some((own) => mayRefuse(own, route))
  const needCredentials = below.some((own) => own.readsNeedCredentials !== false)
  const anonymous = known || needCredentials
  const differ = needCredentials || below.some((own) => isJudged(own, route))
  const hasOwnCaching = below.some((own) => own.cacheControl.public !== route.cacheControl.public)
  return { known, anonymous, differ, hasOwnCaching }
})

/** Whether an entry of the collection can be refused to this caller. Most collections show all to everybody. */
export function mayRefuseEntries({ route, principal }: ResourceExchange): boolean {
  const { known, anonymous } = entriesOf(route)
  return principal === undefined ? anonymous : known
}

function mayRefuse(own: Route, collection: Route): boolean {
  return isJudged(own, collection) || own.storePath !== undefined || !isReadable(own, collection)
}

function isJudged(own: Route, collection: Route): boolean {
  const isScoped = own.indexing?.scope !== undefined && own.definition !== collection.definition
  return isScoped || own.authorize !== undefined || own.isFile
}

/** A collection without a GET of its items shows them in the listing only; any other definition without GET shows nothing. */
function isReadable(own: Route, collection: Route): boolean {
  return own.actions.GET !== undefined || own.definition === collection.definition
}

/**
 * Whether an entry of a listing may be shown: whether the definition that its own path has would let this caller GET it.
 * @throws what `authorize` or `scope` throws, unless it is an `HttpError` below 500, which refuses as `false` does
 */
export function mayShow(exchange: ResourceExchange, item: StoredResource): MaybePromise<boolean> {
  const { route, principal } = exchange
  const own = route.context.findRoute(item.path)
  // Under an alias of a singleton stands another resource.
  if (own === undefined || (own.storePath ?? item.path) !== item.path || !isReadable(own, route)) return false
  if (item.hidden === true && (own.deletion !== 'soft' || own.authorize === undefined)) return false
  const { readsNeedCredentials: rule } = own
  if (principal === undefined && rule === true) return false
  const isScoped = own.indexing?.scope !== undefined && own.definition !== route.definition
  const asks = isScoped || own.authorize !== undefined || own.isFile
  if (!asks && (principal !== undefined || rule === false)) return true
  const request = new ReadView(exchange, item.path, () => readParams(own.pattern, item.path))
  if (principal === undefined && typeof rule === 'function' && rule(request)) return false
  if (!asks) return true
  if (own.isFile || isScoped) return askAboutSubject(exchange, item, own, request, isScoped)
  return orRefusal(() => askAuthorize(exchange, item, own, request))
}

async function askAboutSubject(
  exchange: ResourceExchange,
  item: StoredResource,
  own: Route,
  request: RequestView,
  isScoped: boolean,
): Promise<boolean> {
  const subject = own.isFile ? await readParent(exchange, item) : item
  if (subject === undefined) return false
  return orRefusal(async () => {
    if (isScoped && !(await isEntryInScope(exchange, own, request, subject))) return false
    return askAuthorize(exchange, subject, own, request)
  })
}

function askAuthorize(
  { principal, route }: ResourceExchange,
  subject: StoredResource,
  { authorize }: Route,
  request: RequestView,
): MaybePromise<boolean> {
  if (authorize === undefined) return true
  return andThen(askAbout(subject, route.context.limits.bodySize, authorize, principal, request), (verdict) => {
    if (verdict !== true) refuseRenamedValue('authorize', 'authorize', verdict)
    return verdict === true
  })
}

/** An `HttpError` below 500 refuses as `false` does. */
function orRefusal(ask: () => MaybePromise<boolean>): MaybePromise<boolean> {
  return orElse(ask, (error) => {
    if (isHttpError(error) && error.status < 500) return false
    throw error
  })
}

/** The item that a file belongs to: without it there is no file (RFC 9110 §15.5.5). */
async function readParent(exchange: ResourceExchange, file: StoredResource): Promise<StoredResource | undefined> {
  const { collection } = splitPath(file.path)
  const { store } = exchange.route.context
  const item = await store.read(
    collection,
    new ReadUntilLeft(exchange, { hidden: exchange.wantsHidden, metadataOnly: false }),
  )
  return isResource(item) ? item : undefined
}
