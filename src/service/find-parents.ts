import type { Route } from '../actions/route.ts'
import { splitPath } from '../stores/types.ts'
import type { RouteEntry, RouteTable } from './routes.ts'

/**
 * The routes of the resources that collections with a parent are below.
 * @throws TypeError for a collection that is below no resource of the service
 */
export function findParents(entries: readonly RouteEntry[], table: RouteTable): ReadonlySet<Route> {
  const parents = new Set<Route>()
  for (const { pattern, route } of entries) {
    if (route.kind !== 'collection' || !route.hasParent) continue
    const { collection: parent } = splitPath(pattern)
    const { collection, name } = splitPath(parent)
    const found = parent === '' ? [] : table.findBelow(collection === '' ? '/' : collection).filter(mayBeAt(name))
    if (found.length === 0) {
      const place = parent === '' ? 'it is below no path' : `no definition has a resource at ${parent}`
      throw new TypeError(`${pattern} has parent: true, and ${place}.`)
    }
    for (const route of found) parents.add(route)
  }
  return parents
}

/** Whether paths of a route may have a name, or the name that stands for them, at their end. */
function mayBeAt(name: string): (route: Route) => boolean {
  return ({ kind, pattern }) => {
    if (kind !== 'item' && kind !== 'document' && kind !== 'singleton') return false
    const own = splitPath(pattern).name
    return own === name || own.startsWith('{') || name.startsWith('{')
  }
}
