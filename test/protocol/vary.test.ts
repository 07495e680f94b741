import { describe, expect, it } from 'vitest'
import { mergeVary } from '../../src/protocol/field-value.ts'

describe('mergeVary', () => {
  it.each([
    ['', '', ''],
    ['', 'Accept', 'Accept'],
    ['Origin', '', 'Origin'],
    ['Origin', 'Origin', 'Origin'],
    ['Origin', 'Accept', 'Origin, Accept'],
    ['Origin', 'origin', 'Origin'],
    ['Origin, Accept', 'Accept, Prefer', 'Origin, Accept, Prefer'],
    ['Accept-Encoding', 'Accept', 'Accept-Encoding, Accept'],
    ['*', 'Accept', '*'],
    ['Accept', '*', '*'],
    ['*', '*', '*'],
    ['Accept', 'Origin, *', '*'],
    ['a ,, b', 'c', 'a, b, c'],
  ])('joins %j and %j to %j: every name once, "*" alone (RFC 9110 §12.5.5, rows H98 and C3)', (a, b, expected) => {
    expect(mergeVary(a, b)).toBe(expected)
  })
})
