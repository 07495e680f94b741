import { describe, expect, it } from 'vitest'
import {
  type EntityTagMatch,
  evaluateIfRange,
  formatEntityTag,
  isEntityTag,
  isWeakTag,
  matchEntityTags,
} from '../../src/protocol/preconditions.ts'

describe('isEntityTag', () => {
  it.each(['""', '"a"', 'W/""', 'W/"a"', '"a,b;c"', '"!#~"', '"\'"', '"\\"', '"%"', '"*"', '"\u0080\u00ff"', '"W/"'])(
    'takes %j (RFC 9110 §8.8.3, row H39)',
    (tag) => {
      expect(isEntityTag(tag)).toBe(true)
    },
  )

  it.each([
    '',
    'a',
    '"',
    'W/',
    'W/a',
    '"a',
    'a"',
    "'a'",
    'w/"a"',
    'W"a"',
    'W /"a"',
    'W/ "a"',
    'W/W/"a"',
    '"a b"',
    '"a\tb"',
    '"a"b"',
    '"a""b"',
    '"a" ',
    ' "a"',
    '"a","b"',
    '"\u007f"',
    '"\u0000"',
    '"\r\n"',
    '"€"',
    '*',
  ])('refuses %j (RFC 9110 §8.8.3, row H39)', (text) => {
    expect(isEntityTag(text)).toBe(false)
  })
})

describe('isWeakTag', () => {
  it('looks for W/ (RFC 9110 §8.8.3)', () => {
    expect([isWeakTag('W/"a"'), isWeakTag('"a"'), isWeakTag('"W/"')]).toEqual([true, false, false])
  })
})

describe('formatEntityTag', () => {
  it.each([
    ['1', '"1"'],
    ['', '""'],
    ['a,b;c', '"a,b;c"'],
    ["!#$&'()*+-./:<=>?@[\\]^_`{|}~", '"!#$&\'()*+-./:<=>?@[\\]^_`{|}~"'],
    ['a b', '"a%20b"'],
    ['a"b', '"a%22b"'],
    ['a%20b', '"a%2520b"'],
    ['ü', '"%C3%BC"'],
    ['\r\n', '"%0D%0A"'],
    ['\u007f', '"%7F"'],
    ['\u{1f600}', '"%F0%9F%98%80"'],
    ['\ud800', '"%uD800"'],
    ['a\udfff\ud800b ', '"a%uDFFF%uD800b%20"'],
  ])('makes a well-formed strong tag of version %j (RFC 9110 §8.8.3, row H39)', (version, tag) => {
    expect(formatEntityTag(version)).toBe(tag)
    expect(isEntityTag(tag)).toBe(true)
    expect(isWeakTag(tag)).toBe(false)
  })

  it('gives different versions different tags (RFC 9110 §8.8.1, row H40)', () => {
    const versions = [
      '',
      ' ',
      '%',
      '%20',
      '%2520',
      '"',
      '%22',
      'a b',
      'a%20b',
      'a+b',
      'ü',
      '%C3%BC',
      'u',
      'U',
      '1',
      '01',
      '\ud800',
      '\ud801',
      '\ufffd',
      '%uD800',
    ]
    expect(new Set(versions.map(formatEntityTag)).size).toBe(versions.length)
  })
})

describe('comparison', () => {
  it.each([
    ['W/"1"', 'W/"1"', false, true],
    ['W/"1"', 'W/"2"', false, false],
    ['W/"1"', '"1"', false, true],
    ['"1"', 'W/"1"', false, true],
    ['"1"', '"1"', true, true],
    ['"1"', '"2"', false, false],
    ['"a"', '"A"', false, false],
    ['""', '""', true, true],
    ['""', 'W/""', false, true],
  ])('of %s and %s: strong %s, weak %s (RFC 9110 §8.8.3.2, row H42)', (a, b, strong, weak) => {
    expect(evaluateIfRange(a, { entityTags: [b] }, 0)).toBe(strong)
    expect(matchEntityTags(a, [b], 'strong')).toBe(strong ? 'match' : 'no-match')
    expect(matchEntityTags(a, [b], 'weak')).toBe(weak ? 'match' : 'no-match')
  })
})

