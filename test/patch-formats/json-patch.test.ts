import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/core/json.ts'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { faultOf } from './fault.ts'

const format = jsonPatch()
const apply = (document: JsonValue, ...operations: JsonValue[]): JsonValue => format.parse(operations).apply(document)

describe('jsonPatch, operations', () => {
  const cases: [string, JsonValue, JsonValue[], JsonValue][] = [
    ['ignores members it does not know (§4, J4)', {}, [{ op: 'add', path: '/x', value: 1, xyz: 2 }], { x: 1 }],
    ['add replaces a member (§4.1, J5)', { a: 1 }, [{ op: 'add', path: '/a', value: 2 }], { a: 2 }],
    ['add inserts at an index (§4.1, J6)', [1, 3], [{ op: 'add', path: '/1', value: 2 }], [1, 2, 3]],
    ['add takes the length as an index (§4.1, J6)', [1], [{ op: 'add', path: '/1', value: 2 }], [1, 2]],
    ['add appends at "-" (§4.1, J7)', [1], [{ op: 'add', path: '/-', value: 2 }], [1, 2]],
    ['add at "" replaces the document (§4.1, J9)', { a: 1 }, [{ op: 'add', path: '', value: [] }], []],
    ['add takes null (J10)', {}, [{ op: 'add', path: '/a', value: null }], { a: null }],
    ['replace takes null (J10)', { a: 1 }, [{ op: 'replace', path: '/a', value: null }], { a: null }],
    ['replace at "" replaces the document (§4.3)', { a: 1 }, [{ op: 'replace', path: '', value: 'x' }], 'x'],
    ['remove shifts an array (§4.2, J11)', [1, 2, 3], [{ op: 'remove', path: '/1' }], [1, 3]],
    ['move renames (§4.4)', { a: { b: 1 } }, [{ op: 'move', from: '/a/b', path: '/c' }], { a: {}, c: 1 }],
    ['move removes before it adds (§4.4)', [1, 2, 3], [{ op: 'move', from: '/0', path: '/2' }], [2, 3, 1]],
    [
      'move lifts a child over its parent (§4.4)',
      { a: { b: 1 } },
      [{ op: 'move', from: '/a/b', path: '/a' }],
      { a: 1 },
    ],
    ['move lifts a child to the root', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '' }], { b: 1 }],
    ['copy replaces the whole by a part', { a: [1] }, [{ op: 'copy', from: '/a', path: '' }], [1]],
    [
      'copy of the root into itself is not a cycle',
      { a: 1 },
      [{ op: 'copy', from: '', path: '/b' }],
      { a: 1, b: { a: 1 } },
    ],
    ['"~1" and "~0" (RFC 6901 §4, J18)', { 'a/b': 1, '~1': 2 }, [{ op: 'remove', path: '/~01' }], { 'a/b': 1 }],
    ['the empty name is a name (RFC 6901 §5)', { '': { '': 1 } }, [{ op: 'remove', path: '//' }], { '': {} }],
    ['digits are a name in an object', {}, [{ op: 'add', path: '/01', value: 1 }], { '01': 1 }],
    ['"-" is a name in an object', {}, [{ op: 'add', path: '/-', value: 1 }], { '-': 1 }],
  ]
  it.each(cases)('%s', (_, document, operations, expected) => {
    expect(apply(document, ...operations)).toEqual(expected)
  })

  it('makes of a copy a value of its own (§4.5, row J14)', () => {
    const document = { a: { list: [1] } }
    const copy = { op: 'copy', from: '/a', path: '/b' }
    expect(apply(document, copy, { op: 'add', path: '/b/list/-', value: 2 })).toEqual({
      a: { list: [1] },
      b: { list: [1, 2] },
    })
    expect(apply(document, copy, { op: 'add', path: '/a/list/-', value: 2 })).toEqual({
      a: { list: [1, 2] },
      b: { list: [1] },
    })
    // Copied after it was changed: what is changed already must not be shared either.
    const change = { op: 'add', path: '/a/list/-', value: 2 }
    expect(
      apply(document, change, copy, { op: 'remove', path: '/a/list/0' }, { op: 'add', path: '/b/x', value: 1 }),
    ).toEqual({
      a: { list: [2] },
      b: { list: [1, 2], x: 1 },
    })
  })

  it('leaves the patch as it is: it may be applied again (§4.1)', () => {
    const value = { list: [1] }
    const parsed = format.parse([
      { op: 'add', path: '/a', value },
      { op: 'add', path: '/a/list/-', value: 2 },
    ])
    expect(parsed.apply({})).toEqual({ a: { list: [1, 2] } })
    expect(parsed.apply({ b: 1 })).toEqual({ a: { list: [1, 2] }, b: 1 })
    expect(value).toEqual({ list: [1] })
  })

  it('shares what it does not touch, and never changes the document', () => {
    const document = { left: { a: 1 }, right: { b: 1 } }
    const result = apply(document, { op: 'replace', path: '/left/a', value: 2 }) as typeof document
    expect(result).toEqual({ left: { a: 2 }, right: { b: 1 } })
    expect(result.right).toBe(document.right)
    expect(document).toEqual({ left: { a: 1 }, right: { b: 1 } })
  })
})

