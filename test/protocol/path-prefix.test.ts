import { posix, win32 } from 'node:path'
import { parse as parseUrl } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listReadings, measurePrefix, placeTarget } from '../../src/protocol/path-prefix.ts'
import { isBelow, OUTSIDE, spellSecret } from '../guards/spellings.ts'

describe('placeTarget', () => {
  it.each([
    ['/api', 'inside'],
    ['/api/', 'inside'],
    ['/api?x', 'inside'],
    ['/api/x', 'inside'],
    ['/api/../x', 'inside'],
    ['/api//x', 'inside'],
    ['http://host/api/x', 'inside'],
    ['http://host/api', 'inside'],
    ['/API/x', 'unclear'],
    ['/%61pi', 'unclear'],
    ['/x/../api', 'unclear'],
    ['//host/api', 'unclear'],
    ['/api;x', 'unclear'],
    // For the URL Standard, what follows the scheme is the host, however many slashes stand between.
    ['http:///host/api', 'unclear'],
    ['http:///host\\api/x', 'unclear'],
    ['https:///user@host/api/x', 'unclear'],
    ['http:/host/api', 'unclear'],
    ['http:host/api', 'unclear'],
    ['/api%2fx', 'unclear'],
    ['/api#x', 'unclear'],
    // "path,url_dec" of HAProxy is compared up to U+0000.
    ['/api%00x', 'unclear'],
    ['/%61pi%2500/x', 'unclear'],
    // The URL Standard takes these dots for dots, and this slash for a part of the segment.
    ['/x%2fy/%2e%2e/api', 'unclear'],
    ['/x%2fy/.%2e/%61pi', 'unclear'],
    ['/api\xa0', 'unclear'],
    ['*', 'unclear'],
    // Routers differ in where a path begins that follows anything but an authority.
    ['*api/x', 'unclear'],
    ['*/api/x', 'unclear'],
    ['api/x', 'unclear'],
    ['@host/api/x', 'unclear'],
    ['\xa0/api/x', 'unclear'],
    ['+http:/api/x', 'unclear'],
    ['foo:api/x', 'unclear'],
    ['http://host?/api/x', 'unclear'],
    ['http://host#/api/x', 'unclear'],
    ['http://host%2fapi/x', 'unclear'],
    ['http://host?x', 'outside'],
    ['http://user@host:80/x?/api', 'outside'],
    ['/x/api', 'outside'],
    ['/apis', 'outside'],
    ['/', 'outside'],
    ['', 'outside'],
    ['http://api/x', 'outside'],
    ['http:///host/x', 'outside'],
    ['/x?/api', 'outside'],
    ['/x/%2e%2e/y', 'outside'],
  ] as const)('finds %j below /api: %s', (target, placement) => {
    expect(placeTarget(target, '/api')).toBe(placement)
  })

  it.each([
    ['/t/acme', '/t/:tenant', 'inside'],
    ['/t/acme/x', '/t/:tenant', 'inside'],
    ['/t/a%20b/x', '/t/:tenant', 'inside'],
    ['/t', '/t/:tenant', 'outside'],
    ['/t/', '/t/:tenant', 'outside'],
    ['/%74/a%20b/x', '/t/:tenant', 'unclear'],
    ['/t//acme', '/t/:tenant', 'unclear'],
    ['/t/%2fx', '/t/:tenant', 'unclear'],
    ['/acme/api/x', '/:tenant/api', 'inside'],
    ['/acme/API/x', '/:tenant/api', 'unclear'],
    ['/API/x', '/API', 'inside'],
    ['/api/x', '/API', 'unclear'],
    ['/caf%C3%A9/x', '/caf%C3%A9', 'inside'],
    ['/caf%c3%a9/x', '/caf%C3%A9', 'unclear'],
    ['/%63af%C3%A9/x', '/caf%C3%A9', 'unclear'],
    ['/%63af%C3%A9%2F%EF%BF%BD', '/caf%C3%A9', 'unclear'],
    ['/%61pi%2F%FF', '/api', 'unclear'],
    ['anything', '', 'inside'],
  ] as const)('finds %j below %j: %s', (target, prefix, placement) => {
    expect(placeTarget(target, prefix)).toBe(placement)
  })

  it.each([
    // "/v1" is stripped, and "/../api/x" is "/api/x" for what comes then.
    ['/v1/../api/x', '/v1/api', 'unclear'],
    ['/v1/%2e%2e/api/x', '/v1/api', 'unclear'],
    ['/v1/..%2fapi/x', '/v1/api', 'unclear'],
    ['/v1/..;/api/x', '/v1/api', 'unclear'],
    ['/%76%31/y/../../api/x', '/v1/api', 'unclear'],
    ['/v1/../API/x', '/v1/api', 'unclear'],
    ['/v1/\\host/api/x', '/v1/api', 'unclear'],
    ['/v1//host/api/x', '/v1/api', 'unclear'],
    ['/v1/../v2/users/api/x', '/v1/users/api', 'unclear'],
    ['/v1/../users/api/x', '/v1/users/api', 'unclear'],
    ['/v1/users/../api/x', '/v1/users/api', 'unclear'],
    ['/t/acme/../api/x', '/t/:tenant/api', 'unclear'],
    // "/v1" is put before the target, and "/v1/../v1/api/x" is "/v1/api/x".
    ['/../v1/api/x', '/api', 'unclear'],
    ['/x/..%2f../v1/api', '/api', 'unclear'],
    ['/v1/../base/api/x', '/v1/api', 'unclear'],
    ['/v1/../base/acme/x', '/v1/:tenant', 'unclear'],
    ['/v1/y/../z', '/v1/api', 'outside'],
    ['/v1/../z', '/v1/api', 'outside'],
    ['/v1/z%20y', '/v1/api', 'outside'],
    ['/../z', '/api', 'outside'],
    ['/v2/../api/x', '/v1/api', 'outside'],
    ['/v1', '/v1/api', 'outside'],
    ['/v1;y', '/v1/api', 'outside'],
  ] as const)('finds %j, behind a program that strips or adds a path, below %j: %s', (target, prefix, placement) => {
    expect(placeTarget(target, prefix)).toBe(placement)
  })

  it('finds every spelling inside or unclear, and nothing else', () => {
    for (const prefix of ['/api', '/v1/api', '/:version/api']) {
      const spelled = prefix.replace(':version', 'v1')
      const passing = spellSecret(spelled).filter((target) => placeTarget(target, prefix) === 'outside')
      expect(passing.filter((target) => isBelow(target, spelled))).toEqual([])
    }
    expect(OUTSIDE.filter((target) => placeTarget(target, '/api') !== 'outside')).toEqual([])
  })

  it('never calls outside what some sequence of rewritings leads to (RFC 3986 §6.2.2)', () => {
    const escapeOne = (text: string, at: number): string => {
      const index = at % text.length
      const code = text.charCodeAt(index).toString(16).padStart(2, '0')
      return `${text.slice(0, index)}%${code}${text.slice(index + 1)}`
    }
    const rewritings: ((path: string, at: number) => string)[] = [
      escapeOne,
      (path, at) => (at % 2 === 0 ? `/x/..${path}` : `/.${path}`),
      (path) => `/${path}`,
      (path) => `//host${path}`,
      (path, at) => {
        const slash = path.indexOf('/', at % path.length)
        return slash < 1 ? path : `${path.slice(0, slash)}\\${path.slice(slash + 1)}`
      },
      (path) => path.replace(/^\/[^/]*/, '$&;a=b'),
      (path) => path.toUpperCase(),
      (path, at) => `http:${'/'.repeat(at % 5)}host${path.startsWith('/') ? path : `/${path}`}`,
    ]
    const steps = fc.array(fc.tuple(fc.nat(rewritings.length - 1), fc.nat(40)), { maxLength: 4 })
    fc.assert(
      fc.property(steps, (steps) => {
        let target = '/api/secret'
        for (const [which, at] of steps) {
          if (!target.startsWith('http')) target = rewritings[which]!(target, at)
        }
        expect([target, placeTarget(target, '/api')]).not.toEqual([target, 'outside'])
      }),
      { numRuns: 3000 },
    )
  })

  it('never calls outside what programs read below the prefix, one after the other (URL Standard, "path state")', () => {
    const programs: readonly ((path: string) => string)[] = [
      (path) => new URL(path, 'http://host/').pathname,
      (path) => parseUrl(path).pathname ?? '',
      decodeURI,
      decodeURIComponent,
      (path) => posix.normalize(path),
      (path) => win32.normalize(path).replaceAll('\\', '/'),
      (path) => path.replace(/\/{2,}/g, '/'),
      (path) => path.replace(/;[^/]*/g, ''),
      (path) => path.trim(),
    ]
    const token = fc.constantFrom(
      ...'/ \\ %2f %2F %5c %25 .. %2e%2e .%2E . ; # ? @ x // %61 /v1 /api \xa0 \t'.split(' '),
    )
    const sequence = fc.array(fc.constantFrom(...programs), { maxLength: 3 })
    const runAll = (target: string, programs: readonly ((path: string) => string)[]): string => {
      try {
        return programs.reduce((path, read) => read(path), target.split('?')[0]!)
      } catch {
        return ''
      }
    }
    fc.assert(
      fc.property(fc.array(token, { maxLength: 5 }), fc.boolean(), sequence, (tokens, isBehind, programs) => {
        const target = isBehind ? `/x${tokens.join('')}/api` : `/${tokens.join('')}`
        const isOutside = placeTarget(target, '/api') === 'outside'
        expect([target, isOutside && /^\/api(?:\/|$)/i.test(runAll(target, programs))]).toEqual([target, false])
      }),
      { numRuns: 20_000 },
    )
  })

  it('calls outside whatever has no letter of the prefix (RFC 9112 §3.2)', () => {
    const target = fc.string({ unit: fc.constantFrom(...'xyz/.%;\\?#02eE5cCfF') })
    fc.assert(
      fc.property(target, (text) => {
        const placement = placeTarget(`/${text}`, '/qqq')
        // So many readings that they are not worth the time do not count.
        expect(placement === 'outside' || listReadings(`/${text.split('?')[0]}`) === undefined).toBe(true)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('listReadings', () => {
  it.each(['/', '', '/a', '/a/', '/a/b.c', '/...', '/a.', '/.well-known/x', "/a:b@c,d=e+f~g!$&'()*"])(
    'has one for %j',
    (path) => {
      expect(listReadings(path)).toEqual([path])
    },
  )

  it('has the path as received first, and all others once', () => {
    expect(listReadings('/a/%2e%2e/b')).toEqual(['/a/%2e%2e/b', '/a/../b', '/b'])
    expect(listReadings('/@scope%2Fname')).toEqual(['/@scope%2Fname', '/@scope/name'])
    expect(listReadings('/a%2fb%3dc')).toEqual(['/a%2fb%3dc', '/a/b=c', '/a%2fb=c'])
    expect(listReadings('//a/b')).toEqual(['//a/b', '/b', '/a/b'])
  })

  it('gives up on what has too many, or is too long', () => {
    const many = '//a;b'.repeat(100)
    expect(listReadings(many)).toBeUndefined()
    expect(placeTarget(many, '/api')).toBe('unclear')
    expect(listReadings(`/${'a'.repeat(9000)}`)).toHaveLength(1)
    expect(listReadings(`/%61${'a'.repeat(9000)}`)).toBeUndefined()
    expect(listReadings(`/%61${'a'.repeat(4092)}`)).toHaveLength(2)
    expect(listReadings(`/%61${'a'.repeat(4093)}`)).toBeUndefined()
    // These have 64 and 65.
    expect(listReadings('/%2f;a//\t\\//')).toHaveLength(64)
    expect(listReadings('//;a..//.\\b://b:/..\t')).toBeUndefined()
  })

  it('decodes a thousand escapes that are not UTF-8 without an exception for each', () => {
    const decode = vi.spyOn(globalThis, 'decodeURIComponent')
    onTestFinished(() => decode.mockRestore())
    for (const start of ['', '/ ', '/;x', '/%2e%2e']) listReadings(`${start}/${'%ff//'.repeat(800)}`)
    expect(decode.mock.results.filter(({ type }) => type === 'throw').length).toBeLessThan(10)
  })

  it('decodes a run of escapes as UTF-8 where all of it is, and otherwise byte by byte', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    const byDecoder = (bytes: readonly number[]): string => {
      try {
        return decoder.decode(Uint8Array.from(bytes))
      } catch {
        return String.fromCharCode(...bytes)
      }
    }
    const edges = [0x41, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0]
    for (let first = 0x80; first <= 0xff; first++) {
      for (const second of edges) {
        for (const rest of [[], [0x80], [0x80, 0xbf], [0x80, 0xc0]]) {
          const bytes = [first, second, ...rest]
          const escaped = bytes.map((byte) => `%${byte.toString(16)}`).join('')
          expect(listReadings(`/${escaped}`)).toContain(`/${byDecoder(bytes)}`)
        }
      }
    }
  })

  it('is done with 64 kB of anything in a moment, by count of readings', () => {
    for (const unit of ['%25', '/..', '//', ';a/', '\\', '%2e/', '%252e%252e/']) {
      const path = `/${unit.repeat(Math.ceil(4000 / unit.length))}`.slice(0, 4096)
      expect((listReadings(path) ?? []).length).toBeLessThanOrEqual(64)
    }
  })
})

describe('measurePrefix', () => {
  it.each([
    ['/api/x', '/api', 4],
    ['/api', '/api', 4],
    ['/apis', '/api', undefined],
    ['/t/acme/x', '/t/:tenant', 7],
    ['/t/../x', '/t/:tenant', undefined],
    ['/t/%2e%2e/x', '/t/:tenant', undefined],
  ])('of %j below %j is %j', (path, prefix, length) => {
    expect(measurePrefix(path, prefix)).toBe(length)
  })
})
