import { decodeUtf8 } from '../core/byte-blocks.ts'
import { defineMember } from '../core/json.ts'
import { type BodyLimits, DEFAULT_LIMITS, malformedBody, tooMany, unsupportedBody } from './limits.ts'
import { decodeText, isUtf8Charset } from './text.ts'

/** A part of a multipart body without a file name, or one parameter of a urlencoded form. */
export interface FormField {
  readonly kind: 'field'
  readonly name: string
  readonly value: string
}

/** A part of a multipart body with a file name. */
export interface FilePart {
  readonly kind: 'file'
  /** Name of the form field. */
  readonly name: string
  /** Cleaned: the last path segment, no control characters. Metadata only; never use it to store anything. */
  readonly filename: string | undefined
  /** Content-Type of the part; `application/octet-stream` when it has none. */
  readonly contentType: string
  /** The bytes, to be read before the next part is asked for; what is not read by then is skipped. */
  readonly content: AsyncIterable<Uint8Array>
}

export type FormPart = FormField | FilePart

const AMPERSAND = 0x26
const PLUS = 0x2b
const SPACE = 0x20
const PERCENT = 0x25

/**
 * Reads `application/x-www-form-urlencoded` content (URL Standard §5.1) into its parameters, in order.
 *
 * Names are flat: brackets and dots mean nothing. `_charset_` is a parameter like any other; the text is UTF-8.
 * @param limits `formFields` (one more is 413) and `nameLength` (one more is 400)
 * @param charset the charset parameter of the media type
 * @throws HttpError 400 for invalid UTF-8, escaped or not, and for a name that is too long; 413 for too many
 *   parameters; 415 for a charset other than UTF-8 and US-ASCII
 */
export function parseForm(
  bytes: Uint8Array,
  limits: Pick<BodyLimits, 'formFields' | 'nameLength'> = DEFAULT_LIMITS,
  charset?: string,
): readonly FormField[] {
  if (!isUtf8Charset(charset)) throw unsupportedBody('A form is encoded as UTF-8.')
  if (bytes.length === 0) return []
  // Counted before anything is made of them: a flood of parameters costs a scan, not memory.
  if (countParameters(bytes, limits.formFields) > limits.formFields) throw tooMany('parameters', limits.formFields)
  const fields: FormField[] = []
  for (const pair of decodeText(bytes, charset).split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodeComponent(equals === -1 ? pair : pair.slice(0, equals))
    if (name.length > limits.nameLength) throw malformedBody('The name of a parameter is too long.')
    fields.push({ kind: 'field', name, value: equals === -1 ? '' : decodeComponent(pair.slice(equals + 1)) })
  }
  return fields
}

/** Counts parameters, up to one more than the limit. */
function countParameters(bytes: Uint8Array, limit: number): number {
  let count = 1
  for (let at = bytes.indexOf(AMPERSAND); at !== -1 && count <= limit; at = bytes.indexOf(AMPERSAND, at + 1)) count++
  return count
}

/** Byte by byte, in place: replacing in text costs many times as much for content that is nothing but `+` or `%`. */
function decodeComponent(text: string): string {
  if (!/[+%]/.test(text)) return text
  const bytes = Buffer.from(text)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at]!
    if (byte === PLUS) byte = SPACE
    else if (byte === PERCENT) {
      const escaped = hexValue(bytes[at + 1]) * 16 + hexValue(bytes[at + 2])
      // Text that is not an escape is literal.
      if (!Number.isNaN(escaped)) {
        byte = escaped
        at += 2
      }
    }
    bytes[length++] = byte
  }
  const decoded = decodeUtf8(bytes, 0, length)
  // Escapes that are not UTF-8 must not turn into U+FFFD.
  if (decoded === undefined) throw malformedBody('The escapes of a parameter are not valid UTF-8.')
  return decoded
}

function hexValue(code = 0): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN
}

/** The values of form fields by name; a name that occurs more than once has all its values, in order. */
export type FormValues = Readonly<Record<string, string | readonly string[]>>

/**
 * Collects form fields into an object, every name an own member of it: `__proto__` is a name like any other.
 * @returns a string for each name; an array for a name that is repeated
 */
export function collectFields(fields: readonly FormField[]): FormValues {
  const values: Record<string, string | string[]> = {}
  for (const { name, value } of fields) {
    const known = Object.hasOwn(values, name) ? values[name]! : undefined
    if (known === undefined) defineMember(values, name, value)
    else if (typeof known === 'string') defineMember(values, name, [known, value])
    else known.push(value)
  }
  return values
}
