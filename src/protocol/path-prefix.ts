/** Whether a request is below a path prefix, in the reading of every program that it may pass through. */

import { hasKnownForm, parseRequestTarget, pathOfTarget, toOriginForm } from './request-line.ts'

/**
 * Where a request target lies. `inside`: as received, it begins with the prefix. `outside`: no reading of it does.
 * `unclear`: it depends on who reads it.
 */
type Placement = 'inside' | 'outside' | 'unclear'

/** A path that has one reading only: no escape, parameter or dot segment, no slash that is doubled or turned round. */
const PLAIN = /^(?:\/(?!\.{0,2}(?:\/|$))[^/\\%;?#\x00-\x20\x7f\s]+)*\/?$/
/** The most readings that are looked at, and the longest path that has several. */
const MOST = 64
const LONGEST = 4096

/** What programs on the way do with a path before they compare it, each by itself and in any order. */
const READINGS: readonly ((path: string) => string)[] = [
  (path) => decodeEscapes(path),
  // The URL Standard resolves "%2e" as a dot segment, and leaves the slash in "/a%2fb" what it is.
  (path) => decodeEscapes(path, /(?:%(?!2f)[0-9a-f]{2})+/gi),
  (path) => path.replaceAll('\\', '/'),
  // A scheme without an authority, and a path without its first slash.
  (path) => path.replace(/^(?:[a-z][a-z0-9+.-]*:)?\/?/i, '/'),
  // The URL Standard takes for an authority what follows two slashes, or more, and what follows a scheme with any number of them.
  (path) => path.replace(/^[a-z][a-z0-9+.-]*:\/*[^/]*/i, ''),
  (path) => path.replace(/^\/{2,}[^/]*/, ''),
  (path) => path.replace(/\/{2,}/g, '/'),
  resolveDots,
  (path) => path.replace(/;[^/]*/g, ''),
  // For programs in C a text ends before U+0000.
  (path) => path.replace(/[?#\0].*$/s, ''),
  // The URL Standard drops tabs and line feeds, and `url.parse` all blanks around a target, that of Latin-1 among them.
  (path) => path.replace(/[\t\n\r]/g, ''),
  (path) => path.replace(/[\x00-\x20\x7f\s]/g, ''),
]

/**
 * Every path that a program may take a path for, by decoding its escapes (once or more often), resolving dots and so on.
 * @param path as received, without a query
 * @returns the path itself first; `undefined` where there are too many to be worth the time
 */
export function listReadings(path: string): readonly string[] | undefined {
  return PLAIN.test(path) ? [path] : addReadings([path])
}

/** Adds to some paths every other reading of them. @returns `undefined` where there are more than `most` */
function addReadings(readings: string[], most = MOST): readonly string[] | undefined {
  if (readings.length > most || readings.some((path) => path.length > LONGEST)) return undefined
  for (let i = 0; i < readings.length; i++) {
    for (const read of READINGS) {
      const reading = read(readings[i]!) || '/'
      if (readings.includes(reading)) continue
      if (readings.length === most) return undefined
      readings.push(reading)
    }
  }
  return readings
}

/**
 * Whether the dot segments of a path lead out of the mount that it is below, in some reading: below `/api`,
 * `/../api/secret` is `/api/secret` for a program that resolves dots.
 * @param readings those of the path below the mount; `undefined` for too many
 */
export function leadsOut(readings: readonly string[] | undefined): boolean {
  return readings === undefined || readings.some(climbs)
}

function climbs(path: string): boolean {
  let depth = 0
  for (const segment of path.split('/')) {
    if (segment === '..') depth--
    else if (segment !== '' && segment !== '.') depth++
    if (depth < 0) return true
  }
  return false
}

/**
 * Decides where a request target lies relative to a path prefix.
 * @param target as received, in any form
 * @param prefix such as `/api`, without a slash at the end. A name with a colon, as in `/t/:tenant`, stands for any segment
 */
export function placeTarget(target: string, prefix: string): Placement {
  if (prefix === '') return 'inside'
  // `*` is about the server as a whole, and so about everything below the prefix too.
  if (!hasKnownForm(toOriginForm(target))) return 'unclear'
  const path = pathOfTarget(target)
  if (measurePrefix(path, prefix) !== undefined) return 'inside'
  return mayBeBelow(listReadings(path), decodeEscapes(prefix).toLowerCase()) ? 'unclear' : 'outside'
}

/**
 * Whether a program may find a path below a prefix, also behind one that strips the first part of the prefix or puts a path of its
 * own before the target: `/a/../b` is then `/../b`, which is `/b`, or `/c/../b`.
 * @param readings `undefined` for too many
 * @param prefix in lower case. Escapes stay in paths: a router takes "a%2Fb" for one segment
 * @param most how many readings are looked at, these and those of what is left of them
 */
function mayBeBelow(readings: readonly string[] | undefined, prefix: string, most = MOST): boolean {
  if (readings === undefined) return true
  const mayReturn = (path: string): boolean => prefix.includes('/:') || `${path}/`.includes(`${prefix}/`)
  // Letter case does not tell paths apart in Express and Connect.
  const folded = readings.map((path) => path.toLowerCase())
  if (folded.some((path) => lengthBelow(path, prefix) !== undefined)) return true
  // Dots that lead out leave with those between the parts of the prefix: `/../c/a/./b` is `/c/a/b` in another reading.
  if (folded.some(mayReturn) && folded.some(climbs)) return true
  const end = prefix.indexOf('/', 1)
  if (end < 0 || readings.length === 1) return false
  const stripped = folded.flatMap((path) => {
    const length = lengthBelow(path, prefix.slice(0, end))
    return length === undefined ? [] : [path.slice(length)]
  })
  const left = most - readings.length
  return mayBeBelow(addReadings([...new Set(stripped)], left), prefix.slice(end), left)
}

/** As {@link measurePrefix}, where every segment but an empty one may stand for a name. */
function lengthBelow(path: string, prefix: string): number | undefined {
  return measurePrefix(path, prefix, (segment) => segment !== '')
}

/**
 * How many characters of a path its prefix has; `undefined` when the path is not below it.
 * @param path as received, without a query
 * @param prefix see {@link placeTarget}
 */
export function measurePrefix(
  path: string,
  prefix: string,
  fills: (segment: string) => boolean = isOneSegment,
): number | undefined {
  if (!prefix.includes('/:')) {
    const next = path.startsWith(prefix) ? path.charCodeAt(prefix.length) : undefined
    return next === 0x2f || Number.isNaN(next) ? prefix.length : undefined
  }
  const segments = path.split('/')
  let length = -1
  for (const [index, wanted] of prefix.split('/').entries()) {
    const segment = segments[index] ?? ''
    if (wanted.startsWith(':') ? !fills(segment) : segment !== wanted) return undefined
    length += segment.length + 1
  }
  return length
}

/** Whether every reading of a segment is one segment, and neither a dot segment nor empty. */
function isOneSegment(segment: string): boolean {
  return segment !== '' && parseRequestTarget(`/${segment}`) !== undefined
}

/** Escapes of UTF-8 (Unicode, table 3-7). */
const UTF8 =
  /^(?:%[0-7].|%(?:c[2-9a-f]|d.)%[89ab].|%e(?:0%[ab]|[1-9a-cef]%[89ab]|d%[89]).%[89ab].|%f(?:0%[9ab]|[1-3]%[89ab]|4%8).(?:%[89ab].){2})+$/i

/**
 * Decodes escapes, also those that are not UTF-8: there are programs that do. `decodeURIComponent` would throw for each of a
 * thousand of these.
 * @param runs what is decoded. Default: every escape
 */
function decodeEscapes(path: string, runs: RegExp = /(?:%[0-9a-f]{2})+/gi): string {
  return path.replace(runs, (run) => {
    if (UTF8.test(run)) return decodeURIComponent(run)
    let text = ''
    for (let at = 1; at < run.length; at += 3) text += String.fromCharCode(Number.parseInt(run.slice(at, at + 2), 16))
    return text
  })
}

/** RFC 3986 §5.2.4 */
function resolveDots(path: string): string {
  const kept: string[] = []
  const segments = path.split('/')
  for (const [index, segment] of segments.entries()) {
    if (segment === '..' && kept.length > 1) kept.pop()
    if (segment !== '.' && segment !== '..') kept.push(segment)
    else if (index === segments.length - 1) kept.push('')
  }
  return kept.join('/')
}
