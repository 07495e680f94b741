import { HttpError, isHttpError } from './errors.ts'

/** What a request needs is away, busy or overloaded: it may come again in a second. */
export function createUnavailableError(cause?: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', { headers: { 'Retry-After': '1' }, cause })
}

/** Whether a failure says that: the caller then need not wait once more. */
export function isUnavailable(error: unknown): boolean {
  return isHttpError(error) && error.status === 503
}
