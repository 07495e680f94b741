import type { MediaType } from '../protocol/media-type.ts'
import { readBoundary } from './boundary.ts'
import { DEFAULT_LIMITS } from './limits.ts'
import { type ArrivingFile, MultipartParser } from './multipart-parser.ts'
import type { BodyLimits, FilePart, FormField } from './types.ts'

/** A file of a form that is at hand. */
export interface HeldFile extends Omit<FilePart, 'content'> {
  /** A view into the content of the form, unless something in it looks like the beginning of a delimiter. */
  readonly content: Uint8Array
}

/**
 * Takes `multipart/form-data` content apart that is at hand as a whole (RFC 7578), without a promise for each part.
 * @param content all of the content
 * @param mediaType Content-Type with its boundary
 * @param limits counts and sizes: n passes, n + 1 is 413 (400 for `nameLength`)
 * @throws HttpError 400, 413, 415
 */
export function splitMultipart(
  content: Uint8Array,
  mediaType: MediaType,
  limits: BodyLimits = DEFAULT_LIMITS,
): readonly (FormField | HeldFile)[] {
  const parts: (FormField | ArrivingFile)[] = []
  const parser = new MultipartParser(readBoundary(mediaType), limits, parts)
  parser.push(content)
  parser.end()
  return parts.map((part) => (part.kind === 'field' ? part : holdFile(part)))
}

function holdFile({ kind, name, filename, contentType, chunks }: ArrivingFile): HeldFile {
  return { kind, name, filename, contentType, content: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) }
}
