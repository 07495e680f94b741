import { describe, expect, it } from 'vitest'
import {
  formatQuotedString,
  isToken,
  isTokenCode,
  parseParameters,
  parseQuotedString,
  skipToken,
  skipWhitespace,
  splitList,
  trimWhitespace,
} from '../../src/protocol/field-value.ts'

const ALPHANUMERIC = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const TCHARS = `!#$%&'*+-.^_\`|~${ALPHANUMERIC}`

describe('isTokenCode', () => {
  it('knows exactly the 77 characters of tchar (RFC 9110 §5.6.2)', () => {
    const found = Array.from({ length: 0x10000 }, (_, code) => code).filter(isTokenCode)
    expect(found).toEqual([...TCHARS].map((char) => char.charCodeAt(0)).sort((a, b) => a - b))
    expect(found).toHaveLength(77)
  })
})

describe('isToken', () => {
  it.each(['a', 'If-Match', TCHARS, '*', '0'])('takes %j (RFC 9110 §5.6.2)', (text) => {
    expect(isToken(text)).toBe(true)
  })

  it.each(['', ' ', 'a b', 'a/b', 'a:', '"a"', 'a,b', 'a;b', 'a=b', 'a@b', '(a)', 'ä', 'a\u007f', 'a\n', 'a\u{1f600}'])(
    'refuses %j (RFC 9110 §5.6.2)',
    (text) => {
      expect(isToken(text)).toBe(false)
    },
  )
})

describe('skipWhitespace', () => {
  it.each([
    ['', 0, 0],
    ['a', 0, 0],
    [' \t a', 0, 3],
    ['a  b', 1, 3],
    ['   ', 0, 3],
    ['\u00a0a', 0, 0],
    ['\na', 0, 0],
    ['a', 5, 5],
  ])('skips spaces and tabs alone: %j from %i to %i (RFC 9110 §5.6.3)', (text, at, expected) => {
    expect(skipWhitespace(text, at)).toBe(expected)
  })
})

describe('skipToken', () => {
  it.each([
    ['abc', 0, 3],
    ['abc=d', 0, 3],
    ['abc=d', 4, 5],
    ['=', 0, 0],
    ['', 0, 0],
  ])('stops after the token: %j from %i to %i', (text, at, expected) => {
    expect(skipToken(text, at)).toBe(expected)
  })
})

describe('trimWhitespace', () => {
  it.each([
    ['', ''],
    [' \t ', ''],
    ['a', 'a'],
    [' a b\t', 'a b'],
    ['\u00a0a\u00a0', '\u00a0a\u00a0'],
    ['\na\r', '\na\r'],
  ])('takes spaces and tabs from both ends: %j (RFC 9110 §5.6.3)', (text, expected) => {
    expect(trimWhitespace(text)).toBe(expected)
  })
})

describe('parseQuotedString', () => {
  it.each([
    ['""', '', 2],
    ['"a"', 'a', 3],
    ['"a" b', 'a', 3],
    ['"a\tb"', 'a\tb', 5],
    ['"a, b; c=d"', 'a, b; c=d', 11],
    ['"utf\\-8"', 'utf-8', 8],
    ['"\\""', '"', 4],
    ['"\\\\"', '\\', 4],
    ['"a\\\\\\"b"', 'a\\"b', 8],
    ['"ü\u00ff"', 'ü\u00ff', 4],
  ])('reads and unescapes %j (RFC 9110 §5.6.4, row H13)', (text, value, end) => {
    expect(parseQuotedString(text, 0)).toEqual({ value, end })
  })

  it.each(['', 'a', '"', '"a', '"a\\', '"a\\"', '"\n"', '"\u0000"', '"\u007f"', '"\\\n"', '"\\\u007f"', "'a'"])(
    'refuses %j (RFC 9110 §5.6.4)',
    (text) => {
      expect(parseQuotedString(text, 0)).toBeUndefined()
    },
  )

  it('reads from the given place', () => {
    expect(parseQuotedString('x="y"', 2)).toEqual({ value: 'y', end: 5 })
    expect(parseQuotedString('x="y"', 9)).toBeUndefined()
  })
})

