import { isAscii } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { decodeUtf8, viewOf } from '../core/byte-blocks.ts'
import { malformedBody, unsupportedBody } from './limits.ts'

/**
 * Decodes text, strictly: what is not valid in the charset is refused, never replaced (RFC 9110 §8.3.2).
 * @param charset a label of the Encoding Standard, in any case; default `utf-8`. `us-ascii` and `iso-8859-1` are taken
 *   by their IANA definitions, not as aliases of windows-1252
 * @param start where the text begins and ends in `data`; default all of it
 * @throws HttpError 415 for a charset that cannot be decoded, 400 for bytes that are not valid in it
 */
export function decodeText(data: Uint8Array, charset?: string, start = 0, end: number = data.length): string {
  const text = charset === undefined ? decodeUtf8(data, start, end) : decodeFrom(charset, data.subarray(start, end))
  if (text === undefined) throw malformedBody('The content is not valid in its charset.')
  return text
}

function decodeFrom(charset: string, bytes: Uint8Array): string | undefined {
  switch (charset.toLowerCase()) {
    case 'utf-8':
    case 'utf8':
      return decodeUtf8(bytes)
    case 'us-ascii':
      return isAscii(bytes) ? viewOf(bytes).toString('latin1') : undefined
    case 'iso-8859-1':
      return viewOf(bytes).toString('latin1')
  }
  const decoder = createDecoder(charset)
  // Versions of Node differ in this one.
  if (decoder.encoding === 'windows-1252') return decodeWindows1252(bytes)
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

function createDecoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset, { fatal: true })
  } catch {
    throw unsupportedBody('The charset of the content is not supported.')
  }
}

/** What windows-1252 has from 0x80 to 0x9f (Encoding Standard, index-windows-1252). */
const WINDOWS_1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

function decodeWindows1252(bytes: Uint8Array): string {
  const text = viewOf(bytes).toString('latin1')
  if (!/[\x80-\x9f]/.test(text)) return text
  // Not by a function for each character: a client may send millions of them.
  const units = Buffer.allocUnsafe(2 * bytes.length)
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!
    const unit = byte >= 0x80 && byte <= 0x9f ? WINDOWS_1252.charCodeAt(byte - 0x80) : byte
    units[2 * i] = unit
    units[2 * i + 1] = unit >> 8
  }
  return units.toString('utf16le')
}

/** Whether text in a charset is UTF-8 as well; JSON and forms are nothing else. No charset at all is UTF-8. */
export function isUtf8Charset(charset: string | undefined): boolean {
  return charset === undefined || /^(?:utf-?8|us-ascii)$/i.test(charset)
}
