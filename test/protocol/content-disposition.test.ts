import { describe, expect, it } from 'vitest'
import {
  cleanFilename,
  formatContentDisposition,
  parseContentDisposition,
  parseExtendedValue,
} from '../../src/protocol/content-disposition.ts'

describe('parseContentDisposition', () => {
  it.each<[string, string, string | undefined]>([
    ['attachment', 'attachment', undefined],
    ['INLINE', 'inline', undefined],
    ['attachment; filename=a.txt', 'attachment', 'a.txt'],
    ['attachment;filename="a b.txt"', 'attachment', 'a b.txt'],
    ['ATTACHMENT; FILENAME="A.txt"', 'attachment', 'A.txt'],
    ['attachment; filename="a\\"b.txt"', 'attachment', 'a"b.txt'],
    ['attachment; filename=""', 'attachment', undefined],
    ['attachment; filename="..\\\\..\\\\a/b.txt"', 'attachment', 'b.txt'],
    ['attachment; filename="/etc/passwd"', 'attachment', 'passwd'],
    ['attachment; filename="C:\\\\dir\\\\a.txt"', 'attachment', 'a.txt'],
    ['attachment; filename="a/"', 'attachment', undefined],
    [`attachment; filename="euro.txt"; filename*=UTF-8''%e2%82%ac.txt`, 'attachment', '€.txt'],
    [`attachment; filename*=UTF-8''%e2%82%ac.txt; filename="euro.txt"`, 'attachment', '€.txt'],
    [`attachment; filename*=UTF-8'en'%e2%82%ac`, 'attachment', '€'],
    [`attachment; filename="a.txt"; filename*=UTF-8''%ff`, 'attachment', 'a.txt'],
    [`attachment; filename="a.txt"; filename*=UTF-16''x`, 'attachment', 'a.txt'],
    [`attachment; filename="a.txt"; filename*=UTF-8'x`, 'attachment', 'a.txt'],
    [`attachment; filename="a.txt"; filename*=UTF-8''%2`, 'attachment', 'a.txt'],
    [`attachment; filename*=UTF-8''%2`, 'attachment', undefined],
    [`attachment; filename*=UTF-8''..%2f..%5cb.txt`, 'attachment', 'b.txt'],
    ['form-data; name="x"; filename="a.txt"', 'form-data', 'a.txt'],
  ])('reads %j as %s %j (RFC 6266 §4, rows D1 to D5)', (field, type, filename) => {
    const disposition = parseContentDisposition(field)
    expect([disposition?.type, disposition?.filename]).toEqual([type, filename])
  })

  it('gives parameters by lower-case name, as sent (RFC 6266 §4.1, row D1)', () => {
    const disposition = parseContentDisposition(`Form-Data; NAME="X Y"; filename*=UTF-8''%41`)
    expect(disposition?.type).toBe('form-data')
    expect(Object.fromEntries(disposition!.parameters)).toEqual({ name: 'X Y', 'filename*': `UTF-8''%41` })
  })

  it.each([
    '',
    ';',
    '; filename=a',
    '"attachment"',
    'attachment; filename=a; filename=b',
    'attachment; filename=a; FILENAME="a"',
    `attachment; filename*=UTF-8''a; filename*=UTF-8''b`,
    'attachment; filename',
    'attachment; filename=',
    'attachment; filename="a',
    'attachment; filename=a b',
    'attachment; filename="a"b',
    'attachment, inline',
    'attachment filename=a',
    'attachment; filename="a\r\nb"',
  ])('refuses %j: malformed, or a parameter twice (RFC 6266 §4.1 and §4.2, row D7)', (field) => {
    expect(parseContentDisposition(field)).toBeUndefined()
  })
})

describe('parseExtendedValue', () => {
  it.each([
    [`UTF-8''a`, 'a'],
    [`utf-8'en'%e2%82%ac%20rates`, '€ rates'],
    [`UTF-8'de-CH'%C3%BC`, 'ü'],
    [`iso-8859-1'en'%A3%20rates`, '£ rates'],
    [`UTF-8''`, ''],
    [`UTF-8''!#$&+-.^_\`|~09azAZ`, '!#$&+-.^_`|~09azAZ'],
    [`UTF-8''%27%2A%25%28`, "'*%("],
  ])('reads %j (RFC 8187 §3.2, row D3)', (text, expected) => {
    expect(parseExtendedValue(text)).toBe(expected)
  })

  it.each([
    '',
    'a',
    `UTF-8'a`,
    `'en'a`,
    `UTF-16''a`,
    `us-ascii''a`,
    `UTF-8''%`,
    `UTF-8''%2`,
    `UTF-8''%zz`,
    `UTF-8''%ff`,
    `UTF-8''%c0%af`,
    `UTF-8''%ED%A0%80`,
    `UTF-8''a b`,
    `UTF-8''a*b`,
    `UTF-8''a'b`,
    `UTF-8''(a)`,
    `UTF-8''ü`,
    `UTF-8''a/b`,
    `"UTF-8''a"`,
  ])('refuses %j (RFC 8187 §3.2.1, row D4)', (text) => {
    expect(parseExtendedValue(text)).toBeUndefined()
  })
})

