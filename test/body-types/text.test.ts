import { describe, expect, it } from 'vitest'
import { decodeText, isUtf8Charset } from '../../src/body-types/text.ts'
import { statusOf } from './feed.ts'

describe('decodeText', () => {
  it.each<[string | undefined, number[], string]>([
    [undefined, [0xc3, 0xbc], 'ü'],
    ['utf-8', [0xe2, 0x82, 0xac], '€'],
    ['UTF8', [0x61], 'a'],
    ['us-ascii', [0x61, 0x7f], 'a\x7f'],
    ['US-ASCII', [], ''],
    ['iso-8859-1', [0xa3, 0x80], '£\x80'],
    ['ISO-8859-1', [0xff], 'ÿ'],
    ['windows-1252', [0x80, 0x81, 0x91, 0x9f, 0xe4], '€\x81‘Ÿä'],
    ['cp1252', [0x93], '“'],
    ['iso-8859-15', [0xa4], '€'],
    ['utf-16le', [0xac, 0x20], '€'],
    ['utf-16be', [0x20, 0xac], '€'],
    ['shift_jis', [0x93, 0xfa], '日'],
  ])('decodes charset=%s (RFC 9110 §8.3.2, row H30)', (charset, bytes, text) => {
    expect(decodeText(Uint8Array.from(bytes), charset)).toBe(text)
  })

  it.each<[string, number[], number]>([
    ['x-none', [0x61], 415],
    ['utf-7', [0x61], 415],
    ['', [0x61], 415],
    ['utf-8', [0xff], 400],
    ['utf-8', [0xc3], 400],
    ['utf-8', [0xc0, 0x80], 400],
    ['us-ascii', [0x80], 400],
    ['utf-16le', [0x00, 0xd8], 400],
    ['shift_jis', [0x93], 400],
  ])('refuses charset=%s with bytes %j: %i (row H30, threat 65)', async (charset, bytes, status) => {
    expect(await statusOf(() => decodeText(Uint8Array.from(bytes), charset))).toBe(status)
  })

  it('keeps text verbatim, a BOM included: bytes in, the same bytes out (row U5)', () => {
    const bytes = Buffer.from('\ufeff<script>\r\n\tü\0</script>\n')
    expect(Buffer.from(decodeText(bytes))).toEqual(bytes)
  })

  it('decodes a view that does not begin where its buffer does', () => {
    const bytes = new Uint8Array(Buffer.from('..ab..')).subarray(2, 4)
    for (const charset of ['utf-8', 'us-ascii', 'iso-8859-1', 'windows-1252'])
      expect(decodeText(bytes, charset)).toBe('ab')
  })
})

describe('isUtf8Charset', () => {
  it.each([
    [undefined, true],
    ['utf-8', true],
    ['UTF-8', true],
    ['utf8', true],
    ['us-ascii', true],
    ['iso-8859-1', false],
    ['utf-16', false],
    ['', false],
  ])('judges %s (RFC 8259 §8.1)', (charset, expected) => {
    expect(isUtf8Charset(charset)).toBe(expected)
  })
})
