import { selectMediaType } from '../protocol/accept.ts'
import { createProblem, type ErrorHeaders, HttpError, isErrorStatus, isHttpError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { contentReply, emptyReply, encodeText, type Reply } from './reply.ts'

const OFFERS = ['application/problem+json', 'application/json', 'text/plain'].map((essence) => ({
  essence,
  parameters: new Map<string, string>(),
}))

/**
 * What is answered for an error: a problem document, text where the client takes text only, nothing for 412.
 * Errors are never stored by caches (RFC 9110 §15.1 would let them keep 404, 405, 410, 414 and 501).
 */
export function createErrorReply(error: HttpError, exchange: Exchange): Reply {
  const headers = [...listFields(error.headers), 'Cache-Control', 'no-store']
  if (error.status === 412) return emptyReply(412, headers)
  const problem = createProblem(error)
  const type = OFFERS[selectMediaType(exchange.field('accept'), OFFERS)]?.essence
  if (type === 'text/plain') {
    const text = typeof problem['detail'] === 'string' ? `${problem.title}. ${problem['detail']}` : problem.title
    return contentReply(error.status, encodeText(`${text}\n`), [
      'Content-Type',
      'text/plain; charset=utf-8',
      ...headers,
    ])
  }
  return contentReply(error.status, encodeText(JSON.stringify(problem)), [
    'Content-Type',
    'application/problem+json',
    ...headers,
  ])
}

/** Names and values in turn; a name with several values comes once for each. */
function listFields(headers: ErrorHeaders): string[] {
  const fields: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    for (const item of typeof value === 'string' ? [value] : value) fields.push(name, item)
  }
  return fields
}

/** What an error of the system or of a store means for the client; anything unknown is 500 and says nothing. */
export function toHttpError(error: unknown): HttpError {
  // One of another copy, or one that was changed, may have any status.
  if (isHttpError(error) && isErrorStatus(error.status)) return error
  const code = (error as { code?: unknown } | null)?.code
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'SQLITE_FULL') {
    return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  }
  if (code === 'EMFILE' || code === 'ENFILE') {
    return new HttpError(503, 'ERR_UNAVAILABLE', { cause: error, headers: { 'Retry-After': '1' } })
  }
  return new HttpError(500, 'ERR_INTERNAL', { cause: error })
}
