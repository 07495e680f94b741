import { HttpError, isErrorStatus, isHttpError } from './errors.ts'

/** What failures of the system and of stores are for the client. */

/** What a request needs is away, busy or overloaded: it may come again in a second. */
export function createUnavailableError(cause?: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause })
}

/** Whether a failure says that: the caller then need not wait once more. */
export function isUnavailable(error: unknown): boolean {
  return isHttpError(error) && error.status === 503
}

/** EDQUOT of Linux, and that of macOS: Node has no name for it, and calls it "UNKNOWN" or "Unknown system error -122". */
const OVER_QUOTA: readonly unknown[] = [-122, -69]

/** Whether the system refuses bytes because of a quota. */
export function isOverQuota(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown }
  return code === 'EDQUOT' || OVER_QUOTA.includes(errno)
}

const FULL: readonly unknown[] = ['ENOSPC', 'EFBIG', 'SQLITE_FULL']

/** What an error of the system or of a store means for the client; anything unknown is 500 and says nothing. */
export function toHttpError(error: unknown): HttpError {
  // One of another copy, or one that was changed, may have any status.
  if (isHttpError(error) && isErrorStatus(error.status)) return error
  const code = (error as { code?: unknown } | null)?.code
  if (FULL.includes(code) || isOverQuota(error)) return new HttpError(507, 'ERR_OUT_OF_SPACE', { cause: error })
  if (code === 'EMFILE' || code === 'ENFILE') return createUnavailableError(error)
  return new HttpError(500, 'ERR_INTERNAL', { cause: error })
}