describe('cleanFilename', () => {
  it.each([
    ['a.txt', 'a.txt'],
    ['', ''],
    ['..', ''],
    ['.', ''],
    ['...', ''],
    ['. . .', ''],
    ['/', ''],
    ['\\', ''],
    ['a/', ''],
    ['a/b.txt', 'b.txt'],
    ['a\\b.txt', 'b.txt'],
    ['..\\..\\a/b.txt', 'b.txt'],
    ['../../etc/passwd', 'passwd'],
    ['.htaccess', 'htaccess'],
    [' .htaccess', 'htaccess'],
    ['. .htaccess', 'htaccess'],
    ['\u200b.htaccess', 'htaccess'],
    ['a..b', 'a..b'],
    ['  a b  ', 'a b'],
    ['a\r\nX-Evil: 1', 'aX-Evil: 1'],
    ['a\u0000.txt', 'a.txt'],
    ['a\u007f\u0085b', 'ab'],
    ['txt.\u202egpj.exe', 'txt.gpj.exe'],
    ['a\u2028b\u2066c\u200ed', 'abcd'],
    ['\ufeffa', 'a'],
    ['日本.txt', '日本.txt'],
    ['😀.png', '😀.png'],
    ['a\ud800b', 'ab'],
    ['a\udc00b', 'ab'],
    ['con', '_con'],
    ['CON', '_CON'],
    ['con.txt', '_con.txt'],
    ['nul.tar.gz', '_nul.tar.gz'],
    ['con .txt', '_con .txt'],
    ['aux:stream', '_aux:stream'],
    ['COM1', '_COM1'],
    ['com¹.txt', '_com¹.txt'],
    ['LPT9.', '_LPT9.'],
    ['CONIN$', '_CONIN$'],
    ['.con', '_con'],
    ['console', 'console'],
    ['com10', 'com10'],
    ['con_', 'con_'],
    ['a"b', 'a"b'],
  ])('makes %j safe: %j (RFC 6266 §4.3, rows D5, D6 and H11)', (name, expected) => {
    expect(cleanFilename(name)).toBe(expected)
  })

  it('keeps 255 characters and no half of one (row D6)', () => {
    expect(cleanFilename('x'.repeat(255))).toHaveLength(255)
    expect(cleanFilename('x'.repeat(256))).toHaveLength(255)
    expect(cleanFilename('x'.repeat(254) + '😀')).toBe('x'.repeat(254))
    expect(cleanFilename('x'.repeat(253) + '😀')).toBe('x'.repeat(253) + '😀')
    expect(cleanFilename('con.' + 'x'.repeat(300))).toHaveLength(255)
    expect(cleanFilename('con' + ' '.repeat(300) + 'x')).toBe('_con')
  })
})

describe('formatContentDisposition', () => {
  it.each<['inline' | 'attachment', string | undefined, string]>([
    ['inline', undefined, 'inline'],
    ['attachment', '', 'attachment'],
    ['attachment', '..', 'attachment'],
    ['attachment', 'a.txt', 'attachment; filename="a.txt"'],
    ['inline', 'a b; c.txt', 'inline; filename="a b; c.txt"'],
    ['attachment', 'ü.txt', `attachment; filename="_.txt"; filename*=UTF-8''%C3%BC.txt`],
    ['attachment', '日本.txt', `attachment; filename="__.txt"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.txt`],
    ['attachment', 'a"; x=y', `attachment; filename="a\\"; x=y"; filename*=UTF-8''a%22%3B%20x%3Dy`],
    ['attachment', '100%.txt', `attachment; filename="100_.txt"; filename*=UTF-8''100%25.txt`],
    ['attachment', "é('*%)", `attachment; filename="_('*_)"; filename*=UTF-8''%C3%A9%28%27%2A%25%29`],
    ['attachment', 'a\r\nX-Evil: 1', 'attachment; filename="aX-Evil: 1"'],
    ['attachment', '../../b.txt', 'attachment; filename="b.txt"'],
  ])(
    '%s, %j: %s (RFC 6266 §4.3 and Appendix D, RFC 8187 §3.2.1, rows D8 and D9, threat 118)',
    (type, name, expected) => {
      expect(formatContentDisposition(type, name)).toBe(expected)
    },
  )
})
