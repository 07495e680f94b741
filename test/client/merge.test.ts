import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { merge } from '../../src/client.ts'
import { equalJson, type JsonValue } from '../../src/core/json.ts'

const json = fc.jsonValue({ maxDepth: 3 }).map((value) => value as JsonValue)

describe('merge', () => {
  it('combines changes of different properties, at every depth (issue 21: merge)', () => {
    const base = { a: 1, b: { c: 1, d: 1 }, e: [1], gone: true }
    const mine = { a: 2, b: { c: 2, d: 1 }, e: [1], gone: true, added: 1 }
    const theirs = { a: 1, b: { c: 1, d: 3 }, e: [1, 2] }
    expect(merge(base, mine, theirs)).toEqual({
      value: { a: 2, b: { c: 2, d: 3 }, e: [1, 2], added: 1 },
      conflicts: [],
    })
  })

  it('counts equal changes once', () => {
    expect(merge({ a: 1, b: 1 }, { a: 2 }, { a: 2 })).toEqual({ value: { a: 2 }, conflicts: [] })
  })

  it('names each conflict by its JSON Pointer, and keeps theirs there (RFC 6901)', () => {
    const merged = merge({ 'a/b': { '~': 1 }, list: [1] }, { 'a/b': { '~': 2 }, list: [2] }, { 'a/b': {}, list: [3] })
    expect(merged).toEqual({
      value: { 'a/b': {}, list: [3] },
      conflicts: [
        { pointer: '/a~1b/~0', base: 1, mine: 2, theirs: undefined },
        { pointer: '/list', base: [1], mine: [2], theirs: [3] },
      ],
    })
  })

  it('takes a removal beside a change for a conflict, and a document of another kind for one', () => {
    expect(merge({ a: { b: 1 } }, {}, { a: { b: 2 } }).conflicts).toEqual([
      { pointer: '/a', base: { b: 1 }, mine: undefined, theirs: { b: 2 } },
    ])
    expect(merge({ a: 1 }, [1], 'x').conflicts).toEqual([{ pointer: '', base: { a: 1 }, mine: [1], theirs: 'x' }])
  })

  it('keeps properties whatever they are called', () => {
    const theirs = JSON.parse('{"__proto__":{"x":1},"toString":1}') as JsonValue
    const { value, conflicts } = merge({}, { constructor: 2 }, theirs)
    expect(conflicts).toEqual([])
    expect(Object.keys(value as object).sort()).toEqual(['__proto__', 'constructor', 'toString'])
    expect(Reflect.get({}, 'x')).toBeUndefined()
  })

  it('gives the change of the one side that changed, and is symmetric without conflicts', () => {
    fc.assert(
      fc.property(json, json, (base, changed) => {
        expect(equalJson(merge(base, changed, base).value, changed)).toBe(true)
        expect(equalJson(merge(base, base, changed).value, changed)).toBe(true)
        expect(merge(base, changed, changed).conflicts).toEqual([])
      }),
    )
    fc.assert(
      fc.property(json, json, json, (base, mine, theirs) => {
        const there = merge(base, mine, theirs)
        const back = merge(base, theirs, mine)
        expect(there.conflicts.length).toBe(back.conflicts.length)
        if (there.conflicts.length === 0) expect(equalJson(there.value, back.value)).toBe(true)
      }),
    )
  })
})
