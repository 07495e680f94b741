import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { contentReply, emptyReply, encodeText, type Reply } from '../core/reply.ts'
import { formatPath } from '../protocol/request-line.ts'
import { isLargeBody, memberPath, nameOf, splitPath, UntilLeft } from '../stores/rules.ts'
import type { RemoveOptions, RemoveResult, StoredResource } from '../stores/types.ts'
import { beginRequestedChange, readForHooks } from './changes.ts'
import { commit, NO_RELATED_WRITES, removeChange } from './commit.ts'
import { isOwnPath } from './other-definitions.ts'
import { entityTagOf, writtenReply } from './representation.ts'
import { appliedPreferences, type ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { expectationOf, requirePresent } from './state.ts'
import { idOf } from './validation.ts'

/** DELETE: removes the target as its definition says. Content of the request is ignored. */
export function remove(exchange: ResourceExchange): MaybePromise<Reply> {
  const { work } = exchange.route.context
  const wantsAsync = exchange.preferences.respondAsync === true
  if (work !== undefined && (exchange.route.deletion === 'queued' || wantsAsync)) {
    return andThen(work.removeLater(exchange, exchange.current!), (monitor) => {
      const fields = ['Location', exchange.mount + formatPath(monitor), 'Cache-Control', exchange.cacheControl]
      return emptyReply(202, [...fields, ...appliedPreferences(exchange, 'accepted')])
    })
  }
  return andThen(
    commit(exchange, () => removeCurrent(exchange)),
    (result) => createReply(exchange, result.resource),
  )
}

function removeCurrent(exchange: ResourceExchange): MaybePromise<Exclude<RemoveResult, { outcome: 'absent' }>> {
  requirePresent(exchange)
  const { route, storePath } = exchange
  const found = expectationOf(exchange)
  const expect = found === 'absent' ? 'any' : found
  const removed = andThen(relatedPaths(route, storePath, exchange), (related) => {
    const options = Object.assign(new UntilLeft(exchange), { expect, related, ...removalOf(route) })
    if (!route.observesChanges) return route.context.store.remove(storePath, options)
    return andThen(readForHooks(exchange, exchange.current!), (resource) => {
      const change = beginRequestedChange(exchange, 'deleted', resource)!
      return removeChange(route.context.store, resource, options, change)
    })
  })
  return andThen(removed, (result) => {
    // Somebody else was faster: judged anew, and then 404 or 410.
    return result.outcome === 'absent' ? { outcome: 'conflict', current: result.current } : result
  })
}

/** How the store removes what belongs to a route. */
export function removalOf(route: Route): Pick<RemoveOptions, 'mode' | 'retention' | 'below' | 'relatedWrites'> {
  const { deletion, retention, context } = route
  // What is below a hidden resource is as hidden as it.
  if (deletion === 'soft') return { ...ALONE, mode: 'hide' }
  const below = context.isParent(route)
  return retention === 0 ? { ...ALONE, mode: 'erase', below } : { ...ALONE, mode: 'tombstone', retention, below }
}

const NO_PATHS: readonly string[] = []
/** What a removal is given that has nothing beside it, for the same reason as {@link NO_RELATED_WRITES}. */
const ALONE = { retention: undefined, below: false, relatedWrites: NO_RELATED_WRITES } as const
/** How the service removes what it keeps for itself: nothing stays, and nothing else is written or removed. */
export const ERASE: Omit<RemoveOptions, 'expect' | 'signal'> = { ...ALONE, mode: 'erase', related: NO_PATHS }

/** The files below an item, which are removed with it. One that is softly deleted keeps them: they are as hidden as it. */
export function relatedPaths(
  route: Route,
  path: string,
  request?: { readonly signal: AbortSignal },
): MaybePromise<readonly string[]> {
  const { fileNames, deletion } = route
  if (deletion === 'soft' || fileNames.length === 0) return NO_PATHS
  if (typeof fileNames !== 'string') {
    return fileNames.map((name) => memberPath(path, name)).filter((path) => isOwnPath(route, path))
  }
  return listFiles(route, path, request?.signal)
}

const PAGE = 100
/** The most pages of resources below an item among which its files are looked for. */
const MAX_PAGES = 10

/** Paths of the files below an item, as far as they are looked for. */
function listFiles(route: Route, path: string, signal: AbortSignal | undefined): MaybePromise<readonly string[]> {
  const { fileNames, context } = route
  const isFile = ({ path, filename }: StoredResource): boolean =>
    fileNames === 'any' ? isOwnPath(route, path) : filename !== undefined
  const found: string[] = []
  const readPage = (after: string | undefined, pages: number): MaybePromise<readonly string[]> => {
    const page = context.store.list(path, { limit: PAGE, hidden: true, after, ...(signal && { signal }) })
    return andThen(page, ({ items, next }) => {
      found.push(...items.filter(isFile).map((item) => item.path))
      return next === undefined || pages === MAX_PAGES ? found : readPage(next, pages + 1)
    })
  }
  return readPage(undefined, 1)
}

/** Names of the properties of an item that say something of its files. @param request whose end ends the search */
export function filePropertiesOf(
  route: Route,
  path: string,
  request: { readonly signal: AbortSignal } | undefined,
): MaybePromise<readonly string[]> {
  const { idMember, fileNames } = route
  if (idMember === undefined || fileNames === 'filename') return NO_PATHS
  if (fileNames !== 'any') return fileNames
  return andThen(listFiles(route, path, request?.signal), (paths) => paths.map(nameOf))
}

function createReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const { route } = exchange
  const preferred = exchange.preferences.return
  const usual = route.deleteResponse === 'tag' ? 'none' : route.deleteResponse
  const content = usual === 'none' ? 'confirmation' : usual
  const wanted = preferred === 'minimal' ? 'none' : preferred === 'representation' ? content : usual
  const fields = appliedPreferences(exchange)
  const tag = route.deleteResponse === 'tag' ? entityTagOf(resource) : undefined
  if (tag !== undefined) fields.push('ETag', tag)
  if (wanted === 'none') return emptyReply(204, [...fields, 'Cache-Control', exchange.cacheControl])
  // Large content is gone by now and could not be read out of the store.
  if (wanted === 'representation' && !isLargeBody(resource.body))
    return writtenReply(exchange, resource, 200, fields, 'without')
  const id = idOf(splitPath(resource.path).name, route.idMember ?? 'integer')
  const headers = ['Content-Type', 'application/json', ...fields, 'Cache-Control', exchange.cacheControl]
  return contentReply(200, encodeText(JSON.stringify({ deleted: true, id })), headers)
}
