import { describe, expect, it } from 'vitest'
import {
  formatOrigin,
  isHost,
  normalizeHost,
  parseAuthority,
  parseTargetOrigin,
} from '../../src/protocol/request-line.ts'
import { startProcessorClock } from '../support/processor-time.ts'

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

describe('parseTargetOrigin', () => {
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
    expect(parseTargetOrigin(target)?.authority).toBe(authority)
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

describe('normalizeHost', () => {
  it.each([
    ['A.test', 'https', 'a.test'],
    ['a.test:443', 'https', 'a.test'],
    ['a.test:', 'https', 'a.test'],
    ['a.test:80', 'https', 'a.test:80'],
    ['a.test:80', 'http', 'a.test'],
    ['a.test:', 'http', 'a.test'],
    ['a.test:443', 'http', 'a.test:443'],
  ])('makes of %j and %s %j (RFC 9110 §4.2.3)', (text, scheme, host) => {
    expect(normalizeHost(text, scheme)).toBe(host)
  })
})

describe('isHost', () => {
  it.each([
    'a.test',
    'A_b-c~%41!.test:',
    'a.test:65535',
    '127.0.0.1:80',
    '[::]',
    '[2001:db8::7]:443',
    '[1:2:3:4:5:6:7:8]',
    '[1:2:3:4:5:6:7::]',
    '[1:2:3:4:5:6:255.249.10.0]',
    '[::ffff:192.0.2.1]:80',
    '[::11.2.3.4]',
    '[v1.a:b]',
  ])('takes %j (RFC 3986 §3.2.2)', (text) => {
    expect(isHost(text)).toBe(true)
  })

  it.each([
    '',
    ':80',
    'u@a.test',
    'a.test:65536',
    'a.test:x',
    '[]',
    '[.]',
    '[:::]',
    '[::1]x',
    '[::1]:65536',
    '[1:2:3:4:5:6:7]',
    '[1:2:3:4:5:6:7:8:9]',
    '[1:2:3:4::5:6:7:8]',
    '[1:2:3:4:5:6:7:1.2.3.4]',
    '[12345::]',
    '[192.0.2.1]',
    '[::192.0.2]',
    '[::192.0.2.256]',
    '[::192.0.2.1.1]',
    '[192.0.2.1::]',
    '[v1.]',
  ])('refuses %j each time (RFC 3986 §3.2.2)', (text) => {
    expect([isHost(text), isHost(text)]).toEqual([false, false])
  })

  it('takes time in proportion to the length of an IPv6 address', () => {
    const text = `[${'1'.repeat(100_000)}]`
    const elapsed = startProcessorClock()
    expect(isHost(text)).toBe(false)
    // Quadratic work takes 10 seconds.
    expect(elapsed()).toBeLessThan(1000)
  })
})
