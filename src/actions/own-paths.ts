import { HttpError } from '../core/errors.ts'
import { formatPointerStep } from '../core/json.ts'
import { memberPath, nameOf, parseIntegerName } from '../stores/types.ts'
import type { Route } from './route.ts'
import { invalid } from './validation.ts'

/**
 * What a request writes beside its target: a new item, and the files of one. Another definition may be for such a path, with
 * a schema and rights of its own, which the request has not been judged by.
 */

/** Whether a path below a resource is one of the same definition. */
export function isOwnPath({ context, definition }: Route, path: string): boolean {
  return context.findRoute(path)?.definition === definition
}

/** Whether the resource at a path is that of another definition. At the path of a collection a definition has none. */
export function isOthersResource({ context, definition }: Route, path: string): boolean {
  const own = context.findRoute(path)
  return own !== undefined && own.definition !== definition && own.kind !== 'collection'
}

/** The last segments of what other definitions are for right below a collection. */
function othersBelow({ context, pattern, definition }: Route): readonly string[] {
  const others = context.findRoutesBelow(pattern).filter((route) => route.definition !== definition)
  return others.map(({ pattern }) => nameOf(pattern))
}

/** Whether there are any: few collections have some, and to find a route costs a POST 2 %. */
const neighbours = new WeakMap<Route, boolean>()

function hasNeighbours(route: Route): boolean {
  const known = neighbours.get(route)
  if (known !== undefined) return known
  const isBeside = othersBelow(route).length > 0
  neighbours.set(route, isBeside)
  return isBeside
}

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

/** Whether another definition may be for the path of a new item. */
export function createsBesideOthers(route: Route): boolean {
  return route.kind === 'collection' && othersBelow(route).some(mayBeNew)
}

/** Whether a segment of a pattern is for names that the server gives. */
function mayBeNew(segment: string): boolean {
  return segment.startsWith('{') || parseIntegerName(segment) !== undefined
}
