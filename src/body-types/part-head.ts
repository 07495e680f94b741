import { cleanFilename } from '../protocol/content-disposition.ts'
import { parseParameters, skipToken, skipWhitespace, trimWhitespace } from '../protocol/field-value.ts'
import { type MediaType, parseMediaType } from '../protocol/media-type.ts'
import { malformedBody, tooLarge, unsupportedBody } from './limits.ts'
import { decodeText } from './text.ts'

/** What the header section of a part of `multipart/form-data` says (RFC 7578 §4.2 to §4.8). */
export interface PartHead {
  readonly name: string
  /** Whether the content is a file: it has a file name, be it an empty one, or is a mere sequence of bytes. */
  readonly isFile: boolean
  /** Cleaned; `undefined` when there is none, or nothing is left of it. */
  readonly filename: string | undefined
  /** Content-Type as sent; `application/octet-stream` when there is none. */
  readonly contentType: string
  /** The charset parameter of Content-Type. */
  readonly charset: string | undefined
  readonly fieldCount: number
}

/** The name of a part, and its file name as it was sent. */
type Disposition = Pick<PartHead, 'name' | 'filename'>

interface KnownHead {
  /** Its lines, and the blank line after them. */
  readonly bytes: Uint8Array
  readonly head: PartHead
}

const BLANK_LINE = Buffer.from('\r\n\r\n')
/** The most bytes of the header section of a part, as for a message in Node. */
export const MAX_HEAD: number = 16 * 1024
/** Bytes of a section that is worth remembering, and how many are in one list. */
const MEMORABLE = 256
const REMEMBERED = 8
/**
 * Sections that were read: the fields of one form repeat. They are found by comparing bytes, which takes half the time of
 * a search for the blank line and a look-up of the text before it.
 */
const remembered = Array.from({ length: 128 }, (): KnownHead[] => [])

/**
 * Reads the header section that begins at `start`.
 * @param from where the blank line after it may begin
 * @returns `undefined` when `data` ends before the section does
 * @throws HttpError 400 for whatever is malformed, missing or there twice, and for a transfer encoding; 413 for a section
 *   that is too long; 415 for a multipart within the multipart
 */
export function readPartHead(data: Buffer, start: number, from: number): KnownHead | undefined {
  const list = remembered[hashName(data, start)]!
  for (let i = 0; i < list.length; i++) if (hasBytes(data, start, list[i]!.bytes)) return list[i]
  const end = data.indexOf(BLANK_LINE, from)
  if (end === -1) return undefined
  if (end - start > MAX_HEAD) throw tooLarge(MAX_HEAD, 'The header section of a part')
  const bytes = Buffer.from(data.subarray(start, end + BLANK_LINE.length))
  const known = { bytes, head: parsePartHead(data.subarray(start, end)) }
  if (bytes.length <= MEMORABLE) {
    if (list.length === REMEMBERED) list.length = 0
    list.push(known)
  }
  return known
}

/** A number below 128 for the section at `start`, of three characters of the name, where browsers write it. */
function hashName(data: Buffer, start: number): number {
  const at = start + 'Content-Disposition: form-data; name="'.length
  return (data[at]! + 3 * data[at + 1]! + 5 * data[at + 2]!) & 127
}

/** Whether `data` has bytes of `bytes` at a place. For fewer than 100, `compare` takes more time than this loop. */
export function hasBytes(
  data: Uint8Array,
  at: number,
  bytes: Uint8Array,
  from = 0,
  to: number = bytes.length,
): boolean {
  for (let i = to - 1; i >= from; i--) if (data[at + i - from] !== bytes[i]) return false
  return true
}

function parsePartHead(section: Uint8Array): PartHead {
  const lines = readLines(section)
  let disposition: Disposition | undefined
  let contentType: string | undefined
  for (const line of lines) {
    const colon = skipToken(line, 0)
    // A control character here is what header injection is made of, or a bare CR or LF.
    if (colon === 0 || line.charCodeAt(colon) !== 0x3a || /[^\t\x20-\x7e\x80-\uffff]/.test(line)) {
      throw malformedBody('A header field of a part is malformed.')
    }
    const value = trimWhitespace(line.slice(colon + 1))
    switch (line.slice(0, colon).toLowerCase()) {
      case 'content-disposition':
        if (disposition !== undefined) throw malformedBody('A part has Content-Disposition twice.')
        disposition = parseDisposition(value)
        break
      case 'content-type':
        if (contentType !== undefined) throw malformedBody('A part has Content-Type twice.')
        contentType = value
        break
      case 'content-transfer-encoding':
        // RFC 7578 §4.7: deprecated; these three leave the bytes as they are (RFC 2045 §6.2).
        if (!/^(?:7bit|8bit|binary)$/i.test(value)) throw malformedBody('A part has a transfer encoding.')
        break
      // RFC 7578 §4.8: other fields are ignored.
    }
  }
  if (disposition === undefined) throw malformedBody('A part has no Content-Disposition.')
  const { name, filename } = disposition
  if (name === '') throw malformedBody('A part has no name.')
  const type = contentType === undefined ? undefined : parsePartType(contentType)
  const isFile = filename !== undefined || type?.essence === 'application/octet-stream'
  // RFC 7578 §4.3: several files as a multipart/mixed part are a thing of the past.
  if (!isFile && type?.essence.startsWith('multipart/')) throw unsupportedBody('A part is itself a multipart.')
  return {
    name,
    isFile,
    filename: filename === undefined ? undefined : cleanFilename(filename) || undefined,
    contentType: contentType ?? 'application/octet-stream',
    charset: type?.parameters.get('charset'),
    fieldCount: lines.length,
  }
}

function readLines(section: Uint8Array): readonly string[] {
  if (section.length === 0) return []
  const text = decodeText(section)
  // A field may go on in a line that begins with a blank (RFC 5322 §2.2.3).
  return (/\r\n[ \t]/.test(text) ? text.replace(/\r\n(?=[ \t])/g, '') : text).split('\r\n')
}

function parsePartType(value: string): MediaType {
  // Nothing that could not be sent as a field again.
  const type = /^[\t\x20-\x7e]*$/.test(value) ? parseMediaType(value) : undefined
  if (type === undefined) throw malformedBody('The Content-Type of a part is malformed.')
  return type
}

/**
 * Reads Content-Disposition as browsers write it, which is not as RFC 6266 has it: a backslash is literal unless a quote
 * or another backslash follows, and `%22`, `%0D`, `%0A` stand for what a quoted string cannot hold. `filename*` is not
 * used (RFC 7578 §4.2).
 */
function parseDisposition(value: string): Disposition {
  const end = skipToken(value, 0)
  if (value.slice(0, end).toLowerCase() !== 'form-data') throw malformedBody('A part is not a form-data part.')
  const text = value.replace(/\\["\\]?/g, (sequence) => (sequence === '\\' ? '\\\\' : sequence))
  const parsed = parseParameters(text, end)
  if (parsed === undefined || skipWhitespace(text, parsed.end) !== text.length) {
    throw malformedBody('The Content-Disposition of a part is malformed.')
  }
  const filename = parsed.parameters.get('filename')
  return {
    name: unescapeName(parsed.parameters.get('name') ?? ''),
    filename: filename === undefined ? undefined : unescapeName(filename),
  }
}

/** What a browser has escaped (HTML Standard, multipart/form-data encoding algorithm). */
function unescapeName(name: string): string {
  if (!name.includes('%')) return name
  return name.replaceAll('%22', '"').replace(/%0d/gi, '\r').replace(/%0a/gi, '\n')
}
