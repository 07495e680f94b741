import { HttpError } from '../core/errors.ts'

/**
 * 400 for content that does not follow the grammar of its media type.
 * @param detail a fixed sentence; never an excerpt of the content, which may hold secrets
 */
export function malformedBody(detail: string, cause?: unknown): HttpError {
  return new HttpError(400, 'ERR_MALFORMED_BODY', { detail, cause })
}

/** 415 for content of a kind that is not taken. */
export function unsupportedBody(detail: string): HttpError {
  return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', { detail })
}

/** 413 for more of something than is allowed. */
export function tooMany(what: string, limit: number): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail: `The content has more than ${limit} ${what}.` })
}
