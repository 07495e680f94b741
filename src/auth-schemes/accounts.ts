import { hash, timingSafeEqual } from 'node:crypto'
import { HttpError } from '../core/errors.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import {
  describeValue,
  FUNCTION,
  numberThat,
  POSITIVE,
  shapedAs,
  type ValueRule,
  withDefault,
} from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { networkOf } from '../core/peer.ts'
import type { RequestView } from '../core/request-view.ts'
import { isWithin } from '../core/time.ts'

/** Accounts with passwords: their names, the comparison of secrets, and what slows down guessing. */

/** Text in one shape that comparisons take equally long for, whatever its length. */
export function digestText(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}

/** Compares two secrets in a time that tells neither their lengths nor where they differ. */
export function isEqualSecret(a: string, b: string): boolean {
  return timingSafeEqual(digestText(a), digestText(b))
}

/** More marks in a row than any text has (UAX #15 §13): to put thousands of them in order takes tens of milliseconds. */
const MANY_MARKS = /\p{M}{31}/u

/**
 * Two ways to type one letter are one letter: in names (RFC 7617 §2.1, RFC 8265 §3.3) and in passwords (§4.2). Text with
 * more than 30 marks in a row stays as it is.
 */
export function normalizeText(text: string): string {
  return MANY_MARKS.test(text) ? text : text.normalize('NFC')
}

/** An account under the name that the configuration gives it. */
export interface NamedAccount<Secret> {
  readonly name: string
  readonly secret: Secret
}

/**
 * Accounts by their one spelling: whatever spelling a client sends, the account is the same.
 * @throws TypeError for none, and for two whose names differ in spelling only
 */
export function indexAccounts<Secret>(
  accounts: readonly (readonly [string, Secret])[],
): ReadonlyMap<string, NamedAccount<Secret>> {
  if (accounts.length === 0) throw new TypeError('"accounts" is empty: no user could log in.')
  const index = new Map(accounts.map(([name, secret]) => [normalizeText(name), { name, secret }]))
  if (index.size < accounts.length) throw new TypeError('"accounts" has one name in two spellings.')
  return index
}

/** How hashes begin: of crypt and its kin (`$6$`), of LDAP (`{SSHA}`), and of Django (`pbkdf2_sha256$`). */
const HASHES = [
  /^\$(?:scrypt|2[abxy]?|argon2[a-z]*|(?:apr1|md5|sha1|pbkdf2[\w-]*|g?y|[1567])\$[^$]+)\$/,
  /^\{(?:s?(?:sha|md5)(?![a-z])|[\w-]*crypt|pbkdf2|argon2)[\w.-]*\}./i,
  /^(?:pbkdf2|scrypt|bcrypt|argon2)\w*\$/,
]

/** Whether a secret is the hash of a password, by `hashPassword` or others. A hash by DES looks like a password and is not detected. */
export function isPasswordHash(secret: string): boolean {
  return HASHES.some((form) => form.test(secret))
}

/** Names what is there in place of a secret, for a message. A number may be the secret itself. */
export function describeSecret(value: unknown): string {
  return typeof value === 'number' ? 'a number' : describeValue(value)
}

/** Slows down guessing of passwords. Users are named in one spelling, whatever spelling was sent. */
export interface Throttle {
  /**
   * Asked before a password is looked at.
   * @returns milliseconds to wait, which are answered with 429 and Retry-After; nothing or 0 to go on
   */
  check(user: string, request: RequestView): MaybePromise<number | undefined>
  /**
   * Called with the outcome, and waited for.
   * @returns milliseconds to wait, where others guessed too often meanwhile: the response is 429, even to a right password;
   * else nothing
   */
  report(user: string, outcome: 'accepted' | 'rejected', request: RequestView): MaybePromise<number | undefined | void>
}

export const THROTTLE: ValueRule = shapedAs({ check: 'function', report: 'function' })

/** Goes on with `next` unless the throttle says to wait. @throws HttpError 429 */
export function passThrottle<Result>(
  throttle: Throttle | undefined,
  user: string,
  request: RequestView,
  next: () => MaybePromise<Result>,
): MaybePromise<Result> {
  if (throttle === undefined) return next()
  return andThen(throttle.check(normalizeText(user), request), (wait) => goOn(wait, next))
}

/**
 * Tells the throttle what came of an attempt, and goes on with `next` unless it withholds the answer.
 * @throws HttpError 429
 */
