import { HttpError, malformedField } from '../core/errors.ts'
import type { JsonValue } from '../core/json.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { jsonPatch } from './json-patch.ts'
import { mergePatch } from './merge-patch.ts'

/** A patch format whose documents are JSON, for the option `patchFormats`. Accept-Patch and 415 follow from that list. */
export interface PatchFormat {
  /** The media type that names the format, in lower case. */
  readonly mediaType: string
  /**
   * Checks a whole patch document before anything is applied.
   * @throws HttpError 400 `ERR_MALFORMED_PATCH` when it is malformed, 413 `ERR_TOO_LARGE` when it is over a limit
   */
  parse(document: JsonValue): ParsedPatch
}

/** A patch that is well-formed. It may be applied repeatedly, to different documents. */
export interface ParsedPatch {
  /**
   * The patched document. The given one is never changed, and is itself returned when the patch changes nothing;
   * branches that the patch does not touch are shared.
   * @throws HttpError 409 `ERR_PATCH_CONFLICT` when the patch does not fit the document, 413 when the result grows too
   *   large; never half-applied
   */
  apply(document: JsonValue): JsonValue
}

/**
 * The formats that are taken by default: JSON Patch and JSON Merge Patch.
 * @param limits how deep documents may be nested elsewhere, and how many members they may have; a patch makes none that
 *   could not be sent whole
 */
export function createDefaultFormats(limits: {
  readonly depth: number
  readonly jsonMembers: number
}): readonly PatchFormat[] {
  const maxDepth = Math.max(1, Math.min(limits.depth, 1000))
  return [jsonPatch({ maxDepth, maxMembers: limits.jsonMembers }), mergePatch({ maxDepth })]
}

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
  if (contentType === undefined) throw unsupportedPatch('A patch needs a Content-Type that names its format.', formats)
  const essence = parseMediaType(contentType)?.essence
  if (essence === undefined) throw malformedField('Content-Type is malformed.')
  for (const format of formats) if (format.mediaType === essence) return format
  throw unsupportedPatch('This patch format is not supported.', formats)
}

/** 415 with Accept-Patch (RFC 5789 §2.2). */
export function unsupportedPatch(detail: string, formats: readonly PatchFormat[]): HttpError {
  return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', {
    detail,
    headers: { 'Accept-Patch': formatAcceptPatch(formats) },
  })
}