describe('jsonPatch, test', () => {
  const equal: [string, JsonValue, JsonValue][] = [
    ['numbers by value', 1, 1.0],
    ['zero has no sign', 0, -0],
    ['objects in any order', { a: 1, b: [2] }, { b: [2], a: 1 }],
    ['null', null, null],
    ['members that are called like methods', { toJSON: 1, hasOwnProperty: 2 }, { hasOwnProperty: 2, toJSON: 1 }],
  ]
  it.each(equal)('compares %s (RFC 6902 §4.6, row J15)', (_, a, b) => {
    expect(apply({ a }, { op: 'test', path: '/a', value: b })).toEqual({ a })
  })

  const different: [string, JsonValue, JsonValue][] = [
    ['a string and a number', 1, '1'],
    ['arrays in another order', [1, 2], [2, 1]],
    ['composed and decomposed characters', '\u00e9', 'e\u0301'],
    ['null and false', null, false],
    ['an array and an object', [], {}],
    ['an inherited member', { toString: 1 }, { b: 1 }],
    ['one member more', { a: 1 }, { a: 1, b: 2 }],
  ]
  it.each(different)('tells apart %s (RFC 6902 §4.6, row J15)', (_, a, b) => {
    const fault = faultOf(() => apply({ a }, { op: 'test', path: '/a', value: b }))
    expect(fault).toMatchObject({ status: 409, code: 'ERR_PATCH_CONFLICT', extensions: { index: 0, path: '/a' } })
  })
})

