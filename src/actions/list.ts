import { hash } from 'node:crypto'
import { decodeText } from '../body-types/text.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { readProperty } from '../core/options.ts'
import { encodeText, type KeptFields, keepFields, type Reply, type ReplyBody } from '../core/reply.ts'
import { isJsonContentType } from '../protocol/media-type.ts'
import { formatQueryText, parseQueryText } from '../protocol/query-text.ts'
import { formatPath } from '../protocol/request-line.ts'
import { splitPath } from '../stores/rules.ts'
import type { Page, StoredResource } from '../stores/types.ts'
import { readContent } from './content.ts'
import { formatCursor, type Listing, readListing, requireRoomFor } from './listing.ts'
import { itemEntry, joinEntries, lengthOf, type PageEntry } from './page.ts'
import { fitsTarget, type ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { isSealed, sealCursor } from './sealed-cursor.ts'
import { versionOf } from './stored-content.ts'
import { requireParent } from './target-steps.ts'
import { idOf } from './validation.ts'
import { pageCacheControl, readVisiblePage } from './visible-page.ts'

/** Reads the page of a collection that the query asks for. */
export function loadPage(exchange: ResourceExchange): MaybePromise<void> {
  return loadListing(exchange, readListing(exchange))
}

/** Reads the page of a collection that the content of QUERY asks for, with the query in the target (RFC 10008). */
export function loadQueriedPage(exchange: ResourceExchange): MaybePromise<void> {
  const { limit } = exchange.action.content!
  return readContent(exchange, limit(exchange.contentType), (exchange, bytes) =>
    andThen(requireParent(exchange), () => loadListing(exchange, readListing(exchange, decodeText(bytes)))),
  )
}

function loadListing(exchange: ResourceExchange, listing: Listing): MaybePromise<void> {
  exchange.listing = listing
  const page = andThen(readVisiblePage(exchange, listing.after, listing.limit), (page) =>
    // The cursor of a store holds the values of the order, and belongs to those of the filter.
    listing.isSecret && page.next !== undefined && !isSealed(page.next)
      ? sealCursor(exchange, page.next).then((next) => ({ ...page, next }))
      : page,
  )
  return andThen(page, (page) => {
    exchange.page = page
    exchange.validators = preparePage(exchange, page)
  })
}

/** What is derived from one page, once, and kept beside it. */
interface PreparedPage {
  /** The page itself: a copy of it, which a store may change in places, takes these along. */
  readonly page: Page
  /** Items may say where they are, and the next page is below the same mount. */
  readonly mount: string
  /** What a page shows of an item depends on the definitions of the service. */
  readonly route: Route
  /** Stores may have one page for several lists, such as an empty one. */
  readonly key: string
  readonly entityTags: readonly [string]
  body: ReplyBody | undefined
  /** The fields of the last answer, and what beside the page they depend on. */
  kept: { readonly target: string; readonly cacheControl: string; readonly fields: KeptFields } | undefined
}

const PREPARED = Symbol('prepared page')

/** Derives what answers need from a page; once for a page that the store returns repeatedly. */
function preparePage(exchange: ResourceExchange, page: Page): PreparedPage {
  const keeper = page as Page & { [PREPARED]?: PreparedPage }
  const known = keeper[PREPARED]
  const key = exchange.listing?.key ?? ''
  const isSame = known?.page === page && known.mount === exchange.mount && known.route === exchange.route
  if (isSame && known.key === key) return known
  const prepared: PreparedPage = {
    page,
    mount: exchange.mount,
    route: exchange.route,
    key,
    entityTags: [pageTag(exchange, page)],
    body: undefined,
    kept: undefined,
  }
  if (Object.isExtensible(page)) keeper[PREPARED] = prepared
  return prepared
}

/** The tag of a page: a digest of the paths and versions on it, so that it costs what the page costs. */
function pageTag(exchange: ResourceExchange, page: Page): string {
  const { key = '' } = exchange.listing ?? {}
  let text = exchange.mount + '\n' + (page.next ?? '')
  if (key !== '') text += `\n${key} ${page.total ?? ''}`
  // States of two paths may have one version.
  for (const item of page.items) text += `\n${item.path}\n${readProperty(item, 'entityTag') || versionOf(item)}`
  return `"${hash('sha256', text, 'base64url').slice(0, 27)}"`
}

/** 200 with a JSON array of the members, joined from their stored text and never parsed. */
export function listReply(exchange: ResourceExchange, page: Page): Reply {
  const prepared = preparePage(exchange, page)
  const body = (prepared.body ??= joinEntries(page.items.map((item) => listEntry(exchange, item))))
  const target = `${exchange.method === 'QUERY' ? 'QUERY' : 'GET'} ${exchange.path}?${exchange.queryText} ${exchange.listing?.target ?? ''} ${exchange.listing?.sentAfter ?? ''}`
  const cacheControl = cacheControlOf(exchange, page)
  const { kept } = prepared
  if (kept?.target === target && kept.cacheControl === cacheControl)
    return { status: 200, headers: kept.fields.headers, body, kept: kept.fields }
  const fields = keepFields([
    ...['Content-Type', 'application/json', 'Content-Length', String(lengthOf(body))],
    ...['ETag', prepared.entityTags[0], 'Cache-Control', cacheControl],
    ...linkFields(exchange, page),
    ...queryFields(exchange, page),
  ])
  prepared.kept = { target, cacheControl, fields }
  // The exchange lives until a large page is sent; the content of the items must not.
  if (typeof body === 'object' && !(body instanceof Uint8Array)) exchange.page = exchange.validators = undefined
  return { status: 200, headers: fields.headers, body, kept: fields }
}

/** 304 for a page that the client has. */
export function listNotModifiedReply(exchange: ResourceExchange, page: Page): Reply {
  const { entityTags } = preparePage(exchange, page)
  const headers = ['ETag', entityTags[0], 'Cache-Control', cacheControlOf(exchange, page)]
  return { status: 304, headers: [...headers, ...linkFields(exchange, page)] }
}

/** Shared caches key by the target alone, which is not all of a QUERY. */
function cacheControlOf(exchange: ResourceExchange, page: Page): string {
  return exchange.method === 'QUERY' ? 'no-store' : pageCacheControl(exchange, page)
}

/**
 * The entry of an item in a listing: the item itself, as it is stored, where item and collection are JSON; otherwise
 * `{ id, href, type, size }`.
 */
function listEntry(exchange: ResourceExchange, item: StoredResource): PageEntry {
  if (isShownWhole(exchange, item)) return itemEntry(exchange.route.context.store, item)
  const { name } = splitPath(item.path)
  const href = exchange.mount + formatPath(item.path)
  const text = JSON.stringify({ id: idOf(name, 'integer'), href, type: item.contentType, size: item.size })
  return { body: encodeText(text), reread: undefined }
}

/**
 * Whether an item is in a listing with all its content: only where that has been checked, and the `id` in it is the
 * server's. Anything else could pose as another entry, or end the array early.
 */
function isShownWhole({ route }: ResourceExchange, item: StoredResource): boolean {
  if (route.collection!.content !== 'json' || item.contentEncoding !== undefined) return false
  if (item.size > route.context.limits.bodySize || !isJsonContentType(item.contentType)) return false
  return route.context.findRoute(item.path)?.idMember !== undefined
}

/** Link to the next page (RFC 8288) and, of a list that takes queries, to the first one, with the rest of the query. */
function linkFields(exchange: ResourceExchange, { next }: Page): readonly string[] {
  const { listing } = exchange
  const cursor = next === undefined ? undefined : formatCursor(next, listing?.cursorKey ?? '')
  if (listing?.isQueried !== true) {
    return cursor === undefined ? [] : ['Link', formatLink(exchange, formatNextQuery(exchange, cursor), 'next')]
  }
  const links: string[] = []
  if (cursor !== undefined) links.push(formatLink(exchange, nextQueryOf(exchange, listing, cursor), 'next'))
  const isAlone = cursor === undefined && listing.after === undefined
  if (!isAlone && listing.target !== undefined && fitsTarget(exchange, listing.target)) {
    links.push(formatLink(exchange, listing.target, 'first'))
  }
  return links.length === 0 ? [] : ['Link', links.join(', ')]
}

/**
 * Fields of a list that takes queries: how many items match, where that is asked for; of a QUERY the target of the
 * equivalent GET, where there is one (RFC 10008).
 */
function queryFields(exchange: ResourceExchange, { total }: Page): readonly string[] {
  const { listing, method, route } = exchange
  const fields = total === undefined ? [] : ['X-Total-Count', String(total)]
  if (method !== 'QUERY') return [...fields, ...route.acceptQuery]
  const query = listing?.target
  if (query === undefined) return fields
  const whole = listing!.after === undefined ? query : joinQuery(query, listing!.sentAfter!)
  return fitsTarget(exchange, whole) ? [...fields, 'Location', formatTarget(exchange, whole)] : fields
}

/**
 * The query of the next page. Where a QUERY has none that fits into a target, it is what its target has, with the cursor:
 * the rest is the content of the next QUERY as well.
 */
function nextQueryOf(exchange: ResourceExchange, { target }: Listing, cursor: string): string {
  const whole = target === undefined ? undefined : joinQuery(target, cursor)
  if (exchange.method !== 'QUERY') {
    // The name of an item may be longer than was reckoned with.
    requireRoomFor(exchange, whole!)
    return whole!
  }
  if (whole !== undefined && fitsTarget(exchange, whole)) return whole
  return joinQuery(formatQueryText(parseQueryText(exchange.queryText).filter(({ name }) => name !== 'after')), cursor)
}

function joinQuery(query: string, cursor: string): string {
  return query === '' ? `after=${cursor}` : `${query}&after=${cursor}`
}

function formatLink(exchange: ResourceExchange, query: string, relation: 'next' | 'first'): string {
  // No target has the character, but a client may have spelled the mount with it, and it would end the target.
  return `<${formatTarget(exchange, query).replaceAll('>', '%3E')}>; rel="${relation}"`
}

function formatTarget({ mount, path }: ResourceExchange, query: string): string {
  return mount + formatPath(path) + (query === '' ? '' : `?${query}`)
}

function formatNextQuery(exchange: ResourceExchange, after: string): string {
  const { queryText } = exchange
  // A plain query is kept as it was sent. Its names are compared decoded: "%61fter" is "after".
  if (/^[\w\-.~&=%]*$/.test(queryText) && !exchange.query.has('after')) return joinQuery(queryText, after)
  const query = new URLSearchParams(exchange.query)
  query.set('after', after)
  return query.toString()
}
