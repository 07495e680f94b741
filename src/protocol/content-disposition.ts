import { decodePercent, parseParameters, skipToken, skipWhitespace } from './field-value.ts'

/** A Content-Disposition (RFC 6266). */
export interface ContentDisposition {
  /** `inline`, `attachment`, `form-data` …, in lower case. */
  readonly type: string
  /** Parameter values by lower-case name, `filename*` undecoded. */
  readonly parameters: ReadonlyMap<string, string>
  /** The file name, `filename*` preferred over `filename`, cleaned by {@link cleanFilename}. */
  readonly filename?: string
}

/** Reads Content-Disposition; `undefined` when it is malformed or names a parameter twice (RFC 6266 §4.1). */
export function parseContentDisposition(field: string): ContentDisposition | undefined {
  const start = skipWhitespace(field, 0)
  const end = skipToken(field, start)
  if (end === start) return undefined
  const parsed = parseParameters(field, end)
  if (parsed === undefined || skipWhitespace(field, parsed.end) !== field.length) return undefined
  const type = field.slice(start, end).toLowerCase()
  const { parameters } = parsed
  const name = parseExtendedValue(parameters.get('filename*') ?? '') ?? parameters.get('filename')
  const filename = cleanFilename(name ?? '')
  return filename === '' ? { type, parameters } : { type, parameters, filename }
}

/** Reads `UTF-8'en'%e2%82%ac` or `ISO-8859-1''%a3` (RFC 8187 §3.2); `undefined` for another charset or escape. */
export function parseExtendedValue(text: string): string | undefined {
  const match = /^(utf-8|iso-8859-1)'[^']*'((?:%[0-9a-f]{2}|[!#$&+.^_`|~0-9a-z-])*)$/i.exec(text)
  if (match === null) return undefined
  const encoded = match[2]!
  if (match[1]!.toLowerCase() === 'iso-8859-1') {
    return encoded.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  return decodePercent(encoded)
}

const MAX_FILENAME = 255
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³]) *(?:[.:].*)?$/i

/**
 * A file name that is safe to show and to suggest: the last path segment, whichever slash, without control and
 * direction-changing characters or leading dots, at most 255 characters; a device name gets an underscore in front.
 * @returns the empty string when nothing is left
 */
export function cleanFilename(name: string): string {
  const segment = name.slice(Math.max(name.lastIndexOf('/'), name.lastIndexOf('\\')) + 1)
  const clean = segment
    // C0, DEL, C1, and the marks that reorder or hide what a reader sees.
    .replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, '')
    .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, '')
    .replace(/^[\s.]+/, '')
  const short = shorten(clean)
  return DEVICE.test(short) ? shorten('_' + short) : short
}

/** Cut to the limit, never through the middle of a character. */
function shorten(name: string): string {
  return name
    .slice(0, MAX_FILENAME)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd()
}

/**
 * Writes Content-Disposition with a file name: an ASCII `filename`, and `filename*` beside it where that loses
 * something (RFC 6266 §4.3, Appendix D; RFC 8187 §3.2).
 */
export function formatContentDisposition(type: 'inline' | 'attachment', filename = ''): string {
  const name = cleanFilename(filename)
  if (name === '') return type
  // "%" too: some readers unescape it in the plain form.
  const plain = name.replace(/[^\x20-\x7e]|[%"\\]/g, (char) => (char === '"' || char === '\\' ? `\\${char}` : '_'))
  if (plain === name) return `${type}; filename="${name}"`
  const extended = encodeURIComponent(name).replace(
    /['()*]/g,
    (char) => '%' + char.charCodeAt(0).toString(16).toUpperCase(),
  )
  return `${type}; filename="${plain}"; filename*=UTF-8''${extended}`
}
