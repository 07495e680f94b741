import { checkJson } from '../body-types/json.ts'
import { findConsumedBody } from '../body-types/read-body.ts'
import { declaredLength } from '../core/discard-body.ts'
import { parseContentDisposition } from '../protocol/content-disposition.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { Content, ContentFields } from '../stores/types.ts'
import { isCoded, readContent, streamContent } from './content.ts'
import { readSmall, readUpTo, SMALL } from './read-small.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/**
 * The content as it is kept: bytes in, the same bytes out. JSON is checked to be JSON where it is small enough to be
 * parsed, so that a broken document is refused here and not discovered by the next reader; it is stored verbatim all the
 * same.
 */
export async function readRawContent(exchange: ResourceExchange): Promise<Content> {
  const { limits, store } = exchange.route.context
  const fields = contentFields(exchange)
  const limit = exchange.action.content!.limit(exchange.contentType)
  const isJson = isJsonType(exchange.contentType)
  const most = isJson ? Math.max(limits.parsedSize, SMALL) : SMALL
  // Of coded content nobody knows the length.
  const length = isCoded(exchange) ? undefined : declaredLength(exchange.req)
  const isSmall = findConsumedBody(exchange.req) !== undefined || (length !== undefined && length <= most)
  const content = isSmall
    ? await readContent(exchange, limit, (_, bytes) => bytes)
    : length === undefined
      ? await readUpTo(streamContent(exchange, limit), most)
      : streamContent(exchange, limit)
  if (content instanceof Uint8Array) {
    if (isJson && content.length <= limits.parsedSize) checkJson(content, limits)
    return { ...fields, body: content }
  }
  // A write that may have to be tried again needs content that can be given twice.
  const mayRetry = exchange.isConditional || exchange.route.conflict !== undefined
  return { ...fields, body: mayRetry ? (await readSmall(content, limits, store)).body : content }
}

function contentFields(exchange: ResourceExchange): ContentFields {
  const { headers, route } = exchange
  const contentType = headers['content-type'] === undefined ? exchange.contentType : headers['content-type'].trim()
  const disposition = headers['content-disposition']
  return {
    contentType: isJsonType(exchange.contentType) ? exchange.contentType : contentType,
    contentLanguage: route.keeps.includes('Content-Language') ? headers['content-language'] : undefined,
    filename:
      disposition !== undefined && route.keeps.includes('Content-Disposition')
        ? parseContentDisposition(disposition)?.filename
        : undefined,
  }
}
