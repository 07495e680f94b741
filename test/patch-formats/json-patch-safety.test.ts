import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/core/json.ts'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { createDefaultFormats } from '../../src/patch-formats/patch-format.ts'
import { MEASURED } from '../support/measured.ts'
import { startProcessorClock } from '../support/processor-time.ts'
import { faultOf } from './fault.ts'

const format = jsonPatch()
const apply = (document: JsonValue, ...operations: JsonValue[]): JsonValue => format.parse(operations).apply(document)
const nested = (depth: number): JsonValue => (depth === 0 ? 1 : [nested(depth - 1)])

describe('jsonPatch, own members only (row J21, threats 85 and 91)', () => {
  const names = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'toJSON', 'valueOf']

  it.each(names)('writes, reads and removes %s as a member like any other', (name) => {
    const added = apply({}, { op: 'add', path: `/${name}`, value: { x: 1 } }) as Record<string, JsonValue>
    expect(Object.keys(added)).toEqual([name])
    expect(Object.getPrototypeOf(added)).toBe(Object.prototype)
    const changed = apply(added, { op: 'replace', path: `/${name}/x`, value: 2 }) as Record<string, JsonValue>
    expect(Object.getOwnPropertyDescriptor(changed, name)?.value).toEqual({ x: 2 })
    expect(Object.getOwnPropertyDescriptor(added, name)?.value).toEqual({ x: 1 })
    expect(apply(changed, { op: 'test', path: `/${name}`, value: { x: 2 } })).toBe(changed)
    const copied = apply(changed, { op: 'copy', from: `/${name}`, path: '/y' }, { op: 'remove', path: `/${name}` })
    expect(copied).toEqual({ y: { x: 2 } })
    const moved = apply({ y: 1 }, { op: 'move', from: '/y', path: `/${name}` }) as object
    expect(Object.getOwnPropertyDescriptor(moved, name)?.value).toBe(1)
    expect(Reflect.get({}, 'x')).toBeUndefined()
  })

  const documents: [string, JsonValue][] = [
    ['an object', {}],
    ['a nested object', { a: {} }],
    ['an array', [1]],
    ['a string', 'abc'],
  ]
  describe.each(documents)('on %s', (_, document) => {
    it.each(names)('finds nothing at %s that is not there', (name) => {
      const at = typeof document === 'object' && 'a' in (document as object) ? `/a/${name}` : `/${name}`
      for (const operation of [
        { op: 'add', path: `${at}/polluted`, value: 1 },
        { op: 'replace', path: at, value: 1 },
        { op: 'replace', path: `${at}/polluted`, value: 1 },
        { op: 'remove', path: at },
        { op: 'remove', path: `${at}/toString` },
        { op: 'move', from: at, path: '/x' },
        { op: 'copy', from: at, path: '/x' },
        { op: 'copy', from: `${at}/prototype`, path: '/x' },
        { op: 'test', path: at, value: {} },
      ]) {
        expect(faultOf(() => apply(document, operation)).status).toBe(409)
      }
      expect(Reflect.get({}, 'polluted')).toBeUndefined()
      expect(Reflect.get([], 'polluted')).toBeUndefined()
    })
  })

  it('keeps members with such names inside values', () => {
    const value = JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}')
    const result = apply({ keep: 1 }, { op: 'add', path: '/v', value }, { op: 'add', path: '/v/z', value: 1 })
    expect(JSON.stringify(result)).toBe(
      '{"keep":1,"v":{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}},"z":1}}',
    )
    expect(Reflect.get({}, 'isAdmin')).toBeUndefined()
    expect(Reflect.get((result as { v: object }).v, 'isAdmin')).toBeUndefined()
  })
})

