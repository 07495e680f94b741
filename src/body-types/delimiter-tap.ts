import { viewOf } from '../core/byte-blocks.ts'
import { malformedBody, tooLarge } from './limits.ts'
import { hasBytes, MAX_HEAD } from './part-head.ts'

/**
 * What the tap finds in a multipart body, reported in the order of its bytes: `data` from `start` to `end`. Not as views:
 * a small form would have seven, of 700 instructions each.
 */
export interface TapEvents {
  /**
   * A part begins with its header section.
   * @param from where the blank line after the section may begin
   * @returns the index after the section, -1 when that has not arrived whole
   */
  onHead(data: Buffer, start: number, from: number): number
  /** Content of the part; never empty. `data` is what was pushed, or a copy. */
  onContent(data: Buffer, start: number, end: number): void
  /** The part is complete: the line of the delimiter after it has been seen whole. */
  onPartEnd(): void
}

const LF = 0x0a
const CR = 0x0d
const DASH = 0x2d

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
 *
 * A class, as the rest of the parser: closures, which every form would make anew, cost 1,900 instructions a form.
 */
export class DelimiterTap {
  readonly #delimiter: Buffer
  readonly #events: TapEvents
  #state: 'preamble' | 'line' | 'head' | 'content' | 'epilogue' = 'preamble'
  /**
   * How many bytes of a delimiter the body ends with so far. They are held back, but need not be kept: they are the
   * delimiter's own. The line break before the first one may be missing, so it counts as seen.
   */
  #matched = 2
  /** Whether the line break counted by `matched` is not content: at the very start, and after a header section. */
  #isImplied = true
  /** Bytes before the first part and after the last. */
  #outside = 0
  /** What has come of a line after its boundary. */
  #line = ''
  #endsPart = false
  /** A header section that has not arrived whole. */
  #head: Buffer | undefined = undefined
  #headLength = 0

  constructor(boundary: string, events: TapEvents) {
    this.#delimiter = createDelimiter(boundary)
    this.#events = events
  }

