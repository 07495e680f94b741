import { formatPath } from '../protocol/request-target.ts'
import type { Page } from '../stores/types.ts'
import { fitsTarget, formatCursor, type Listing, requireRoomFor } from './listing.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Link to the next page (RFC 8288) and, of a list that takes queries, to the first one, with the rest of the query. */
export function linkFields(exchange: ResourceExchange, { next }: Page): readonly string[] {
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
export function queryFields(exchange: ResourceExchange, { total }: Page): readonly string[] {
  const { listing, method, route } = exchange
  const fields = total === undefined ? [] : ['X-Total-Count', String(total)]
  if (method !== 'QUERY') return [...fields, ...route.acceptQuery]
  const query = listing?.target
  if (query === undefined) return fields
  const whole = listing!.after === undefined ? query : joinQuery(query, listing!.sentAfter!)
  return fitsTarget(exchange, whole) ? [...fields, 'Location', formatTarget(exchange, whole)] : fields
}

/**
 * The query of the next page. Where a QUERY has none that fits into a target, it is the cursor alone, which belongs into
 * the content of the next QUERY.
 */
function nextQueryOf(exchange: ResourceExchange, { target }: Listing, cursor: string): string {
  const whole = target === undefined ? undefined : joinQuery(target, cursor)
  if (exchange.method !== 'QUERY') {
    // The name of an item may be longer than was reckoned with.
    requireRoomFor(exchange, whole!)
    return whole!
  }
  return whole !== undefined && fitsTarget(exchange, whole) ? whole : joinQuery('', cursor)
}

function joinQuery(query: string, cursor: string): string {
  return query === '' ? `after=${cursor}` : `${query}&after=${cursor}`
}

function formatLink(exchange: ResourceExchange, query: string, relation: 'next' | 'first'): string {
  return `<${formatTarget(exchange, query)}>; rel="${relation}"`
}

function formatTarget({ mount, path }: ResourceExchange, query: string): string {
  return mount + formatPath(path) + (query === '' ? '' : `?${query}`)
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
