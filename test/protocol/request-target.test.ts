import { describe, expect, it } from 'vitest'
import { formatPath, parseRequestTarget } from '../../src/protocol/request-line.ts'

describe('parseRequestTarget', () => {
  it.each<[string, string, string]>([
    ['/', '/', ''],
    ['/docs/a.bin', '/docs/a.bin', ''],
    ['/docs/', '/docs/', ''],
    ['/docs?', '/docs', ''],
    ['/docs?a=b', '/docs', 'a=b'],
    ['/docs?a=b?c=/../%zz', '/docs', 'a=b?c=/../%zz'],
    ['/?x', '/', 'x'],
    ['/a/b;x=1,y', '/a/b;x=1,y', ''],
    ["/!$&'()*+,;=:@-._~", "/!$&'()*+,;=:@-._~", ''],
    ['/%61', '/a', ''],
    ['/a%20b/%C3%BC', '/a b/ü', ''],
    ['/a%20b/%c3%bc', '/a b/ü', ''],
    ['/%F0%9F%98%80', '/😀', ''],
    ['/a%3Fb', '/a?b', ''],
    ['/a%23b', '/a#b', ''],
    ['/%25', '/%', ''],
    ['/docs/%252e%252e%252fx', '/docs/%2e%2e%2fx', ''],
    ['/...', '/...', ''],
    ['/.well-known/x', '/.well-known/x', ''],
    ['/a..b/..c/d..', '/a..b/..c/d..', ''],
    ['/a.', '/a.', ''],
    ['/__proto__', '/__proto__', ''],
    ['/%7B%7D', '/{}', ''],
  ])('splits and decodes origin-form %j once (RFC 9112 §3.2.1, threats 20 and 22)', (target, path, query) => {
    expect(parseRequestTarget(target)).toEqual({ path, query })
  })

  it.each<[string, string, string]>([
    ['http://host/docs/a.bin', '/docs/a.bin', ''],
    ['HTTPS://Host:8080/docs', '/docs', ''],
    ['http://host', '/', ''],
    ['http://host?x', '/', 'x'],
    ['http://host/?x', '/', 'x'],
    ['http://[::1]:80/a%20b', '/a b', ''],
    ['http://evil.example/users/1', '/users/1', ''],
  ])(
    'takes the path of absolute-form %j and nothing else (RFC 9112 §3.2.2, row H5, threat 5)',
    (target, path, query) => {
      expect(parseRequestTarget(target)).toEqual({ path, query })
    },
  )

  it.each([
    'http://',
    'http:///x',
    'http://:80/x',
    'http:/x',
    'http:x',
    'http://user@host/x',
    'http://user:password@host/x',
    'http://host#x',
    'http://host//x',
    'http://host/../x',
    'http://host/%2e',
    'host:80',
    'host/x',
    '://host/x',
    '1http://host/x',
    ' http://host/x',
    '*',
    '',
    'x',
    '.',
    '?x',
    '#',
  ])('refuses %j (RFC 9112 §3.2, RFC 9110 §4.2, threat 5)', (target) => {
    expect(parseRequestTarget(target)).toBeUndefined()
  })

  it.each([
    '//',
    '//evil.example/x',
    '/a//b',
    '/a//',
    '///',
    '/.',
    '/..',
    '/./',
    '/../',
    '/./a',
    '/../a',
    '/a/.',
    '/a/..',
    '/a/./b',
    '/a/../b',
    '/docs/../users/1',
    '/%2e',
    '/%2E%2e',
    '/.%2e',
    '/%2e.',
    '/docs/%2e%2e',
    '/docs/%2e/x',
    '/docs/%2e%2e%2fx',
    '/docs/..%2fx',
    '/docs/%2e%2e%5cx',
    '/docs/..\\x',
    '/docs\\..\\x',
    '/a\\b',
    '/a%2Fb',
    '/a%2fb',
    '/users%2F1',
    '/a%5Cb',
    '/a%5cb',
    '/%2f',
    '/%2f%2fevil',
  ])('refuses %j: every path has one spelling (rows H6, threats 6, 20, 21 and 25)', (target) => {
    expect(parseRequestTarget(target)).toBeUndefined()
  })

  it.each([
    '/docs/%zz',
    '/%',
    '/a%',
    '/a%2',
    '/%2x',
    '/%u0041',
    '/%c0%ae',
    '/%c0%af',
    '/%ED%A0%80',
    '/%ff',
    '/%C3',
    '/%C3/%BC',
    '/%F4%90%80%80',
    '/%e2%82',
  ])('refuses %j: a broken escape, or bytes that are not UTF-8 (row H6, threat 23)', (target) => {
    expect(parseRequestTarget(target)).toBeUndefined()
  })

  it.each([
    '/docs/a%00b',
    '/%00',
    '/%0a',
    '/%0d%0aX-Evil:%201',
    '/%09',
    '/%1f',
    '/%7f',
    '/a b',
    '/a\tb',
    '/a\nb',
    '/a\u0000b',
    '/a#b',
    '/ü',
    '/a\u007f',
    '/\u00ff',
    '/日本',
  ])('refuses %j: control characters and what must be escaped (row H6, threat 24)', (target) => {
    expect(parseRequestTarget(target)).toBeUndefined()
  })
})

describe('formatPath', () => {
  it.each([
    ['/', '/'],
    ['/docs/a.bin', '/docs/a.bin'],
    ['/a b/ü', '/a%20b/%C3%BC'],
    ['/a?b#c', '/a%3Fb%23c'],
    ['/%', '/%25'],
    ['/docs/%2e%2e%2fx', '/docs/%252e%252e%252fx'],
    ['/日本 "', '/%E6%97%A5%E6%9C%AC%20%22'],
    ['/a;b=c,d', '/a%3Bb%3Dc%2Cd'],
    ['/docs/', '/docs/'],
  ])('writes %j as %j (RFC 3986 §3.3, row H167, threat 117)', (path, expected) => {
    expect(formatPath(path)).toBe(expected)
    expect(parseRequestTarget(expected)?.path).toBe(path)
  })

  it('writes unreserved characters and slashes as they are, and encodes every other one (RFC 3986 §2.3)', () => {
    for (let code = 0x20; code < 0x180; code++) {
      const character = String.fromCharCode(code)
      const expected = /[\w\-.~/]/.test(character) ? character : encodeURIComponent(character)
      expect(formatPath(`/a${character}b`)).toBe(`/a${expected}b`)
    }
  })
})
