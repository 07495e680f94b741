import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { type ByteRange, formatContentRange } from '../protocol/byte-range.ts'
import { addNoTransform } from '../protocol/cache-control.ts'
import type { MaybePromise } from './maybe-promise.ts'

/** A reply is data: what will be answered, not the act of answering. The writer alone acts (`write-reply.ts`). */

/** Bytes in one piece, or in the few that they are kept in. */
export type Pieces = Uint8Array | readonly Uint8Array[]

/** Content that is read when it is sent, and not at all for HEAD. */
export interface ContentSource {
  /** Length in bytes. */
  readonly size: number
  /** Bytes that it holds in memory until it is sent. Default: one chunk. */
  readonly held?: number
  /** The SHA-256 digest of it, where it is known. */
  readonly sha256?: Uint8Array | undefined
  /**
   * Starts reading. The next chunk is asked for only after the previous one has left, so a source may use one
   * buffer repeatedly. Ends early through the iterator's `return`.
   * @param signal aborts when the client has left: `return` does not end a wait for a source that is silent
   */
  open(signal?: AbortSignal): AsyncIterable<Uint8Array>
  /**
   * Reads all of it at once, at most `SHORT` bytes, where that costs less than a stream.
   * @param buffer of `SHORT` bytes: what it gives may be a part of that; anything else stays as it is
   */
  readonly read?: ((buffer?: Uint8Array) => MaybePromise<Pieces>) | undefined
}

/** Content of which any part can be read without the rest. */
interface RangedSource extends ContentSource {
  /** Reads bytes `first` to `last`, both inclusive. */
  openRange(first: number, last: number, signal?: AbortSignal): AsyncIterable<Uint8Array>
  /** Reads a range at once, where it is short. */
  readonly readRange?: ((first: number, last: number, buffer?: Uint8Array) => MaybePromise<Pieces>) | undefined
}

/** Bytes up to which content is read at once where it can be. */
export const SHORT: number = 64 * 1024

/** Content from which ranges can be cut; a string holds ASCII only. */
export type RangedBody = string | Uint8Array | RangedSource

/** A string holds ASCII only: it leaves in one write with the header section. Other text is a `Uint8Array`. */
export type ReplyBody = string | Uint8Array | ContentSource

export interface Reply {
  readonly status: number
  /** Field names and values in turn. Content-Length is among them whenever there is content, or none to come. */
  readonly headers: readonly string[]
  /** Left out when there is no content. */
  readonly body?: ReplyBody | undefined
  /** Kept by a caller that answers with the same `headers` repeatedly. */
  readonly kept?: KeptFields | undefined
}

/** Fields of an answer that is given repeatedly, and what the writer made of them the last time. */
export interface KeptFields {
  readonly headers: readonly string[]
  /** With those pending, and Vary. */
  completed: readonly string[] | undefined
  pending: readonly string[] | undefined
  vary: string
}

/** @see KeptFields */
export function keepFields(headers: readonly string[]): KeptFields {
  return { headers, completed: undefined, pending: undefined, vary: '' }
}

/** Text as it is sent: itself when it is ASCII, else its UTF-8 bytes. */
export function encodeText(text: string): string | Uint8Array {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text)
}

/** The bytes of encoded text in pieces: all at once would be a copy for each client that does not read. */
export function* sliceText(text: string, most: number): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < text.length; at += most) yield Buffer.from(text.slice(at, at + most), 'latin1')
}

/** A reply with content that is at hand. Content-Length is added. */
export function contentReply(status: number, body: string | Uint8Array, headers: readonly string[]): Reply {
  return { status, headers: [...headers, 'Content-Length', String(body.length)], body }
}

/** A reply with no content. Content-Length is 0, except on 204 and 304, which must not have one (RFC 9110 §8.6). */
export function emptyReply(status: number, headers: readonly string[]): Reply {
  return status === 204 || status === 304
    ? { status, headers }
    : { status, headers: [...headers, 'Content-Length', '0'] }
}

/**
 * 206 (RFC 9110 §15.3.7): one range as it is, several as multipart/byteranges. Its Cache-Control says `no-transform`:
 * middleware that compresses would otherwise send the compressed fragment under the tag of the plain representation, and
 * a client would join it with plain bytes.
 * @param ranges at least one range within the content
 * @param fields200 fields of the 200, without Content-Length, names and values in turn
 * @param size length of the whole content in bytes
 */
export function rangeReply(
  ranges: readonly ByteRange[],
  fields200: readonly string[],
  body: RangedBody,
  size: number,
): Reply {
  const fields = forbidTransform(fields200)
  if (ranges.length > 1) return multipartReply(ranges, fields, body, size)
  const range = ranges[0]!
  const length = String(range.last - range.first + 1)
  return {
    status: 206,
    headers: [...fields, 'Content-Range', formatContentRange(range, size), 'Content-Length', length],
    body: sliceBody(body, range),
  }
}

/** A copy of fields, names and values in turn, whose Cache-Control says `no-transform`. */
export function forbidTransform(fields: readonly string[]): string[] {
  const at = fields.findIndex((name, index) => index % 2 === 0 && name === 'Cache-Control') + 1
  return at === 0 ? [...fields, 'Cache-Control', addNoTransform('')] : fields.with(at, addNoTransform(fields[at]!))
}

function sliceBody(body: RangedBody, { first, last }: ByteRange): ReplyBody {
  if (typeof body === 'string') return body.slice(first, last + 1)
  if (body instanceof Uint8Array) return body.subarray(first, last + 1)
  const size = last - first + 1
  const { readRange } = body
  const read =
    readRange === undefined || size > SHORT ? undefined : (buffer?: Uint8Array) => readRange(first, last, buffer)
  return { size, open: (signal) => body.openRange(first, last, signal), read }
}

/** Several ranges (RFC 9110 §15.3.7.2), streamed, the length known in advance. */
function multipartReply(
  ranges: readonly ByteRange[],
  fields: readonly string[],
  body: RangedBody,
  size: number,
): Reply {
  const boundary = randomBytes(18).toString('base64url')
  const typeAt = fields.indexOf('Content-Type') + 1
  const heads = ranges.map((range) => {
    // The first boundary has a line break before it as well (RFC 9110 §14.6 lets it): zsync takes the first line away.
    const lines = [
      `\r\n--${boundary}`,
      `Content-Type: ${fields[typeAt]}`,
      `Content-Range: ${formatContentRange(range, size)}`,
    ]
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  })
  const end = Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1')
  const length = ranges.reduce((sum, range, i) => sum + heads[i]!.length + range.last - range.first + 1, end.length)
  async function* open(signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    for (const [index, range] of ranges.entries()) {
      const part = sliceBody(body, range)
      if (typeof part === 'string') yield* [heads[index]!, Buffer.from(part, 'latin1')]
      else if (part instanceof Uint8Array) yield* [heads[index]!, part]
      else yield* precede(heads[index]!, part.open(signal))
    }
    yield end
  }
  return {
    status: 206,
    headers: [...fields.with(typeAt, `multipart/byteranges; boundary=${boundary}`), 'Content-Length', String(length)],
    body: { size: length, open },
  }
}

/**
 * Bytes, and then those of a source. The bytes wait for the first ones of the source: until those are there nothing has
 * been sent, so that a source that fails can still be answered with an error.
 */
export async function* precede(
  head: Uint8Array,
  source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  let isBegun = false
  for await (const piece of source) {
    if (!isBegun) yield head
    isBegun = true
    yield piece
  }
  if (!isBegun) yield head
}
