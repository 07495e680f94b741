import { HttpError } from '../core/errors.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import type { PatchFormat } from './types.ts'

/** The value of Accept-Patch (RFC 5789 §3.1). */
export function formatAcceptPatch(formats: readonly PatchFormat[]): string {
  return formats.map((format) => format.mediaType).join(', ')
}

/**
 * Selects the format of a patch document by its Content-Type.
 * @param contentType the field as received
 * @throws HttpError 415 with Accept-Patch for a format that is not among them, and for a patch that names none
 *   (RFC 5789 §2.2); 400 for a Content-Type that is malformed
 */
export function selectPatchFormat(contentType: string | undefined, formats: readonly PatchFormat[]): PatchFormat {
  if (contentType === undefined) throw unsupported('A patch needs a Content-Type that names its format.', formats)
  const essence = parseMediaType(contentType)?.essence
  if (essence === undefined) {
    throw new HttpError(400, 'ERR_MALFORMED_FIELD', { detail: 'Content-Type is malformed.' })
  }
  for (const format of formats) if (format.mediaType === essence) return format
  throw unsupported('This patch format is not supported.', formats)
}

function unsupported(detail: string, formats: readonly PatchFormat[]): HttpError {
  return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', {
    detail,
    headers: { 'Accept-Patch': formatAcceptPatch(formats) },
  })
}
