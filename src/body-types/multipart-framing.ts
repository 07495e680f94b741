import { HttpError } from '../core/errors.ts'
import { malformedBody } from './body-errors.ts'

/** What the framing of a multipart body consists of, told in the order of its bytes. */
export interface FramingEvents {
  /** A part begins. Its header section, without the line break that ends the last field. */
  onHead(section: Uint8Array): void
  /** Content of the part; never empty. Views into what was pushed. `isLast`: the part ends right after it. */
  onContent(bytes: Uint8Array, isLast: boolean): void
  /** The part is complete: the delimiter after it has been seen whole. */
  onPartEnd(): void
}

export interface MultipartFraming {
  /** @throws HttpError 400 for a malformed delimiter line, 413 for a header section that is too long */
  push(chunk: Uint8Array): void
  /** @throws HttpError 400 when the final delimiter is missing */
  end(): void
}

/** A delimiter line that is complete: where its line break begins, and whether it is the last one. */
interface DelimiterLine {
  readonly end: number
  readonly isFinal: boolean
}

const EMPTY = Buffer.alloc(0)
const BLANK_LINE = Buffer.from('\r\n\r\n')
const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const DASH = 0x2d

/** The most bytes of the header section of a part, as for a message in Node. */
const MAX_HEAD = 16 * 1024
/** The most blanks after a boundary. */
const MAX_PADDING = 1024

/**
 * Finds the parts of a multipart body (RFC 2046 §5.1.1), however it is cut into chunks. Content is not copied, except
 * where a delimiter might lie across two chunks.
 *
 * A delimiter is a whole line: `CRLF--boundary`, or the same with `--`, then blanks only. A line that merely begins like
 * one is content; a line where something follows the blanks is refused, because no two readers agree on it.
 */
