import { describe, expect, it } from 'vitest'
import { createPatch } from '../../src/client.ts'
import type { JsonValue } from '../../src/core/json.ts'

const MERGE_PATCH = 'application/merge-patch+json'
const JSON_PATCH = 'application/json-patch+json'

describe('createPatch', () => {
  const cases: [string, JsonValue, JsonValue, 'merge' | 'json', object | undefined][] = [
    ['nothing for equal documents', { a: [1] }, { a: [1] }, 'merge', undefined],
    ['a merge patch', { a: 1, b: 2 }, { a: 1 }, 'merge', { contentType: MERGE_PATCH, patch: { b: null } }],
    ['a merge patch for a scalar', { a: 1 }, 'x', 'merge', { contentType: MERGE_PATCH, patch: 'x' }],
    [
      'a JSON Patch',
      { a: 1, b: 2 },
      { a: 1 },
      'json',
      { contentType: JSON_PATCH, patch: [{ op: 'remove', path: '/b' }] },
    ],
    [
      'a JSON Patch for a scalar',
      1,
      null,
      'json',
      { contentType: JSON_PATCH, patch: [{ op: 'replace', path: '', value: null }] },
    ],
    [
      'a JSON Patch where a member is to be null',
      { a: 1 },
      { a: null },
      'merge',
      { contentType: JSON_PATCH, patch: [{ op: 'replace', path: '/a', value: null }] },
    ],
  ]
  it.each(cases)('makes %s', (_, before, after, prefer, expected) => {
    expect(createPatch(before, after, prefer)).toEqual(expected)
  })
})
