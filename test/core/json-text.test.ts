import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonValue } from '../../src/core/json.ts'
import { hasMoreEntries, scanJson } from '../../src/core/json.ts'

const NO_LIMITS = { depth: Number.POSITIVE_INFINITY, entries: Number.POSITIVE_INFINITY }

/** What a scan should find, counted in the value. */
function countIn(value: JsonValue): { depth: number; members: number; entries: number } {
  if (typeof value !== 'object' || value === null) return { depth: 0, members: 0, entries: 0 }
  const children: readonly JsonValue[] = Array.isArray(value) ? value : Object.values(value)
  const counts = children.map(countIn)
  const sum = (name: 'members' | 'entries') => counts.reduce((sum, count) => sum + count[name], 0)
  return {
    depth: 1 + Math.max(0, ...counts.map(({ depth }) => depth)),
    members: sum('members') + (Array.isArray(value) ? 0 : children.length),
    entries: sum('entries') + children.length,
  }
}

describe('scanJson', () => {
  it('counts what the parser finds, with blanks or without (RFC 8259 §2)', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (given, space) => {
        const text = JSON.stringify(given, undefined, space)
        expect(scanJson(text, NO_LIMITS)).toEqual(countIn(JSON.parse(text)))
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['[]', 0],
    ['[ \n]', 0],
    ['{\t}', 0],
    ['[[]]', 1],
    ['[{},{}]', 2],
    ['{"a":[1,2],"b":{"c":"[,]{,}"}}', 5],
    ['["\\\\",",\\",","]"]', 3],
  ])('counts the members and items of %s: %i', (text, entries) => {
    expect(scanJson(text, NO_LIMITS).entries).toBe(entries)
  })
})

describe('hasMoreEntries', () => {
  it.each<[string, (count: number) => string]>([
    ['items', (count) => `[${Array(count).fill('1').join()}]`],
    ['empty arrays', (count) => `[${Array(count).fill('[]').join()}]`],
    ['members', (count) => `{${Array.from({ length: count }, (_, i) => `"${i}":1`).join()}}`],
    ['arrays in arrays', (count) => '['.repeat(count) + '[]' + ']'.repeat(count)],
    ['strings of commas and brackets', (count) => `[${Array(count).fill('",[{"').join()}]`],
    ['items at the end of a long text', (count) => `["${'x'.repeat(300)}"${',1'.repeat(count - 1)}]`],
    ['items at the beginning of one', (count) => `[${'1,'.repeat(count - 1)}"${'x'.repeat(300)}"]`],
    ['blanks', (count) => `[${Array(count).fill(' 1 ').join()}]`],
  ])('is exact: %s', (_, write) => {
    for (const limit of [1, 2, 50]) {
      expect([hasMoreEntries(write(limit), limit), hasMoreEntries(write(limit + 1), limit)]).toEqual([false, true])
    }
  })
})
