import { describe, expect, it } from 'vitest'
import {
  defineMember,
  equalJson,
  formatPointerStep,
  isDeeperThan,
  isJsonObject,
  type JsonValue,
  joinMembers,
  readMember,
} from '../../src/core/json.ts'

describe('equalJson', () => {
  it.each<[string, string]>([
    ['1', '1.0'],
    ['"a"', '"\\u0061"'],
    ['[1,[2]]', '[1,[2]]'],
    ['{"a":1,"b":{"c":null}}', '{"b":{"c":null},"a":1}'],
    ['{"__proto__":1}', '{"__proto__":1}'],
    ['{"hasOwnProperty":1,"toJSON":2}', '{"toJSON":2,"hasOwnProperty":1}'],
    ['0', '-0'],
  ])('%s and %s are equal (RFC 6902 §4.6)', (a, b) => {
    expect(equalJson(JSON.parse(a), JSON.parse(b))).toBe(true)
  })

  it.each<[string, string]>([
    ['1', '"1"'],
    ['null', '{}'],
    ['[]', '{}'],
    ['[1,2]', '[2,1]'],
    ['[1]', '[1,1]'],
    ['{"a":1}', '{"b":1}'],
    ['{}', '{"a":1}'],
    ['{"toString":1}', '{"a":1}'],
    ['{"a":null}', '{"b":null}'],
    ['false', '0'],
    ['""', 'null'],
  ])('%s and %s are not', (a, b) => {
    expect([equalJson(JSON.parse(a), JSON.parse(b)), equalJson(JSON.parse(b), JSON.parse(a))]).toEqual([false, false])
  })
})

describe('members', () => {
  it('are those of the object alone (threat 30)', () => {
    expect(readMember({ a: 1 }, 'a')).toBe(1)
    for (const name of ['toString', 'constructor', '__proto__']) expect(readMember({}, name)).toBeUndefined()
  })

  it('may have any name, and change no prototype (invariant I3)', () => {
    for (const name of ['a', '__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const object: Record<string, JsonValue> = {}
      defineMember(object, name, { polluted: true })
      expect([Object.keys(object), readMember(object, name)]).toEqual([[name], { polluted: true }])
      expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
      delete object[name]
      expect(Object.keys(object)).toEqual([])
    }
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })

  it('belong to objects, not to arrays and null', () => {
    expect([{}, [], null, 'a', 1, undefined].map(isJsonObject)).toEqual([true, false, false, false, false, false])
  })
})

describe('isDeeperThan', () => {
  it.each([
    ['1', 0, false],
    ['[]', 0, true],
    ['[]', 1, false],
    ['[[]]', 1, true],
    ['{"a":{"b":[]}}', 3, false],
    ['{"a":{"b":[]}}', 2, true],
    ['[null,"a",[]]', 1, true],
  ])('%s, %i: %s', (text, limit, expected) => {
    expect(isDeeperThan(JSON.parse(text), limit)).toBe(expected)
  })
})

describe('formatPointerStep', () => {
  it('escapes tilde before slash (RFC 6901 §3)', () => {
    expect(['a', 'a/b', 'm~n', '~1', '', 0].map(formatPointerStep)).toEqual(['/a', '/a~1b', '/m~0n', '/~01', '/', '/0'])
  })
})

describe('joinMembers', () => {
  it.each([
    ['{"a":1,"b":2}', '{"c":3}', '{"a":1,"b":2,"c":3}'],
    ['{"a":1,"b":2}', '{"b":3,"a":4}', '{"a":4,"b":3}'],
    ['{"__proto__":1}', '{"toString":2}', '{"__proto__":1,"toString":2}'],
    ['{"a":1}', '{"__proto__":{"b":2}}', '{"a":1,"__proto__":{"b":2}}'],
  ])('joins %s and %s to %s', (a, b, joined) => {
    const given = [a, b].map((text) => JSON.parse(text))
    expect(JSON.stringify(joinMembers(given[0], given[1]))).toBe(joined)
    expect(given.map((value) => JSON.stringify(value))).toEqual([a, b])
  })
})
