import { HttpError } from '../core/errors.ts'
import { malformedBody } from './body-errors.ts'

/**
 * What the tap finds in a multipart body, reported in the order of its bytes: `data` from `start` to `end`. Not as views,
 * of which each costs 1,300 instructions: a small form would have seven.
 */
export interface TapEvents {
  /** A part begins. Its header section, without the line break that ends the last field. `data` is used again. */
  onHead(data: Buffer, start: number, end: number): void
  /** Content of the part; never empty. `data` is what was pushed, or a copy. */
  onContent(data: Buffer, start: number, end: number): void
  /** The part is complete: the line of the delimiter after it has been seen whole. */
  onPartEnd(): void
}

export interface DelimiterTap {
  /** @throws HttpError 400 for a malformed delimiter line, 413 for a header section that is too long */
  push(chunk: Uint8Array): void
  /** @throws HttpError 400 when the final delimiter is missing */
  end(): void
}

const BLANK_LINE = Buffer.from('\r\n\r\n')
const LF = 0x0a
const CR = 0x0d

/** The most bytes of the header section of a part, as for a message in Node. */
const MAX_HEAD = 16 * 1024
/** The most bytes before the first part and after the last: they mean nothing, and no other limit counts them. */
const MAX_OUTSIDE = 64 * 1024
/** The most characters of a line after its boundary: nothing but blanks has a place there. */
const MAX_LINE = 1024
/** What may follow a boundary: RFC 2046 §5.1.1 allows blanks before the line break. */
const LINE_REST = /^(?:--)?[ \t]*\r\n$/
const FINAL_LINE_REST = /^--[ \t]*$/

/**
 * Finds the delimiters and header sections of a multipart body (RFC 2046 §5.1.1), however it is cut into chunks, without
 * copying content.
 *
 * A line that begins with the boundary and goes on with anything but blanks is refused: no two readers agree on what it
 * is, and a part that one of them overlooks would be lost in silence.
 */
export function createDelimiterTap(boundary: string, events: TapEvents): DelimiterTap {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  let state: 'preamble' | 'line' | 'head' | 'content' | 'epilogue' = 'preamble'
  /**
   * How many bytes of a delimiter the body ends with so far. They are held back, but need not be kept: they are the
   * delimiter's own. The line break before the first one may be missing, so it counts as seen.
   */
  let matched = 2
  /** Whether the line break counted by `matched` is not content: at the very start, and after a header section. */
  let isImplied = true
  /** Bytes before the first part and after the last. */
  let outside = 0
  /** What has come of a line after its boundary. */
  let line = ''
  let endsPart = false
  /** A header section that has not arrived whole. */
  let head: Buffer | undefined
  let headLength = 0

  function push(chunk: Uint8Array): void {
    const data = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    let at = 0
    while (at < data.length) {
      if (state === 'epilogue') return countOutside(data.length - at)
      if (state === 'line') at = readLine(data, at)
      else if (state === 'head') at = readHead(data, at)
      else at = readContent(data, at)
    }
  }

  /** Returns the index after the next delimiter; the end of `data` when there is none. */
  function readContent(data: Buffer, at: number): number {
    if (matched > 0) {
      const size = Math.min(delimiter.length - matched, data.length - at)
      // Content seldom begins like the rest of a delimiter: its first byte settles most of it.
      if (data[at] === delimiter[matched] && data.compare(delimiter, matched, matched + size, at, at + size) === 0) {
        matched += size
        if (matched === delimiter.length) endContent()
        return at + size
      }
      releaseMatched()
    }
    const found = data.indexOf(delimiter, at)
    if (found === -1) {
      matched = countPartialDelimiter(data, at)
      pass(data, at, data.length - matched)
      return data.length
    }
    pass(data, at, found)
    endContent()
    return found + delimiter.length
  }

  /** No delimiter begins within the beginning of one: its only CR is the first byte. So what matched is content. */
  function releaseMatched(): void {
    const start = isImplied ? 2 : 0
    // A copy, because the reader of the content may write into it.
    if (matched > start) pass(Buffer.from(delimiter.subarray(0, matched)), start, matched)
    matched = 0
    isImplied = false
  }

  function countPartialDelimiter(data: Buffer, from: number): number {
    const tail = data.subarray(Math.max(from, data.length - delimiter.length + 1))
    const start = tail.lastIndexOf(CR)
    if (start === -1) return 0
    const size = tail.length - start
    return tail.compare(delimiter, 0, size, start) === 0 ? size : 0
  }

  function pass(data: Buffer, start: number, end: number): void {
    if (state === 'preamble') countOutside(end - start)
    else if (end > start) events.onContent(data, start, end)
  }

  function countOutside(bytes: number): void {
    outside += bytes
    if (outside > MAX_OUTSIDE) throw tooLong('The content before the first and after the last part', MAX_OUTSIDE)
  }

  function endContent(): void {
    matched = 0
    line = ''
    endsPart = state === 'content'
    state = 'line'
  }

  /** Returns the index after the line. */
  function readLine(data: Buffer, at: number): number {
    // Nearly every line is this one; the text of another is gathered.
    if (line === '' && data[at] === CR && data[at + 1] === LF) {
      endLine()
      return at + 2
    }
    const lineFeed = data.indexOf(LF, at)
    const end = lineFeed === -1 ? data.length : lineFeed + 1
    line += data.toString('latin1', at, Math.min(end, at + MAX_LINE + 1))
    if (line.length > MAX_LINE || (lineFeed !== -1 && !LINE_REST.test(line))) {
      throw malformedBody('A boundary is followed by something other than a line break.')
    }
    if (lineFeed !== -1) endLine()
    return end
  }

  function endLine(): void {
    if (endsPart) events.onPartEnd()
    state = line.startsWith('-') ? 'epilogue' : 'head'
  }

  /** Returns the index after the header section; the end of `data` when more is needed. */
  function readHead(data: Buffer, at: number): number {
    if (head === undefined) {
      if (data[at] === CR) throw malformedBody('A part has no header section.')
      const end = data.indexOf(BLANK_LINE, at)
      if (end !== -1) {
        beginPart(data, at, end)
        return end + BLANK_LINE.length
      }
      head = Buffer.allocUnsafe(MAX_HEAD + BLANK_LINE.length)
      headLength = 0
    }
    const known = headLength
    headLength += data.copy(head, known, at)
    const end = head.subarray(0, headLength).indexOf(BLANK_LINE, Math.max(0, known - BLANK_LINE.length + 1))
    if (end === -1) {
      if (headLength === head.length) throw tooLong('The header section of a part', MAX_HEAD)
      return data.length
    }
    const section = head
    head = undefined
    beginPart(section, 0, end)
    return at + end + BLANK_LINE.length - known
  }

  function beginPart(data: Buffer, start: number, end: number): void {
    if (end - start > MAX_HEAD) throw tooLong('The header section of a part', MAX_HEAD)
    state = 'content'
    matched = 2
    isImplied = true
    events.onHead(data, start, end)
  }

  return {
    push,
    end() {
      // The last line of a body needs no line break.
      if (state === 'line' && FINAL_LINE_REST.test(line)) endLine()
      if (state !== 'epilogue') throw malformedBody('The final boundary is missing: the content is cut short.')
    },
  }
}

function tooLong(what: string, limit: number): HttpError {
  return new HttpError(413, 'ERR_TOO_LARGE', { detail: `${what} is larger than ${limit} bytes.` })
}
