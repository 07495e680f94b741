/** Multipart bodies and what they mean: parts, and the status of the refusal where there is one. */

export const BOUNDARY = 'b0undary'

/** Lines joined by CRLF; `--` alone stands for a delimiter, `----` for the final one. */
export function lines(...text: string[]): string {
  return text
    .map((line) => (line === '--' || line === '----' ? line.replace('--', `--${BOUNDARY}`) : line))
    .join('\r\n')
}

const FIELD = 'Content-Disposition: form-data; name="a"'
const FILE = 'Content-Disposition: form-data; name="f"; filename="x.txt"'

/** A body of one part with these header lines and this content. */
export function part(head: string | readonly string[], content = 'v'): string {
  return lines('--', ...[head].flat(), '', content, '----', '')
}

/** A header section of exactly this many bytes, without the line break after it. */
export function headOf(size: number): string[] {
  const filler = size - FIELD.length - '\r\nX: '.length
  return [FIELD, `X: ${'x'.repeat(filler)}`]
}

export interface Expected {
  /** `name=value` for a field, `name|filename|type|content` for a file. */
  readonly parts: readonly string[]
  readonly status?: number
}

type Row = readonly [description: string, body: string | Uint8Array, expected: Expected | readonly string[] | number]

const latin1 = (text: string) => Buffer.from(text, 'latin1')
const refused = (status: number, ...parts: string[]): Expected => ({ parts, status })

