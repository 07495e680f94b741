import { describe, expect, it } from 'vitest'
import { formatPointer, parseArrayIndex, parsePointer } from '../../src/patch-formats/json-pointer.ts'

describe('parsePointer', () => {
  // RFC 6901 §5
  const pointers: [string, string[]][] = [
    ['', []],
    ['/foo', ['foo']],
    ['/foo/0', ['foo', '0']],
    ['/', ['']],
    ['//', ['', '']],
    ['/a~1b', ['a/b']],
    ['/c%d', ['c%d']],
    ['/e^f', ['e^f']],
    ['/g|h', ['g|h']],
    ['/i\\j', ['i\\j']],
    ['/k"l', ['k"l']],
    ['/ ', [' ']],
    ['/m~0n', ['m~n']],
    ['/~01', ['~1']],
    ['/~10', ['/0']],
    ['/~0~1~00', ['~/~0']],
  ]
  it.each(pointers)('reads "%s" (RFC 6901 §4, §5)', (text, tokens) => {
    expect(parsePointer(text)).toEqual(tokens)
    expect(formatPointer(tokens)).toBe(text)
  })

  it.each(['a', 'a/b', '#/a', ' /a', '/~', '/~2', '/a~', '/~~0', '/a/~x/b'])('refuses "%s" (RFC 6901 §3)', (text) => {
    expect(parsePointer(text)).toBeUndefined()
  })
})

describe('parseArrayIndex', () => {
  it.each([
    ['0', 0],
    ['1', 1],
    ['10', 10],
    ['4294967295', 4294967295],
  ] as const)('reads %s', (token, index) => {
    expect(parseArrayIndex(token)).toBe(index)
  })

  it.each(['', '-', '-1', '+1', '01', '00', '1.0', '1e0', '0x1', ' 1', '1 ', '\u0661', 'length'])(
    'refuses "%s" (RFC 6901 §4)',
    (token) => {
      expect(parseArrayIndex(token)).toBeUndefined()
    },
  )
})