describe('formatQuotedString', () => {
  it.each([
    ['', '""'],
    ['a b', '"a b"'],
    ['a"b', '"a\\"b"'],
    ['a\\b', '"a\\\\b"'],
    ['a\r\nX-Evil: 1', '"aX-Evil: 1"'],
    ['a\u0000b\u007f', '"ab"'],
    ['a\tb', '"a\tb"'],
    ['é€', '"é"'],
  ])('writes %j so that no field is broken by it (RFC 9110 §5.6.4, rows H11 and H89)', (text, expected) => {
    expect(formatQuotedString(text)).toBe(expected)
  })
})

describe('parseParameters', () => {
  const read = (text: string) => {
    const parsed = parseParameters(text, 0)
    return parsed && [Object.fromEntries(parsed.parameters), parsed.end]
  }

  it.each<[string, Record<string, string>, number]>([
    ['', {}, 0],
    [';a=b', { a: 'b' }, 4],
    [' ; a=b', { a: 'b' }, 6],
    [';\ta=b \t;\tc=d', { a: 'b', c: 'd' }, 12],
    [';CHARSET="UTF-8"', { charset: 'UTF-8' }, 16],
    [';a="b;c=d, e"', { a: 'b;c=d, e' }, 13],
    [';a=""', { a: '' }, 5],
    [';a="\\""', { a: '"' }, 7],
    [';', {}, 1],
    [';;;', {}, 3],
    [' ; ; a=b ; ', { a: 'b' }, 11],
    [';a=b, c', { a: 'b' }, 4],
    [';a=b c', { a: 'b' }, 4],
    [';a=b"', { a: 'b' }, 4],
    [';__proto__=x', { ['__proto__']: 'x' }, 12],
  ])('reads %j (RFC 9110 §5.6.6, row H14)', (text, parameters, end) => {
    expect(read(text)).toEqual([parameters, end])
  })

  it.each([';a', ';a=', ';a =b', ';a= b', ';a="b', ';a="b\\"', ';a=b;a=c', ';a=b;A=c', ';a="b"; a', ';a=,', ';a;b=c'])(
    'refuses %j (RFC 9110 §5.6.6)',
    (text) => {
      expect(read(text)).toBeUndefined()
    },
  )

  it('begins at the given index', () => {
    const parsed = parseParameters('text/plain; a=b', 10)
    expect(parsed?.parameters.get('a')).toBe('b')
    expect(parsed?.end).toBe(15)
  })
})

describe('splitList', () => {
  it.each<[string, string[]]>([
    ['', []],
    [' \t', []],
    [',', []],
    [', ,\t,', []],
    ['a', ['a']],
    ['a,b', ['a', 'b']],
    [' a , b ', ['a', 'b']],
    ['a\t,\tb', ['a', 'b']],
    [',a,,b,', ['a', 'b']],
    [', ,application/json,', ['application/json']],
    ['a b', ['a b']],
    ['"a,b",c', ['"a,b"', 'c']],
    ['a="b,c", d', ['a="b,c"', 'd']],
    ['"a\\",b",c', ['"a\\",b"', 'c']],
    ['"a\\\\",b', ['"a\\\\"', 'b']],
    ['a,"b,c', ['a', '"b,c']],
    ['a,"b\\', ['a', '"b\\']],
    ['a,"b\\,c', ['a', '"b\\,c']],
    ['a\\,b', ['a\\', 'b']],
    ['"",""', ['""', '""']],
  ])('splits %j outside quotes and drops empty members (RFC 9110 §5.6.1.2, row H12)', (text, members) => {
    expect(splitList(text)).toEqual(members)
  })

  it('reads several lines as one combined list (RFC 9110 §5.3, row H8)', () => {
    expect(splitList(['a, b', '', 'c'].join(', '))).toEqual(['a', 'b', 'c'])
  })
})
