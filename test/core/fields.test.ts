import type { IncomingHttpHeaders } from 'node:http'
import { describe, expect, it } from 'vitest'
import { countField, findRepeatedField, isForwarded, readField } from '../../src/core/fields.ts'

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

describe('findRepeatedField', () => {
  const names = ['host', 'authorization', 'content-type']

  it('finds a name that occurs twice, also with the same value (row H9, threat 3)', () => {
    expect(findRepeatedField(raw('Host', 'a', 'HOST', 'a'), names)).toBe('host')
    expect(findRepeatedField(raw('Authorization', 'a', 'Host', 'b', 'authorization', 'c'), names)).toBe('authorization')
  })

  it('finds nothing where each occurs once, or others twice', () => {
    expect(
      findRepeatedField(raw('Host', 'a', 'Content-Type', 'b', 'Cookie', 'c', 'Cookie', 'd'), names),
    ).toBeUndefined()
    expect(findRepeatedField(raw(), names)).toBeUndefined()
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
