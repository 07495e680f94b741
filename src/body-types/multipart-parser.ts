import { createDelimiterTap } from './delimiter-tap.ts'
import { FieldText } from './field-text.ts'
import type { PartHead } from './part-head.ts'
import { createPartRules } from './part-rules.ts'
import type { BodyLimits, FormField } from './types.ts'

/** A file part whose content may still be arriving. */
export interface ArrivingFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string
  /** Content that has arrived and is not taken yet: at most two views into each chunk that was pushed. */
  readonly chunks: Uint8Array[]
  /** Whether nothing more will arrive. */
  isComplete: boolean
  /** Whether what arrives is dropped. */
  isSkipped: boolean
}

export interface MultipartParser {
  /**
   * Adds the parts that begin or end in this chunk, before it returns.
   * @throws HttpError 400, 413, 415; the parts before the fault have been added
   */
  push(chunk: Uint8Array): void
  /** The content has ended. @throws HttpError 400 when it is cut short */
  end(): void
}

/**
 * Creates a parser of one multipart body that never waits: its caller decides how fast it reads.
 * @param parts where parts are added, in order: a field when it is complete, a file when it begins
 */
export function createMultipartParser(
  boundary: string,
  limits: BodyLimits,
  parts: (FormField | ArrivingFile)[],
): MultipartParser {
  const rules = createPartRules(limits)
  /** The part that is being read, the bytes of its content so far, and where they go. */
  let head: PartHead
  let size = 0
  let file: ArrivingFile | undefined
  const text = new FieldText()

  return createDelimiterTap(boundary, {
    onHead(data, start, end) {
      head = rules.begin(data, start, end)
      size = 0
      file = head.isFile ? createArrivingFile(head) : undefined
      if (file !== undefined) parts.push(file)
    },
    onContent(data, start, end) {
      size += end - start
      rules.take(head, size, end - start)
      if (file === undefined) text.add(data, start, end)
      else if (!file.isSkipped) file.chunks.push(data.subarray(start, end))
    },
    onPartEnd() {
      if (file !== undefined) file.isComplete = true
      else parts.push({ kind: 'field', name: head.name, value: text.take(head.charset) })
    },
  })
}

function createArrivingFile({ name, filename, contentType }: PartHead): ArrivingFile {
  return { kind: 'file', name, filename, contentType, chunks: [], isComplete: false, isSkipped: false }
}
