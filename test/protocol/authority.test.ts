import { describe, expect, it } from 'vitest'
import { formatOrigin, parseAuthority, parseTargetAuthority } from '../../src/protocol/request-target.ts'

describe('parseAuthority', () => {
  it.each([
    ['a.test', 'a.test', ''],
    ['A.Test', 'a.test', ''],
    ['a.test:80', 'a.test', '80'],
    ['a.test:', 'a.test', ''],
    ['a.test:65535', 'a.test', '65535'],
    ['a.test.', 'a.test.', ''],
    ['a_b-c.test', 'a_b-c.test', ''],
    ['127.0.0.1:8080', '127.0.0.1', '8080'],
    ['[::1]', '[::1]', ''],
    ['[2001:DB8::7]:443', '[2001:db8::7]', '443'],
  ])('reads %j (RFC 3986 §3.2)', (text, host, port) => {
    expect(parseAuthority(text)).toEqual({ host, port })
  })

  it.each([
    '',
    ':80',
    'a b',
    'u@a.test',
    'u:p@a.test',
    'a.test/x',
    'a.test?x',
    'a.test#x',
    'a.test:x',
    'a.test:123456',
    'a:1:2',
    '::1',
    '[::1',
    '[]',
    '[::1]x',
    '[v1.a]',
    'a,b',
    'ä.test',
    'a\u0000',
    'a.test\\x',
    '%61.test',
  ])('refuses %j (RFC 9110 §4.2.4)', (text) => {
    expect(parseAuthority(text)).toBeUndefined()
  })
})

describe('parseTargetAuthority', () => {
  it.each([
    ['/a', undefined],
    ['//a.test/', undefined],
    ['*', undefined],
    ['a.test:443', undefined],
    ['http://a.test', 'a.test'],
    ['http://a.test/b', 'a.test'],
    ['HTTPS://a.test:8443?x', 'a.test:8443'],
    ['http://u@a.test/', 'u@a.test'],
    ['http:///x', ''],
    ['', undefined],
  ])('finds in %j the authority %j (RFC 9112 §3.2.2)', (target, authority) => {
    expect(parseTargetAuthority(target)).toBe(authority)
  })
})

describe('formatOrigin', () => {
  it.each([
    ['https', 'a.test', '', 'https://a.test'],
    ['https', 'a.test', '443', 'https://a.test'],
    ['https', 'a.test', '80', 'https://a.test:80'],
    ['http', 'a.test', '80', 'http://a.test'],
    ['http', 'a.test', '443', 'http://a.test:443'],
    ['http', '[::1]', '8080', 'http://[::1]:8080'],
  ] as const)('writes %s, %s, %j as %s (RFC 6454 §6.2)', (scheme, host, port, origin) => {
    expect(formatOrigin(scheme, { host, port })).toBe(origin)
  })
})
