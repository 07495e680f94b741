import { HttpError } from '../core/errors.ts'

/** The content of a key is not there any more: a later request finds the state that has replaced it. */
export function createGoneError(cause?: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', {
    detail: 'The content was replaced or removed while it was being read.',
    headers: { 'Retry-After': '0' },
    cause,
  })
}

/** @throws TypeError for a key that could leave the place that contents are kept in */
export function checkKey(key: string): string {
  if (/^[0-9a-f]{16,100}$/.test(key)) return key
  throw new TypeError(`The key of content is 16 to 100 lower-case hexadecimal digits, not ${JSON.stringify(key)}.`)
}
