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
    [
      'a JSON Patch of the items that changed, behind them those that were removed',
      { a: [1, 2, { b: 3 }, 4, 5] },
      { a: [1, 9, { b: 4 }] },
      'json',
      {
        contentType: JSON_PATCH,
        patch: [
          { op: 'replace', path: '/a/1', value: 9 },
          { op: 'replace', path: '/a/2/b', value: 4 },
          { op: 'remove', path: '/a/3' },
          { op: 'remove', path: '/a/3' },
        ],
      },
    ],
    [
      'a JSON Patch that appends, under names with a slash or a tilde',
      { 'a/b': [1], 'c~d': 2 },
      { 'a/b': [1, null, [2]], 'e~/f': 3 },
      'json',
      {
        contentType: JSON_PATCH,
        patch: [
          { op: 'add', path: '/a~1b/-', value: null },
          { op: 'add', path: '/a~1b/-', value: [2] },
          { op: 'remove', path: '/c~0d' },
          { op: 'add', path: '/e~0~1f', value: 3 },
        ],
      },
    ],
  ]
  it.each(cases)('makes %s', (_, before, after, prefer, expected) => {
    expect(createPatch(before, after, prefer)).toEqual(expected)
  })
})
