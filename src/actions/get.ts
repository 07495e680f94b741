import { collectWhole, copyBytes } from '../core/byte-blocks.ts'
import { isJsonObject } from '../core/json.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { describeValue } from '../core/option-values.ts'
import { readProperty } from '../core/options.ts'
import { emptyReply, type Reply, rangeReply } from '../core/reply.ts'
import { addDigests, type DigestWhole, digestAtHand, digestKept } from '../core/reply-digests.ts'
import { mergeCaching } from '../protocol/cache-control.ts'
import { isLargeBody, isResource } from '../stores/rules.ts'
import type { StoredResource } from '../stores/types.ts'
import { listReply, loadPage } from './list.ts'
import { addStateFields, notModifiedReply, representationFields, representationReply } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { fetchJson, parseStored } from './resource-view.ts'
import { neededOf, readState, requirePresent } from './state.ts'

/** GET and HEAD: the selected representation of the state that was read. */
export function get(exchange: ResourceExchange): MaybePromise<Reply> {
  if (exchange.page !== undefined) return listReply(exchange, exchange.page)
  const current = exchange.current!
  if (exchange.rendition >= 0) return markWork(exchange, renditionReply(exchange, current))
  return redirectReply(exchange, current) ?? markWork(exchange, representationReply(exchange, current))
}

/** 304 for a representation that the client has. */
export function notModified(exchange: ResourceExchange): MaybePromise<Reply> {
  return markWork(exchange, notModifiedReply(exchange, exchange.current!))
}

/** Says of accepted work that is not done when to look again (RFC 9110 §10.2.3), and that no cache answers until then. */
function markWork(exchange: ResourceExchange, reply: Reply): MaybePromise<Reply> {
  const { current, route } = exchange
  // What was deleted meanwhile stays as it was: its work is over.
  if (!route.showsWork || current!.hidden === true) return reply
  return andThen(fetchJson(current!, Number.POSITIVE_INFINITY, exchange), (fetched) => {
    const value = parseStored(fetched)
    const isPending = isJsonObject(value) && value['state'] === 'pending'
    if (!isPending) return reply
    const { status, headers, body } = reply
    const at = headers.indexOf('Cache-Control') + 1
    const fresh = headers.with(at, mergeCaching(headers[at]!, 'no-cache'))
    return { status, headers: status === 304 ? fresh : [...fresh, 'Retry-After', '1'], body }
  })
}

/** Finds what a path of the open service holds, if anything: a resource, or else the members below it. */
export function findResourceOrMembers(exchange: ResourceExchange): MaybePromise<void> {
  return andThen(readState(exchange, neededOf(exchange)), () => {
    if (isResource(exchange.state)) return undefined
    return andThen(loadPage(exchange), () => {
      const { items, next } = exchange.page!
      if (items.length === 0 && next === undefined) exchange.page = exchange.validators = undefined
    })
  })
}

/** The same for a path that must hold something. */
export function loadResourceOrMembers(exchange: ResourceExchange): MaybePromise<void> {
  return andThen(findResourceOrMembers(exchange), () => {
    if (exchange.page === undefined) requirePresent(exchange)
  })
}

/**
 * Fields that a client sends to the target as well, which would judge them by validators and dates of its own, and those
 * that ask for what the target does not have.
 */
const ANSWERED_HERE = [
  'if-match',
  'if-modified-since',
  'if-unmodified-since',
  'if-range',
  'want-content-digest',
  'want-repr-digest',
] as const

/**
 * 307 to the place of large content (RFC 9110 §15.4.8), where its store has given it one. The range is left to the target.
 * The response is not stored: the address is short-lived, and the next request is authorized again.
 * @returns `undefined` where this service sends the content
 */
