/// <reference path="./busboy.d.cts" />
import type { Readable } from 'node:stream'
import busboy from 'busboy'
import { cleanFilename } from '../protocol/content-disposition.ts'
import { malformedBody } from './body-errors.ts'
import { createDelimiterTap } from './delimiter-tap.ts'
import type { PartHead } from './part-head.ts'
import { createPartRules } from './part-rules.ts'
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

/** A part that the tap has found, until busboy has given all of it. */
interface TappedPart {
  readonly head: PartHead
  readonly file: ArrivingFile | undefined
  /** Bytes of its content that the tap has seen. */
  size: number
  /** How many of them busboy has given. */
  delivered: number
  /** Whether busboy has been shown its beginning, and the tap has seen its end. */
  isBegun: boolean
  isEnded: boolean
  stream: Readable | undefined
}

// What busboy reads in place of a part's own header section, which parsePartHead has read strictly: busboy would skip a
// part in silence when it dislikes the section, and decode text leniently.
const FIELD_HEAD = Buffer.from('\r\nContent-Disposition:form-data\r\n\r\n')
const FILE_HEAD = Buffer.from('\r\nContent-Disposition:form-data;filename=f\r\n\r\n')

const ASCII = /^[\0-\x7f]*$/

/**
 * Creates a parser of one multipart body that never waits: whoever pushes decides how fast.
 *
 * Two readers, who must agree: the tap finds delimiters and header sections, strictly, and judges the limits; busboy
 * takes the body apart. A part that busboy gives in another size than the tap has seen, or not at all, is refused.
 * @param parts where parts are added, in order: a field when it is complete, a file when it begins
 */
export function createMultipartParser(
  boundary: string,
  limits: BodyLimits,
  parts: (FormField | ArrivingFile)[],
): MultipartParser {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  /** What busboy has yet to read. */
  const unread: Uint8Array[] = [delimiter]
  /** Parts that busboy is to give next, and those that it is giving as streams. */
  const expected: TappedPart[] = []
  const streaming: TappedPart[] = []
  /** The part that the tap is in. */
  let part: TappedPart | undefined
  const rules = createPartRules(limits)

  const parser = busboy({
    headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
    // One character for each byte: the charset is ours to judge, and invalid text ours to refuse.
    defCharset: 'latin1',
    // Its streams are emptied after each write, so they never hold more than was written.
    fileHwm: 2 ** 30,
    // Our own limits are judged before it sees a byte; by default it would cut a field.
    limits: { fieldSize: Number.POSITIVE_INFINITY },
  })
  // Without a listener, an error after we have given up would end the process.
  parser.on('error', () => {})
  parser.on('field', (_, text = '') => {
    const { head, file, size, delivered } = takeExpected()
    if (delivered + text.length !== size) throw disagreement()
    if (file === undefined) {
      const isPlain = head.charset === undefined && ASCII.test(text)
      const value = isPlain ? text : decodeText(Buffer.from(text, 'latin1'), head.charset)
      parts.push({ kind: 'field', name: head.name, value })
    } else {
      file.isComplete = true
      parts.push(file)
    }
  })
  parser.on('file', (_, stream) => {
    const tapped = takeExpected()
    tapped.stream = stream
    streaming.push(tapped)
    parts.push(tapped.file!)
    stream.on('error', () => {})
    stream.on('data', (chunk: Uint8Array) => deliver(tapped, chunk))
  })

  function takeExpected(): TappedPart {
    const tapped = expected.shift()
    if (tapped === undefined) throw disagreement()
    return tapped
  }

  function deliver(tapped: TappedPart, chunk: Uint8Array): void {
    tapped.delivered += chunk.length
    const file = tapped.file!
    if (!file.isSkipped) file.chunks.push(chunk)
  }

  function begin(tapped: TappedPart, head: Uint8Array): void {
    tapped.isBegun = true
    expected.push(tapped)
    unread.push(head)
  }

  const tap = createDelimiterTap(boundary, {
    onHead(section) {
      const head = rules.begin(section)
      const file = head.isFile ? createArrivingFile(head) : undefined
      part = { head, file, size: 0, delivered: 0, isBegun: false, isEnded: false, stream: undefined }
    },
    onContent(bytes, isLast) {
      const tapped = part!
      tapped.size += bytes.length
      const { head, size, file, stream, delivered } = tapped
      rules.take(head, size, bytes.length)
      // A stream costs more than the rest of a small form: of a file that is at hand, busboy sees an empty part.
      const isAtHand = file !== undefined && isLast && !tapped.isBegun
      if (!tapped.isBegun) begin(tapped, file === undefined || isAtHand ? FIELD_HEAD : FILE_HEAD)
      // In the midst of a file, with nothing held back, it would only search a second time what the tap has searched.
      const isMidst = stream !== undefined && !isLast && unread.length === 0 && delivered === size - bytes.length
      if (isAtHand || isMidst) deliver(tapped, bytes)
      else unread.push(bytes)
    },
    onPartEnd() {
      const tapped = part!
      part = undefined
      if (!tapped.isBegun) begin(tapped, FIELD_HEAD)
      tapped.isEnded = true
      unread.push(delimiter)
    },
  })

  /** Has busboy read what the tap has passed, and takes what it gives. */
  function feed(): void {
    if (part?.file !== undefined && !part.isBegun) begin(part, FILE_HEAD)
    if (unread.length > 0) {
      parser.write(unread.length === 1 ? unread[0]! : Buffer.concat(unread))
      unread.length = 0
    }
    if (expected[0]?.isEnded) throw disagreement()
    while (streaming.length > 0) {
      const tapped = streaming[0]!
      // Has the stream emit what it holds now rather than in a later tick.
      while (tapped.stream!.read() !== null);
      if (!tapped.isEnded) return
      if (tapped.delivered !== tapped.size) throw disagreement()
      tapped.file!.isComplete = true
      streaming.shift()
    }
  }

  return {
    push(chunk) {
      // What comes before a fault is given before the fault is told.
      try {
        tap.push(chunk)
      } finally {
        feed()
      }
    },
    end() {
      try {
        tap.end()
      } finally {
        feed()
      }
    },
    destroy() {
      // Not while it may be in the midst of a write.
      process.nextTick(() => parser.destroy())
    },
  }
}

function createArrivingFile({ name, filename, contentType = 'application/octet-stream' }: PartHead): ArrivingFile {
  return {
    kind: 'file',
    name,
    filename: cleanFilename(filename) || undefined,
    contentType,
    chunks: [],
    isComplete: false,
    isSkipped: false,
  }
}

function disagreement(): Error {
  return malformedBody('A part cannot be read.')
}
