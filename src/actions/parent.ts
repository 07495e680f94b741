import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { isResource, splitPath } from '../stores/types.ts'
import { mayShow } from './entry-rights.ts'
import { ReadUntilLeft, type ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'

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
    note(exchange, 'the parent is not there for this caller')
    throw new HttpError(404, 'ERR_NOT_FOUND')
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

/** Whether a GET of a path would show this caller a resource, and one of what it is below in turn. */
async function isVisible(exchange: ResourceExchange, path: string): Promise<boolean> {
  const { store, findRoute } = exchange.route.context
  const own = findRoute(path)
  // A collection below an alias is another one than that below the path of the singleton, and not removed with it.
  if (own === undefined || (own.storePath ?? path) !== path) return false
  if (own.hasParent && !(await isVisible(exchange, findParent(own, path)))) return false
  const state = await store.read(path, new ReadUntilLeft(exchange, {}))
  return isResource(state) && mayShow(exchange, state)
}
