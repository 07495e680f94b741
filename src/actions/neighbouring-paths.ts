import { onceFor } from '../core/caches.ts'
import { refuse } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { formatPointerStep } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { isResource, memberPath, nameOf, parseIntegerName, splitPath } from '../stores/rules.ts'
import { mayShow } from './entry-rights.ts'
import { ReadUntilLeft, type ResourceExchange, WHOLE } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { shapeOf } from './route-table.ts'
import { invalid } from './validation.ts'

/**
 * Whether the target of a request is below a resource that the caller may see, where its definition asks for that.
 * @throws HttpError 404 where the parent does not exist, is deleted, or would be refused to a GET of this caller
 */
export function checkParent(exchange: ResourceExchange): MaybePromise<undefined> {
  const path = parentOf(exchange)
  if (path === undefined) return undefined
  exchange.parentSeenAt = exchange.route.context.now()
  return andThen(isVisible(exchange, path), (isVisible) => {
    if (isVisible) return undefined
    refuse(exchange, 'the parent is not there for this caller', new HttpError(404, 'ERR_NOT_FOUND'))
  })
}

/** Milliseconds for which a verdict on the parent holds while the content arrives. */
const FRESH = 1000

/**
 * The path that must be present when the target is created, as `parentOf` gives it. Where the content took its time, the
 * parent is judged anew: it may have gone, and be that of another caller by now.
 * @throws HttpError 404 as `checkParent`
 */
export function requireParent(exchange: ResourceExchange): MaybePromise<string | undefined> {
  const path = parentOf(exchange)
  if (path === undefined || Math.abs(exchange.route.context.now() - exchange.parentSeenAt) < FRESH) return path
  return andThen(checkParent(exchange), () => path)
}

/** The path that must be present when the target is written; `undefined` where the definition asks for none. */
export function parentOf({ route, storePath }: ResourceExchange): string | undefined {
  return route.hasParent ? findParent(route, storePath) : undefined
}

/** The resource that a collection is below. */
function findParent(route: Route, path: string): string {
  let collection = path
  if (route.isFile) collection = splitPath(collection).collection
  if (route.collection === undefined) collection = splitPath(collection).collection
  return splitPath(collection).collection
}

/** The items that a collection, its items and files are below; `undefined` where the parent may be of another definition. */
export function findParentItems({ context, definition, hasParent }: Route): Route | undefined {
  if (!hasParent) return undefined
  const parent = splitPath(definition).collection
  const routes = context.findRoutesBelow(splitPath(parent).collection || '/')
  const found = routes.filter(({ kind }) => kind === 'item' || kind === 'document' || kind === 'singleton')
  const isOne = found.length === 1 && shapeOf(found[0]!.pattern) === shapeOf(parent)
  return isOne && found[0]!.kind === 'item' ? found[0] : undefined
}

/** Whether a GET of a path would show this caller a resource, and one of what it is below in turn. */
async function isVisible(exchange: ResourceExchange, path: string): Promise<boolean> {
  const { store, findRoute } = exchange.route.context
  const own = findRoute(path)
  if (own === undefined) return false
  if (own.hasParent && !(await isVisible(exchange, findParent(own, path)))) return false
  // Nothing is under an alias: a collection below one is another one than that below the path of the singleton.
  const state = await store.read(path, new ReadUntilLeft(exchange, WHOLE))
  return isResource(state) && mayShow(exchange, state)
}

// What a request writes beside its target is a new item, and the files of one. Another definition may be for such a path,
// with a schema and rights of its own, by which the request has not been judged.

/** Whether a path below a resource is one of the same definition. */
export function isOwnPath({ context, definition }: Route, path: string): boolean {
  return context.findRoute(path)?.definition === definition
}

/** Whether the resource at a path is that of another definition. At the path of a collection a definition has none. */
export function isOthersResource({ context, definition }: Route, path: string): boolean {
  const own = context.findRoute(path)
  return own !== undefined && own.definition !== definition && own.kind !== 'collection'
}

/** The routes of other definitions right below a collection. */
function othersBelow({ context, pattern, definition }: Route): readonly Route[] {
  return context.findRoutesBelow(pattern).filter((route) => route.definition !== definition)
}

/** Whether there are any: few collections have some, and to find a route costs a POST 2 %. */
const hasNeighbours = onceFor((route: Route) => othersBelow(route).length > 0)

/** @throws HttpError 409 for a new item at a path that another definition is for */
export function requireOwnItem(route: Route, collection: string, name: string): void {
  if (!hasNeighbours(route) || isOwnPath(route, memberPath(collection, name))) return
  throw new HttpError(409, 'ERR_CONFLICT', { detail: 'The path of the new item is one of another kind of resource.' })
}

/** @throws HttpError 422 for a file at a path that another definition is for */
export function requireOwnFile(route: Route, path: string, name: string): void {
  if (isOwnPath(route, path)) return
  throw invalid([{ pointer: formatPointerStep(name), detail: 'No file is expected here.' }])
}

/** Whether a list may hold resources of other definitions, at paths of their own right below. */
export function listsOthers(route: Route): boolean {
  return othersBelow(route).some(({ kind }) => kind === 'document' || kind === 'singleton')
}

/** Whether another definition may be for the path of a new item. */
export function createsBesideOthers(route: Route): boolean {
  if (route.kind !== 'collection') return false
  // Whether a segment of a pattern is for names that the server gives.
  return othersBelow(route).some(({ pattern }) => {
    const segment = nameOf(pattern)
    return segment.startsWith('{') || parseIntegerName(segment) !== undefined
  })
}
