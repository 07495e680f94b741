import { hash } from 'node:crypto'
import { hasConditions } from '../core/conditions.ts'
import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { readProperty } from '../core/options.ts'
import { type KeptFields, keepFields, keptReply, type Reply, type ReplyBody } from '../core/reply.ts'
import { formatPath } from '../protocol/request-target.ts'
import type { Page } from '../stores/types.ts'
import { listEntry } from './list-entry.ts'
import { joinEntries } from './page-content.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import type { Route } from './route.ts'
import { pageCacheControl, readVisiblePage } from './visible-page.ts'

/** Reads the page of a collection that the query asks for: `?limit=` and the opaque cursor `?after=`. */
export function loadPage(exchange: ResourceExchange): MaybePromise<void> {
  const { route } = exchange
  const { default: usual, max } = route.collection!.pageSize
  let limit = usual
  let after: string | undefined
  if (exchange.queryText !== '') {
    const { query } = exchange
    limit = Math.min(max, parseLimit(query.get('limit')) ?? usual)
    const cursor = query.get('after')
    after = cursor === null ? undefined : parseCursor(cursor)
  }
  return andThen(readVisiblePage(exchange, after, limit), (page) => {
    exchange.page = page
    exchange.validators = preparePage(exchange, page)
  })
}

/** A POST with conditions is judged by the collection's own representation (RFC 9110 §13.2.1, row H133). */
export function loadPageIfConditional(exchange: ResourceExchange): MaybePromise<void> {
  return hasConditions(exchange) ? loadPage(exchange) : undefined
}

/** @throws HttpError 400 */
function parseLimit(text: string | null): number | undefined {
  if (text === null) return undefined
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail: 'limit is a positive integer.' })
}

/** Cursors are the store's own; in URIs they travel as base64url, so that clients are not tempted to make one. */
function parseCursor(text: string): string {
  const cursor = Buffer.from(text, 'base64url')
  if (text !== '' && cursor.toString('base64url') === text) return cursor.toString()
  throw new HttpError(400, 'ERR_MALFORMED_QUERY', { detail: 'after is a cursor taken from a Link field.' })
}

/** What is derived from one page, once, and kept beside it. */
interface PreparedPage {
  /** The page itself: a copy of it, which a store may change in places, takes these along. */
  readonly page: Page
  /** Items may say where they are, and the next page is below the same mount. */
  readonly mount: string
  /** What a page shows of an item depends on the definitions of the service. */
  readonly route: Route
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
  const isKnown = known?.page === page && known.mount === exchange.mount && known.route === exchange.route
  if (isKnown) return known
  const prepared: PreparedPage = {
    page,
    mount: exchange.mount,
    route: exchange.route,
    entityTags: [pageTag(exchange, page)],
    body: undefined,
    kept: undefined,
  }
  if (Object.isExtensible(page)) keeper[PREPARED] = prepared
  return prepared
}

/** The tag of a page: a digest of the versions on it, so that it costs what the page costs. */
function pageTag(exchange: ResourceExchange, page: Page): string {
  let text = exchange.mount + '\n' + (page.next ?? '')
  for (const item of page.items)
    text += '\n' + (readProperty(item, 'entityTag') || item.version) + (item.hidden === true ? ' hidden' : '')
  return `"${hash('sha256', text, 'base64url').slice(0, 27)}"`
}

/** 200 with a JSON array of the members, joined from their stored text and never parsed. */
export function listReply(exchange: ResourceExchange, page: Page): Reply {
  const prepared = preparePage(exchange, page)
  const body = (prepared.body ??= joinEntries(page.items.map((item) => listEntry(exchange, item))))
  const target = exchange.path + '?' + exchange.queryText
  const cacheControl = pageCacheControl(exchange, page)
  const { kept } = prepared
  if (kept?.target === target && kept.cacheControl === cacheControl) return keptReply(200, kept.fields, body)
  const size = typeof body === 'string' || body instanceof Uint8Array ? body.length : body.size
  const fields = keepFields([
    ...['Content-Type', 'application/json', 'Content-Length', String(size)],
    ...['ETag', prepared.entityTags[0], 'Cache-Control', cacheControl],
    ...linkFields(exchange, page),
  ])
  prepared.kept = { target, cacheControl, fields }
  // The exchange lives until a large page is sent; the content of the items must not.
  if (typeof body === 'object' && !(body instanceof Uint8Array)) exchange.page = exchange.validators = undefined
  return keptReply(200, fields, body)
}

/** 304 for a page that the client has. */
export function listNotModifiedReply(exchange: ResourceExchange, page: Page): Reply {
  const { entityTags } = preparePage(exchange, page)
  const headers = ['ETag', entityTags[0], 'Cache-Control', pageCacheControl(exchange, page)]
  return { status: 304, headers: [...headers, ...linkFields(exchange, page)] }
}

/** Where the next page is (RFC 8288), with whatever else the query says. */
function linkFields(exchange: ResourceExchange, { next }: Page): readonly string[] {
  if (next === undefined) return []
  const query = formatNextQuery(exchange, Buffer.from(next).toString('base64url'))
  return ['Link', `<${exchange.mount}${formatPath(exchange.path)}?${query}>; rel="next"`]
}

function formatNextQuery(exchange: ResourceExchange, after: string): string {
  const { queryText } = exchange
  // A plain query is kept as it was sent. Its names are compared decoded: "%61fter" is "after".
  if (/^[\w\-.~&=%]*$/.test(queryText) && !exchange.query.has('after')) {
    return queryText === '' ? `after=${after}` : `${queryText}&after=${after}`
  }
  const query = new URLSearchParams(exchange.query)
  query.set('after', after)
  return query.toString()
}