describe('matchEntityTags', () => {
  const match = (field: string, tags: readonly string[]): [EntityTagMatch, EntityTagMatch] => [
    matchEntityTags(field, tags, 'strong'),
    matchEntityTags(field, tags, 'weak'),
  ]

  it.each<[string, string[], EntityTagMatch, EntityTagMatch]>([
    ['"a"', ['"a"'], 'match', 'match'],
    ['W/"a"', ['"a"'], 'no-match', 'match'],
    ['"a"', ['W/"a"'], 'no-match', 'match'],
    ['W/"a"', ['W/"a"'], 'no-match', 'match'],
    ['"b"', ['"a"'], 'no-match', 'no-match'],
    ['"A"', ['"a"'], 'no-match', 'no-match'],
    ['"a"', [], 'no-match', 'no-match'],
    ['"aa"', ['"a"'], 'no-match', 'no-match'],
    ['"a"', ['"aa"'], 'no-match', 'no-match'],
    ['""', ['""'], 'match', 'match'],
    ['W/""', ['""'], 'no-match', 'match'],
    ['"W/"', ['W/""'], 'no-match', 'no-match'],
    ['"b"', ['"a"', '"b"'], 'match', 'match'],
    ['"x", "a"', ['"a"'], 'match', 'match'],
    ['"x","a"', ['"a"'], 'match', 'match'],
    ['"x" ,\t"a"', ['"a"'], 'match', 'match'],
    ['"a", "x"', ['"a"'], 'match', 'match'],
    ['W/"x", W/"a", "a"', ['"a"'], 'match', 'match'],
    [', ,"a"', ['"a"'], 'match', 'match'],
    ['"a",', ['"a"'], 'match', 'match'],
    ['\t"a" ', ['"a"'], 'match', 'match'],
    ['"a,b;c"', ['"a,b;c"'], 'match', 'match'],
    ['"x,y", "a,b;c"', ['"a,b;c"'], 'match', 'match'],
    ['"a"', ['"a,b"'], 'no-match', 'no-match'],
    ['"b"', ['"a,b"'], 'no-match', 'no-match'],
    ['"a", "b"', ['"a, b"'], 'no-match', 'no-match'],
    ['"x,\\"', ['"\\"'], 'no-match', 'no-match'],
    ['"\\", "a"', ['"a"'], 'match', 'match'],
    ['"*"', ['"a"'], 'no-match', 'no-match'],
    ['"*"', ['"*"'], 'match', 'match'],
    ['', ['"a"'], 'no-match', 'no-match'],
    [', ,', ['"a"'], 'no-match', 'no-match'],
    [' ', ['"a"'], 'no-match', 'no-match'],
    ['*', ['"a"'], 'any', 'any'],
    ['*', [], 'any', 'any'],
    ['"é"', ['"é"'], 'match', 'match'],
  ])(
    '%j against %j: strong %s, weak %s (RFC 9110 §13.1, rows H43 and H105, threat 41)',
    (field, tags, strong, weak) => {
      expect(match(field, tags)).toEqual([strong, weak])
    },
  )

  it.each([
    'abc',
    'a',
    '"a',
    'a"',
    '"',
    'W/',
    'W/a',
    'w/"a"',
    'W/ "a"',
    'W/W/"a"',
    '"a" "a"',
    '"a""a"',
    '"a"W/"a"',
    '"a";',
    '"a", a',
    'a, "a"',
    '*, "a"',
    '"a", *',
    '*, *',
    '* *',
    '**',
    '"a b"',
    '"a\tb"',
    '"a\u007f"',
    '"€"',
    'undefined',
    'null',
  ])('calls %j malformed, even where one member matches (RFC 9110 §13.1, row H110, threat 40)', (field) => {
    expect(match(field, ['"a"'])).toEqual(['malformed', 'malformed'])
  })
})

it('knows the one tag of the current state, and compares it as it should (RFC 9110 §8.8.3.2)', () => {
  expect(matchEntityTags('"a"', ['"a"'], 'strong')).toBe('match')
  expect(matchEntityTags('W/"a"', ['W/"a"'], 'strong')).toBe('no-match')
  expect(matchEntityTags('W/"a"', ['W/"a"'], 'weak')).toBe('match')
})