export const BODIES: readonly Row[] = [
  ['one field (F2, F3)', part(FIELD), ['a=v']],
  ['no line break at the very end', lines('--', FIELD, '', 'v', '----'), ['a=v']],
  ['no part at all, as a browser sends an empty form', lines('----', ''), []],
  ['an empty value', part(FIELD, ''), ['a=']],
  ['a part that ends with its header section (RFC 2046 §5.1.1)', lines('--', FIELD, '', '----', ''), ['a=']],
  [
    'the same before another part',
    lines('--', FIELD, '', '--', 'Content-Disposition: form-data; name="b"', '', 'w', '----', ''),
    ['a=', 'b=w'],
  ],
  ['a value of line breaks', part(FIELD, '\r\n\r\n'), ['a=\r\n\r\n']],
  ['a value that ends with CR', part(FIELD, 'v\r'), ['a=v\r']],
  ['a value that ends with LF', part(FIELD, 'v\n'), ['a=v\n']],
  ['a value that ends with dashes', part(FIELD, 'v\r\n--'), ['a=v\r\n--']],
  [
    'several fields, repeated names in order (F5)',
    lines(
      '--',
      FIELD,
      '',
      '1',
      '--',
      'Content-Disposition: form-data; name=b',
      '',
      '2',
      '--',
      FIELD,
      '',
      '3',
      '----',
      '',
    ),
    ['a=1', 'b=2', 'a=3'],
  ],
  [
    'an upload: text and file (F13)',
    lines('--', FIELD, '', 't', '--', FILE, 'Content-Type: image/png', '', 'PNG', '----', ''),
    ['a=t', 'f|x.txt|image/png|PNG'],
  ],
  [
    'two files of one name (F5)',
    lines('--', FILE, '', '1', '--', FILE, '', '2', '----', ''),
    ['f|x.txt|application/octet-stream|1', 'f|x.txt|application/octet-stream|2'],
  ],
  ['an empty file', part(FILE, ''), ['f|x.txt|application/octet-stream|']],
  [
    'an empty file input, as browsers send it',
    part(['Content-Disposition: form-data; name="f"; filename=""', 'Content-Type: application/octet-stream'], ''),
    ['f|-|application/octet-stream|'],
  ],
  [
    'an empty file name with another type is still a file',
    part(['Content-Disposition: form-data; name="f"; filename=""', 'Content-Type: text/plain'], 'x'),
    ['f|-|text/plain|x'],
  ],
  [
    'bytes without a file name',
    part([FIELD, 'Content-Type: application/octet-stream'], 'x'),
    ['a|-|application/octet-stream|x'],
  ],
  [
    'a type with parameters is kept whole',
    part([FILE, 'Content-Type:  text/plain; charset=UTF-16LE '], 'x'),
    ['f|x.txt|text/plain; charset=UTF-16LE|x'],
  ],
  [
    'a multipart in a file is bytes',
    part([FILE, 'Content-Type: multipart/related; boundary=x'], 'x'),
    ['f|x.txt|multipart/related; boundary=x|x'],
  ],
  ['JSON in a field is text', part([FIELD, 'Content-Type: application/json'], '{"x":1}'), ['a={"x":1}']],

  // Delimiters (RFC 2046 §5.1.1)
  ['a preamble and an epilogue (F8)', 'Ignore me.\r\n' + part(FIELD) + 'And me.\r\n--b0undary\r\n', ['a=v']],
  ['an empty line as preamble', '\r\n' + part(FIELD), ['a=v']],
  ['a preamble that begins like a delimiter (threat 73)', '--b0undaryX\r\n' + part(FIELD), 400],
  ['a preamble full of dashes', '--\r\n--b0\r\n-\r\n' + part(FIELD), ['a=v']],
  ['an epilogue right after the final delimiter', lines('--', FIELD, '', 'v', '----', 'more'), ['a=v']],
  [
    'blanks after delimiters (F8)',
    `--b0undary \t \r\n${FIELD}\r\n\r\nv\r\n--b0undary\t\r\n${FIELD}\r\n\r\nw\r\n--b0undary--  \t\r\n`,
    ['a=v', 'a=w'],
  ],
  ['blanks after the final delimiter, then the end', `--b0undary\r\n${FIELD}\r\n\r\nv\r\n--b0undary-- \t`, ['a=v']],
  ['blanks after the delimiter of an empty part', `--b0undary \r\n${FIELD}\r\n\r\n--b0undary-- \r\n`, ['a=']],
  ['a line in a value that begins like a delimiter (threat 73)', part(FIELD, 'x\r\n--b0undaryX\r\ny'), 400],
  ['the same with one dash', part(FIELD, 'x\r\n--b0undary-\r\ny'), 400],
  ['a value that is such a line', part(FIELD, '--b0undaryX'), 400],
  ['a file with such a line', part(FILE, 'x\r\n--b0undaryX\r\ny'), 400],
  ['a delimiter not at the beginning of a line', part(FIELD, 'x--b0undary\r\ny'), ['a=x--b0undary\r\ny']],
  ['a delimiter after a bare LF', part(FIELD, 'x\n--b0undary\n--b0undary--\ny'), ['a=x\n--b0undary\n--b0undary--\ny']],
  ['a delimiter after a bare CR', part(FIELD, 'x\r--b0undary\ry'), ['a=x\r--b0undary\ry']],
  [
    'beginnings of a delimiter, many times',
    part(FIELD, '\r\r\n\r\n-\r\n--\r\n--b\r\n--b0undar\r\n--b0undar'),
    ['a=\r\r\n\r\n-\r\n--\r\n--b\r\n--b0undar\r\n--b0undar'],
  ],
  [
    'the same in a file',
    part(FILE, '\r\n--b0undarX\r\n--b0undar'),
    ['f|x.txt|application/octet-stream|\r\n--b0undarX\r\n--b0undar'],
  ],
  ['something after the blanks of a delimiter', `--b0undary x\r\n${FIELD}\r\n\r\nv\r\n--b0undary--\r\n`, 400],
  ['something after the blanks, in a value', part(FIELD, 'x\r\n--b0undary x\r\ny'), 400],
  ['something after the final delimiter', `--b0undary\r\n${FIELD}\r\n\r\nv\r\n--b0undary--x\r\n`, 400],
  ['a bare LF after a delimiter', `--b0undary\n${FIELD}\n\nv\n--b0undary--\n`, 400],
  ['a bare CR after a delimiter', `--b0undary\rx\r\n${FIELD}\r\n\r\nv\r\n--b0undary--\r\n`, 400],
  ['a bare CR at the very end', `--b0undary\r\n${FIELD}\r\n\r\nv\r\n--b0undary--\r`, 400],
  ['1022 blanks after a delimiter', `--b0undary${' '.repeat(1022)}\r\n${FIELD}\r\n\r\nv\r\n--b0undary--`, ['a=v']],
  ['1023 blanks after a delimiter', `--b0undary${' '.repeat(1023)}\r\n${FIELD}\r\n\r\nv\r\n--b0undary--`, 400],

  // Cut short (F9)
  ['nothing', '', 400],
  ['a preamble only', 'hello', 400],
  ['half a delimiter', '--b0un', 400],
  ['a delimiter only', '--b0undary\r\n', 400],
  ['half a header section', `--b0undary\r\n${FIELD}\r\n`, 400],
  ['a header section only', `--b0undary\r\n${FIELD}\r\n\r\n`, 400],
  ['half a value', `--b0undary\r\n${FIELD}\r\n\r\nv`, 400],
  ['half a file', `--b0undary\r\n${FILE}\r\n\r\nxxxx`, 400],
  ['no final delimiter after a field', lines('--', FIELD, '', 'v', '--', ''), refused(400, 'a=v')],
  ['half of the final delimiter', lines('--', FIELD, '', 'v', '--') + '-', 400],
  ['the second part is half there', lines('--', FIELD, '', 'v', '--', FIELD, '', 'w'), refused(400, 'a=v')],

  // Header sections (RFC 7578 §4.2 to §4.8)
  ['no header section', lines('--', '', 'v', '----', ''), 400],
  ['no Content-Disposition', part('Content-Type: text/plain'), 400],
  ['another disposition', part('Content-Disposition: attachment; name="a"'), 400],
  ['a longer disposition', part('Content-Disposition: form-data-x; name="a"'), 400],
  ['no disposition type', part('Content-Disposition: name="a"'), 400],
  ['no name', part('Content-Disposition: form-data'), 400],
  ['an empty name', part('Content-Disposition: form-data; name=""'), 400],
  ['a name without a value', part('Content-Disposition: form-data; name='), 400],
  ['a file without a name', part('Content-Disposition: form-data; filename="x"'), 400],
  ['an unterminated file name', part('Content-Disposition: form-data; name="a"; filename="x'), 400],
  ['a parameter twice (D7)', part('Content-Disposition: form-data; name="a"; name="b"'), 400],
  [
    'a parameter twice in other case',
    part('Content-Disposition: form-data; name="a"; filename="x"; FileName="y"'),
    400,
  ],
  ['something after a parameter', part('Content-Disposition: form-data; name="a" x'), 400],
  ['blanks around the equals sign', part('Content-Disposition: form-data; name = "a"'), 400],
  ['Content-Disposition twice', part([FIELD, FIELD]), 400],
  ['Content-Type twice', part([FIELD, 'Content-Type: text/plain', 'Content-Type: text/html']), 400],
  ['a malformed Content-Type', part([FILE, 'Content-Type: pdf']), 400],
  ['an empty Content-Type', part([FILE, 'Content-Type:']), 400],
  ['a list as Content-Type (threat 67)', part([FILE, 'Content-Type: text/plain, text/html']), 400],
  ['a Content-Type that could not be sent again', part([FILE, 'Content-Type: text/plain; x="ü"']), 400],
  ['a line without a colon', part([FIELD, 'nonsense']), 400],
  ['a blank before the colon', part([FIELD, 'X : y']), 400],
  ['a field without a name', part([FIELD, ': y']), 400],
  ['a NUL in a header field', part(FIELD.replace('"a"', '"a\0"')), 400],
  ['a bare LF in a header field', part([`${FIELD}\nX: y`]), 400],
  ['a bare CR in a header field', part([`${FIELD}\rX: y`]), 400],
  ['a first line that continues nothing', part([' X: y', FIELD]), 400],
  [
    'a field that goes on in the next line (RFC 5322 §2.2.3)',
    part(['Content-Disposition: form-data;', ' name="a";', '\tfilename="x"']),
    ['a|x|application/octet-stream|v'],
  ],
  [
    'a file name that goes on in the next line: the blank that begins it is of the name',
    part(['Content-Disposition: form-data; name="a"; filename="x', ' y"']),
    ['a|x y|application/octet-stream|v'],
  ],
  [
    'names in any case (D1)',
    part('CONTENT-disposition: Form-Data; NAME="a"; FILENAME="x"'),
    ['a|x|application/octet-stream|v'],
  ],
  ['no blanks', part('Content-Disposition:form-data;name=a;filename=x'), ['a|x|application/octet-stream|v']],
  ['many blanks and empty parameters', part('Content-Disposition:  form-data ; ; name=a \t; '), ['a=v']],
  [
    'other parameters and fields (§4.8)',
    part([`${FIELD}; size=5; x="y"`, 'Content-Length: 99', 'X-Custom: y']),
    ['a=v'],
  ],
  [
    '7bit, 8bit and binary (F7)',
    lines(
      '--',
      FIELD,
      'Content-Transfer-Encoding: 7bit',
      '',
      '1',
      '--',
      FIELD,
      'content-transfer-encoding: 8BIT',
      '',
      '2',
      '--',
      FIELD,
      'Content-Transfer-Encoding: binary',
      '',
      '3',
      '----',
      '',
    ),
    ['a=1', 'a=2', 'a=3'],
  ],
  ['base64 (F7)', part([FIELD, 'Content-Transfer-Encoding: base64'], 'dg=='), 400],
  ['quoted-printable (F7)', part([FILE, 'Content-Transfer-Encoding: quoted-printable']), 400],
  ['a multipart within the multipart (§4.3)', part([FIELD, 'Content-Type: multipart/mixed; boundary=x']), 415],
  [
    'a bad part before a good one: the good one is not delivered (threat 74)',
    lines('--', 'X', '', '1', '--', 'Content-Disposition: form-data; name="admin"', '', 'true', '----', ''),
    400,
  ],
  [
    'a good part before a bad one',
    lines('--', FIELD, '', 'v', '--', 'X', '', '1', '--', FIELD, '', 'w', '----', ''),
    refused(400, 'a=v'),
  ],

  // Names and file names
  [
    'UTF-8 as it is (F4)',
    part('Content-Disposition: form-data; name="ü"; filename="日本.txt"'),
    ['ü|日本.txt|application/octet-stream|v'],
  ],
  [
    'what browsers escape (F4)',
    part('Content-Disposition: form-data; name="a%22b"; filename="ü%22.txt"'),
    ['a"b|ü".txt|application/octet-stream|v'],
  ],
  [
    'escaped line breaks',
    part('Content-Disposition: form-data; name="a%0D%0ab"; filename="x%0d%0Ay"'),
    ['a\r\nb|xy|application/octet-stream|v'],
  ],
  [
    'other escapes are literal',
    part('Content-Disposition: form-data; name="%41%zz%"; filename="100%25.txt"'),
    ['%41%zz%|100%25.txt|application/octet-stream|v'],
  ],
  [
    'escaped quotes and backslashes',
    part('Content-Disposition: form-data; name="a\\"b\\\\c"; filename="x\\"y"'),
    ['a"b\\c|x"y|application/octet-stream|v'],
  ],
  ['a backslash before anything else is literal', part('Content-Disposition: form-data; name="a\\b"'), ['a\\b=v']],
  [
    'semicolons within quotes',
    part('Content-Disposition: form-data; name="a;b"; filename="x;y=z"'),
    ['a;b|x;y=z|application/octet-stream|v'],
  ],
  [
    'filename* is not used (F4)',
    part(`Content-Disposition: form-data; name="f"; filename="x"; filename*=UTF-8''y`),
    ['f|x|application/octet-stream|v'],
  ],
  ['filename* alone makes no file (F4)', part(`Content-Disposition: form-data; name="a"; filename*=UTF-8''y`), ['a=v']],
  [
    'a path (D5, threat 77)',
    part('Content-Disposition: form-data; name="f"; filename="../../etc/passwd"'),
    ['f|passwd|application/octet-stream|v'],
  ],
  [
    'a path with backslashes (D5)',
    part('Content-Disposition: form-data; name="f"; filename="C:\\Users\\me\\x.txt"'),
    ['f|x.txt|application/octet-stream|v'],
  ],
  [
    'dots only (D6)',
    part('Content-Disposition: form-data; name="f"; filename=".."'),
    ['f|-|application/octet-stream|v'],
  ],
  [
    'a device name (D6)',
    part('Content-Disposition: form-data; name="f"; filename="nul.txt"'),
    ['f|_nul.txt|application/octet-stream|v'],
  ],
  [
    'a direction mark (threat 77)',
    part('Content-Disposition: form-data; name="f"; filename="a\u202egpj.exe"'),
    ['f|agpj.exe|application/octet-stream|v'],
  ],
  [
    '%00 in a file name (threat 77)',
    part('Content-Disposition: form-data; name="f"; filename="a%00.html"'),
    ['f|a%00.html|application/octet-stream|v'],
  ],
  [
    'any name is data (F14, threat 76)',
    part('Content-Disposition: form-data; name="__proto__[x]"'),
    ['__proto__[x]=v'],
  ],
  [
    '__proto__ as header field and parameter',
    part(['__proto__: x', 'Content-Disposition: form-data; name=a; __proto__=y; constructor=z']),
    ['a=v'],
  ],
  ['a name that is not UTF-8', latin1(part('Content-Disposition: form-data; name="\xfc"')), 400],
  ['a header field that is not UTF-8', latin1(part([FIELD, 'X: \xfc'])), 400],

  // Text
  ['UTF-8 in a value', part(FIELD, 'ü€😀'), ['a=ü€😀']],
  ['a BOM is kept', part(FIELD, '\ufeffx'), ['a=\ufeffx']],
  ['U+FFFD itself', part(FIELD, '\ufffd'), ['a=\ufffd']],
  ['a value that is not UTF-8', latin1(part(FIELD, '\xff')), 400],
  ['a file that is not UTF-8', latin1(part(FILE, '\xff\xfe\0')), ['f|x.txt|application/octet-stream|\xff\xfe\0']],
  ['a charset that is known', latin1(part([FIELD, 'Content-Type: text/plain; charset=ISO-8859-1'], '\xfc')), ['a=ü']],
  ['UTF-16', latin1(part([FIELD, 'Content-Type: text/plain; charset="utf-16le"'], 'a\0')), ['a=a']],
  [
    'bytes that are not of the charset',
    latin1(part([FIELD, 'Content-Type: text/plain; charset=us-ascii'], '\xfc')),
    400,
  ],
  ['a charset that is not known (threat 72)', part([FIELD, 'Content-Type: text/plain; charset=utf-7']), 415],
  [
    'the charset of a file is its own affair',
    part([FILE, 'Content-Type: text/plain; charset=utf-7']),
    ['f|x.txt|text/plain; charset=utf-7|v'],
  ],
  [
    '_charset_ is a field like any other (F6)',
    lines('--', 'Content-Disposition: form-data; name="_charset_"', '', 'iso-8859-1', '--', FIELD, '', 'ü', '----', ''),
    ['_charset_=iso-8859-1', 'a=ü'],
  ],

  // Limits of the parser itself
  ['a header section of 16 KiB', part(headOf(16 * 1024)), ['a=v']],
  ['a header section of 16 KiB and a byte (F10)', part(headOf(16 * 1024 + 1)), 413],
  ['a header section that does not end', `--b0undary\r\n${FIELD}\r\nX: ${'x'.repeat(40_000)}`, 413],
]
