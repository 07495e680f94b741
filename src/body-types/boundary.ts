import type { MediaType } from '../protocol/media-type.ts'
import { malformedBody, unsupportedBody } from './body-errors.ts'

/** RFC 2046 §5.1.1: 1 to 70 characters, not ending with a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/** The boundary of `multipart/form-data`. @throws HttpError 415 for another type, 400 for a boundary that is none */
export function readBoundary({ essence, parameters }: MediaType): string {
  if (essence !== 'multipart/form-data') throw unsupportedBody('Of multipart types, only form-data is supported.')
  const boundary = parameters.get('boundary')
  if (boundary === undefined || !BOUNDARY.test(boundary)) {
    throw malformedBody('The boundary parameter is missing or malformed.')
  }
  return boundary
}