export function reportAttempt<Result>(
  throttle: Throttle | undefined,
  user: string,
  outcome: 'accepted' | 'rejected',
  request: RequestView,
  next: () => MaybePromise<Result>,
): MaybePromise<Result> {
  if (throttle === undefined) return next()
  return andThen(throttle.report(normalizeText(user), outcome, request), (wait) => goOn(wait, next))
}

function goOn<Result>(wait: number | null | undefined | void, next: () => MaybePromise<Result>): MaybePromise<Result> {
  if (wait === undefined || wait === null) return next()
  // The record of a limiter, for instance: to go on would let every guess through.
  if (typeof wait !== 'number') {
    throw new TypeError(`A throttle returns milliseconds to wait, or nothing, not ${describeValue(wait)}.`)
  }
  if (!(wait > 0)) return next()
  const headers = wait === Number.POSITIVE_INFINITY ? {} : { 'Retry-After': String(Math.ceil(wait / 1000)) }
  throw new HttpError(429, 'ERR_TOO_MANY_REQUESTS', { headers })
}

/** Options of `attemptLimit`. */
export interface AttemptLimitOptions {
  /** Wrong passwords that are answered 401; further attempts are 429. Default: 10. */
  readonly failures?: number
  /** Milliseconds over which they count, and after which they are forgotten. Default: 60 000. */
  readonly window?: number
  /**
   * Makes the key by which wrong passwords are counted. Default: of the user and the address of the client, so that guesses
   * from one address do not lock the user out elsewhere.
   * Behind proxies the address is the client's where `trustProxy` names them. Of IPv6 the first 64 bits count.
   */
  readonly keyOf?: (user: string, request: RequestView) => string
}

const OPTIONS = {
  failures: withDefault(
    numberThat((value) => value >= 1, 'a number, 1 or more'),
    10,
  ),
  window: withDefault(POSITIVE, 60_000),
  keyOf: FUNCTION,
} satisfies OptionTable<AttemptLimitOptions>

interface Failures {
  count: number
  readonly since: number
}

/** The most keys that are counted. */
const MAX_KEYS = 10_000

/**
 * A throttle in memory that counts wrong passwords in one process. For several processes write one on a shared store.
 * @throws TypeError for options that do not exist or are out of bounds
 * @example
 * basic({ accounts, throttle: attemptLimit({ failures: 5 }) })
 */
export function attemptLimit(options: AttemptLimitOptions = {}): Throttle {
  const { failures, window, keyOf } = resolveOptions('attemptLimit', options, OPTIONS)
  const counts = new Map<string, Failures>()
  const describe = keyOf ?? ((user, request) => `${networkOf(request.clientAddress ?? '')} ${user}`)
  // Hashed: names are as long as clients like.
  const toKey = (user: string, request: RequestView): string =>
    hash('sha256', atOnce(describe(user, request)), 'base64')

  function find(key: string): Failures | undefined {
    const entry = counts.get(key)
    if (entry === undefined || isWithin(entry.since, window)) return entry
    counts.delete(key)
    return undefined
  }

  function timeLeft(entry: Failures | undefined): number | undefined {
    return entry === undefined || entry.count < failures ? undefined : entry.since + window - Date.now()
  }

  /**
   * The oldest goes first, of those that no client has to wait for: attempts with other names must not set a count back. The
   * newer half stays: where all others have to wait, two names in turn would have no count.
   */
  function forgetOne(): void {
    let spare = counts.keys().next().value as string
    let newer = counts.size
    for (const [key, entry] of counts) {
      if (--newer < MAX_KEYS / 2) break
      if ((timeLeft(entry) ?? 0) > 0) continue
      spare = key
      break
    }
    counts.delete(spare)
  }

  return {
    check: (user, request) => timeLeft(find(toKey(user, request))),
    report(user, outcome, request) {
      const key = toKey(user, request)
      const entry = find(key)
      const wait = timeLeft(entry)
      // Guesses that were sent at once were all let through: those beyond the limit must not learn anything.
      if (wait !== undefined) return wait
      if (outcome === 'accepted') counts.delete(key)
      else if (entry !== undefined) entry.count++
      else {
        if (counts.size >= MAX_KEYS) forgetOne()
        counts.set(key, { count: 1, since: Date.now() })
      }
      return undefined
    },
  }
}
