import { describe, expect, it } from 'vitest'
import { isInMediaRange, isJsonType, isMediaRange, parseMediaType, withUtf8 } from '../../src/protocol/media-type.ts'

describe('parseMediaType', () => {
  it.each<[string, string, Record<string, string>]>([
    ['text/plain', 'text/plain', {}],
    ['APPLICATION/JSON', 'application/json', {}],
    ['application/json; CHARSET="UTF-8"', 'application/json', { charset: 'UTF-8' }],
    ['text/plain;charset=utf-8', 'text/plain', { charset: 'utf-8' }],
    ['text/plain; charset="utf\\-8"', 'text/plain', { charset: 'utf-8' }],
    ['text/plain \t;\t charset=utf-8', 'text/plain', { charset: 'utf-8' }],
    ['text/plain;', 'text/plain', {}],
    ['text/plain ; ; a=b ;', 'text/plain', { a: 'b' }],
    [' text/plain ', 'text/plain', {}],
    ['multipart/form-data; boundary="a b; c"', 'multipart/form-data', { boundary: 'a b; c' }],
    [
      'multipart/form-data; boundary=----WebKitFormBoundary7MA4',
      'multipart/form-data',
      { boundary: '----WebKitFormBoundary7MA4' },
    ],
    ['application/vnd.api+json;version=1', 'application/vnd.api+json', { version: '1' }],
    ['x!#$&^_.+-/y', 'x!#$&^_.+-/y', {}],
    ['*/*', '*/*', {}],
    ['text/x; a=""', 'text/x', { a: '' }],
  ])('reads %j (RFC 9110 §8.3.1, rows H13, H14 and H29)', (text, essence, parameters) => {
    const type = parseMediaType(text)
    expect(type?.essence).toBe(essence)
    expect(Object.fromEntries(type!.parameters)).toEqual(parameters)
  })

  it.each([
    '',
    ' ',
    'text',
    'text/',
    '/plain',
    '/',
    'text /plain',
    'text/ plain',
    'text/plain/x',
    'text/plain, text/html',
    'text/plain charset=utf-8',
    'text/plain; charset',
    'text/plain; charset=',
    'text/plain; charset =utf-8',
    'text/plain; charset="utf-8',
    'text/plain; charset=a; charset=b',
    'text/plain; charset=a; Charset=a',
    'text/html\t; x="',
    'text/pl\u00e4in',
    'text/plain\n',
    'text/plain; a=b\r\nX-Evil: 1',
    '"text/plain"',
    'text/(plain)',
  ])('refuses %j (RFC 9110 §8.3.1, threat 116)', (text) => {
    expect(parseMediaType(text)).toBeUndefined()
  })

  it('takes 255 characters and no more (threat 116)', () => {
    const prefix = 'text/'
    expect(parseMediaType(prefix + 'x'.repeat(255 - prefix.length))).toBeDefined()
    expect(parseMediaType(prefix + 'x'.repeat(256 - prefix.length))).toBeUndefined()
  })
})

describe('isJsonType', () => {
  it.each(['application/json', 'text/json', 'application/problem+json', 'application/merge-patch+json'])(
    'takes %s (RFC 6839, row U9)',
    (type) => {
      expect(isJsonType(type)).toBe(true)
    },
  )

  it.each([
    'application/jsonp',
    'application/x-json',
    'text/plain',
    'application/json-seq',
    'json',
    'application/json+xml',
  ])('refuses %s', (type) => {
    expect(isJsonType(type)).toBe(false)
  })
})

describe('isInMediaRange', () => {
  it.each<[string, string, boolean]>([
    ['*/*', 'text/plain', true],
    ['text/*', 'text/plain', true],
    ['text/*', 'texts/plain', false],
    ['text/*', 'application/text', false],
    ['text/plain', 'text/plain', true],
    ['text/plain', 'text/plain2', false],
    ['text/plain', 'text/html', false],
    ['*/*+json', 'application/problem+json', true],
    ['*/*+json', 'application/json', false],
    ['*/*+json', 'application/xml', false],
  ])('%s covers %s: %s (RFC 9110 §12.5.1)', (range, type, expected) => {
    expect(isInMediaRange(range, type)).toBe(expected)
  })
})

describe('isMediaRange', () => {
  it.each(['*/*', 'text/*', 'text/plain', '*/*+json', 'application/vnd.x+json'])('takes %s', (text) => {
    expect(isMediaRange(text)).toBe(true)
  })

  it.each(['', '*', 'text', 'text/', '/plain', 'a/b/c', 'text/plain;q=1', 'text /plain', 'text/plain, text/html'])(
    'refuses %j',
    (text) => {
      expect(isMediaRange(text)).toBe(false)
    },
  )
})

describe('withUtf8', () => {
  it.each([
    ['text/plain', 'text/plain; charset=utf-8'],
    ['text/plain; charset=UTF8', 'text/plain; charset=UTF8'],
    ['text/plain; Charset=latin1; a=b', 'text/plain; a=b; charset=utf-8'],
    ['text/x; a="b; c"', 'text/x; a="b; c"; charset=utf-8'],
    ['text/x; a="b\tc\\"\\\\"', 'text/x; a="b\tc\\"\\\\"; charset=utf-8'],
    ['image/png', 'image/png'],
    ['application/json', 'application/json'],
    ['application/xml; charset=latin1', 'application/xml; charset=utf-8'],
    ['text', 'text'],
  ])('makes of %j %j (RFC 9110 §8.3)', (field, expected) => {
    expect(withUtf8(field)).toBe(expected)
  })
})
