/// <reference path="./json-merge-patch.d.cts" />

import fc from 'fast-check'
import fastJsonPatch from 'fast-json-patch'
import jsonMergePatch from 'json-merge-patch'
import { describe, expect, it } from 'vitest'
import { createPatch } from '../../src/client/create-patch.ts'
import { isHttpError } from '../../src/core/errors.ts'
import type { JsonObject, JsonValue } from '../../src/core/json.ts'
import { jsonPatch } from '../../src/patch-formats/json-patch.ts'
import { mergePatch } from '../../src/patch-formats/merge-patch.ts'

const JSON_PATCH = jsonPatch()
const MERGE_PATCH = mergePatch()
const RUNS = { numRuns: 2000 }

/** Documents as JSON.parse makes them, whatever their members are called; few names, so that patches hit something. */
function documents(names: fc.Arbitrary<string>): fc.Arbitrary<JsonValue> {
  const { node } = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.constantFrom(null, true, 0, -0, 1, 1.5, '', 'a', 'b', '\u00fc'),
      fc.array(tie('node'), { maxLength: 4 }),
      fc.array(fc.tuple(names, tie('node')), { maxLength: 4 }).map((members) => {
        // Object.fromEntries defines; an assignment would not make a member of "__proto__".
        return Object.fromEntries(members)
      }),
    ),
  }))
  return node.map((value) => JSON.parse(JSON.stringify(value)) as JsonValue)
}

const plainNames = fc.constantFrom('a', 'b', 'c', 'a/b', 'm~n', '0', '1')
const anyNames = fc.oneof(
  plainNames,
  fc.constantFrom(
    '',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'toJSON',
    'valueOf',
    '-',
    'length',
  ),
)

function pointers(names: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(names, { maxLength: 3 }).map((tokens) => tokens.map(pointerStep).join(''))
}

function pointerStep(token: string): string {
  return `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`
}

function operations(path: fc.Arbitrary<string>, value: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonValue[]> {
  const operation = fc.oneof(
    fc.record({ op: fc.constantFrom('add', 'replace', 'add', 'test'), path, value }),
    fc.record({ op: fc.constant('remove'), path }),
    fc.record({ op: fc.constantFrom('move', 'copy'), from: path, path }),
  )
  return fc.array(operation, { maxLength: 5 }) as unknown as fc.Arbitrary<JsonValue[]>
}

/** The result, or `'refused'`; anything but an HttpError is a failure. */
function attempt(act: () => JsonValue): { readonly result: JsonValue } | 'refused' {
  try {
    return { result: act() }
  } catch (error) {
    if (!isHttpError(error)) throw error
    expect(error.status).toBeOneOf([400, 409, 413])
    return 'refused'
  }
}

function freeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) for (const child of Object.values(value)) freeze(child)
  return Object.freeze(value)
}

/** A document and operations on places that it has, or nearly has. */
function patched(names: fc.Arbitrary<string>, path: fc.Arbitrary<string>): fc.Arbitrary<[JsonValue, JsonValue[]]> {
  return documents(names)
    .filter((document) => typeof document === 'object' && document !== null)
    .chain((document) => {
      const place = fc.constantFrom(...placesIn(document, ''))
      const near = fc.tuple(place, fc.oneof(names, fc.constant('-'))).map(([place, name]) => place + pointerStep(name))
      return fc.tuple(
        fc.constant(document),
        operations(fc.oneof({ arbitrary: place, weight: 4 }, { arbitrary: near, weight: 4 }, path), documents(names)),
      )
    })
}

function placesIn(value: JsonValue, pointer: string): string[] {
  if (typeof value !== 'object' || value === null) return [pointer]
  return [pointer, ...Object.entries(value).flatMap(([name, child]) => placesIn(child, pointer + pointerStep(name)))]
}

