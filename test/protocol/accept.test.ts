import { describe, expect, it } from 'vitest'
import { parseAccept, parseMediaType, refusesIdentity, selectMediaType } from '../../src/protocol/media-type.ts'

describe('parseAccept', () => {
  const read = (field: string) =>
    parseAccept(field).map(({ essence, parameters, quality }) => [essence, Object.fromEntries(parameters), quality])

  it('reads ranges, parameters and qualities (RFC 9110 §12.5.1)', () => {
    expect(read('text/*;q=0.3, TEXT/Plain;format=Flowed, */*; Q=0.5')).toEqual([
      ['text/*', {}, 0.3],
      ['text/plain', { format: 'Flowed' }, 1],
      ['*/*', {}, 0.5],
    ])
  })

  it('takes q for the weight wherever it stands (RFC 9110 §12.5.1)', () => {
    expect(read('text/html;q=0.4;level=1')).toEqual([['text/html', { level: '1' }, 0.4]])
  })

  it.each<[string, number]>([
    ['0', 0],
    ['0.', 0],
    ['0.5', 0.5],
    ['0.123', 0.123],
    ['0.000', 0],
    ['1', 1],
    ['1.', 1],
    ['1.000', 1],
  ])('takes weight %s (RFC 9110 §12.4.2)', (q, quality) => {
    expect(read(`a/b;q=${q}`)).toEqual([['a/b', {}, quality]])
  })

  it.each(['-1', '2', '1.001', '1.0000', '0.1234', '.', '.1234', '00', '1e0', 'x', 'NaN', ''])(
    'drops a member with the weight %j (RFC 9110 §12.4.2, row H96)',
    (q) => {
      expect(read(`a/b;q=${q}, c/d`)).toEqual([['c/d', {}, 1]])
    },
  )

  it.each(['', ';;;', ',', '*', '*a', 'text', 'text/', '/', '*/*;', '"a/b"', 'a/b;q=1;q=0', 'a/b c/d'])(
    'never fails: %j (row H96)',
    (field) => {
      expect(read(field).length).toBeLessThanOrEqual(1)
    },
  )

  it('keeps the well-formed members of a field (row H12)', () => {
    expect(read(',application/json,, text, "x, text/plain')).toEqual([['application/json', {}, 1]])
    expect(read('a/b;x="c,d";q=0.5, e/f').map(([essence]) => essence)).toEqual(['a/b', 'e/f'])
  })
})

describe('selectMediaType', () => {
  it('understands what Java sends: a lone asterisk, and a weight without its zero', () => {
    const field = 'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2'
    expect(select(field, 'application/json')).toBe('application/json')
    expect(select('text/html, *', 'application/json')).toBe('application/json')
    expect(select('text/html, */*;q=.2', 'application/json')).toBe('application/json')
  })

  const select = (field: string | undefined, ...offers: string[]): string | undefined =>
    offers[
      selectMediaType(
        field,
        offers.map((offer) => parseMediaType(offer)!),
      )
    ]

  it.each<[string | undefined, string, string | undefined]>([
    [undefined, 'json', 'row H94'],
    ['', 'json', 'row H94'],
    ['*/*', 'json', '§12.5.1'],
    ['application/json;q=0.2, text/plain', 'text', 'row H92'],
    ['application/json;q=0', 'none', 'row H92: 0 excludes, and nothing else is named'],
    ['application/json;q=0, */*', 'text', 'row H92'],
    ['application/json;q=0.000, text/plain;q=0.001', 'text', 'row H92'],
    ['text/*;q=0.1, text/plain;q=0.9, */*;q=0.5', 'text', 'row H93'],
    ['*/*;q=0.9, text/plain;q=0.1', 'json', 'row H93'],
    ['text/plain;q=0.1, text/*;q=0.9', 'none but text', 'row H93: order does not matter'],
    ['image/png', 'none', 'row H95'],
    ['image/*', 'none', 'row H95'],
    ['*/*;q=0', 'none', 'row H95'],
    ['text/*', 'text', '§12.5.1'],
    ['TEXT/PLAIN', 'text', 'row H29'],
    ['text/plain, application/json', 'json', 'among equals the server prefers'],
    ['text/plain;q=0.5, application/json;q=0.5', 'json', 'among equals the server prefers'],
    ['text/plain;q=0.501, application/json;q=0.5', 'text', '§12.4.2'],
    [';;;', 'json', 'row H96'],
    ['text', 'json', 'row H96'],
    [',application/json,', 'json', 'row H12'],
    ['text/html, application/xhtml+xml, application/xml;q=0.9, image/avif, */*;q=0.8', 'json', 'a browser'],
    ['application/json; charset=utf-8', 'json', 'what many clients send'],
    ['application/json;version=2', 'none', '§12.5.1: a parameter that the offer lacks'],
  ])('%j selects %s (RFC 9110 §12.5.1, %s)', (field, expected) => {
    const types: Record<string, string | undefined> = {
      json: 'application/json',
      text: 'text/plain',
      none: undefined,
      'none but text': 'text/plain',
    }
    expect(select(field, 'application/json', 'text/plain')).toBe(types[expected])
  })

  it('prefers the more specific of two offers that differ in a parameter (RFC 9110 §12.5.1)', () => {
    const offers = ['text/html;level=3', 'text/html;level=2', 'text/html;level=1', 'text/plain']
    const field = 'text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5'
    expect(select(field, ...offers)).toBe('text/plain')
    expect(select('text/html;level=1, text/html;q=0.7', ...offers)).toBe('text/html;level=1')
    expect(select('text/html;q=0.4;level=1, text/html;q=0.7', 'text/html;level=1')).toBe('text/html;level=1')
    expect(select('text/html;LEVEL="1"', ...offers)).toBe('text/html;level=1')
  })

  it('gives the example of RFC 9110 §12.5.1 its qualities', () => {
    const field = 'text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5'
    const ranked = ['text/plain;format=flowed', 'text/plain', 'image/jpeg', 'text/plain;format=fixed', 'text/html']
    for (let i = 0; i + 1 < ranked.length; i++) {
      expect(select(field, ranked[i + 1]!, ranked[i]!), ranked[i]).toBe(ranked[i])
    }
  })

  it('refuses a charset only where the offer names another', () => {
    expect(select('text/plain;charset=utf-8', 'text/plain')).toBe('text/plain')
    expect(select('text/plain;charset=UTF-8', 'text/plain;charset=utf-8')).toBe('text/plain;charset=utf-8')
    expect(select('text/plain;charset=utf-8', 'text/plain;charset=iso-8859-1')).toBeUndefined()
  })
})

describe('refusesIdentity', () => {
  it.each<[string | undefined, boolean]>([
    [undefined, false],
    ['', false],
    ['gzip', false],
    ['gzip;q=0', false],
    ['identity', false],
    ['identity;q=0', true],
    ['identity;q=0.', true],
    ['identity;q=0.000', true],
    ['identity;q=0.001', false],
    ['identity;q=1', false],
    ['IDENTITY ;\tQ=0', true],
    ['*;q=0', true],
    ['*;q=0.5', false],
    ['*', false],
    ['identity;q=0, *;q=0', true],
    ['*;q=0, identity', false],
    ['*;q=0, identity;q=0.5', false],
    ['gzip, *;q=0', true],
    ['gzip, identity;q=0', true],
    ['identity;q=', false],
    ['identity;q=00', false],
    [';;;', false],
    ['"identity;q=0', false],
  ])('%j: %s (RFC 9110 §12.5.3, row H97)', (field, expected) => {
    expect(refusesIdentity(field)).toBe(expected)
  })
})
