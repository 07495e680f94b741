import { describe, expect, it } from 'vitest'
import {
  DEFAULT_ALLOWED_HEADERS,
  DEFAULT_EXPOSED_HEADERS,
  formatAllowedMethods,
  isOrigin,
  matchesOriginPattern,
  parseOriginPattern,
} from '../../src/protocol/cors.ts'
import { isToken } from '../../src/protocol/field-value.ts'

describe('isOrigin', () => {
  it.each([
    'https://a.test',
    'http://a.test',
    'https://a.test:8443',
    'http://a.test:443',
    'https://a.test:80',
    'http://localhost:3000',
    'http://127.0.0.1',
    'http://[::1]:8080',
    'https://xn--bcher-kva.test',
    'https://a_b.test',
    'capacitor://localhost',
    'chrome-extension://abcdefghijklmnop',
    'https://a',
  ])('takes %j (RFC 6454 §6.2, row X4)', (text) => {
    expect(isOrigin(text)).toBe(true)
  })

  it.each([
    '',
    'null',
    '*',
    'a.test',
    '//a.test',
    'https://',
    'https://A.test',
    'HTTPS://a.test',
    'https://a.test/',
    'https://a.test:443',
    'http://a.test:80',
    'https://a.test:',
    'https://a.test:0',
    'https://a.test:08',
    'https://a.test:123456',
    'https://u@a.test',
    'https://a.test?x',
    'https://a.test#x',
    'https://a.test,https://b.test',
    'https://a.test https://b.test',
    'https://a..test',
    'https://.a.test',
    'https://a.test.',
    'https://ä.test',
    'https://a.test\\x',
    ' https://a.test',
    'https://[::1',
    'https://%61.test',
  ])('refuses %j, which no browser sends (row X4, threat 127)', (text) => {
    expect(isOrigin(text)).toBe(false)
  })
})

describe('parseOriginPattern', () => {
  it('reads scheme and suffix (row X21)', () => {
    expect(parseOriginPattern('https://*.a.test')).toEqual({ prefix: 'https://', suffix: '.a.test' })
    expect(parseOriginPattern('http://*.a.test:8080')).toEqual({ prefix: 'http://', suffix: '.a.test:8080' })
  })

  it.each([
    '',
    '*',
    '*.a.test',
    'https://*',
    'https://*.',
    'https://*a.test',
    'https://a.*.test',
    'https://*.*.test',
    'https://*.A.test',
    'https://*.a.test/',
    'https://*.a.test:443',
    'https://*.[::1]',
    'https://a.test',
    'https://x://*.a.test',
  ])('refuses %j', (text) => {
    expect(parseOriginPattern(text)).toBeUndefined()
  })
})

describe('matchesOriginPattern', () => {
  const pattern = parseOriginPattern('https://*.a.test')!

  it.each([
    ['https://x.a.test', true],
    ['https://x.y.a.test', true],
    ['https://a.test', false],
    ['https://xa.test', false],
    ['http://x.a.test', false],
    ['https://x.a.test:8443', false],
    ['https://x.a.test.evil', false],
  ])('of %s is %s: anchored on the dot (row X21)', (origin, matches) => {
    expect(matchesOriginPattern(pattern, origin)).toBe(matches)
  })
})

describe('formatAllowedMethods', () => {
  it('lists the methods of the resource without OPTIONS, in order (row X9)', () => {
    expect(formatAllowedMethods(['GET', 'HEAD', 'PUT', 'OPTIONS'])).toBe('GET, HEAD, PUT')
    expect(formatAllowedMethods(['OPTIONS'])).toBe('')
  })
})

describe('the fields that are listed by default', () => {
  it('are names, each once, and never an asterisk, which is literal with credentials (row X11)', () => {
    for (const list of [DEFAULT_ALLOWED_HEADERS, DEFAULT_EXPOSED_HEADERS]) {
      expect(list.filter((name) => !isToken(name) || name === '*')).toEqual([])
      expect(new Set(list.map((name) => name.toLowerCase())).size).toBe(list.length)
    }
  })

  it('have Authorization, and every condition that writes need (interface Authentication 8, row X10)', () => {
    for (const name of ['Authorization', 'Content-Type', 'If-Match', 'If-None-Match', 'If-Unmodified-Since', 'Range']) {
      expect(DEFAULT_ALLOWED_HEADERS).toContain(name)
    }
  })

  it('have what the answers tell (row X14)', () => {
    const names = ['ETag', 'Location', 'Content-Range', 'Accept-Patch', 'Accept-Ranges', 'Allow', 'Link', 'Retry-After']
    for (const name of [...names, 'WWW-Authenticate', 'Preference-Applied', 'Repr-Digest']) {
      expect(DEFAULT_EXPOSED_HEADERS).toContain(name)
    }
  })
})
