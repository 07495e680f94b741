import { encodeText } from '../core/reply.ts'
import { isJsonType, parseMediaType } from '../protocol/media-type.ts'
import { formatPath } from '../protocol/request-target.ts'
import { type StoredResource, splitPath } from '../stores/types.ts'
import { itemEntry, type PageEntry } from './page-content.ts'
import { replyBodyOf } from './representation.ts'
import type { ResourceExchange } from './resource-exchange.ts'
import { idOf } from './validation.ts'

/**
 * The entry of an item in a listing: the item itself, as it is stored, where item and collection are JSON; otherwise
 * `{ id, href, type, size }`.
 */
export function listEntry(exchange: ResourceExchange, item: StoredResource): PageEntry {
  if (isShownWhole(exchange, item)) return itemEntry(exchange.route.context.store, item, replyBodyOf)
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
  if (item.size > route.context.limits.bodySize || !isJson(item.contentType)) return false
  return route.context.findRoute(item.path)?.idMember !== undefined
}

function isJson(contentType: string): boolean {
  return contentType === 'application/json' || isJsonType(parseMediaType(contentType)?.essence ?? '')
}
