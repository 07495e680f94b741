import { checkJson } from '../body-types/json.ts'
import { findConsumedBody } from '../body-types/read-body.ts'
import { declaredLength } from '../core/discard-body.ts'
import { parseContentDisposition } from '../protocol/content-disposition.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { Content, ContentFields } from '../stores/types.ts'
import { observesChanges } from './changes.ts'
import { isAsSent, isCoded, readContent, streamContent } from './content.ts'
import { readSmall, readUpTo, SMALL } from './read-small.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Content that is ready to be stored. */
export interface Proposal {
  readonly content: Content
  /** Whether it is stored as it was sent: only then may the answer carry validators (RFC 9110 §9.3.4). */
  readonly isVerbatim: boolean
}

/**
 * The content as it is kept: bytes in, the same bytes out. JSON is checked to be JSON where it is small enough to be
 * parsed, so that a broken document is refused here and not discovered by the next reader; it is stored verbatim all the
 * same, but for a byte order mark.
 */
export async function readRawContent(exchange: ResourceExchange): Promise<Proposal> {
  const isVerbatim = isAsSent(exchange)
  const { limits, store } = exchange.route.context
  const fields = contentFields(exchange)
  const limit = exchange.action.content!.limit(exchange.contentType)
  const isJson = isJsonType(exchange.contentType)
  const most = isJson ? Math.max(limits.bodySize, SMALL) : SMALL
  // The length of coded content is not known.
  const length = isCoded(exchange) ? undefined : declaredLength(exchange.req)
  const isSmall = findConsumedBody(exchange.req) !== undefined || (length !== undefined && length <= most)
  const content = isSmall
    ? await readContent(exchange, limit, (_, bytes) => bytes)
    : length === undefined
      ? await readUpTo(streamContent(exchange, limit), most)
      : streamContent(exchange, limit)
  if (content instanceof Uint8Array) {
    const body = isJson && content.length <= limits.bodySize ? checkJson(content, limits) : content
    return { content: { ...fields, body }, isVerbatim: isVerbatim && body === content }
  }
  // A write that may have to be tried again, as one whose parent was missing, needs content that can be given twice.
  // The record of a first answer is made before the content is stored: its fingerprint has to be known by then.
  const { isConditional, keyed, route } = exchange
  const isCompared = isConditional || keyed !== undefined || route.conflict !== undefined || route.hasParent
  const mayRetry = isCompared || observesChanges(route)
  const body = mayRetry ? (await readSmall(content, limits, store, exchange.signal)).body : content
  return { content: { ...fields, body }, isVerbatim }
}

/** Text as content, with the fields that are stored with it. */
export function contentOf(exchange: ResourceExchange, body: string): Content {
  if (exchange.route.storedHeaders.length === 0) return { contentType: exchange.contentType, body }
  return { ...contentFields(exchange), body }
}

function contentFields(exchange: ResourceExchange): ContentFields {
  const { route } = exchange
  const contentType = exchange.field('content-type')?.trim() ?? exchange.contentType
  const disposition = exchange.field('content-disposition')
  return {
    contentType: isJsonType(exchange.contentType) ? exchange.contentType : contentType,
    contentLanguage: route.storedHeaders.includes('Content-Language')
      ? exchange.field('content-language') || undefined
      : undefined,
    filename:
      disposition !== undefined && route.storedHeaders.includes('Content-Disposition')
        ? parseContentDisposition(disposition)?.filename
        : undefined,
  }
}
