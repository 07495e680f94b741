import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/core/json.ts'
import { mergePatch } from '../../src/patch-formats/merge-patch.ts'
import { faultOf } from './fault.ts'

const format = mergePatch()
const apply = (document: JsonValue, patch: JsonValue): JsonValue => format.parse(patch).apply(document)
const nested = (depth: number): JsonValue => (depth === 0 ? 1 : { a: nested(depth - 1) })

describe('mergePatch, RFC 7396 appendix A (row M7)', () => {
  const vectors: [JsonValue, JsonValue, JsonValue][] = [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ]
  it.each(vectors)('%j with %j is %j', (document, patch, expected) => {
    const before = JSON.stringify([document, patch])
    expect(apply(document, patch)).toEqual(expected)
    expect(JSON.stringify([document, patch])).toBe(before)
  })
})

describe('mergePatch', () => {
  it('gives the example of RFC 7396 §3', () => {
    const document = {
      title: 'Goodbye!',
      author: { givenName: 'John', familyName: 'Doe' },
      tags: ['example', 'sample'],
      content: 'This will be unchanged',
    }
    const patch = { title: 'Hello!', phoneNumber: '+01-123-456-7890', author: { familyName: null }, tags: ['example'] }
    expect(apply(document, patch)).toEqual({
      title: 'Hello!',
      author: { givenName: 'John' },
      tags: ['example'],
      content: 'This will be unchanged',
      phoneNumber: '+01-123-456-7890',
    })
  })

  it('makes an object of a target that is none (RFC 7396 §2, row M5)', () => {
    for (const document of ['x', null, 1, [1]]) {
      expect(apply(document, { a: 1 })).toEqual({ a: 1 })
      expect(apply(document, {})).toEqual({})
    }
  })

  it('keeps null in arrays, drops it in objects (RFC 7396 §2, row M6)', () => {
    expect(apply({}, { a: [null, { b: null }], c: { d: null, e: 1 } })).toEqual({ a: [null, { b: null }], c: { e: 1 } })
  })

  it('shares what it does not touch', () => {
    const document = { left: { a: 1 }, right: { b: 1 } }
    const result = apply(document, { left: { a: 2 } }) as typeof document
    expect(result).toEqual({ left: { a: 2 }, right: { b: 1 } })
    expect(result.right).toBe(document.right)
  })

  const idle: [string, JsonValue][] = [
    ['nothing (row M10)', {}],
    ['an equal value', { a: 1 }],
    ['an equal array', { list: [1, { x: 1 }] }],
    ['an equal member far down', { deep: { er: { x: 'y' } } }],
    ['the removal of what is not there', { z: null, deep: { z: null } }],
  ]
  it.each(idle)('gives the same document back for %s', (_, patch) => {
    const document = { a: 1, list: [1, { x: 1 }], deep: { er: { x: 'y' } } }
    expect(apply(document, patch)).toBe(document)
  })

  it('gives the same document back where the patch is that document (row M4)', () => {
    const document = [1, { a: 2 }]
    expect(apply(document, [1, { a: 2 }])).toBe(document)
  })

  it('may be applied repeatedly', () => {
    const parsed = format.parse({ a: { b: 1 } })
    expect([{}, { a: { c: 2 } }, { a: 3 }].map((document) => parsed.apply(document as JsonValue))).toEqual([
      { a: { b: 1 } },
      { a: { b: 1, c: 2 } },
      { a: { b: 1 } },
    ])
  })
})

describe('mergePatch, own members only (row M9, threats 90 and 91)', () => {
  it.each(['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'toJSON'])(
    'writes, merges and removes %s as a member like any other',
    (name) => {
      const patch = JSON.parse(`{"a":1,"${name}":{"x":1},"z":2}`)
      const added = apply({}, patch) as Record<string, JsonValue>
      expect(Object.keys(added)).toEqual(['a', name, 'z'])
      expect(Object.getPrototypeOf(added)).toBe(Object.prototype)
      const merged = apply(added, JSON.parse(`{"${name}":{"y":2}}`)) as Record<string, JsonValue>
      expect(Object.getOwnPropertyDescriptor(merged, name)?.value).toEqual({ x: 1, y: 2 })
      expect(Object.getOwnPropertyDescriptor(added, name)?.value).toEqual({ x: 1 })
      expect(apply(merged, JSON.parse(`{"${name}":null}`))).toEqual({ a: 1, z: 2 })
      const untouched = {}
      expect(apply(untouched, JSON.parse(`{"${name}":null}`))).toBe(untouched)
      expect(Reflect.get({}, 'x')).toBeUndefined()
      expect(Reflect.get(Object, 'x')).toBeUndefined()
    },
  )
})

describe('mergePatch, limits', () => {
  it('takes patches 100 levels deep, and none 101 levels deep', () => {
    expect(apply({}, nested(100))).toEqual(nested(100))
    expect(faultOf(() => format.parse(nested(101)))).toMatchObject({ status: 413, code: 'ERR_TOO_LARGE' })
  })

  it('refuses options that make no sense', () => {
    expect(() => mergePatch({ maxDepth: 0 })).toThrow(TypeError)
    expect(() => mergePatch({ maxDepth: 1001 })).toThrow(TypeError)
    expect(() => mergePatch({ depth: 1 } as object)).toThrow(TypeError)
  })
})
