import { matchEntityTags, matchesStrongly } from './entity-tag.ts'
import { parseHttpDate } from './http-date.ts'
import { isReadMethod } from './methods.ts'

/** The validators of a current representation (RFC 9110 §8.8). */
export interface Validators {
  /** Entity tags of the current state: that of the selected representation first. Empty when there is none. */
  readonly entityTags: readonly string[]
  /**
   * When the representation changed last, in milliseconds since the epoch, also where that is after now; absent when no
   * date is known.
   */
  readonly lastModified?: number | undefined
  /** Whether the resource changed once only in the second that `lastModified` names (RFC 9110 §8.8.2.2). */
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

/** The field that decided, beside what it decided. */
export interface PreconditionResult {
  /**
   * `proceed`: perform the method. `not-modified`: 304. `failed`: 412.
   * `malformed`: an If-Match, or on an unsafe method an If-None-Match, that is not a list of tags; 400, never "absent".
   */
  readonly outcome: 'proceed' | 'not-modified' | 'failed' | 'malformed'
  readonly field?: 'If-Match' | 'If-Unmodified-Since' | 'If-None-Match' | 'If-Modified-Since'
}

const PROCEED: PreconditionResult = { outcome: 'proceed' }
const NO_TAGS: readonly string[] = []

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
  if (current === undefined) return NO_TAGS
  return isRead && current.entityTags.length > 1 ? current.entityTags.slice(0, 1) : current.entityTags
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
 */
export function evaluateIfRange(field: string, current: Validators, now: number): boolean {
  const tag = current.entityTags[0]
  const first = field.charCodeAt(0)
  if (first === 0x22 || (first === 0x57 && field.charCodeAt(1) === 0x2f)) {
    return tag !== undefined && matchesStrongly(field, tag)
  }
  if (current.lastModified === undefined || current.dateIsStrong !== true) return false
  return parseHttpDate(field, now) === Math.floor(current.lastModified / 1000) * 1000
}
