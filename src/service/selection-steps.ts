import { checkConditions } from '../actions/conditions.ts'
import { listNotModifiedReply } from '../actions/list.ts'
import { render, selectedSize } from '../actions/rendition.ts'
import { notModifiedReply } from '../actions/representation.ts'
import type { ResourceExchange } from '../actions/resource-exchange.ts'
import { setState } from '../actions/state.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { Reply } from '../core/reply.ts'
import { selectRanges } from '../protocol/byte-range.ts'
import { mergeVary } from '../protocol/field-value.ts'
import { parseMediaType, selectMediaType } from '../protocol/media-type.ts'
import { evaluateIfRange } from '../protocol/preconditions.ts'

/** Hidden resources are shown to those who ask for them, where somebody decides who may. */
export function seeHidden(exchange: ResourceExchange): undefined {
  const { route, queryText } = exchange
  // Before any 404: what `authorize` hides is answered as what is not there.
  if (route.renditions.length > 0) exchange.vary = mergeVary(exchange.vary, 'Accept')
  if (queryText === '' || route.deletion !== 'soft' || route.authorize === undefined) return undefined
  if (exchange.method === 'QUERY') return undefined
  exchange.wantsHidden = exchange.query.get('deleted') === 'true'
  return undefined
}

/** What may be acceptable although the usual type is not: a relative of it, such as application/vnd.x+json. */
const OPEN = /\*\/\*|json/i

/** 406 where the definition alone tells that nothing is acceptable, and demands it (RFC 9110 §12.5.1, §15.5.7). */
export function negotiate(exchange: ResourceExchange): undefined {
  const accept = exchange.field('accept')
  if (accept === undefined || OPEN.test(accept)) return undefined
  const { usualType, offers } = exchange.route
  selectOffer(exchange, [usualType!, ...offers])
}

/** The current state: 404, 410. PUT and POST go on without one. */
export function loadCurrent(exchange: ResourceExchange): MaybePromise<undefined> {
  if (exchange.concealed !== undefined) {
    note(exchange, 'authorize hides it')
    throw exchange.concealed
  }
  return exchange.action.load(exchange) as MaybePromise<undefined>
}

/** Selects among what there is: the stored resource says of which type it is. */
export function negotiateStored(exchange: ResourceExchange): undefined {
  const { route, current, page } = exchange
  if (exchange.field('accept') === undefined || (route.accept === 'lenient' && page !== undefined)) return undefined
  const type = page === undefined ? current?.contentType : 'application/json'
  if (type === undefined) return undefined
  const stored = type === route.usualType?.essence ? route.usualType : parseMediaType(type)
  if (stored === undefined) return undefined
  selectOffer(exchange, [stored, ...route.offers])
  if (exchange.rendition >= 0) setState(exchange, exchange.state)
}

function selectOffer(exchange: ResourceExchange, offers: Parameters<typeof selectMediaType>[1]): void {
  const index = selectMediaType(exchange.field('accept'), offers)
  if (index < 0 && exchange.route.accept === 'strict') {
    exchange.vary = mergeVary(exchange.vary, 'Accept')
    throw new HttpError(406, 'ERR_NOT_ACCEPTABLE', {
      detail: `Available: ${offers.map((offer) => offer.essence).join(', ')}.`,
    })
  }
  // Of nothing that is acceptable, the stored representation.
  exchange.rendition = Math.max(index, 0) - 1
}

/** 428, 412 and 304 (RFC 9110 §13.2.2, RFC 6585 §3). */
export function evaluateConditions(exchange: ResourceExchange): Reply | undefined {
  if (exchange.method === 'POST' && exchange.page === undefined) return undefined
  if (checkConditions(exchange) === 'proceed') return undefined
  const { page, current } = exchange
  return page === undefined ? notModifiedReply(exchange, current!) : listNotModifiedReply(exchange, page)
}

/** 416, or the ranges to send (RFC 9110 §14.2). Only GET has ranges, and only of what has bytes of its own. */
export function selectContent(exchange: ResourceExchange): MaybePromise<undefined> {
  if (exchange.rendition < 0) return selectRequestedRanges(exchange)
  return andThen(render(exchange, exchange.current!), () => selectRequestedRanges(exchange))
}

function selectRequestedRanges(exchange: ResourceExchange): undefined {
  const { method, validators } = exchange
  const range = exchange.field('range')
  if (range === undefined || method !== 'GET' || exchange.page !== undefined) return undefined
  const ifRange = exchange.field('if-range')
  if (ifRange !== undefined && !evaluateIfRange(ifRange, validators!, exchange.route.context.now())) {
    note(exchange, 'If-Range does not match')
    return undefined
  }
  const size = selectedSize(exchange)
  const selection = selectRanges(range, size)
  if (selection === 'whole') note(exchange, 'Range ignored')
  if (selection === 'unsatisfiable') {
    note(exchange, `no byte of ${size} is asked for`)
    throw new HttpError(416, 'ERR_RANGE_NOT_SATISFIABLE', { headers: { 'Content-Range': `bytes */${size}` } })
  }
  if (selection !== 'whole') exchange.ranges = selection
  return undefined
}
