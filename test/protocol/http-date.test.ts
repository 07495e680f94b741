import { describe, expect, it } from 'vitest'
import { formatHttpDate, parseHttpDate } from '../../src/protocol/dates.ts'

const NOW = Date.UTC(2026, 5, 15, 12)
const EXAMPLE = Date.UTC(1994, 10, 6, 8, 49, 37)

describe('parseHttpDate', () => {
  it.each<[string, string, number]>([
    ['IMF-fixdate', 'Sun, 06 Nov 1994 08:49:37 GMT', EXAMPLE],
    ['rfc850-date', 'Sunday, 06-Nov-94 08:49:37 GMT', EXAMPLE],
    ['asctime-date', 'Sun Nov  6 08:49:37 1994', EXAMPLE],
    ['asctime-date', 'Sun Nov 16 08:49:37 1994', Date.UTC(1994, 10, 16, 8, 49, 37)],
    ['asctime-date', 'Sun Nov 06 08:49:37 1994', EXAMPLE],
    ['IMF-fixdate', 'Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['IMF-fixdate', 'Wed, 31 Dec 1969 23:59:59 GMT', -1000],
    ['IMF-fixdate', 'Thu, 29 Feb 2024 23:59:59 GMT', Date.UTC(2024, 1, 29, 23, 59, 59)],
    ['IMF-fixdate', 'Fri, 31 Dec 9999 23:59:59 GMT', Date.UTC(9999, 11, 31, 23, 59, 59)],
    ['a leap second', 'Sat, 31 Dec 2016 23:59:60 GMT', Date.UTC(2017, 0, 1)],
    ['a date whose day name is wrong', 'Mon, 06 Nov 1994 08:49:37 GMT', EXAMPLE],
  ])('reads %s: %j (RFC 9110 §5.6.7, rows H15 to H17)', (_form, text, expected) => {
    expect(parseHttpDate(text, NOW)).toBe(expected)
  })

  it('reads the years 0 to 99 of IMF-fixdate as they stand (RFC 9110 §5.6.7)', () => {
    const date = parseHttpDate('Mon, 01 Jan 0094 00:00:00 GMT', NOW)
    expect(new Date(date!).getUTCFullYear()).toBe(94)
  })

  it.each(
    Array.from({ length: 12 }, (_, month) => {
      const date = Date.UTC(2001, month, 9, 1, 2, 3)
      return [new Date(date).toUTCString(), date] as const
    }),
  )('reads every month: %s', (text, date) => {
    expect(parseHttpDate(text, NOW)).toBe(date)
  })

  it.each<[string, number]>([
    ['Sunday, 06-Nov-94 08:49:37 GMT', 1994],
    ['Sunday, 06-Nov-30 08:49:37 GMT', 2030],
    ['Sunday, 06-Nov-00 08:49:37 GMT', 2000],
    ['Sunday, 06-Nov-26 08:49:37 GMT', 2026],
    ['Sunday, 06-Nov-99 08:49:37 GMT', 1999],
    ['Monday, 15-Jun-76 12:00:00 GMT', 2076],
    ['Monday, 15-Jun-76 12:00:01 GMT', 1976],
    ['Friday, 01-Jan-77 00:00:00 GMT', 1977],
    ['Tuesday, 29-Feb-00 00:00:00 GMT', 2000],
  ])(
    'reads a two-digit year more than 50 years ahead as the past: %j in 2026 (RFC 9110 §5.6.7, row H18)',
    (text, year) => {
      expect(new Date(parseHttpDate(text, NOW)!).getUTCFullYear()).toBe(year)
    },
  )

  it.each<[number, string, number]>([
    [1999, '01', 1901],
    [2001, '51', 2051],
    [2001, '52', 1952],
    [2060, '59', 2059],
    [2099, '00', 2000],
  ])('places a two-digit year from the clock: in %i, %s is %i', (year, digits, expected) => {
    const date = parseHttpDate(`Friday, 01-Jan-${digits} 00:00:00 GMT`, Date.UTC(year, 0, 1))
    expect(new Date(date!).getUTCFullYear()).toBe(expected)
  })

  it.each([
    '',
    'banana',
    '2030',
    '0',
    '784111777',
    'foo 12',
    '1994-11-06',
    '1994-11-06T08:49:37Z',
    '2099-01-01T00:00:00Z',
    'Sun, 06 Nov 1994 08:49:37',
    'Sun, 06 Nov 1994 08:49:37 UTC',
    'Sun, 06 Nov 1994 08:49:37 gmt',
    'Sun, 06 Nov 1994 08:49:37 +0000',
    'Sun, 06 Nov 1994 08:49:37 +0200',
    'Sun, 06 Nov 1994 08:49:37 GMT+1',
    'Sun, 06 Nov 1994 08:49:37 GMT; length=1',
    ' Sun, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 08:49:37 GMT ',
    'Sun,06 Nov 1994 08:49:37 GMT',
    'Sun,  06 Nov 1994 08:49:37 GMT',
    'Sun 06 Nov 1994 08:49:37 GMT',
    '06 Nov 1994 08:49:37 GMT',
    'Sun, 6 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nov 94 08:49:37 GMT',
    'Sun, 06 nov 1994 08:49:37 GMT',
    'sun, 06 Nov 1994 08:49:37 GMT',
    'Foo, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06 Nom 1994 08:49:37 GMT',
    'Sun, 06 anF 1994 08:49:37 GMT',
    'Sun, 06 November 1994 08:49:37 GMT',
    'Sun, 06 Nov 1994 8:49:37 GMT',
    'Sun, 06 Nov 1994 08:49 GMT',
    'Sun, 06 Nov 1994 08:49:37.5 GMT',
    'Sun, 06 Nov 1994 24:00:00 GMT',
    'Sun, 06 Nov 1994 23:60:00 GMT',
    'Sun, 06 Nov 1994 23:59:61 GMT',
    'Sun, 00 Nov 1994 08:49:37 GMT',
    'Sun, 31 Nov 1994 08:49:37 GMT',
    'Sun, 32 Dec 1994 08:49:37 GMT',
    'Thu, 31 Feb 2000 00:00:00 GMT',
    'Wed, 29 Feb 2023 00:00:00 GMT',
    'Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT',
    'Sun, 06-Nov-94 08:49:37 GMT',
    'Sunday, 06-Nov-1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37',
    'Sunday, 31-Nov-94 08:49:37 GMT',
    'Sun Nov 6 08:49:37 1994',
    'Sun Nov  6 08:49:37 94',
    'Sun Nov  6 08:49:37 1994 GMT',
    'Sun Nov  0 08:49:37 1994',
    'Sun, Nov  6 08:49:37 1994',
    'Sun, 0６ Nov 1994 08:49:37 GMT',
  ])('refuses %j (RFC 9110 §5.6.7, threat 47)', (text) => {
    expect(parseHttpDate(text, NOW)).toBeUndefined()
  })
})

describe('formatHttpDate', () => {
  it.each<[number, string]>([
    [EXAMPLE, 'Sun, 06 Nov 1994 08:49:37 GMT'],
    [EXAMPLE + 999, 'Sun, 06 Nov 1994 08:49:37 GMT'],
    [EXAMPLE + 1000, 'Sun, 06 Nov 1994 08:49:38 GMT'],
    [0, 'Thu, 01 Jan 1970 00:00:00 GMT'],
    [-1, 'Wed, 31 Dec 1969 23:59:59 GMT'],
    [Date.UTC(2024, 1, 29), 'Thu, 29 Feb 2024 00:00:00 GMT'],
    [Date.UTC(9999, 11, 31, 23, 59, 59), 'Fri, 31 Dec 9999 23:59:59 GMT'],
  ])('writes %i as IMF-fixdate, without parts of a second (RFC 9110 §5.6.7, row H19)', (time, expected) => {
    expect(formatHttpDate(time)).toBe(expected)
  })

  it('does not mix up two instants that alternate', () => {
    const [a, b] = [formatHttpDate(0), formatHttpDate(1000)]
    expect([formatHttpDate(0), formatHttpDate(1000), formatHttpDate(999)]).toEqual([a, b, a])
  })
})
