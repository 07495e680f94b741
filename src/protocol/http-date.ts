/** HTTP-date (RFC 9110 §5.6.7): three formats in, one out, nothing else accepted. */

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec'
const IMF = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT$/
const RFC850 = /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\d\d)-([A-Z][a-z]{2})-(\d\d) (\d\d):(\d\d):(\d\d) GMT$/
const ASCTIME = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ([A-Z][a-z]{2}) ([ \d]\d) (\d\d):(\d\d):(\d\d) (\d{4})$/

/**
 * Reads an HTTP-date in IMF-fixdate, rfc850-date or asctime-date form.
 * The name of the day is not held against the date: clients that send a wrong one mean the date.
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
  if (match !== null) return instant(+match[6]!, match[1]!, +match[2]!, match[3]!, match[4]!, match[5]!)
  return undefined
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
 * Writes an instant as IMF-fixdate, the only form that may be generated.
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
