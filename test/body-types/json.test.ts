import { describe, expect, it } from 'vitest'
import { checkJson, checkParsedJson, parseJson } from '../../src/body-types/json.ts'
import { DEFAULT_LIMITS } from '../../src/body-types/limits.ts'
import { HttpError } from '../../src/core/errors.ts'
import type { JsonValue } from '../../src/core/json.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { statusOf } from './feed.ts'

const parse = (text: string | Uint8Array) => parseJson(Buffer.from(text))
const refusal = (text: string | Uint8Array) => statusOf(() => parse(text))
const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth)
/** A document with so much text around a value that its brackets are few. */
const padded = (text: string, size = 20_000) => `{"padding":"${'x'.repeat(size)}","a":${text}}`

function errorOf(run: () => unknown): HttpError {
  try {
    run()
  } catch (error) {
    if (error instanceof HttpError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('parseJson', () => {
  it.each<[string, JsonValue]>([
    ['{}', {}],
    ['[]', []],
    ['"a"', 'a'],
    ['5', 5],
    ['-0.5e-3', -0.0005],
    ['true', true],
    ['null', null],
    [' \r\n\t{ "a" : [ 1 , 2 ] } ', { a: [1, 2] }],
    ['{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}', { a: { a: { a: 1 } }, b: [{ a: 1 }, { a: 2 }] }],
    ['{"":1,"a:b":":{}[]","c":"\\"{:"}', { '': 1, 'a:b': ':{}[]', c: '"{:' }],
    ['{"a\\\\":1,"b":"\\\\\\""}', { 'a\\': 1, b: '\\"' }],
    ['{"\\u0061":1}', { a: 1 }],
    ['"\\ud83d\\ude00 😀"', '😀 😀'],
    ['"\\u00e9 \\u0001 \\ufffd"', 'é \u0001 \ufffd'],
    [`{"a":"${'x'.repeat(1000)}\\"${'y'.repeat(1000)}","b":1}`, { a: `${'x'.repeat(1000)}"${'y'.repeat(1000)}`, b: 1 }],
    [`{"${'k'.repeat(100)}":":"}`, { ['k'.repeat(100)]: ':' }],
    // A backslash before a quote escapes it only where it is not escaped itself, wherever in a string that is.
    ...Array.from({ length: 20 }, (_, length) => 'x'.repeat(length)).flatMap((start): [string, JsonValue][] => [
      [`{"a":"${start}\\":b"}`, { a: `${start}":b` }],
      [`{"a":"${start}\\\\","b":"::"}`, { a: `${start}\\`, b: '::' }],
      [`{"a":"${start}\\\\\\":b"}`, { a: `${start}\\":b` }],
      [`{"a":"${start}\\\\\\\\","b":"::"}`, { a: `${start}\\\\`, b: '::' }],
    ]),
  ])('reads %s (RFC 8259)', (text, value) => {
    expect(parse(text)).toEqual({ value, text, isVerbatim: true })
  })

  it.each([
    ['', 'nothing (U8)'],
    [' ', 'blanks only'],
    ['{"a":1', 'an object cut short'],
    ['{"a":1}}', 'something after the end'],
    ['{"a":1,}', 'a trailing comma'],
    ['{a:1}', 'a name without quotes'],
    ["{'a':1}", 'single quotes'],
    ['[1 2]', 'a missing comma'],
    ['"a', 'a string cut short'],
    ['"a\\', 'an escape cut short'],
    ['"\n"', 'a line break in a string'],
    ['"\0"', 'a NUL in a string'],
    ['"\\x41"', 'an unknown escape'],
    ['01', 'a leading zero'],
    ['NaN', 'not a number'],
    ['Infinity', 'infinity'],
    ['undefined', 'undefined'],
    ['// x\n1', 'a comment'],
    ['\ufeff\ufeff1', 'two byte order marks'],
    ['{"a":1,"a":2', 'both malformed and with a repeated name'],
  ])('refuses %j with 400: %s', async (text) => {
    expect(await refusal(text)).toBe(400)
  })

  it.each<[string, number[]]>([
    ['a lone continuation byte in a string', [0x22, 0xff, 0x22]],
    ['a character cut short', [0x22, 0xc3, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0x80, 0x22]],
    ['a surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['UTF-16 with a mark', [0xff, 0xfe, 0x22, 0, 0x22, 0]],
    ['UTF-16', [0x22, 0, 0x61, 0, 0x22, 0]],
    ['half a byte order mark', [0xef, 0xbb, 0x31]],
  ])('refuses %s with 400 (RFC 8259 §8.1, threat 65)', async (_, bytes) => {
    expect(await refusal(Uint8Array.from(bytes))).toBe(400)
  })

  it('ignores a byte order mark, and says that the text is not what was sent (U6)', () => {
    expect(parse('\ufeff{"a":1}')).toEqual({ value: { a: 1 }, text: '{"a":1}', isVerbatim: false })
  })

  it.each([
    '{"role":"admin","role":"user"}',
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"":1,"":2}',
    '{"x":[0,{"y":{"a":1,"b":2,"a":3}}]}',
    '{"__proto__":1,"__proto__":2}',
    '{"1":1,"1":2}',
    '{"a":"\\u0000","a":1}',
    '{"a":"0123456789\\\\","a":":"}',
    '{"a":"0123456789\\":b","a":1}',
  ])('refuses a name that occurs twice in one object with 400: %s (RFC 8259 §4, threat 61, U7)', async (text) => {
    expect(await refusal(text)).toBe(400)
  })

  it.each(['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString', 'valueOf', 'toJSON'])(
    'makes %s an own member like any other and pollutes nothing (threat 62)',
    (name) => {
      const before = Object.getOwnPropertyNames(Object.prototype)
      const { value } = parse(`{"${name}":{"isAdmin":true},"a":1}`)
      expect(Object.keys(value as object)).toEqual([name, 'a'])
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect((value as { isAdmin?: boolean }).isAdmin).toBeUndefined()
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
    },
  )

  it('counts own members only, whatever somebody has done to Object.prototype', async () => {
    const shared = Object.prototype as { polluted?: unknown }
    shared.polluted = 1
    try {
      expect(JSON.stringify(parse('{"a":{"b":1}}').value)).toBe('{"a":{"b":1}}')
      expect(await refusal('{"a":1,"a":2}')).toBe(400)
    } finally {
      delete shared.polluted
    }
  })

  it.each([
    ['{"priority":1e400}', '/priority'],
    ['-1e400', ''],
    ['[0,[1e999]]', '/1/0'],
    ['{"a/b":{"~":[1e400]}}', '/a~1b/~0/0'],
    ['{"a":"\\u0000"}', '/a'],
    ['{"a\\u0000":1}', '/a\0'],
    ['["\\ud800"]', '/0'],
    ['["\\udc00\\ud800"]', '/0'],
    ['{"a":["x","\\uD83D"]}', '/a/1'],
  ])('refuses what not every store can keep with 422 and a pointer: %s (threats 63, 64)', (text, pointer) => {
    const error = errorOf(() => parse(text))
    expect(error.status).toBe(422)
    expect(error.errors).toMatchObject([{ pointer }])
  })

  it('takes numbers up to the largest', () => {
    expect(parse('[1.7976931348623157e308,-1.7976931348623157e308,1e-400]').value).toEqual([
      Number.MAX_VALUE,
      -Number.MAX_VALUE,
      0,
    ])
  })

  it.each([
    ['[', ']'],
    ['{"a":', '}'],
  ])('takes 100 levels of %s and refuses 101 with 400 (threat 60, U10)', async (open, close) => {
    const leaf = (depth: number) => open.repeat(depth) + '1' + close.repeat(depth)
    expect(await refusal(leaf(100))).toBeUndefined()
    expect(await refusal(leaf(101))).toBe(400)
  })

  it.each([
    ['[', ']'],
    ['{"a":', '}'],
  ])('takes 100 levels of %s in a long document, and refuses 101 with 400', async (open, close) => {
    const leaf = (depth: number) => padded(open.repeat(depth - 1) + '1e400' + close.repeat(depth - 1))
    expect(await refusal(leaf(100).replace('1e400', '1'))).toBeUndefined()
    expect(await refusal(leaf(100))).toBe(422)
    expect(await refusal(leaf(101))).toBe(400)
    expect(errorOf(() => parse(`[1e400,${leaf(100)}]`)).detail).toBe('The content is nested more than 100 levels deep.')
  })

  it('counts depth, not containers', async () => {
    expect(await refusal(`[${Array.from({ length: 500 }, () => nested(99)).join(',')}]`)).toBeUndefined()
    expect(await refusal(`"${nested(500)}"`)).toBeUndefined()
  })

  it.each([
    ['100 000 arrays', nested(100_000)],
    ['100 000 arrays that never end', '['.repeat(100_000)],
    ['100 000 objects', '{"a":'.repeat(100_000)],
    ['100 000 arrays that end in a document of 3 MB', padded(nested(100_000 - 4), 3_000_000)],
    ['a million brackets after an unterminated string', `"${'['.repeat(1_000_000)}`],
  ])('survives %s, soon (U10)', MEASURED, async (_, text) => {
    const elapsed = startProcessorClock()
    expect(await refusal(text)).toBe(400)
    expect(elapsed()).toBeLessThan(500)
  })

  it('takes a depth of its own, at most 1000', async () => {
    const depthOf = (depth: number, limit: number) =>
      statusOf(() => parseJson(Buffer.from(nested(depth)), { ...DEFAULT_LIMITS, depth: limit }))
    expect(await depthOf(2, 2)).toBeUndefined()
    expect(await depthOf(3, 2)).toBe(400)
    expect(await depthOf(1000, Number.POSITIVE_INFINITY)).toBeUndefined()
    expect(await depthOf(1001, Number.POSITIVE_INFINITY)).toBe(400)
  })

  it('names nothing of the content in its errors (threat 66)', () => {
    for (const text of ['{"hunter2', '{"hunter2":1e400}hunter2', '["hunter2"', '{"x":"hunter2","x":"hunter2"}']) {
      const error = errorOf(() => parse(text))
      expect(JSON.stringify([error.message, error.detail])).not.toContain('hunter2')
    }
  })

  it('reads plain bytes that are a view into something larger', () => {
    const bytes = new Uint8Array(Buffer.from('..{"a":1}..')).subarray(2, 9)
    expect(parseJson(bytes).value).toEqual({ a: 1 })
  })
})

describe('the limit of members and array items', () => {
  it('is exact in text that is short', () => {
    const parse = (jsonMembers: number) => parseJson(Buffer.from('{"a":1,"b":2}'), { ...DEFAULT_LIMITS, jsonMembers })
    expect(parse(2).value).toEqual({ a: 1, b: 2 })
    expect(errorOf(() => parse(1)).status).toBe(413)
  })

  it('is exact in text that opens too many arrays to be parsed before it is scanned', () => {
    const text = `[${new Array(300).fill('[]').join(',')}]`
    const parse = (jsonMembers: number) => parseJson(Buffer.from(text), { ...DEFAULT_LIMITS, jsonMembers })
    expect(parse(300).value).toHaveLength(300)
    expect(errorOf(() => parse(299)).status).toBe(413)
  })

  it('comes before a text that cannot be stored, and only where there are more', () => {
    const check = (jsonMembers: number) => checkParsedJson(['\ud800', 1], { ...DEFAULT_LIMITS, jsonMembers })
    expect(errorOf(() => check(2)).status).toBe(422)
    expect(errorOf(() => check(1)).status).toBe(413)
  })
})

describe('checkJson', () => {
  const check = (text: string) => statusOf(() => checkJson(Buffer.from(text)))

  it.each(['{"a":1,"a":2}', '1e400', '"\\ud800"', '9007199254740993', '\ufeff{}'])(
    'lets pass what is kept as it was sent: %s (threat 63)',
    async (text) => {
      expect(await check(text)).toBeUndefined()
    },
  )

  it.each(['', '{', '{"a":', nested(101), '\ufeff'])('refuses what is not JSON with 400: %s', async (text) => {
    expect(await check(text)).toBe(400)
  })

  it('refuses nesting in a member that another of the same name hides', async () => {
    const text = padded(nested(101)).replace(/}$/, ',"a":1}')
    expect(await statusOf(() => checkJson(Buffer.from(text)))).toBe(400)
    expect(await statusOf(() => checkJson(Buffer.from(padded(nested(99)))))).toBeUndefined()
  })

  it('refuses invalid UTF-8 with 400', async () => {
    expect(await statusOf(() => checkJson(Uint8Array.of(0x22, 0xff, 0x22)))).toBe(400)
  })
})

describe('checkParsedJson', () => {
  it.each<[unknown, number | undefined]>([
    [{ a: [1, 'x', null, true] }, undefined],
    [Number.POSITIVE_INFINITY, 422],
    [{ a: Number.NaN }, 422],
    [['\0'], 422],
    [{ '\ud800': 1 }, 422],
    [JSON.parse(nested(100)), undefined],
    [JSON.parse(nested(101)), 400],
  ])('holds a value that another parser made to the same rules: %j', async (value, status) => {
    expect(await statusOf(() => checkParsedJson(value))).toBe(status)
  })

  it.each([undefined, () => 1, Symbol('x'), 1n, { a: undefined }])('refuses what is not JSON at all: %s', (value) => {
    expect(() => checkParsedJson(value)).toThrow(TypeError)
  })
})

describe('member names that occur twice', () => {
  // Few brackets and no colon in a string is settled by counting; the others by a look through the text.
  it.each([
    ['among few members', '{"a":1,"b":2}', '{"a":1,"a":2}'],
    ['beside colons in strings', '{"a":"::","b":2}', '{"a":"::","a":2}'],
    ['beside as many colons as are missing', '{"a":":","b":2}', '{"a":":","a":2}'],
    ['beside dates and URLs', '{"a":"T12:30:00","b":"s://x"}', '{"a":"T12:30:00","a":"s://x"}'],
    ['with blanks before a colon, beside a string that begins with one', '{"a" :1,"b":":"}', '{"a" :1,"a":":"}'],
    ['with line breaks before a colon', '{"a"\n:1,"b"\t:":"}', '{"a"\r:1,"a"\n:"::"}'],
    ['in a long document', padded('{"b":1,"c":2}'), padded('{"b":1,"b":2}')],
    ['among more brackets than may be nested', `[${'[],'.repeat(150)}{"a":1}]`, `[${'[],'.repeat(150)}{"a":1,"a":2}]`],
  ])('are refused, and others are not: %s', (_where, sound, twice) => {
    expect(parseJson(Buffer.from(sound)).value).toEqual(JSON.parse(sound))
    expect(() => parseJson(Buffer.from(twice))).toThrow('A member name occurs twice in one object.')
  })
})