describe('jsonPatch', () => {
  it('agrees with fast-json-patch on what comes of a patch that both take', () => {
    let compared = 0
    fc.assert(
      fc.property(patched(plainNames, pointers(plainNames)), ([document, patch]) => {
        // There a document can be removed, moved into itself, and be no object or array.
        fc.pre(!patch.some(touchesRoot))
        const ours = attempt(() => JSON_PATCH.parse(patch).apply(document))
        const theirs = attemptTheirs(document, patch)
        if (ours === 'refused' || theirs === 'refused') return
        expect(ours.result).toEqual(theirs.result)
        if (ours.result !== document) compared++
      }),
      { numRuns: 5000 },
    )
    expect(compared).toBeGreaterThan(200)
  })

  it('changes neither the document nor the patch, and throws nothing but HttpError', () => {
    fc.assert(
      fc.property(patched(anyNames, pointers(anyNames)), ([document, patch]) => {
        const before = JSON.stringify([document, patch])
        const first = attempt(() => JSON_PATCH.parse(freeze(patch)).apply(freeze(document)))
        expect(JSON.stringify([document, patch])).toBe(before)
        expect(JSON.stringify(attempt(() => JSON_PATCH.parse(patch).apply(document)))).toBe(JSON.stringify(first))
      }),
      RUNS,
    )
  })

  it('gives a result that is a tree of own members, as JSON text has it', () => {
    fc.assert(
      fc.property(patched(anyNames, pointers(anyNames)), ([document, patch]) => {
        const outcome = attempt(() => JSON_PATCH.parse(patch).apply(document))
        if (outcome !== 'refused') expectPlain(outcome.result)
        expect(Object.keys(Object.prototype)).toEqual([])
      }),
      RUNS,
    )
  })

  it('takes any JSON for a patch or refuses it', () => {
    const almost = fc.array(
      fc.dictionary(
        fc.constantFrom('op', 'path', 'from', 'value'),
        fc.oneof(fc.jsonValue(), fc.constantFrom('add', 'move', '/a')),
      ),
    )
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), almost), fc.jsonValue(), (patch, document) => {
        attempt(() => JSON_PATCH.parse(patch as JsonValue).apply(document as JsonValue))
      }),
      RUNS,
    )
  })
})

describe('mergePatch', () => {
  it('agrees with json-merge-patch', () => {
    fc.assert(
      fc.property(documents(plainNames), documents(plainNames), (document, patch) => {
        const theirs = jsonMergePatch.apply(structuredClone(document), structuredClone(patch))
        expect(MERGE_PATCH.parse(patch).apply(document)).toEqual(theirs)
      }),
      RUNS,
    )
  })

  it('agrees with the algorithm of RFC 7396 §2, whatever members are called', () => {
    fc.assert(
      fc.property(documents(anyNames), documents(anyNames), (document, patch) => {
        const before = JSON.stringify([document, patch])
        const result = MERGE_PATCH.parse(freeze(patch)).apply(freeze(document))
        expect(toMaps(result)).toEqual(mergeMaps(toMaps(document), toMaps(patch)))
        expect(JSON.stringify([document, patch])).toBe(before)
        expectPlain(result)
      }),
      RUNS,
    )
  })

  it('applied twice gives what it gives once', () => {
    fc.assert(
      fc.property(documents(anyNames), documents(anyNames), (document, patch) => {
        const parsed = MERGE_PATCH.parse(patch)
        const once = parsed.apply(document)
        expect(parsed.apply(once)).toBe(once)
      }),
      RUNS,
    )
  })
})

describe('createPatch', () => {
  it.each(['merge', 'json'] as const)('leads from any document to any other, preferring %s', (prefer) => {
    fc.assert(
      fc.property(documents(anyNames), documents(anyNames), (before, after) => {
        const text = JSON.stringify([before, after])
        const made = createPatch(freeze(before), freeze(after), prefer)
        expect(JSON.stringify([before, after])).toBe(text)
        if (made === undefined) {
          expect(toMaps(after)).toEqual(toMaps(before))
          return
        }
        const format = made.contentType === MERGE_PATCH.mediaType ? MERGE_PATCH : JSON_PATCH
        const sent = JSON.parse(JSON.stringify(made.patch)) as JsonValue
        expect(toMaps(format.parse(sent).apply(before))).toEqual(toMaps(after))
      }),
      RUNS,
    )
  })
})

function touchesRoot(operation: JsonValue): boolean {
  const { path, from } = operation as JsonObject
  return path === '' || from === ''
}

function attemptTheirs(document: JsonValue, patch: JsonValue[]): { readonly result: JsonValue } | 'refused' {
  try {
    return {
      result: fastJsonPatch.applyPatch(structuredClone(document), structuredClone(patch) as never[], true).newDocument,
    }
  } catch {
    return 'refused'
  }
}

/** Every object has the prototype that JSON.parse gives, and text and value say the same. */
function expectPlain(value: JsonValue): void {
  const again = JSON.parse(JSON.stringify(value)) as JsonValue
  expect(toMaps(again)).toEqual(toMaps(value))
}

/** JSON without JavaScript objects, in which a member is a member whatever its name. */
type Tree = string | number | boolean | null | Tree[] | Map<string, Tree>

function toMaps(value: JsonValue): Tree {
  if (Array.isArray(value)) return value.map(toMaps)
  if (typeof value !== 'object' || value === null) return value === 0 ? 0 : (value as Tree)
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  return new Map(Object.keys(value).map((name) => [name, toMaps((value as JsonObject)[name]!)]))
}

/** RFC 7396 §2, to the letter. */
function mergeMaps(target: Tree | undefined, patch: Tree): Tree {
  if (!(patch instanceof Map)) return patch
  const result = new Map(target instanceof Map ? target : [])
  for (const [name, value] of patch) {
    if (value === null) result.delete(name)
    else result.set(name, mergeMaps(result.get(name), value))
  }
  return result
}
