import { isUtf8 } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import type { Exchange } from '../core/exchange.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { ACCOUNTS, FUNCTION, PERIOD, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { RequestView } from '../core/request-view.ts'
import { formatChallenge } from '../protocol/authorization.ts'
import {
  describeSecret,
  digestText,
  indexAccounts,
  isPasswordHash,
  normalizeText,
  passThrottle,
  reportAttempt,
  THROTTLE,
  type Throttle,
} from './accounts.ts'
import { parsePasswordHash, verifyLikeStranger } from './password-hash.ts'
import {
  type AuthResult,
  type AuthScheme,
  copyResult,
  createMemory,
  parseBase64,
  REALM,
  toPrincipal,
  type Verdict,
} from './scheme.ts'

/**
 * Decides whether a user has this password. The name is in Unicode normalization form C, however the client spelled it;
 * the password is as it was sent.
 */
export type PasswordVerifier = (user: string, password: string, request: RequestView) => MaybePromise<Verdict>

/** Options of `basic`. It needs either `accounts` or `verify`. */
export interface BasicOptions {
  /** What the client shows when it asks for a password; printable ASCII. Default: `Resources`. */
  readonly realm?: string
  /** Decides about a password. Do the same work for users that do not exist: the time would tell that they do not. */
  readonly verify?: PasswordVerifier
  /** Instead of `verify`: passwords by user name, either all in clear or all made by `hashPassword`. */
  readonly accounts?: Readonly<Record<string, string>>
  /** Slows down guessing: 429. Default: none; see `attemptLimit`. */
  readonly throttle?: Throttle
  /**
   * Milliseconds for which a verified password is not verified again, so that an expensive hash is computed once. After a
   * change, the old password still works for that time. The verdict counts for every request with the same name and password:
   * leave it at 0 where `verify` decides by the host or the path. Default: 0.
   */
  readonly cacheLifetime?: number
}

const OPTIONS = {
  realm: REALM,
  verify: FUNCTION,
  accounts: ACCOUNTS,
  throttle: THROTTLE,
  cacheLifetime: withDefault(PERIOD, 0),
} satisfies OptionTable<BasicOptions>

const CACHE_SIZE = 1000

/** Why credentials count as malformed: for the operator. */
const MALFORMED: AuthResult = { outcome: 'rejected', reason: 'malformed Basic credentials' }
const WRONG: AuthResult = { outcome: 'rejected', reason: 'wrong user or password' }

/**
 * The Basic scheme (RFC 7617): user name and password, in UTF-8.
 * @throws TypeError unless there is exactly one of `verify` and `accounts`, and for a hash that `hashPassword` did not make
 * @example
 * auth({ schemes: [basic({ accounts: { ada: await hashPassword('correct horse') } })] })
 */
export function basic(options: BasicOptions): AuthScheme {
  const read = resolveOptions('basic', options, OPTIONS)
  const { realm, throttle, cacheLifetime } = read
  if ((read.verify === undefined) === (read.accounts === undefined)) {
    throw new TypeError('basic takes either "verify" or "accounts".')
  }
  const verify = read.verify ?? createAccountVerifier(read.accounts!)
  const challenges = [
    formatChallenge('Basic', [
      { name: 'realm', value: realm },
      { name: 'charset', value: 'UTF-8' },
    ]),
  ]
  const memory = createMemory<AuthResult>(CACHE_SIZE, cacheLifetime)

  function judge(user: string, verdict: Verdict, key: string, exchange: Exchange): MaybePromise<AuthResult> {
    const principal = toPrincipal('basic', verdict, user)
    return reportAttempt(throttle, user, principal === undefined ? 'rejected' : 'accepted', exchange, () => {
      if (principal === undefined) return WRONG
      const result: AuthResult = { outcome: 'accepted', principal }
      memory.set(key, copyResult(result))
      return result
    })
  }

  return {
    name: 'Basic',
    isAmbient: true,
    challenges: () => challenges,
    authenticate(value, exchange) {
      const key = memory.keyOf(value)
      const known = memory.get(key)
      if (known !== undefined && throttle === undefined) return copyResult(known)
      const credentials = parseBasicCredentials(value)
      if (credentials === undefined) return MALFORMED
      const { password } = credentials
      const user = normalizeText(credentials.user)
      return passThrottle(throttle, user, exchange, () =>
        known === undefined
          ? andThen(verify(user, password, exchange), (verdict) => judge(user, verdict, key, exchange))
          : reportAttempt(throttle, user, 'accepted', exchange, () => copyResult(known)),
      )
    },
  }
}

/**
 * Reads user name and password: padded base64 and nothing else, UTF-8, no control characters (RFC 7617 §2).
 * @returns `undefined` for anything else
 */
export function parseBasicCredentials(value: string): { user: string; password: string } | undefined {
  const bytes = parseBase64(value)
  if (bytes === undefined || !isUtf8(bytes)) return undefined
  const text = bytes.toString()
  const colon = text.indexOf(':')
  if (colon < 0 || /[\x00-\x1f\x7f]/.test(text)) return undefined
  return { user: text.slice(0, colon), password: text.slice(colon + 1) }
}

function createAccountVerifier(accounts: Readonly<Record<string, string>>): PasswordVerifier {
  const entries = Object.entries(accounts)
  for (const [user, secret] of entries) {
    if (user.includes(':')) throw new TypeError(`The user name "${user}" has a colon, which Basic cannot carry.`)
    if (typeof secret !== 'string') {
      throw new TypeError(`The account "${user}" takes a password as text, not ${describeSecret(secret)}.`)
    }
    // As a password, a hash of another kind would let in a client that has stolen it.
    if (isPasswordHash(secret) && parsePasswordHash(secret) === undefined) {
      throw new TypeError(
        `The account "${user}" has a hash that hashPassword did not make: compare such hashes in "verify".`,
      )
    }
  }
  const hashed = entries.filter(([, secret]) => isPasswordHash(secret))
  if (hashed.length === 0) return createPlainVerifier(entries)
  // The time an answer takes would tell which accounts are hashed, and so which exist.
  if (hashed.length < entries.length) throw new TypeError('"accounts" mixes hashes with passwords: hash all of them.')
  return createHashVerifier(entries)
}

function createPlainVerifier(entries: readonly [string, string][]): PasswordVerifier {
  const accounts = indexAccounts(entries.map(([user, password]) => [user, digestText(normalizeText(password))]))
  const decoy = digestText('')
  return (user, password) => {
    const account = accounts.get(user)
    const isEqual = timingSafeEqual(digestText(normalizeText(password)), account?.secret ?? decoy)
    return account !== undefined && isEqual && { id: account.name }
  }
}

function createHashVerifier(entries: readonly [string, string][]): PasswordVerifier {
  const accounts = indexAccounts(entries)
  const hashes = entries.map(([, hash]) => hash)
  return async (user, password) => {
    const account = accounts.get(user)
    // The hash of another account stands in for the one that is missing, always the same for one name: the same work.
    const decoy = hashes[digestText(user).readUInt32LE() % hashes.length]!
    const isRight = await verifyLikeStranger(password, account?.secret, decoy)
    return account !== undefined && isRight && { id: account.name }
  }
}