  /** @throws HttpError 400 for a malformed delimiter line, 413 for a header section that is too long */
  push(chunk: Uint8Array): void {
    const data = viewOf(chunk)
    let at = 0
    while (at < data.length) {
      if (this.#state === 'epilogue') return this.#countOutside(data.length - at)
      if (this.#state === 'line') at = this.#readLine(data, at)
      else if (this.#state === 'head') at = this.#readHead(data, at)
      else at = this.#readContent(data, at)
    }
  }

  /** Returns the index after the next delimiter; the end of `data` when there is none. */
  #readContent(data: Buffer, at: number): number {
    if (this.#matched > 0) {
      const size = Math.min(this.#delimiter.length - this.#matched, data.length - at)
      if (hasBytes(data, at, this.#delimiter, this.#matched, this.#matched + size)) {
        this.#matched += size
        if (this.#matched === this.#delimiter.length) this.#endContent()
        return at + size
      }
      this.#releaseMatched()
    }
    const found = data.indexOf(this.#delimiter, at)
    if (found === -1) {
      this.#matched = this.#countPartialDelimiter(data, at)
      this.#pass(data, at, data.length - this.#matched)
      return data.length
    }
    this.#pass(data, at, found)
    this.#endContent()
    return found + this.#delimiter.length
  }

  /** No delimiter begins within the beginning of one: its only CR is the first byte. So what matched is content. */
  #releaseMatched(): void {
    const start = this.#isImplied ? 2 : 0
    // A copy, because the reader of the content may write into it.
    if (this.#matched > start) this.#pass(Buffer.from(this.#delimiter.subarray(0, this.#matched)), start, this.#matched)
    this.#matched = 0
    this.#isImplied = false
  }

  /** How many bytes at the end of `data` are the beginning of a delimiter, whose only CR is its first byte. */
  #countPartialDelimiter(data: Buffer, from: number): number {
    const first = Math.max(from, data.length - this.#delimiter.length + 1)
    for (let at = data.length - 1; at >= first; at--) {
      const size = data.length - at
      if (data[at] === CR) return hasBytes(data, at, this.#delimiter, 0, size) ? size : 0
    }
    return 0
  }

  #pass(data: Buffer, start: number, end: number): void {
    if (this.#state === 'preamble') this.#countOutside(end - start)
    else if (end > start) this.#events.onContent(data, start, end)
  }

  #countOutside(bytes: number): void {
    this.#outside += bytes
    if (this.#outside > MAX_OUTSIDE) throw tooLarge(MAX_OUTSIDE, 'The content before the first and after the last part')
  }

  #endContent(): void {
    this.#matched = 0
    this.#line = ''
    this.#endsPart = this.#state === 'content'
    this.#state = 'line'
  }

  /** Returns the index after the line. */
  #readLine(data: Buffer, at: number): number {
    // Nearly every line ends at once; the text of another is gathered.
    if (this.#line === '') {
      if (data[at] === DASH && data[at + 1] === DASH) {
        this.#line = '--'
        at += 2
      }
      if (data[at] === CR && data[at + 1] === LF) {
        this.#endLine()
        return at + 2
      }
    }
    const lineFeed = data.indexOf(LF, at)
    const end = lineFeed === -1 ? data.length : lineFeed + 1
    this.#line += data.toString('latin1', at, Math.min(end, at + MAX_LINE + 1))
    if (this.#line.length > MAX_LINE || (lineFeed !== -1 && !LINE_REST.test(this.#line))) {
      throw malformedBody('A boundary is followed by something other than a line break.')
    }
    if (lineFeed !== -1) this.#endLine()
    return end
  }

  #endLine(): void {
    if (this.#endsPart) this.#events.onPartEnd()
    this.#state = this.#line.startsWith('-') ? 'epilogue' : 'head'
  }

  /** Returns the index after the header section; the end of `data` when more is needed. */
  #readHead(data: Buffer, at: number): number {
    if (this.#head !== undefined) return this.#gatherHead(this.#head, data, at)
    if (data[at] === CR) throw malformedBody('A part has no header section.')
    const end = this.#events.onHead(data, at, at)
    if (end === -1) return this.#gatherHead(Buffer.allocUnsafe(MAX_HEAD + 4), data, at)
    this.#beginContent()
    return end
  }

  /** The same for a section that arrives in pieces, in a buffer that holds those that have come. */
  #gatherHead(head: Buffer, data: Buffer, at: number): number {
    const known = this.#headLength
    this.#headLength += data.copy(head, known, at)
    this.#head = head
    const end = this.#events.onHead(head.subarray(0, this.#headLength), 0, Math.max(0, known - 3))
    if (end === -1) {
      if (this.#headLength === head.length) throw tooLarge(MAX_HEAD, 'The header section of a part')
      return data.length
    }
    this.#head = undefined
    this.#headLength = 0
    this.#beginContent()
    return at + end - known
  }

  #beginContent(): void {
    this.#state = 'content'
    this.#matched = 2
    this.#isImplied = true
  }

  /** @throws HttpError 400 when the final delimiter is missing */
  end(): void {
    // The last line of a body needs no line break.
    if (this.#state === 'line' && FINAL_LINE_REST.test(this.#line)) this.#endLine()
    if (this.#state !== 'epilogue') throw malformedBody('The final boundary is missing: the content is cut short.')
  }
}

/** Byte by byte: for so few, `Buffer.from` takes three times as long. */
function createDelimiter(boundary: string): Buffer {
  const delimiter = Buffer.allocUnsafe(4 + boundary.length)
  delimiter[0] = CR
  delimiter[1] = LF
  delimiter[2] = delimiter[3] = DASH
  for (let i = 0; i < boundary.length; i++) delimiter[4 + i] = boundary.charCodeAt(i)
  return delimiter
}
