import { cleanFilename } from '../protocol/content-disposition.ts'
import type { MediaType } from '../protocol/media-type.ts'
import { readBoundary } from './boundary.ts'
import { createDelimiterTap } from './delimiter-tap.ts'
import type { PartHead } from './part-head.ts'
import { createPartRules } from './part-rules.ts'
import { decodeText } from './text.ts'
import { type BodyLimits, DEFAULT_LIMITS, type FormField } from './types.ts'

/** A file of a form that is at hand. */
export interface HeldFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string
  /** A view into the content of the form. */
  readonly content: Uint8Array
}

/**
 * Takes `multipart/form-data` content apart that is at hand as a whole (RFC 7578): a small form costs less in one go than
 * the promises of a stream. The same rules as for `parseMultipart`, which reads forms of any size.
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
  const parts: (FormField | HeldFile)[] = []
  const rules = createPartRules(limits)
  let head: PartHead | undefined
  /** Of one part; in one piece unless something in it looks like the beginning of a delimiter. */
  let pieces: Uint8Array[] = []
  let size = 0
  const tap = createDelimiterTap(readBoundary(mediaType), {
    onHead(section) {
      head = rules.begin(section)
      pieces = []
      size = 0
    },
    onContent(bytes) {
      size += bytes.length
      rules.take(head!, size, bytes.length)
      pieces.push(bytes)
    },
    onPartEnd() {
      parts.push(createPart(head!, pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces, size)))
    },
  })
  tap.push(content)
  tap.end()
  return parts
}

function createPart(head: PartHead, content: Uint8Array): FormField | HeldFile {
  const { name, isFile, charset, contentType = 'application/octet-stream' } = head
  if (!isFile) return { kind: 'field', name, value: decodeText(content, charset) }
  return { kind: 'file', name, filename: cleanFilename(head.filename) || undefined, contentType, content }
}