function redirectReply(exchange: ResourceExchange, resource: StoredResource): MaybePromise<Reply> | undefined {
  const { body } = resource
  // Of accepted work, the target cannot say when to look again.
  if (!isLargeBody(body) || body?.locate === undefined || exchange.route.showsWork) return undefined
  if (ANSWERED_HERE.some((name) => exchange.field(name) !== undefined)) return undefined
  const method = exchange.method === 'HEAD' ? 'HEAD' : 'GET'
  const validators: string[] = []
  // Those of the target are others.
  addStateFields(validators, resource, exchange.route)
  const { signal } = exchange
  return andThen(body.locate({ method, headers: fieldsOf(exchange, resource), signal }), (address) => {
    // It would be taken for a path of this service.
    if (typeof address !== 'string' || !URL.canParse(address)) {
      throw new TypeError(`The store gave as place of ${resource.path} ${describeValue(address)}, not an absolute URL.`)
    }
    return emptyReply(307, [...validators, 'Location', address, 'Cache-Control', 'no-store'])
  })
}

/** The headers of the 200 that this service would send, by name. */
function fieldsOf(exchange: ResourceExchange, resource: StoredResource): Readonly<Record<string, string>> {
  const fields = representationFields(resource, exchange.route)
  const headers: Record<string, string> = { 'Cache-Control': exchange.cacheControl }
  for (let at = 0; at < fields.length; at += 2) headers[fields[at]!] = fields[at + 1]!
  return headers
}

/** Makes the content of the selected rendition; the last thing before ranges are selected from it. */
export function render(exchange: ResourceExchange, resource: StoredResource): MaybePromise<void> {
  const { renditions, context } = exchange.route
  const { render } = renditions[exchange.rendition]!
  const make = () => andThen(readWhole(exchange, resource), (content) => render(content, exchange))
  return andThen(context.largeContent.hold(resource.size, make, exchange), (rendered) => {
    // A HEAD would send the length of anything else.
    if (typeof rendered !== 'string' && !(rendered instanceof Uint8Array)) {
      throw new TypeError(`render returns text or a Uint8Array, not ${describeValue(rendered)}.`)
    }
    exchange.rendered = typeof rendered === 'string' ? Buffer.from(rendered) : rendered
  })
}

/** 200 with a rendition, or 206 with ranges of it. */
function renditionReply(exchange: ResourceExchange, resource: StoredResource): Reply {
  const { route, rendition, ranges, validators } = exchange
  const body = exchange.rendered!
  const fields = ['Content-Type', route.renditions[rendition]!.type]
  addStateFields(fields, resource, route, validators!.entityTags[0])
  fields.push('Cache-Control', exchange.cacheControl, 'Accept-Ranges', 'bytes')
  if (ranges !== undefined) return rangeReply(ranges, fields, body, body.length)
  return { status: 200, headers: [...fields, 'Content-Length', String(body.length)], body }
}

/** Bytes that `render` may change in place: those of a state may be the memory of the store. */
function readWhole(exchange: ResourceExchange, { body, size }: StoredResource): MaybePromise<Uint8Array> {
  if (!isLargeBody(body)) return copyBytes(body)
  const { signal } = exchange
  return collectWhole(body.open(0, size - 1, { signal }), size, signal)
}

/** Adds the digests that a request wants to its answer. @see addDigests */
export function addWantedDigests(exchange: ResourceExchange, reply: Reply): MaybePromise<Reply> {
  return addDigests(exchange, reply, findWhole(exchange))
}

/** The representation that a GET or HEAD selects; `undefined` where the content of the answer is all of it. */
function findWhole(exchange: ResourceExchange): DigestWhole | undefined {
  const { current, rendered, method, page } = exchange
  if ((method !== 'GET' && method !== 'HEAD') || page !== undefined) return undefined
  // Kept for this response: render may fill the same buffer for the next one.
  if (rendered !== undefined) return (wanted) => digestAtHand(wanted, rendered, exchange)
  if (current === undefined) return undefined
  const { body } = current
  if (isLargeBody(body)) return (wanted) => digestKept(wanted, readProperty(current, 'sha256'))
  return (wanted) => digestAtHand(wanted, body, current)
}
