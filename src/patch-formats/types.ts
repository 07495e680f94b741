import type { JsonValue } from '../core/json.ts'

/** A patch format: one file each, one entry in an options list. Accept-Patch and 415 follow from the list. */
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
