import { isAscii, isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { malformedBody, unsupportedBody } from './body-errors.ts'

/**
 * Decodes text, strictly: what is not valid in the charset is refused, never replaced (RFC 9110 §8.3.2).
 * @param charset a label of the Encoding Standard, in any case; default `utf-8`. `us-ascii` and `iso-8859-1` are taken
 *   by their IANA definitions, not as aliases of windows-1252
 * @throws HttpError 415 for a charset that cannot be decoded, 400 for bytes that are not valid in it
 */
export function decodeText(bytes: Uint8Array, charset = 'utf-8'): string {
  switch (charset.toLowerCase()) {
    case 'utf-8':
    case 'utf8':
      if (!isUtf8(bytes)) throw malformedText()
      return viewOf(bytes).toString()
    case 'us-ascii':
      if (!isAscii(bytes)) throw malformedText()
      return viewOf(bytes).toString('latin1')
    case 'iso-8859-1':
      return viewOf(bytes).toString('latin1')
    default: {
      const decoder = createDecoder(charset)
      // Versions of Node differ in this one.
      return decoder.encoding === 'windows-1252' ? decodeWindows1252(bytes) : decode(decoder, bytes)
    }
  }
}

/**
 * The same for a part of `data`. UTF-8 is decoded where it lies.
 * @throws HttpError as {@link decodeText}
 */
export function decodePart(data: Buffer, start: number, end: number, charset: string | undefined): string {
  if (charset !== undefined) return decodeText(data.subarray(start, end), charset)
  const text = data.toString('utf8', start, end)
  // Node puts U+FFFD in place of what is not UTF-8: only text that has one needs a second look.
  if (text.includes('\ufffd') && !isUtf8(data.subarray(start, end))) throw malformedText()
  return text
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
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

function createDecoder(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset, { fatal: true })
  } catch {
    throw unsupportedBody('The charset of the content is not supported.')
  }
}

function decode(decoder: TextDecoder, bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw malformedText()
  }
}

function malformedText(): Error {
  return malformedBody('The content is not valid in its charset.')
}