describe('jsonPatch, malformed patches', () => {
  const cases: [string, JsonValue, string][] = [
    ['an object (§3, J1)', {}, ''],
    ['a string (§3, J1)', 'x', ''],
    ['null (§3, J1)', null, ''],
    ['an operation that is not an object (§3, J1)', [1], '/0'],
    ['an operation that is an array', [[]], '/0'],
    ['no op (§4, J2)', [{ path: '/a' }], '/0/op'],
    ['an unknown op (§4, J2)', [{ op: 'spam', path: '/a' }], '/0/op'],
    ['an op in capitals (§4)', [{ op: 'ADD', path: '/a', value: 1 }], '/0/op'],
    ['an inherited name as op (threat 86)', [{ op: 'toString', path: '/a' }], '/0/op'],
    ['constructor as op (threat 86)', [{ op: 'constructor', path: '/a' }], '/0/op'],
    ['an op that is not a string', [{ op: ['add'], path: '/a', value: 1 }], '/0/op'],
    ['no path (§4, J3)', [{ op: 'remove' }], '/0/path'],
    ['a path that is not a string', [{ op: 'remove', path: null }], '/0/path'],
    ['a path without a slash (RFC 6901 §3, J3)', [{ op: 'remove', path: 'a/b' }], '/0/path'],
    ['"~2" in a path (RFC 6901 §3, J20)', [{ op: 'remove', path: '/a~2' }], '/0/path'],
    ['"~" at the end of a path (RFC 6901 §3, J20)', [{ op: 'remove', path: '/a~' }], '/0/path'],
    ['add without a value (§4.1, J10)', [{ op: 'add', path: '/a' }], '/0/value'],
    ['replace without a value (§4.3, J10)', [{ op: 'replace', path: '/a' }], '/0/value'],
    ['test without a value (§4.6, J10)', [{ op: 'test', path: '/a' }], '/0/value'],
    ['move without from (§4.4)', [{ op: 'move', path: '/a' }], '/0/from'],
    ['copy with a from that is not a pointer (§4.5)', [{ op: 'copy', path: '/a', from: 'b' }], '/0/from'],
    ['a move into itself (§4.4, J13)', [{ op: 'move', from: '/a', path: '/a/b' }], '/0/from'],
    ['a move of the root into itself (threat 94)', [{ op: 'move', from: '', path: '/a' }], '/0/from'],
    [
      'any later operation',
      [{ op: 'add', path: '/a', value: 1 }, { op: 'remove', path: '/a' }, { op: 'spam' }],
      '/2/op',
    ],
  ]
  it.each(cases)('refuses %s before it looks at a document', (_, patch, pointer) => {
    const fault = faultOf(() => format.parse(patch))
    expect(fault).toMatchObject({ status: 400, code: 'ERR_MALFORMED_PATCH', errors: [{ pointer }] })
  })

  it.each(['op', 'path', 'value'])('does not take %s from a prototype', (name) => {
    const whole: Record<string, JsonValue> = { op: 'add', path: '/a', value: 1 }
    const inherited = { [name]: whole[name]! }
    delete whole[name]
    expect(faultOf(() => format.parse([Object.setPrototypeOf(whole, inherited)])).status).toBe(400)
  })

  it('takes a name that another only begins with for no part of it (§4.4)', () => {
    expect(apply({ a: 1 }, { op: 'move', from: '/a', path: '/ab' })).toEqual({ ab: 1 })
  })
})

