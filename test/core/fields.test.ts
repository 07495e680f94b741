import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, it } from 'vitest'
import { countField, createRepeatedFieldSearch, isForwarded, joinSplitLists, readField } from '../../src/core/fields.ts'

const raw = (...rawHeaders: string[]) => ({ rawHeaders })

describe('readField', () => {
  it('reads what was sent, and nothing that is inherited (threat 150)', () => {
    const headers = Object.create({ authorization: 'Basic evil' }) as IncomingHttpHeaders
    headers.host = 'a.test'
    headers['x-list'] = ['a', 'b']
    expect(readField(headers, 'host')).toBe('a.test')
    expect(readField(headers, 'x-list')).toBe('a,b')
    expect(readField(headers, 'authorization')).toBeUndefined()
    expect(readField(headers, 'cookie')).toBeUndefined()
    expect(readField({ 'if-match': '' }, 'if-match')).toBe('')
  })
})

describe('countField', () => {
  it('counts lines whatever the case of their name (row H7)', () => {
    const req = raw('Host', 'a', 'hOsT', 'b', 'Hosts', 'c', 'Xost', 'd', 'Date', 'Host')
    expect([countField(req, 'host'), countField(req, 'date'), countField(req, 'via')]).toEqual([2, 1, 0])
  })
})

describe('joinSplitLists', () => {
  const join = (headers: IncomingHttpHeaders, ...rawHeaders: string[]) => {
    joinSplitLists({ headers, rawHeaders })
    return headers
  }

  it('joins the lines of a list of which only the first is in `headers` (RFC 9110 §5.3)', () => {
    const raw = [
      'if-none-match',
      '"x"',
      'host',
      'h',
      'if-none-match',
      '"e"',
      'range',
      'bytes=0-1',
      'range',
      'bytes=3-4',
    ]
    expect(join({ 'if-none-match': '"x"', host: 'h', range: 'bytes=0-1' }, ...raw)).toEqual({
      'if-none-match': '"x", "e"',
      host: 'h',
      range: 'bytes=0-1, bytes=3-4',
    })
  })

  it('leaves a single line and an absent list as they are', () => {
    expect(join({ 'if-match': '"a"' }, 'if-match', '"a"')).toEqual({ 'if-match': '"a"' })
    expect(join({}, 'host', 'h')).toEqual({})
  })
})

describe('createRepeatedFieldSearch', () => {
  it('tells names of one length and first letter apart', () => {
    expect(createRepeatedFieldSearch('accept', 'origin', 'age-ab')(raw('Accept', 'a', 'age-ab', 'b'))).toBeUndefined()
    expect(createRepeatedFieldSearch('accept', 'origin')(raw('Accept', 'a', 'Accept', 'b'))).toBe('accept')
    expect(createRepeatedFieldSearch('accept', 'age-ab')(raw('Age-AB', 'a', 'Accept', 'c', 'age-ab', 'b'))).toBe(
      'age-ab',
    )
  })

  const find = createRepeatedFieldSearch('host', 'authorization', 'content-type')

  it('finds a name that occurs twice, also with the same value (row H9, threat 3)', () => {
    expect(find(raw('Host', 'a', 'HOST', 'a'))).toBe('host')
    expect(find(raw('Authorization', 'a', 'Host', 'b', 'authorization', 'c'))).toBe('authorization')
    expect(find(raw('Hast', 'a', 'Host', 'b', 'x', 'c', 'hosT', 'd'))).toBe('host')
    expect(find(raw('Hast', 'a', 'Hist', 'b', 'Content-Typo', 'c', 'Host', 'd', 'Hust', 'e', 'HOST', 'f'))).toBe('host')
  })

  it('finds nothing where each occurs once, or others twice', () => {
    expect(find(raw('Host', 'a', 'Content-Type', 'b', 'Cookie', 'c', 'Cookie', 'd'))).toBeUndefined()
    expect(find(raw('Host', 'a', 'Hast', 'b', 'Hist', 'c'))).toBeUndefined()
    expect(find(raw('X'.repeat(44), 'a', 'X'.repeat(36), 'b'))).toBeUndefined()
    expect(find(raw())).toBeUndefined()
  })
})

describe('isForwarded', () => {
  it.each([
    [{ 'x-forwarded-for': '' }, true],
    [{ 'x-forwarded-proto': 'https' }, true],
    [{ forwarded: 'for=a' }, true],
    [{ 'x-forwarded-host': 'a' }, false],
    [{ via: '1.1 a' }, false],
    [{}, false],
  ])('of %j is %s', (headers, expected) => {
    const field = (name: string) => readField(headers, name)
    expect(isForwarded({ field })).toBe(expected)
  })
})
