import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseDateTime } from '../../src/protocol/dates.ts'

describe('parseDateTime (RFC 3339 §5.6)', () => {
  it.each([
    ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05'],
    ['2026-01-02t03:04:05z', '2026-01-02T03:04:05'],
    ['2026-01-02T03:04:05.000Z', '2026-01-02T03:04:05'],
    ['2026-01-02T03:04:05.120Z', '2026-01-02T03:04:05.12'],
    ['2026-01-02T03:04:05.1234567891234Z', '2026-01-02T03:04:05.1234567891234'],
    ['2026-01-01T00:30:00+01:00', '2025-12-31T23:30:00'],
    ['2026-01-01T00:30:00-00:45', '2026-01-01T01:15:00'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00'],
    ['0000-01-01T00:00:00Z', '0000-01-01T00:00:00'],
    ['0099-12-31T23:59:59Z', '0099-12-31T23:59:59'],
    ['9999-12-31T23:59:59.9Z', '9999-12-31T23:59:59.9'],
    ['2016-12-31T23:59:60Z', '2016-12-31T23:59:60'],
    ['2017-01-01T00:59:60+01:00', '2016-12-31T23:59:60'],
  ])('reads %s', (text, instant) => {
    expect(parseDateTime(text)).toBe(instant)
  })

  it.each([
    '',
    '2026-01-02',
    '2026-01-02T03:04Z',
    '2026-01-02T03:04:05',
    '2026-01-02 03:04:05Z',
    '2026-01-02T03:04:05.Z',
    '2026-01-02T03:04:05,5Z',
    '2026-01-02T24:00:00Z',
    '2026-01-02T03:60:00Z',
    '2026-01-02T03:04:61Z',
    '2026-01-02T03:04:60Z',
    '2026-00-02T03:04:05Z',
    '2026-13-02T03:04:05Z',
    '2026-02-29T03:04:05Z',
    '2026-04-31T03:04:05Z',
    '2026-01-00T03:04:05Z',
    '2026-01-02T03:04:05+24:00',
    '2026-01-02T03:04:05+01',
    '2026-01-02T03:04:05 01:00',
    ' 2026-01-02T03:04:05Z',
    '2026-01-02T03:04:05Z\n',
    '0000-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    `2026-01-02T03:04:05.${'1'.repeat(201)}Z`,
  ])('refuses %j', (text) => {
    expect(parseDateTime(text)).toBeUndefined()
  })

  it('reads the same of every text with Z and with an offset of nothing', () => {
    const two = fc.constantFrom(
      '00',
      '01',
      '09',
      '10',
      '12',
      '13',
      '23',
      '24',
      '28',
      '29',
      '30',
      '31',
      '32',
      '59',
      '60',
      '61',
      '1',
      '/0',
      ':9',
      'x1',
    )
    const fraction = fc.constantFrom(
      '',
      '.',
      '.0',
      '.10',
      '.001',
      ',5',
      '.5x',
      '.999999999',
      `.${'1'.repeat(200)}`,
      `.${'1'.repeat(201)}`,
    )
    const parts = fc.tuple(
      fc.constantFrom('0000', '2024', '2023', '1900', '2000', '9999', '20x4', '202'),
      two,
      two,
      two,
      two,
      two,
    )
    const marks = fc.constantFrom(['-', 'T', ':'], ['-', 't', ':'], ['/', 'T', ':'], ['-', ' ', ':'], ['-', 'T', '.'])
    fc.assert(
      fc.property(parts, fraction, marks, ([year, month, day, hour, minute, second], fraction, [dash, t, colon]) => {
        const text = `${year}${dash}${month}${dash}${day}${t}${hour}${colon}${minute}${colon}${second}${fraction}`
        expect(parseDateTime(`${text}Z`)).toBe(parseDateTime(`${text}+00:00`))
      }),
      { numRuns: 5000 },
    )
  })

  it('gives texts whose order is that of the instants, whatever the offsets', () => {
    const offset = fc.integer({ min: -1439, max: 1439 })
    const time = fc.integer({ min: -6e13, max: 2.5e14 })
    const format = (time: number, offset: number): string => {
      const local = new Date(time + offset * 60_000).toISOString().slice(0, -1)
      const minutes = Math.abs(offset)
      const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
      return `${local}${offset < 0 ? '-' : '+'}${two(minutes / 60)}:${two(minutes % 60)}`
    }
    fc.assert(
      fc.property(time, time, offset, offset, (a, b, x, y) => {
        const [first, second] = [parseDateTime(format(a, x))!, parseDateTime(format(b, y))!]
        expect(first < second).toBe(a < b)
        expect(first === second).toBe(a === b)
      }),
    )
  })
})
