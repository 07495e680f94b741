/// <reference path="./busboy.d.cts" />
import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import busboy from 'busboy'
import { cleanFilename } from '../protocol/content-disposition.ts'
import { malformedBody, tooMany } from './body-errors.ts'
import { createMultipartFraming } from './multipart-framing.ts'
import { type PartHead, parsePartHead } from './part-head.ts'
import { tooLarge } from './read-body.ts'
import { decodeText } from './text.ts'
import type { BodyLimits, FormField } from './types.ts'

/** A file part whose content may still be arriving. */
export interface ArrivingFile {
  readonly kind: 'file'
  readonly name: string
  readonly filename: string | undefined
  readonly contentType: string
  /** Content that has arrived and is not taken yet. */
  readonly chunks: Uint8Array[]
  /** Whether nothing more will arrive. */
  isComplete: boolean
  /** Whether what arrives is dropped. */
  isSkipped: boolean
}

export interface MultipartParser {
  /** Adds the parts that begin or end in this chunk, before it returns. */
  push(chunk: Uint8Array): void
  /** The content has ended. */
  end(): void
  /** The rest of the content will not come. */
  destroy(): void
}

// Busboy sees a boundary that no content can hold, because no client knows it, and header sections that are always the
// same. So it cannot mistake content for a delimiter, skip a part or change a byte; what clients write is read by
// multipart-framing.ts and part-head.ts alone.
const BOUNDARY = randomBytes(32).toString('hex')
const HEADERS = Object.freeze({ 'content-type': `multipart/form-data; boundary=${BOUNDARY}` })
const OPENING = Buffer.from(`--${BOUNDARY}`)
const PART_END = Buffer.from(`\r\n--${BOUNDARY}`)
const FIELD_HEAD = Buffer.from('\r\nContent-Disposition:form-data\r\n\r\n')
const FILE_HEAD = Buffer.from('\r\nContent-Disposition:form-data;filename=f\r\n\r\n')
const CLOSING = Buffer.from('--')

/** The most bytes of a file that is at hand at once. */
const SMALL = 64 * 1024

/**
 * Creates a parser of one multipart body that never waits: whoever pushes decides how fast.
 * @param parts where parts are added, in order: a field when it is complete, a file when it begins
 */
export function createMultipartParser(
  boundary: string,
  limits: BodyLimits,
  parts: (FormField | ArrivingFile)[],
): MultipartParser {
  let partCount = 0
  let fieldCount = 0
  let fieldsSize = 0
  let size = 0
  let head: PartHead | undefined
  let file: ArrivingFile | undefined
  let stream: Readable | undefined
  let value: string | undefined

  const parser = busboy({
    headers: HEADERS,
    // One character for each byte: the charset is ours to judge, and invalid text ours to refuse.
    defCharset: 'latin1',
    // Its streams are emptied after each write, so they never hold more than was written.
    fileHwm: 2 ** 30,
    // Our own limits are judged before it sees a byte; by default it would cut a field.
    limits: { fieldSize: Number.POSITIVE_INFINITY },
  })
  // Without a listener, an error after we have given up would end the process.
  parser.on('error', () => {})
  parser.on('field', (_, text) => {
    value = text
  })
  parser.on('file', (_, content) => {
    const target = file!
    stream = content
    content.on('error', () => {})
    content.on('data', (chunk: Uint8Array) => {
      if (!target.isSkipped) target.chunks.push(chunk)
    })
  })
  parser.write(OPENING)

  /** Has the stream emit what it holds now rather than in a later tick. */
  function flush(): void {
    while (stream !== undefined && stream.read() !== null);
  }

  function begin(isStream: boolean): void {
    parser.write(isStream ? FILE_HEAD : FIELD_HEAD)
  }

  const framing = createMultipartFraming(boundary, {
    onHead(section) {
      if (++partCount > limits.parts) throw tooMany('parts', limits.parts)
      head = parsePartHead(section, limits)
      size = 0
      if (head.isFile) {
        if (partCount - fieldCount > limits.files) throw tooMany('files', limits.files)
        file = {
          kind: 'file',
          name: head.name,
          filename: cleanFilename(head.filename) || undefined,
          contentType: head.contentType ?? 'application/octet-stream',
          chunks: [],
          isComplete: false,
          isSkipped: false,
        }
        parts.push(file)
      } else if (++fieldCount > limits.fields) throw tooMany('fields', limits.fields)
    },
    onContent(bytes, isLast) {
      size += bytes.length
      if (file === undefined) {
        fieldsSize += bytes.length
        if (size > limits.fieldSize) throw tooLarge(limits.fieldSize)
        if (fieldsSize > limits.fieldsSize) throw tooLarge(limits.fieldsSize)
      } else if (size > limits.fileSize) throw tooLarge(limits.fileSize)
      // A stream costs more than the rest of a small form: a file that is at hand travels like a field.
      if (size === bytes.length) begin(file !== undefined && !(isLast && size <= SMALL))
      parser.write(bytes)
      flush()
    },
    onPartEnd() {
      if (size === 0) begin(false)
      parser.write(PART_END)
      flush()
      const bytes = value === undefined ? undefined : Buffer.from(value, 'latin1')
      if (bytes === undefined && stream === undefined) throw malformedBody('A part cannot be read.')
      if (file === undefined) {
        const { name, charset } = head!
        parts.push({ kind: 'field', name, value: decodeText(bytes!, charset) })
      } else {
        if (bytes !== undefined && bytes.length > 0) file.chunks.push(bytes)
        file.isComplete = true
      }
      file = stream = value = undefined
    },
  })

  return {
    push: framing.push,
    end() {
      framing.end()
      parser.end(CLOSING)
    },
    destroy() {
      // Not while it may be in the midst of a write.
      process.nextTick(() => parser.destroy())
    },
  }
}
