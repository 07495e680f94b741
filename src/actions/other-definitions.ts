import { nameOf, parseIntegerName, splitPath } from '../stores/rules.ts'
import type { Route } from './route.ts'
import { shapeOf } from './route-table.ts'

/**
 * What definitions have to do with one another by their paths. What a request writes beside its target is a new item, and the
 * files of one. Another definition may be for such a path, with a schema and rights of its own, by which the request has not
 * been judged.
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

/** The routes of other definitions right below a collection. */
export function othersBelow({ context, pattern, definition }: Route): readonly Route[] {
  return context.findRoutesBelow(pattern).filter((route) => route.definition !== definition)
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

/** The items that a collection, its items and files are below; `undefined` where the parent may be of another definition. */
export function findParentItems({ context, definition, hasParent }: Route): Route | undefined {
  if (!hasParent) return undefined
  const parent = splitPath(definition).collection
  const routes = context.findRoutesBelow(splitPath(parent).collection || '/')
  const found = routes.filter(({ kind }) => kind === 'item' || kind === 'document' || kind === 'singleton')
  const isOne = found.length === 1 && shapeOf(found[0]!.pattern) === shapeOf(parent)
  return isOne && found[0]!.kind === 'item' ? found[0] : undefined
}
