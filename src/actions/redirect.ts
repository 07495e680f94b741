import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { emptyReply, type Reply } from '../core/reply.ts'
import { isLargeBody, type StoredResource } from '../stores/types.ts'
import { addStateFields, cacheControlFor, representationFields } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'

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
export function redirectReply(exchange: ResourceExchange, resource: StoredResource): MaybePromise<Reply> | undefined {
  const { body } = resource
  if (!isLargeBody(body) || body.locate === undefined) return undefined
  if (ANSWERED_HERE.some((name) => exchange.field(name) !== undefined)) return undefined
  const method = exchange.method === 'HEAD' ? 'HEAD' : 'GET'
  const validators: string[] = []
  // Those of the target are others.
  addStateFields(validators, resource, exchange.route)
  const { signal } = exchange
  return andThen(body.locate({ method, headers: fieldsOf(exchange, resource), signal }), (address) =>
    emptyReply(307, [...validators, 'Location', address, 'Cache-Control', 'no-store']),
  )
}

/** The headers of the 200 that this service would send, by name. */
function fieldsOf(exchange: ResourceExchange, resource: StoredResource): Readonly<Record<string, string>> {
  const fields = representationFields(resource, exchange.route)
  const headers: Record<string, string> = { 'Cache-Control': cacheControlFor(exchange) }
  for (let at = 0; at < fields.length; at += 2) headers[fields[at]!] = fields[at + 1]!
  return headers
}
