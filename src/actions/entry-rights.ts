import { isHttpError } from '../core/errors.ts'
import { refuseRenamedValue } from '../core/options.ts'
import { asReadOf } from '../core/read-view.ts'
import { splitPath } from '../stores/paths.ts'
import { isResource, type StoredResource } from '../stores/types.ts'
import { askAbout } from './hooks.ts'
import { type ResourceExchange, readParams } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { isEntryInScope } from './scope.ts'
import { ReadUntilLeft } from './store-options.ts'

/** What the routes of the entries of a collection may do, by the definitions alone. */
interface Entries {
  /** Whether an entry can be refused to a caller who sends credentials, and to one who sends none. */
  readonly known: boolean
  readonly anonymous: boolean
  /** Whether an entry can have another Cache-Control than the collection. */
  readonly hasOwnCaching: boolean
}

/** Made once for each collection, when it is first listed: the routes of a service do not change. */
const ENTRIES = new WeakMap<Route, Entries>()

function entriesOf(route: Route): Entries {
  const made = ENTRIES.get(route)
  if (made !== undefined) return made
  const below = route.context.findRoutesBelow(route.pattern)
  const known = below.some((own) => mayRefuse(own, route))
  const anonymous = known || below.some((own) => own.readsNeedCredentials !== false)
  const hasOwnCaching = below.some((own) => own.cacheControl.public !== route.cacheControl.public)
  const entries = { known, anonymous, hasOwnCaching }
  ENTRIES.set(route, entries)
  return entries
}

/** Whether an entry of the collection can be refused to this caller. Most collections show all to everybody. */
export function mayRefuseEntries({ route, principal }: ResourceExchange): boolean {
  const { known, anonymous } = entriesOf(route)
  return principal === undefined ? anonymous : known
}

/** Whether an entry of the collection can have another Cache-Control than the collection. */
export function mayHaveOwnCaching(route: Route): boolean {
  return entriesOf(route).hasOwnCaching
}

function mayRefuse(own: Route, collection: Route): boolean {
  if (own.indexing?.scope !== undefined && own.definition !== collection.definition) return true
  return own.authorize !== undefined || own.isFile || own.storePath !== undefined || !isReadable(own, collection)
}

/** A collection without a GET of its items shows them in the listing only; any other definition without GET shows nothing. */
function isReadable(own: Route, collection: Route): boolean {
  return own.actions.GET !== undefined || own.definition === collection.definition
}

/**
 * Whether an entry of a listing may be shown: whether the definition that its own path has would let this caller GET it.
 * @throws what `authorize` or `scope` throws, unless it is an `HttpError` below 500, which refuses as `false` does
 */
export async function mayShow(exchange: ResourceExchange, item: StoredResource): Promise<boolean> {
  const { route, principal } = exchange
  const own = route.context.findRoute(item.path)
  // Under an alias of a singleton stands another resource.
  if (own === undefined || (own.storePath ?? item.path) !== item.path || !isReadable(own, route)) return false
  if (item.hidden === true && (own.deletion !== 'soft' || own.authorize === undefined)) return false
  const request = asReadOf(exchange, item.path, () => readParams(own.pattern, item.path))
  const { readsNeedCredentials: rule } = own
  if (principal === undefined && (typeof rule === 'function' ? rule(request) : rule)) return false
  const subject = own.isFile ? await readParent(exchange, item) : item
  if (subject === undefined) return false
  try {
    if (own.indexing?.scope !== undefined && own.definition !== route.definition) {
      if (!(await isEntryInScope(exchange, own, request, subject))) return false
    }
    if (own.authorize === undefined) return true
    const { bodySize } = route.context.limits
    const verdict = await askAbout(subject, bodySize, own.authorize, principal, request)
    if (verdict !== true) refuseRenamedValue('authorize', 'authorize', verdict)
    return verdict === true
  } catch (error) {
    if (isHttpError(error) && error.status < 500) return false
    throw error
  }
}

/** The item that a file belongs to: without it there is no file (RFC 9110 §15.5.5). */
async function readParent(exchange: ResourceExchange, file: StoredResource): Promise<StoredResource | undefined> {
  const { collection } = splitPath(file.path)
  const item = await exchange.route.context.store.read(
    collection,
    new ReadUntilLeft(exchange, { hidden: exchange.wantsHidden }),
  )
  return isResource(item) ? item : undefined
}
