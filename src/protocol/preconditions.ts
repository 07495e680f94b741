import { parseHttpDate } from './dates.ts'
import { isReadMethod } from './request-line.ts'

/** The validators of a current representation (RFC 9110 §8.8). */
export interface Validators {
  /** Entity tags of the current state: that of the selected representation first. Empty when there is none. */
  readonly entityTags: readonly string[]
  /**
   * When the representation changed last, in milliseconds since the epoch, also where that is after now; absent when no
   * date is known.
   */
  readonly lastModified?: number | undefined
  /** Whether the resource changed once only in the second that `lastModified` names (RFC 9110 §8.8.2.2). Default: false. */
  readonly dateIsStrong?: boolean | undefined
}

/**
 * Whether the second of a date is over, so that nothing can happen in it any more. Where it is not known how often a
 * resource changed within it, this is what makes a date count as strong (RFC 9110 §8.8.2.2).
 */
export function isSecondOver(date: number | undefined, now: number): boolean {
  return date !== undefined && Math.floor(date / 1000) < Math.floor(now / 1000)
}

/**
 * Last-Modified as it is sent: never later than the answer (RFC 9110 §8.8.2.1). Conditions are judged by the date itself:
 * a date that was cut to now says nothing about the state, and would let an older date pass for the current one.
 * @param lastModified milliseconds since the epoch
 * @param now milliseconds since the epoch
 */
export function dateToSend(lastModified: number | undefined, now: number): number | undefined {
  return lastModified !== undefined && lastModified > now ? now : lastModified
}

/** The conditional fields of a request as received; a date field that was repeated is left out (RFC 9110 §13.1.3). */
export interface Conditions {
  readonly ifMatch?: string | undefined
  readonly ifNoneMatch?: string | undefined
  readonly ifModifiedSince?: string | undefined
  readonly ifUnmodifiedSince?: string | undefined
}

/** The decision, and the field that has made it. */
export interface PreconditionResult {
  /**
   * `proceed`: perform the method. `not-modified`: 304. `failed`: 412.
   * `malformed`: an If-Match, or on an unsafe method an If-None-Match, that is not a list of tags; 400, never "absent".
   */
  readonly outcome: 'proceed' | 'not-modified' | 'failed' | 'malformed'
  readonly field?: 'If-Match' | 'If-Unmodified-Since' | 'If-None-Match' | 'If-Modified-Since'
}

const PROCEED: PreconditionResult = { outcome: 'proceed' }

/**
 * Evaluates the preconditions of a request in the order of RFC 9110 §13.2.2.
 * @param conditions the conditional fields as received
 * @param current the validators of the current representation, or `undefined` when the target has none
 * @param method GET, HEAD and QUERY answer 304 where others answer 412
 * @param now milliseconds since the epoch, for two-digit years
 */
export function evaluatePreconditions(
  conditions: Conditions,
  current: Validators | undefined,
  method: string,
  now: number,
): PreconditionResult {
  const { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince } = conditions
  const isRead = isReadMethod(method)

  if (ifMatch !== undefined) {
    // Step 1. Strong comparison (§13.1.1).
    const match = matchEntityTags(ifMatch, comparableTags(current, isRead), 'strong')
    if (match === 'malformed') return { outcome: 'malformed', field: 'If-Match' }
    if (match === 'any' ? current === undefined : match === 'no-match') return { outcome: 'failed', field: 'If-Match' }
  } else if (ifUnmodifiedSince !== undefined && isModifiedSince(ifUnmodifiedSince, current, now) === true) {
    // Step 2. Only without If-Match (§13.1.4).
    return { outcome: 'failed', field: 'If-Unmodified-Since' }
  }

  if (ifNoneMatch !== undefined) {
    // Step 3. Weak comparison (§13.1.2).
    const match = matchEntityTags(ifNoneMatch, comparableTags(current, isRead), 'weak')
    if (match === 'malformed') return isRead ? PROCEED : { outcome: 'malformed', field: 'If-None-Match' }
    if (match === 'any' ? current !== undefined : match === 'match') {
      return { outcome: isRead ? 'not-modified' : 'failed', field: 'If-None-Match' }
    }
  } else if (isRead && ifModifiedSince !== undefined && isModifiedSince(ifModifiedSince, current, now) === false) {
    // Step 4. Only for GET and HEAD (and QUERY, RFC 10008 §2.6), only without If-None-Match (§13.1.3).
    return { outcome: 'not-modified', field: 'If-Modified-Since' }
  }
  return PROCEED
}

/** A read is about the selected representation; a write is about the state that all representations share. */
function comparableTags(current: Validators | undefined, isRead: boolean): readonly string[] {
  const tags = current?.entityTags ?? []
  return isRead && tags.length > 1 ? tags.slice(0, 1) : tags
}

/**
 * Whether the current representation changed after the date in a field.
 * @returns `undefined` when the condition must be ignored: not an HTTP-date, or no date known (§13.1.3, §13.1.4)
 */