describe('jsonPatch, patches that do not fit', () => {
  const document = { a: { b: 1 }, list: [1, 2], text: 'abc', none: null }
  const cases: [string, JsonValue, 'path' | 'from'][] = [
    ['add without a parent (§4.1, J8)', { op: 'add', path: '/no/x', value: 1 }, 'path'],
    ['add below a string', { op: 'add', path: '/text/0', value: 1 }, 'path'],
    ['add below null', { op: 'add', path: '/none/x', value: 1 }, 'path'],
    ['add beyond the end (§4.1, J6)', { op: 'add', path: '/list/3', value: 1 }, 'path'],
    ['add at no index (§4.1)', { op: 'add', path: '/list/x', value: 1 }, 'path'],
    ['add at "length"', { op: 'add', path: '/list/length', value: 1 }, 'path'],
    ['add below "-" (J19)', { op: 'add', path: '/list/-/x', value: 1 }, 'path'],
    ['a leading zero (RFC 6901 §4, J17)', { op: 'replace', path: '/list/01', value: 1 }, 'path'],
    ['an exponent (RFC 6901 §4, J17)', { op: 'replace', path: '/list/1e0', value: 1 }, 'path'],
    ['a sign (RFC 6901 §4, J17)', { op: 'replace', path: '/list/-1', value: 1 }, 'path'],
    ['a fraction', { op: 'replace', path: '/list/0.0', value: 1 }, 'path'],
    ['a digit of another script', { op: 'replace', path: '/list/\u0661', value: 1 }, 'path'],
    ['an index that wraps round', { op: 'replace', path: '/list/4294967296', value: 1 }, 'path'],
    ['remove of what is not there (§4.2, J11)', { op: 'remove', path: '/list/9' }, 'path'],
    ['remove at "-" (J19)', { op: 'remove', path: '/list/-' }, 'path'],
    ['remove of the whole document', { op: 'remove', path: '' }, 'path'],
    ['replace of what is not there (§4.3, J12)', { op: 'replace', path: '/x', value: 1 }, 'path'],
    ['a character of a string', { op: 'test', path: '/text/0', value: 'a' }, 'path'],
    ['the length of a string', { op: 'test', path: '/text/length', value: 3 }, 'path'],
    ['move of what is not there (§4.4, J13)', { op: 'move', from: '/x', path: '/y' }, 'from'],
    ['move onto itself of what is not there', { op: 'move', from: '/x', path: '/x' }, 'from'],
    ['move to where there is no parent', { op: 'move', from: '/a', path: '/x/y' }, 'path'],
    ['copy of what is not there (§4.5, J14)', { op: 'copy', from: '/x', path: '/y' }, 'from'],
    ['test of what is not there (§4.6)', { op: 'test', path: '/x', value: null }, 'path'],
  ]
  it.each(cases)('refuses %s, and names the operation and the place (row J23)', (_, operation, member) => {
    const before = JSON.stringify(document)
    const good = { op: 'add', path: '/a/c', value: 2 }
    const fault = faultOf(() => apply(document, good, operation))
    expect(fault).toMatchObject({
      status: 409,
      code: 'ERR_PATCH_CONFLICT',
      errors: [{ pointer: `/1/${member}` }],
      extensions: { index: 1, path: (operation as Record<string, string>)[member] },
    })
    expect(JSON.stringify(document)).toBe(before)
  })

  it('keeps the order, and the first failure voids all (RFC 6902 §5, row J16)', () => {
    const replace = { op: 'replace', path: '/a/b', value: 2 }
    expect(faultOf(() => apply(document, replace, { op: 'test', path: '/a/b', value: 1 }))).toMatchObject({
      status: 409,
    })
    expect(document.a.b).toBe(1)
    expect(apply(document, replace, { op: 'test', path: '/a/b', value: 2 })).toMatchObject({ a: { b: 2 } })
  })

  it('says nothing of what the document holds (threat 66)', () => {
    const fault = faultOf(() => apply({ secret: 'hunter2' }, { op: 'test', path: '/secret', value: 'x' }))
    expect(JSON.stringify([fault.message, fault.errors, fault.extensions])).not.toContain('hunter2')
  })
})

describe('jsonPatch, patches that change nothing', () => {
  const document = { a: 1, list: [1, 2], deep: { x: null } }
  const cases: [string, JsonValue[]][] = [
    ['no operation (row J22)', []],
    ['a test', [{ op: 'test', path: '/a', value: 1 }]],
    ['an equal value', [{ op: 'replace', path: '/list', value: [1, 2] }]],
    ['an equal document in another order', [{ op: 'add', path: '', value: { deep: { x: null }, list: [1, 2], a: 1 } }]],
    ['a move onto itself', [{ op: 'move', from: '/list/0', path: '/list/0' }]],
    ['a move of the root onto itself', [{ op: 'move', from: '', path: '' }]],
    ['a copy onto itself', [{ op: 'copy', from: '/deep', path: '/deep' }]],
    [
      'a change that is taken back',
      [
        { op: 'add', path: '/b', value: 1 },
        { op: 'remove', path: '/b' },
      ],
    ],
    [
      'a move there and back',
      [
        { op: 'move', from: '/a', path: '/b' },
        { op: 'move', from: '/b', path: '/a' },
      ],
    ],
  ]
  it.each(cases)('gives the same document back for %s', (_, operations) => {
    expect(apply(document, ...operations)).toBe(document)
  })

  it('leaves a member at its place that moves onto itself beside a change', () => {
    const move = { op: 'move', from: '/a', path: '/a' }
    const patched = apply({ a: 1, b: 2 }, move, { op: 'replace', path: '/b', value: 3 })
    expect(JSON.stringify(patched)).toBe('{"a":1,"b":3}')
  })
})
