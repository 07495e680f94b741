import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, it } from 'vitest'
import { countField, createRepeatedFieldSearch, isForwarded, readField } from '../../src/core/fields.ts'

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

describe('createRepeatedFieldSearch', () => {
  const find = createRepeatedFieldSearch('host', 'authorization', 'content-type')

  it('finds a name that occurs twice, also with the same value (row H9, threat 3)', () => {
    expect(find(raw('Host', 'a', 'HOST', 'a'))).toBe('host')
    expect(find(raw('Authorization', 'a', 'Host', 'b', 'authorization', 'c'))).toBe('authorization')
    expect(find(raw('Hast', 'a', 'Host', 'b', 'x', 'c', 'hosT', 'd'))).toBe('host')
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
    expect(isForwarded(headers)).toBe(expected)
  })
})
