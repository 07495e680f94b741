import { randomBytes } from 'node:crypto'
import { type ByteRange, formatContentRange } from '../protocol/byte-range.ts'
import { addNoTransform } from '../protocol/cache-control.ts'
import { precede } from './precede.ts'
import { type RangedBody, type Reply, type ReplyBody, SHORT } from './reply.ts'

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

function forbidTransform(fields: readonly string[]): readonly string[] {
  const at = fields.indexOf('Cache-Control') + 1
  return at === 0 ? [...fields, 'Cache-Control', addNoTransform('')] : fields.with(at, addNoTransform(fields[at]!))
}

/** Part of a body, without reading the rest. */
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
