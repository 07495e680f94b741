import { ByteBlocks } from '../core/byte-blocks.ts'
import type { MediaType } from '../protocol/media-type.ts'
import { DelimiterTap, type TapEvents } from './delimiter-tap.ts'
import type { FilePart, FormField } from './form.ts'
import { type BodyLimits, DEFAULT_LIMITS, malformedBody, tooLarge, tooMany, unsupportedBody } from './limits.ts'
import { type PartHead, readPartHead } from './part-head.ts'
import { decodeText } from './text.ts'

/** RFC 2046 §5.1.1: 1 to 70 characters, not ending with a space. */
const BOUNDARY = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/

/** A file part whose content may still be arriving. */
export interface ArrivingFile extends Omit<FilePart, 'content'> {
  /** Content that has arrived and is not taken yet: at most two views into each chunk that was pushed. */
  readonly chunks: Uint8Array[]
  /** Whether nothing more will arrive. */
  isComplete: boolean
  /** Whether what arrives is dropped. */
  isSkipped: boolean
}

/**
 * Makes a parser of one multipart body that never waits: its caller decides how fast it reads. It judges the parts in the
 * order in which they come.
 * @param mediaType Content-Type with its boundary
 * @param parts where parts are added, in order: a field when it is complete, a file when it begins
 * @throws HttpError 415 for another media type, 400 for a boundary that is missing or malformed
 */
export function createMultipartParser(
  { essence, parameters }: MediaType,
  limits: BodyLimits,
  parts: (FormField | ArrivingFile)[],
): DelimiterTap {
  if (essence !== 'multipart/form-data') throw unsupportedBody('Of multipart types, only form-data is supported.')
  const boundary = parameters.get('boundary')
  if (boundary === undefined || !BOUNDARY.test(boundary)) {
    throw malformedBody('The boundary parameter is missing or malformed.')
  }
  return new DelimiterTap(boundary, new PartReader(limits, parts))
}

/** Makes parts of what the tap finds, within the limits. */
class PartReader implements TapEvents {
  readonly #parts: (FormField | ArrivingFile)[]
  readonly #limits: BodyLimits
  #fields = 0
  #files = 0
  #fieldsSize = 0
  /** The part that is being read, the bytes of its content so far, and where they go. */
  #head: PartHead | undefined = undefined
  #size = 0
  #file: ArrivingFile | undefined = undefined
  /** The text of a field. Nearly every one lies in a single chunk, and is decoded where it lies. */
  #data: Buffer | undefined = undefined
  #start = 0
  #end = 0
  /** All text of a field that came in several chunks. */
  #blocks: ByteBlocks | undefined = undefined

  constructor(limits: BodyLimits, parts: (FormField | ArrivingFile)[]) {
    this.#parts = parts
    this.#limits = limits
  }

  /** @throws HttpError as `readPartHead`; 413 for a part or a header field too many, 400 for a name that is too long */
  onHead(data: Buffer, start: number, from: number): number {
    const limits = this.#limits
    if (this.#fields + this.#files === limits.parts) throw tooMany('parts', limits.parts)
    const known = readPartHead(data, start, from)
    if (known === undefined) return -1
    const { head } = known
    if (head.fieldCount > limits.partHeaders) throw tooMany('header fields in a part', limits.partHeaders)
    if (head.name.length > limits.nameLength) throw malformedBody('The name of a part is too long.')
    this.#head = head
    this.#size = 0
    if (head.isFile) {
      if (++this.#files > limits.files) throw tooMany('files', limits.files)
      const { name, filename, contentType } = head
      this.#file = { kind: 'file', name, filename, contentType, chunks: [], isComplete: false, isSkipped: false }
      this.#parts.push(this.#file)
    } else {
      if (++this.#fields > limits.fields) throw tooMany('fields', limits.fields)
      this.#file = undefined
    }
    return start + known.bytes.length
  }

  /** @throws HttpError 413 for a field or file that is too large, and for too much in all fields */
  onContent(data: Buffer, start: number, end: number): void {
    const limits = this.#limits
    const file = this.#file
    this.#size += end - start
    if (file !== undefined) {
      if (this.#size > limits.fileSize) throw tooLarge(limits.fileSize)
      if (!file.isSkipped) file.chunks.push(data.subarray(start, end))
      return
    }
    this.#fieldsSize += end - start
    if (this.#size > limits.fieldSize) throw tooLarge(limits.fieldSize)
    if (this.#fieldsSize > limits.fieldsSize) throw tooLarge(limits.fieldsSize)
    this.#addText(data, start, end)
  }

  /** @throws HttpError as `decodeText` */
  onPartEnd(): void {
    const { name, charset } = this.#head!
    if (this.#file !== undefined) this.#file.isComplete = true
    else this.#parts.push({ kind: 'field', name, value: this.#takeText(charset) })
  }

  #addText(data: Buffer, start: number, end: number): void {
    if (this.#data === undefined) {
      this.#data = data
      this.#start = start
      this.#end = end
      return
    }
    if (this.#blocks === undefined) {
      this.#blocks = new ByteBlocks()
      this.#blocks.push(this.#data.subarray(this.#start, this.#end))
    }
    this.#blocks.push(data.subarray(start, end))
  }

  #takeText(charset: string | undefined): string {
    const data = this.#data
    const blocks = this.#blocks
    this.#data = undefined
    this.#blocks = undefined
    if (data === undefined) return decodeText(new Uint8Array(0), charset)
    return blocks === undefined
      ? decodeText(data, charset, this.#start, this.#end)
      : decodeText(blocks.drain(), charset)
  }
}

/** A file of a form that is at hand. */
interface HeldFile extends Omit<FilePart, 'content'> {
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
  const parser = createMultipartParser(mediaType, limits, parts)
  parser.push(content)
  parser.end()
  return parts.map((part) => (part.kind === 'field' ? part : holdFile(part)))
}

function holdFile({ kind, name, filename, contentType, chunks }: ArrivingFile): HeldFile {
  return { kind, name, filename, contentType, content: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) }
}