describe('jsonPatch, limits (row J24, threats 87 and 88)', () => {
  const tooLarge = { status: 413, code: 'ERR_TOO_LARGE' }

  it('takes 1000 operations, and not 1001', () => {
    const operations = Array.from({ length: 1001 }, () => ({ op: 'add', path: '/-', value: 0 }))
    expect(apply([], ...operations.slice(1))).toHaveLength(1000)
    expect(faultOf(() => format.parse(operations))).toMatchObject(tooLarge)
  })

  it('takes a pointer of 4096 characters, and not of 4097', () => {
    const longest = `/${'x'.repeat(4095)}`
    expect(apply({}, { op: 'add', path: longest, value: 1 })).toEqual({ [longest.slice(1)]: 1 })
    for (const member of ['path', 'from']) {
      const operation = { op: 'copy', from: '/a', path: '/b', [member]: `${longest}x` }
      expect(faultOf(() => format.parse([operation]))).toMatchObject({ ...tooLarge, extensions: { index: 0 } })
    }
  })

  it('takes a pointer of 100 parts, and not of 101', () => {
    expect(faultOf(() => apply({}, { op: 'add', path: '/a'.repeat(100), value: 1 })).status).toBe(409)
    expect(faultOf(() => format.parse([{ op: 'add', path: '/a'.repeat(101), value: 1 }]))).toMatchObject(tooLarge)
  })

  it('takes values that end 100 levels deep, and none that end 101 levels deep', () => {
    expect(apply({}, { op: 'add', path: '/a', value: nested(99) })).toEqual({ a: nested(99) })
    expect(faultOf(() => format.parse([{ op: 'add', path: '/a', value: nested(100) }]))).toMatchObject(tooLarge)
    expect(faultOf(() => format.parse([{ op: 'test', path: '/a', value: nested(100) }]))).toMatchObject(tooLarge)
  })

  it.each(['move', 'copy'])('takes a %s to 100 levels deep, and none to 101', (op) => {
    const deepest = { a: nested(98), b: { c: {} } }
    expect(apply(deepest, { op, from: '/a', path: '/b/c' })).toMatchObject({ b: { c: nested(98) } })
    const deeper = { a: nested(99), b: { c: {} } }
    expect(faultOf(() => apply(deeper, { op, from: '/a', path: '/b/c' }))).toMatchObject(tooLarge)
  })

  it('gives a value of a document that is nested deeper already another name', () => {
    expect(apply({ a: nested(101) }, { op: 'move', from: '/a', path: '/b' })).toEqual({ b: nested(101) })
  })

  it('refuses a document that moves wrap repeatedly, whatever is done with it next', () => {
    const operations: JsonValue[] = [{ op: 'add', path: '/a', value: nested(90) }]
    for (let i = 0; i < 333; i++) {
      operations.push({ op: 'add', path: '/w', value: { x: 0 } })
      operations.push({ op: 'move', from: '/a', path: '/w/x' }, { op: 'move', from: '/w', path: '/a' })
    }
    operations.length = 1000
    expect(faultOf(() => apply({}, ...operations))).toMatchObject(tooLarge)
  })

  const grown: [string, JsonValue, number][] = [
    ['a number', 1, 8],
    ['a string', 'x'.repeat(10), 20],
    ['a string full of escapes', '\u0001'.repeat(10), 70],
    ['an array', [1, 2], 24],
    ['an object with its names', { xxxxxxxxxx: 1 }, 36],
    ['an object with names full of escapes', { ['\u0001'.repeat(10)]: 1 }, 86],
  ]
  it.each(grown)('counts what a copy adds to the text: %s', (_, value, growth) => {
    const copy = [{ op: 'copy', from: '/a', path: '/b' }]
    const document = { a: value }
    expect(jsonPatch({ maxGrowth: growth }).parse(copy).apply(document)).toEqual({ a: value, b: value })
    expect(
      faultOf(() =>
        jsonPatch({ maxGrowth: growth - 1 })
          .parse(copy)
          .apply(document),
      ),
    ).toMatchObject(tooLarge)
    expect(
      faultOf(() =>
        jsonPatch({ maxGrowth: growth })
          .parse([...copy, ...copy])
          .apply(document),
      ),
    ).toMatchObject(tooLarge)
  })

  it('counts the members and items that all copies add together', () => {
    const copy = (times: number) =>
      Array.from({ length: times }, (_, i) => ({ op: 'copy', from: '/a', path: `/b${i}` }))
    const document = { a: [1, { x: 2 }] }
    const run = (maxMembers: number, times: number) => jsonPatch({ maxMembers }).parse(copy(times)).apply(document)
    expect(run(8, 2)).toEqual({ a: [1, { x: 2 }], b0: [1, { x: 2 }], b1: [1, { x: 2 }] })
    expect(faultOf(() => run(7, 2))).toMatchObject(tooLarge)
  })

  it('lets copies add 8 Mi characters and 100 000 members, unless an option says otherwise', () => {
    const copies = (times: number): JsonValue[] =>
      Array.from({ length: times }, (_, i) => ({ op: 'copy', from: '/a', path: `/${i}` }))
    const text = { a: 'x'.repeat(1024 * 1024 - 11) }
    expect(Object.keys(apply(text, ...copies(8)) as object)).toHaveLength(9)
    expect(faultOf(() => apply(text, ...copies(9)))).toMatchObject(tooLarge)
    const items = { a: new Array<number>(1000).fill(1) }
    expect(Object.keys(apply(items, ...copies(99)) as object)).toHaveLength(100)
    expect(faultOf(() => apply(items, ...copies(101)))).toMatchObject(tooLarge)
  })

  const bombs: [string, JsonValue, (index: number) => JsonValue][] = [
    ['objects', { x: 'x'.repeat(1000) }, (index) => ({ op: 'copy', from: '', path: `/k${index}` })],
    ['arrays', [1], () => ({ op: 'copy', from: '', path: '/-' })],
    ['escapes', { x: ['\u0001'.repeat(1000)] }, (index) => ({ op: 'copy', from: '/x', path: `/x/${index}` })],
    ['names', { x: { ['\u0001'.repeat(1000)]: 1 } }, (index) => ({ op: 'copy', from: '', path: `/k${index}` })],
  ]
  it.each(bombs)('stops copies that double the document, made of %s', MEASURED, (_, document, copy) => {
    const operations = Array.from({ length: 30 }, (_, index) => copy(index + 1))
    const elapsed = startProcessorClock()
    expect(faultOf(() => apply(document, ...operations))).toMatchObject(tooLarge)
    expect(elapsed()).toBeLessThan(1000)
  })

  it('copies what it changes once, not once per operation (threat 88)', MEASURED, () => {
    const document = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, index]))
    const operations = Array.from({ length: 1000 }, (_, index) => ({ op: 'replace', path: `/k${index}`, value: 'x' }))
    const elapsed = startProcessorClock()
    expect(apply(document, ...operations)).toMatchObject({ k999: 'x', k1000: 1000 })
    expect(elapsed()).toBeLessThan(1000)
  })

  it('stops removals at the front of an enormous array as well', () => {
    const removals = Array.from({ length: 600 }, () => ({ op: 'remove', path: '/0' }))
    expect(apply(Array(50_000).fill(1), ...removals)).toHaveLength(49_400)
    expect(faultOf(() => apply(Array(100_000).fill(1), ...removals))).toMatchObject(tooLarge)
  })

  it('takes 1000 insertions at the front of a long array, and stops them in an enormous one', () => {
    const operations = Array.from({ length: 1000 }, () => ({ op: 'add', path: '/0', value: 0 }))
    expect(apply(Array(49_000).fill(1), ...operations)).toHaveLength(50_000)
    expect(faultOf(() => apply(Array(100_000).fill(1), ...operations))).toMatchObject(tooLarge)
  })
})

describe('createDefaultFormats', () => {
  it.each([
    [0, 1],
    [5, 5],
    [Number.POSITIVE_INFINITY, 1000],
  ])('given a depth of %s takes %s levels', (depth, maxDepth) => {
    for (const format of createDefaultFormats({ depth, jsonMembers: 10 })) {
      const isJsonPatch = format.mediaType.includes('json-patch')
      const patch = (value: JsonValue) => (isJsonPatch ? [{ op: 'add', path: '', value }] : value)
      expect(format.parse(patch(nested(maxDepth))).apply({})).toEqual(nested(maxDepth))
      expect(faultOf(() => format.parse(patch(nested(maxDepth + 1)))).status).toBe(413)
    }
  })
})

describe('jsonPatch, options', () => {
  it('refuses what makes no sense', () => {
    expect(() => jsonPatch({ maxOperations: -1 })).toThrow(TypeError)
    expect(() => jsonPatch({ maxDepth: 1001 })).toThrow(TypeError)
    expect(() => jsonPatch({ maxGrowth: Number.NaN })).toThrow(TypeError)
    expect(() => jsonPatch({ maxOps: 1 } as object)).toThrow(TypeError)
  })
})
