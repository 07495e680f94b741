import { checkJson } from '../body-types/json.ts'
import { findConsumedBody } from '../body-types/read-body.ts'
import { declaredLength } from '../core/discard-body.ts'
import { parseContentDisposition } from '../protocol/content-disposition.ts'
import { isJsonType } from '../protocol/media-type.ts'
import type { Content, ContentFields } from '../stores/types.ts'
import { readContent, streamContent } from './content.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Content up to this size is passed to the store as one value. */
const SMALL = 64 * 1024

/**
 * The content as it is kept: bytes in, the same bytes out. JSON is checked to be JSON where it is small enough to be
 * parsed, so that a broken document is refused here and not discovered by the next reader; it is stored verbatim all the
 * same.
 */
export async function readRawContent(exchange: ResourceExchange): Promise<Content> {
  const { context } = exchange.route
  const fields = contentFields(exchange)
  const limit = exchange.action.content!.limit(exchange.contentType)
  const length = declaredLength(exchange.req)
  const isParsed = isJsonType(exchange.contentType) && (length === undefined || length <= context.limits.parsedSize)
  if (findConsumedBody(exchange.req) !== undefined || isParsed || (length !== undefined && length <= SMALL)) {
    const bytes = await readContent(exchange, isParsed ? Math.min(limit, context.limits.parsedSize) : limit)
    if (isParsed) checkJson(bytes, context.limits)
    return { ...fields, body: bytes }
  }
  const stream = streamContent(exchange, limit)
  // A write that may have to be tried again needs content that can be given twice.
  const mayRetry = exchange.isConditional || exchange.route.conflict !== undefined
  if (mayRetry && context.store.stage !== undefined) return { ...fields, body: await context.store.stage(stream) }
  return { ...fields, body: stream }
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
