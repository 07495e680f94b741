import { describe, expect, it } from 'vitest'
import {
  formatChallenge,
  isToken68,
  parseAuthorization,
  parseAuthParameters,
} from '../../src/protocol/authorization.ts'

describe('parseAuthorization', () => {
  it.each([
    ['Basic YTpi', 'basic', 'YTpi'],
    ['bAsIc YTpi', 'basic', 'YTpi'],
    ['Bearer   a.b.c', 'bearer', 'a.b.c'],
    ['Bearer a b', 'bearer', 'a b'],
    ['Basic', 'basic', ''],
    ['Basic ', 'basic', ''],
    ['X-Own! v', 'x-own!', 'v'],
    ['Digest a="b", c=d', 'digest', 'a="b", c=d'],
  ])('splits %j into scheme and credentials (RFC 9110 §11.4, rows H83 and H85)', (field, scheme, value) => {
    expect(parseAuthorization(field)).toEqual({ scheme, value })
  })

  it.each(['', ' ', ' Basic a', 'Ba(sic a', '"Basic" a', 'Basic\ta', 'Basic,a', 'Basic=a', 'é a'])(
    'reads no scheme in %j',
    (field) => {
      expect(parseAuthorization(field)).toBeUndefined()
    },
  )
})

describe('isToken68', () => {
  it.each(['a', 'YTpi', 'YQ==', 'a-._~+/9Z', 'a='])('takes %j (RFC 9110 §11.2)', (text) => {
    expect(isToken68(text)).toBe(true)
  })

  it.each(['', '=', '==', 'a=b', 'a b', ' a', 'a ', 'a,b', 'ä', 'a\u0000', '"a"'])(
    'refuses %j (RFC 9110 §11.2)',
    (text) => {
      expect(isToken68(text)).toBe(false)
    },
  )
})

describe('parseAuthParameters', () => {
  const read = (text: string) => {
    const parameters = parseAuthParameters(text)
    return parameters && Object.fromEntries(parameters)
  }

  it.each<[string, Record<string, string>]>([
    ['', {}],
    ['a=b', { a: 'b' }],
    ['A="b", c = "d,e" ,, f\t=g', { a: 'b', c: 'd,e', f: 'g' }],
    ['a="say \\"hi\\" \\\\"', { a: 'say "hi" \\' }],
    ['a=""', { a: '' }],
    [', ,a=b,', { a: 'b' }],
    ['nc=00000001, qop=auth', { nc: '00000001', qop: 'auth' }],
  ])('reads %j (RFC 9110 §11.2, RFC 7616 §3.4)', (text, parameters) => {
    expect(read(text)).toEqual(parameters)
  })

  it.each(['a', 'a=', '=b', 'a=b c=d', 'a="b', 'a="b"c', 'a=b, A=c', 'a="b" "c"', 'a==b', '"a"=b', 'a=b;c=d', 'a=ä'])(
    'takes %j for malformed (row H85)',
    (text) => {
      expect(read(text)).toBeUndefined()
    },
  )

  it('holds names that every object has', () => {
    expect(parseAuthParameters('__proto__=a, constructor=b')?.get('__proto__')).toBe('a')
  })
})

describe('formatChallenge', () => {
  it('writes the scheme alone where there is nothing to say (RFC 4559 §4.1)', () => {
    expect(formatChallenge('Negotiate', [])).toBe('Negotiate')
  })

  it('quotes and escapes values (RFC 9110 §11.5, row H89)', () => {
    expect(formatChallenge('Basic', [{ name: 'realm', value: 'a"b\\c' }])).toBe('Basic realm="a\\"b\\\\c"')
    expect(formatChallenge('Basic', [{ name: 'realm', value: 'a\r\nX-Evil: 1' }])).toBe('Basic realm="aX-Evil: 1"')
  })

  it('leaves a token bare where the scheme wants it so, and only a token (RFC 7616 §3.3)', () => {
    const parameters = [
      { name: 'realm', value: 'r' },
      { name: 'algorithm', value: 'SHA-256', form: 'token' },
      { name: 'stale', value: 'not a token', form: 'token' },
    ] as const
    expect(formatChallenge('Digest', parameters)).toBe('Digest realm="r", algorithm=SHA-256, stale="not a token"')
  })

  it('is read back', () => {
    const text = formatChallenge('Basic', [{ name: 'realm', value: 'a, "b"' }])
    expect(parseAuthParameters(text.slice('Basic '.length))?.get('realm')).toBe('a, "b"')
  })
})
