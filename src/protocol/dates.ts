/** HTTP-date (RFC 9110 §5.6.7): three formats in, one out, nothing else accepted. And the date-time of RFC 3339. */

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'
const IMF = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/
const RFC850 = /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\d\d)-([A-Z][a-z]{2})-(\d\d) (\d\d):(\d\d):(\d\d) GMT$/
const ASCTIME = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/

/**
 * Reads an HTTP-date in IMF-fixdate, rfc850-date or asctime-date form (RFC 9110 §5.6.7).
 * A wrong name of the day is ignored: clients that send one mean the date.
 * @param text the field value
 * @param now milliseconds since the epoch, to place a two-digit year: a date more than 50 years ahead is in the past
 * @returns milliseconds since the epoch, or `undefined` for anything else
 */
export function parseHttpDate(text: string, now: number): number | undefined {
  let match = IMF.exec(text)
  if (match !== null) return instant(+match[3]!, match[2]!, +match[1]!, match[4]!, match[5]!, match[6]!)
  match = RFC850.exec(text)
  if (match !== null) return recentInstant(match, now)
  match = ASCTIME.exec(text)
  return match === null ? undefined : instant(+match[6]!, match[1]!, +match[2]!, match[3]!, match[4]!, match[5]!)
}

/** Places a two-digit year. What counts is the date, not the year alone: 50 years ahead to the day is not more. */
function recentInstant(match: RegExpExecArray, now: number): number | undefined {
  const limit = new Date(now)
  const thisYear = limit.getUTCFullYear()
  limit.setUTCFullYear(thisYear + 50)
  const year = thisYear - (thisYear % 100) + Number(match[3])
  const date = instant(year, match[2]!, +match[1]!, match[4]!, match[5]!, match[6]!)
  if (date !== undefined && date <= limit.getTime()) return date
  return instant(year - 100, match[2]!, +match[1]!, match[4]!, match[5]!, match[6]!)
}

function instant(year: number, monthName: string, day: number, h: string, m: string, s: string): number | undefined {
  const index = MONTHS.indexOf(monthName)
  if (index < 0 || index % 3 !== 0) return undefined
  const [hour, minute, second] = [Number(h), Number(m), Number(s)]
  if (hour > 23 || minute > 59 || second > 60) return undefined // 60: a leap second
  const date = new Date(0)
  date.setUTCFullYear(year, index / 3, day)
  if (day === 0 || date.getUTCDate() !== day) return undefined // 31 February
  return date.getTime() + ((hour * 60 + minute) * 60 + second) * 1000
}

let lastSecond = Number.NaN
let lastText = ''

/**
 * Writes an instant as IMF-fixdate, the only form that may be generated (RFC 9110 §5.6.7).
 * @param time milliseconds since the epoch, in the years 0 to 9999; parts of a second are dropped
 */
export function formatHttpDate(time: number): string {
  const second = Math.floor(time / 1000)
  if (second !== lastSecond) {
    lastText = new Date(second * 1000).toUTCString()
    lastSecond = second
  }
  return lastText
}

/** RFC 3339 §5.6: letters in either case, any number of digits of a fraction. */
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)T([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d{1,200}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i

/**
 * The instant of an RFC 3339 date-time as text in UTC. The order of such texts by code point is the order of the
 * instants: it has no `Z` at the end, and a fraction has no trailing zeros.
 * @returns `undefined` for text that is not a date-time, and for an instant outside of the years 0000 to 9999
 */
export function parseDateTime(text: string): string | undefined {
  return parseUtc(text) ?? parseAny(text)
}

/** The common form, in UTC and in capital letters. A leap day is left to the general form. */
const UTC_DATE_TIME =
  /^\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,200})?Z$/

/** Each item of a collection may have several: the `Date` of the general form takes twenty times as long. */
function parseUtc(text: string): string | undefined {
  if (!UTC_DATE_TIME.test(text)) return undefined
  let end = text.length - 1
  if (end > 19) while (text[end - 1] === '0') end--
  return text.slice(0, text[end - 1] === '.' ? end - 1 : end)
}

function parseAny(text: string): string | undefined {
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
