import { describe, expect, it } from 'vitest'
import { decideForwardedTransport, parseForwarded } from '../../src/protocol/forwarded.ts'

describe('parseForwarded', () => {
  it.each<[string, object[]]>([
    ['', []],
    ['proto=https', [{ proto: 'https' }]],
    ['for=192.0.2.60;proto=http;by=203.0.113.43', [{ for: '192.0.2.60', proto: 'http', by: '203.0.113.43' }]],
    ['For="[2001:db8:cafe::17]:4711"', [{ for: '[2001:db8:cafe::17]:4711' }]],
    [
      'for=192.0.2.43, for="[2001:db8::17]";Host="a.test:80"',
      [{ for: '192.0.2.43' }, { for: '[2001:db8::17]', host: 'a.test:80' }],
    ],
    ['for=_hidden, for=unknown', [{ for: '_hidden' }, { for: 'unknown' }]],
    ['for="a,b";proto=https', [{ for: 'a,b', proto: 'https' }]],
    [';for=a;;proto=http;, ;', [{ for: 'a', proto: 'http' }, {}]],
  ])('reads %j (RFC 7239 §4 and §6)', (field, hops) => {
    expect(parseForwarded(field)).toEqual(hops)
  })

  it('gives hops that have no members but those of the field, and no prototype', () => {
    expect(
      parseForwarded('__proto__=a;constructor=b')!.map((hop) => [Object.getPrototypeOf(hop), ...Object.keys(hop)]),
    ).toEqual([[null, '__proto__', 'constructor']])
  })

  it.each([
    'for=a=b',
    'proto',
    'proto=',
    'proto="https',
    'for=[::1]',
    'for=1.2.3.4:80',
    'for=a;for=b',
    'for=a b',
    'for=a, proto',
  ])('takes the whole field for malformed, because hops count by position: %j', (field) => {
    expect(parseForwarded(field)).toBeUndefined()
  })
})

describe('decideForwardedTransport', () => {
  it.each<[string | undefined, string | undefined, string]>([
    [undefined, undefined, 'unknown'],
    [undefined, 'https', 'https'],
    [undefined, 'HTTPS', 'https'],
    [undefined, ' https ', 'https'],
    [undefined, 'http', 'cleartext'],
    [undefined, '', 'cleartext'],
    [undefined, 'wss', 'cleartext'],
    [undefined, 'https, http', 'cleartext'],
    [undefined, 'http, https', 'https'],
    [undefined, 'https,', 'cleartext'],
    ['proto=https', undefined, 'https'],
    ['proto=HTTPS', undefined, 'https'],
    ['proto="https"', undefined, 'https'],
    ['proto=http', undefined, 'cleartext'],
    ['proto=https, proto=http', undefined, 'cleartext'],
    ['proto=http, proto=https', undefined, 'https'],
    ['for=a', undefined, 'unknown'],
    ['for=a', 'https', 'https'],
    ['proto=https, for=a', undefined, 'unknown'],
    ['proto="https', 'https', 'cleartext'],
    ['proto=https', 'http', 'cleartext'],
    ['proto=http', 'https', 'cleartext'],
    ['proto=https', 'https', 'https'],
  ])('takes Forwarded %j beside X-Forwarded-Proto %j for %s (row H3)', (forwarded, proto, transport) => {
    expect(decideForwardedTransport(forwarded, proto)).toBe(transport)
  })
})
