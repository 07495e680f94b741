import { HttpError, isHttpError } from './errors.ts'

/** What a request needs is away, busy or overloaded: it may come again in a second. */
export function createUnavailableError(cause?: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause })
}

/** EDQUOT of Linux, and that of macOS: Node has no name for it, and calls it "UNKNOWN" or "Unknown system error -122". */
const OVER_QUOTA: readonly unknown[] = [-122, -69]

/** Whether the system refuses bytes because of a quota. */
export function isOverQuota(error: unknown): boolean {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown }
  return code === 'EDQUOT' || OVER_QUOTA.includes(errno)
}

/** Whether a failure says that: the caller then need not wait once more. */
export function isUnavailable(error: unknown): boolean {
  return isHttpError(error) && error.status === 503
}
