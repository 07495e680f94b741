/** RFC 3339 §5.6: letters in either case, any number of digits of a fraction. */
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d{1,200}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/**
 * The instant of an RFC 3339 date-time as text in UTC. The order of such texts by code point is the order of the
 * instants: it has no `Z` at the end, and a fraction has no trailing zeros.
 * @returns `undefined` for text that is not a date-time, and for an instant outside of the years 0000 to 9999
 */
export function parseDateTime(text: string): string | undefined {
  const match = DATE_TIME.exec(text)
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour = '0', offsetMinute = '0'] = match
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  // The 30th of February is the 2nd of March.
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined
  const offset = (Number(offsetHour) * 60 + Number(offsetMinute)) * (sign === '-' ? -1 : 1)
  date.setUTCHours(Number(hour), Number(minute) - offset)
  const utc = date.toISOString()
  if (utc.length !== 24) return undefined // a sign before the year
  const minutes = utc.slice(0, 16)
  // A leap second is the last of a day in UTC (RFC 3339 §5.7).
  if (second === '60' && !minutes.endsWith('23:59')) return undefined
  const digits = fraction.replace(/0+$/, '')
  return `${minutes}:${second}${digits === '' ? '' : `.${digits}`}`
}