export function createMultipartFraming(boundary: string, events: FramingEvents): MultipartFraming {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const dashBoundary = delimiter.subarray(2)
  let state: 'preamble' | 'head' | 'content' | 'epilogue' = 'preamble'
  /** Whether a line begins here: a delimiter needs no CRLF of its own at the very start and after a header section. */
  let isLineStart = true
  /** The beginning of what might become a delimiter. */
  let held: Buffer = EMPTY
  /** A header section that has not arrived whole, and the line break before it. */
  let head: Buffer | undefined
  let headLength = 0

  function push(chunk: Uint8Array): void {
    let data: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    if (held.length > 0) {
      // What cannot become a delimiter any more goes on alone: a chunk is not copied for the sake of a line break.
      if (canContinue(data)) data = Buffer.concat([held, data])
      else {
        pass(held, 0, held.length, false)
        isLineStart = false
      }
      held = EMPTY
    }
    let at = 0
    while (at < data.length && state !== 'epilogue') {
      at = state === 'head' ? readHead(data, at) : readContent(data, at)
    }
  }

  /** Whether what is held and `data` together might begin with a delimiter. */
  function canContinue(data: Buffer): boolean {
    const known = isLineStart ? held.length + 2 : held.length
    const size = Math.min(delimiter.length - known, data.length)
    return size <= 0 || data.compare(delimiter, known, known + size, 0, size) === 0
  }

  /** Returns the index after the header section; the end of `data` when more is needed. */
  function readHead(data: Buffer, at: number): number {
    if (head === undefined) {
      const end = data.indexOf(BLANK_LINE, at)
      if (end !== -1) return startPart(data, at, end)
      head = Buffer.allocUnsafe(MAX_HEAD + 2 * BLANK_LINE.length)
      headLength = 0
    }
    const known = headLength
    headLength += data.copy(head, known, at)
    const end = head.subarray(0, headLength).indexOf(BLANK_LINE, Math.max(0, known - BLANK_LINE.length + 1))
    if (end === -1) {
      if (headLength >= MAX_HEAD + 2 + BLANK_LINE.length) throw headTooLong()
      return data.length
    }
    const next = at + startPart(head, 0, end) - known
    head = undefined
    return next
  }

  function startPart(data: Buffer, at: number, end: number): number {
    if (end - at - 2 > MAX_HEAD) throw headTooLong()
    state = 'content'
    isLineStart = true
    events.onHead(data.subarray(Math.min(at + 2, end), end))
    return end + BLANK_LINE.length
  }

  /** Returns the index of the line break that ends the next delimiter; the end of `data` when more is needed. */
  function readContent(data: Buffer, at: number): number {
    if (isLineStart) {
      const size = Math.min(dashBoundary.length, data.length - at)
      if (data.compare(dashBoundary, 0, size, at, at + size) === 0) {
        const line = size < dashBoundary.length ? 'more' : readLine(data, at + size)
        if (line === 'more') return hold(data, at)
        if (line !== 'content') return endPart(line)
      }
      isLineStart = false
    }
    let from = at
    for (;;) {
      const found = data.indexOf(delimiter, from)
      if (found === -1) {
        const end = findPartialDelimiter(data, from)
        pass(data, at, end, false)
        return hold(data, end)
      }
      const line = readLine(data, found + delimiter.length)
      if (line === 'content') from = found + delimiter.length
      else {
        pass(data, at, found, line !== 'more')
        return line === 'more' ? hold(data, found) : endPart(line)
      }
    }
  }

  function findPartialDelimiter(data: Buffer, from: number): number {
    let at = data.indexOf(CR, Math.max(from, data.length - delimiter.length + 1))
    while (at !== -1 && data.compare(delimiter, 0, data.length - at, at) !== 0) at = data.indexOf(CR, at + 1)
    return at === -1 ? data.length : at
  }

  function hold(data: Buffer, at: number): number {
    held = data.subarray(at)
    return data.length
  }

  function pass(data: Buffer, at: number, end: number, isLast: boolean): void {
    if (end > at && state === 'content') events.onContent(data.subarray(at, end), isLast)
  }

  function endPart(line: DelimiterLine): number {
    if (state === 'content') events.onPartEnd()
    state = line.isFinal ? 'epilogue' : 'head'
    return line.end
  }

  return {
    push,
    end() {
      const after = isLineStart ? dashBoundary.length : delimiter.length
      // The last line of a body needs no line break.
      if (state !== 'epilogue' && state !== 'head' && held.length > after) {
        const line = readLine(Buffer.concat([held, BLANK_LINE]), after)
        if (typeof line === 'object' && line.isFinal) endPart(line)
      }
      if (state !== 'epilogue') throw malformedBody('The final boundary is missing: the content is cut short.')
    },
  }
}

/** Reads the rest of a line that begins with a boundary which ends at `at`. */
function readLine(data: Buffer, at: number): DelimiterLine | 'content' | 'more' {
  let end = at
  const isFinal = data[end] === DASH
  if (isFinal) {
    if (end + 1 === data.length) return 'more'
    if (data[end + 1] !== DASH) return 'content'
    end += 2
  } else if (end < data.length && !isBlank(data[end]) && data[end] !== CR && data[end] !== LF) return 'content'
  const padding = end
  while (end < data.length && isBlank(data[end])) end++
  if (end - padding > MAX_PADDING) throw malformedLine()
  if (end === data.length) return 'more'
  if (data[end] !== CR) throw malformedLine()
  if (end + 1 === data.length) return 'more'
  if (data[end + 1] !== LF) throw malformedLine()
  return { end, isFinal }
}

function isBlank(code: number | undefined): boolean {
  return code === SPACE || code === TAB
}

function malformedLine(): HttpError {
  return malformedBody('A boundary is followed by something other than a line break.')
}

function headTooLong(): HttpError {
  const detail = `The header section of a part is larger than ${MAX_HEAD} bytes.`
  return new HttpError(413, 'ERR_TOO_LARGE', { detail })
}