function isModifiedSince(field: string, current: Validators | undefined, now: number): boolean | undefined {
  if (current?.lastModified === undefined) return undefined
  const date = parseHttpDate(field, now)
  if (date === undefined) return undefined
  const modified = Math.floor(current.lastModified / 1000) * 1000
  // A second in which the resource changed twice names two states: it cannot prove that nothing changed.
  return modified > date || (modified === date && current.dateIsStrong !== true)
}

/**
 * Whether an If-Range value still names the current representation (RFC 9110 §13.1.5).
 * A tag must match strongly; a date must be exactly Last-Modified, and strong. Anything else is false.
 * @param now milliseconds since the epoch, for two-digit years
 */
export function evaluateIfRange(field: string, current: Validators, now: number): boolean {
  const first = field.charCodeAt(0)
  if (first === 0x22 || (first === 0x57 && field.charCodeAt(1) === 0x2f)) {
    return field === current.entityTags[0] && !isWeakTag(field)
  }
  if (current.lastModified === undefined || current.dateIsStrong !== true) return false
  return parseHttpDate(field, now) === Math.floor(current.lastModified / 1000) * 1000
}

// Entity tags (RFC 9110 §8.8.3), kept in the form they have on the wire: `"abc"` or `W/"abc"`.

/**
 * Index after the entity tag that starts at `at`, or -1 when none does.
 * A real scanner, because an opaque tag may hold commas and semicolons.
 */
function scanEntityTag(text: string, at: number): number {
  if (text.charCodeAt(at) === 0x57 && text.charCodeAt(at + 1) === 0x2f) at += 2 // W/, case-sensitive
  if (text.charCodeAt(at) !== 0x22) return -1
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) return i + 1
    if (code < 0x21 || code === 0x7f || code > 0xff) return -1
  }
  return -1
}

/** Whether `text` is exactly one well-formed entity tag (RFC 9110 §8.8.3). */
export function isEntityTag(text: string): boolean {
  return scanEntityTag(text, 0) === text.length
}

/** Whether a well-formed entity tag is weak. */
export function isWeakTag(tag: string): boolean {
  return tag.charCodeAt(0) === 0x57
}

/**
 * Makes a strong entity tag of an opaque version (RFC 9110 §8.8.3).
 * Characters that a tag cannot hold are percent-encoded, so that different versions give different tags.
 */
export function formatEntityTag(version: string): string {
  return isOpaque(version) ? `"${version}"` : `"${encode(version)}"`
}

/** Lone surrogates have no UTF-8, and are written as `%uD800`, which is not the encoding of anything else. */
function encode(version: string): string {
  const [first, ...rest] = version.split(/(\p{Cs})/u)
  const encodePart = (part: string, index: number): string =>
    index % 2 === 1 ? encodeURIComponent(part) : `%u${part.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(first!) + rest.map(encodePart).join('')
}

/**
 * Whether a version can stand in a tag as it is: visible ASCII without quotes, and without "%", which marks what was
 * encoded. A loop, because a regular expression takes 700 instructions for ten characters.
 */
function isOpaque(version: string): boolean {
  for (let i = 0; i < version.length; i++) {
    const code = version.charCodeAt(i)
    if (code < 0x21 || code > 0x7e || code === 0x22 || code === 0x25) return false
  }
  return true
}

/** What an If-Match or If-None-Match value says about the tags of the current state. */
export type EntityTagMatch = 'any' | 'match' | 'no-match' | 'malformed'

/**
 * Compares the list in an If-Match or If-None-Match value with current tags, in one pass and without splitting.
 * @param field the value: `*`, or a list of entity tags; empty members are ignored (RFC 9110 §5.6.1.2)
 * @param tags the tags of the current state, well-formed; none when there is no tag
 * @param comparison `strong` for If-Match, `weak` for If-None-Match
 * @returns `any` for `*`; `malformed` when the value is neither `*` nor a list of tags, whatever matched before
 */
export function matchEntityTags(field: string, tags: readonly string[], comparison: 'strong' | 'weak'): EntityTagMatch {
  if (field === '*') return 'any'
  // Mostly it is the one tag that the client was given.
  if (field === tags[0]) return comparison === 'weak' || !isWeakTag(field) ? 'match' : 'no-match'
  let found = false
  let at = 0
  let separated = true
  while (at < field.length) {
    const code = field.charCodeAt(at)
    if (code === 0x20 || code === 0x09) at++
    else if (code === 0x2c) {
      separated = true
      at++
    } else {
      const end = separated ? scanEntityTag(field, at) : -1
      if (end < 0) return 'malformed'
      if (!found) found = matchesOne(field, at, end, tags, comparison)
      separated = false
      at = end
    }
  }
  return found ? 'match' : 'no-match'
}

function matchesOne(
  field: string,
  start: number,
  end: number,
  tags: readonly string[],
  comparison: 'strong' | 'weak',
): boolean {
  const from = comparison === 'weak' && field.charCodeAt(start) === 0x57 ? start + 2 : start
  for (const tag of tags) {
    if (comparison === 'strong' && isWeakTag(tag)) continue
    const opaque = isWeakTag(tag) ? tag.slice(2) : tag
    // Equal length first: most of a long list is ruled out without making a string.
    if (end - from === opaque.length && field.startsWith(opaque, from)) return true
  }
  return false
}
