import { describe, expect, it } from 'vitest'
import { collectFields, type FormField, parseForm } from '../../src/body-types/form.ts'
import { DEFAULT_LIMITS } from '../../src/body-types/limits.ts'
import { HttpError } from '../../src/core/errors.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { statusOf } from './feed.ts'

const pairs = (text: string | Uint8Array, charset?: string): [string, string][] =>
  parseForm(Buffer.from(text), DEFAULT_LIMITS, charset).map(({ name, value }) => [name, value])

const refusal = (text: string | Uint8Array, charset?: string) => statusOf(() => pairs(text, charset))

describe('parseForm', () => {
  it.each<[string, [string, string][], string]>([
    ['', [], 'nothing'],
    ['a=1', [['a', '1']], 'one parameter'],
    [
      'a=1&b=2&a=3',
      [
        ['a', '1'],
        ['b', '2'],
        ['a', '3'],
      ],
      'order and repeated names (U2)',
    ],
    ['a=b+c', [['a', 'b c']], 'plus is a space (U1)'],
    ['a+b=%2B', [['a b', '+']], 'an escaped plus is a plus'],
    ['a=%zz+b', [['a', '%zz b']], 'an invalid escape is literal (U1)'],
    ['a=%', [['a', '%']], 'a lone percent sign'],
    ['a=%4', [['a', '%4']], 'half an escape'],
    ['a=%%41', [['a', '%A']], 'a percent sign before an escape'],
    ['a=100%25', [['a', '100%']], 'an escaped percent sign'],
    ['a=%e2%82%ac', [['a', '€']], 'escaped UTF-8 (U1)'],
    ['a=%E2%82%AC', [['a', '€']], 'upper-case escapes'],
    ['a=€', [['a', '€']], 'UTF-8 as it is'],
    ['%66oo=bar', [['foo', 'bar']], 'an escaped name'],
    ['a', [['a', '']], 'a name alone'],
    ['a=', [['a', '']], 'an empty value'],
    ['=b', [['', 'b']], 'an empty name'],
    ['=', [['', '']], 'an empty name and value'],
    [
      '&&a=1&&b=2&',
      [
        ['a', '1'],
        ['b', '2'],
      ],
      'empty parameters',
    ],
    ['a=b=c', [['a', 'b=c']], 'an equals sign in a value'],
    ['?a=1', [['?a', '1']], 'a leading question mark (threat 80)'],
    [
      'a[b]=1&a[]=2',
      [
        ['a[b]', '1'],
        ['a[]', '2'],
      ],
      'brackets mean nothing (threat 78)',
    ],
    [
      'a[__proto__][x]=1&a[99999999]=2',
      [
        ['a[__proto__][x]', '1'],
        ['a[99999999]', '2'],
      ],
      'flat names (threat 76)',
    ],
    ['a.b=1', [['a.b', '1']], 'dots mean nothing'],
    [
      '__proto__=1&constructor=2',
      [
        ['__proto__', '1'],
        ['constructor', '2'],
      ],
      'any name (U4)',
    ],
    [
      '_charset_=iso-8859-1&a=%c3%bc',
      [
        ['_charset_', 'iso-8859-1'],
        ['a', 'ü'],
      ],
      '_charset_ is data (F6)',
    ],
    ['a=%ef%bf%bd', [['a', '\ufffd']], 'an escaped U+FFFD is not an error'],
    ['a=\ufeffb', [['a', '\ufeffb']], 'a BOM is kept'],
    ['a=%00', [['a', '\0']], 'NUL is data'],
    ['a=1;b=2', [['a', '1;b=2']], 'a semicolon separates nothing'],
    ['a=%0D%0A', [['a', '\r\n']], 'line breaks'],
    ['a=+%20+', [['a', '   ']], 'blanks'],
    ['a=%F0%9F%98%80', [['a', '😀']], 'outside the basic plane'],
  ])('reads %j: %3$s (URL Standard §5.1)', (text, expected) => {
    expect(pairs(text)).toEqual(expected)
  })

  it.each<[string | Uint8Array, number, string]>([
    ['a=%ff', 400, 'an escaped byte that is not UTF-8 (threat 80)'],
    ['a=%c3', 400, 'a character cut short'],
    ['a=%c0%80', 400, 'an overlong form'],
    ['a=%ed%a0%80', 400, 'a surrogate'],
    ['%ff=a', 400, 'the same in a name'],
    [Uint8Array.of(0x61, 0x3d, 0xff), 400, 'a byte that is not UTF-8 (threat 65)'],
  ])('refuses %j with %i: %s', async (text, status) => {
    expect(await refusal(text)).toBe(status)
  })

  it.each([
    ['utf-8', undefined],
    ['UTF-8', undefined],
    ['utf8', undefined],
    ['us-ascii', undefined],
    ['iso-8859-1', 415],
    ['utf-16le', 415],
    ['x-none', 415],
    ['', 415],
  ])('takes charset=%s or not (threat 65)', async (charset, status) => {
    expect(await refusal('a=1', charset)).toBe(status)
  })

  it('refuses bytes beyond ASCII under us-ascii with 400 (threat 65)', async () => {
    expect(await refusal('a=ü', 'us-ascii')).toBe(400)
  })

  it('takes 1000 parameters and refuses 1001 with 413 (threat 78)', async () => {
    const flood = (count: number) => Array.from({ length: count }, (_, i) => `p${i}=1`).join('&')
    expect(pairs(flood(1000))).toHaveLength(1000)
    expect(await refusal(flood(1001))).toBe(413)
  })

  it('counts parameters before it makes anything of them (threat 78)', MEASURED, async () => {
    const elapsed = startProcessorClock()
    expect(await refusal('&'.repeat(8 * 1024 * 1024))).toBe(413)
    expect(elapsed()).toBeLessThan(1000)
  })

  it('takes a name of 200 characters and refuses 201 with 400 (F10)', async () => {
    expect(pairs(`${'n'.repeat(200)}=1`)).toHaveLength(1)
    expect(await refusal(`${'n'.repeat(201)}=1`)).toBe(400)
  })

  it.each(['+', '%', 'a+', '%4', '%41', '%41x%', '%c3%a9+'])(
    'reads 4 MB of %j for at most three times what the URL Standard costs (issue "One anonymous connection")',
    MEASURED,
    (unit) => {
      const content = Buffer.from(`a=${unit.repeat(4e6 / unit.length)}`)
      const time = startProcessorClock()
      const expected = new URLSearchParams(content.toString()).get('a')
      const allowed = 3 * time() + 100
      const timeOfForm = startProcessorClock()
      const [field] = parseForm(content, DEFAULT_LIMITS)
      expect(timeOfForm()).toBeLessThan(allowed)
      expect(field?.value === expected).toBe(true)
    },
  )

  it('names nothing of the content in its errors (threat 66)', () => {
    expect(() => pairs('hunter2=%ff')).toThrow(HttpError)
    expect(() => pairs('hunter2=%ff')).not.toThrow(/hunter2/)
  })
})

describe('collectFields', () => {
  const field = (name: string, value: string): FormField => ({ kind: 'field', name, value })

  it('gives one value as a string and several as an array in order (U2)', () => {
    expect(collectFields([field('a', '1'), field('b', '2'), field('a', '3'), field('a', '4')])).toEqual({
      a: ['1', '3', '4'],
      b: '2',
    })
  })

  it.each(['__proto__', 'constructor', 'prototype', 'hasOwnProperty', 'toString', ''])(
    'makes %j an own member and pollutes nothing (F14, U4)',
    (name) => {
      const before = Object.getOwnPropertyNames(Object.prototype)
      const values = collectFields([field(name, 'x'), field(name, 'y')])
      expect(Object.keys(values)).toEqual([name])
      expect(Object.getOwnPropertyDescriptor(values, name)?.value).toEqual(['x', 'y'])
      expect(Object.getPrototypeOf(values)).toBe(Object.prototype)
      expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
    },
  )

  it('survives a copy and JSON with every member', () => {
    const values = collectFields([field('__proto__', 'x'), field('a', '1')])
    expect(JSON.stringify({ ...values })).toBe('{"__proto__":"x","a":"1"}')
  })
})
