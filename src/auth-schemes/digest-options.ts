import { randomBytes } from 'node:crypto'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { ACCOUNTS, FUNCTION, listOf, oneOf, RECORD, type ValueRule, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { RequestView } from '../core/request-view.ts'
import { DIGEST_ALGORITHMS, type DigestAlgorithm, hashAccount } from './digest-response.ts'
import { createNonceCounts } from './nonce-counts.ts'
import { createNonces, type Nonces } from './nonces.ts'
import { indexAccounts, type NamedAccount, normalizeName } from './secrets.ts'
import { THROTTLE, type Throttle } from './throttle.ts'
import { REALM, type Verdict } from './types.ts'

/** Stands for a password in one realm: it is enough to log in there, but does not reveal the password. */
export type DigestHashes = Readonly<Partial<Record<DigestAlgorithm, string>>>

/** A password in clear, or what `hashDigestSecret` made of it. */
export type DigestSecret = string | DigestHashes

export interface DigestOptions {
  /** What the client shows when it asks for a password, and hashes with it; printable ASCII. Default: `Resources`. */
  readonly realm?: string
  /** Secrets by user name. */
  readonly accounts?: Readonly<Record<string, DigestSecret>>
  /** Instead of `accounts`: finds the secret of a user, whose name is in Unicode normalization form C. */
  readonly findSecret?: (user: string, request: RequestView) => MaybePromise<DigestSecret | null | undefined>
  /** Who a user is, asked once the password was right. Default: the user name. */
  readonly principal?: (user: string, request: RequestView) => MaybePromise<Verdict>
  /**
   * The hashes that are offered, MD5 last: it is for clients that know nothing else (RFC 7616 §5.11).
   * Default: `SHA-256` alone.
   */
  readonly algorithms?: readonly DigestAlgorithm[]
  /** Milliseconds for which a nonce is good; the client gets a new one without asking its user. Default: 300 000. */
  readonly nonceLifetime?: number
  /** Slows down guessing: 429. Default: none; see `attemptLimit`. */
  readonly throttle?: Throttle
  /** For several processes that answer the same clients. Default: nonces are good in the process that made them. */
  readonly shared?: SharedNonces
  /**
   * The target of a request as its client sent it, where a proxy changes it on the way. Default: that of the request
   * line.
   */
  readonly targetOf?: (request: RequestView) => string
}

/** Nonces that several processes take from each other. */
export interface SharedNonces {
  /** 32 bytes at least, secret, the same in every process. */
  readonly key: Uint8Array
  /**
   * Takes a count of a nonce, atomically for all processes: a request that was sent to one could be sent again to another.
   * @param expires milliseconds since the epoch; nothing need be kept longer
   * @returns whether the count was still free
   */
  readonly claim: (nonce: string, count: number, expires: number) => MaybePromise<boolean>
}

/** The options of the scheme, checked. */
export interface DigestSettings {
  readonly realm: string
  readonly algorithms: readonly DigestAlgorithm[]
  /** Milliseconds. */
  readonly lifetime: number
  readonly nonces: Nonces
  readonly claim: (nonce: string, count: number, time: number) => MaybePromise<boolean>
  /** H(A1) of a user, or of a name that does not exist: the same work for both. */
  readonly findAccount: (user: string, algorithm: DigestAlgorithm, request: RequestView) => MaybePromise<Account>
  readonly principal: DigestOptions['principal']
  readonly throttle: Throttle | undefined
  readonly targetOf: DigestOptions['targetOf']
}

export interface Account {
  /** The name of the account, whatever spelling was sent. */
  readonly name: string
  readonly hash: string
  readonly isKnown: boolean
}

/** Finds the secret of a user by the one spelling of the name. */
type AccountFinder = (user: string, request: RequestView) => MaybePromise<NamedAccount<DigestSecret> | undefined>

const MIN_KEY = 32
/** Nonces whose counts are kept; only those that a right password was used with take a place. */
const MAX_NONCES = 10_000

const LIFETIME: ValueRule = {
  accepts: (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  text: 'milliseconds, a finite number above 0',
}

const SHARED: ValueRule = {
  accepts(value) {
    if (!RECORD.accepts(value)) return false
    const { key, claim } = value as Partial<SharedNonces>
    return key instanceof Uint8Array && key.length >= MIN_KEY && typeof claim === 'function'
  },
  text: `{ key, claim }, a secret of at least ${MIN_KEY} bytes and a function`,
}

const OPTIONS = {
  realm: REALM,
  accounts: ACCOUNTS,
  findSecret: FUNCTION,
  principal: FUNCTION,
  algorithms: withDefault(listOf(oneOf(...DIGEST_ALGORITHMS), 1), ['SHA-256']),
  nonceLifetime: withDefault(LIFETIME, 300_000),
  throttle: THROTTLE,
  shared: SHARED,
  targetOf: FUNCTION,
} satisfies OptionTable<DigestOptions>

/** @throws TypeError for options that are missing, out of bounds, or contradict each other */
export function resolveDigestOptions(options: DigestOptions): DigestSettings {
  const read = resolveOptions('digest', options, OPTIONS)
  const { realm, nonceLifetime: lifetime, shared } = read
  // The client takes the first that it knows (RFC 7616 §3.7).
  const algorithms = DIGEST_ALGORITHMS.filter((name) => read.algorithms.includes(name))
  if ((read.accounts === undefined) === (read.findSecret === undefined)) {
    throw new TypeError('digest takes either "accounts" or "findSecret".')
  }
  const find = read.accounts === undefined ? nameFound(read.findSecret!) : createFinder(read.accounts, algorithms)
  return {
    ...{ realm, algorithms, lifetime, principal: read.principal, throttle: read.throttle, targetOf: read.targetOf },
    nonces: createNonces(createKeySource(shared), realm),
    claim: createClaim(shared, lifetime),
    findAccount: createAccountFinder(find, realm),
  }
}

/** A key of the process is drawn at its first use: Workers may not draw random bytes while a module is loaded. */
function createKeySource(shared: SharedNonces | undefined): () => Uint8Array {
  let key = shared === undefined ? undefined : Uint8Array.from(shared.key)
  return () => {
    key ??= randomBytes(MIN_KEY)
    return key
  }
}

function createClaim(shared: SharedNonces | undefined, lifetime: number): DigestSettings['claim'] {
  if (shared !== undefined) return (nonce, count, time) => shared.claim(nonce, count, time + lifetime)
  return createNonceCounts(MAX_NONCES, lifetime).claim
}

function nameFound(findSecret: NonNullable<DigestOptions['findSecret']>): AccountFinder {
  return (user, request) =>
    andThen(findSecret(user, request), (secret) =>
      secret === undefined || secret === null ? undefined : { name: user, secret },
    )
}

function createFinder(
  accounts: Readonly<Record<string, DigestSecret>>,
  algorithms: readonly DigestAlgorithm[],
): AccountFinder {
  const entries = Object.entries(accounts)
  if (entries.length === 0) throw new TypeError('"accounts" is empty: no user could log in.')
  for (const [user, secret] of entries) {
    // Colons separate what is hashed: two accounts could have one hash.
    if (user.includes(':')) throw new TypeError(`The user name "${user}" has a colon, which Digest cannot tell apart.`)
    if (typeof secret === 'string' && secret.startsWith('$scrypt$')) {
      throw new TypeError(`The account "${user}" has a hash that hashPassword made: Digest needs hashDigestSecret.`)
    }
    const isComplete =
      typeof secret === 'string' ||
      (secret !== null && algorithms.every((name) => readHash(secret, name) !== undefined))
    if (!isComplete) throw new TypeError(`The account "${user}" has neither a password nor a hash for each algorithm.`)
  }
  const index = indexAccounts(entries)
  return (user) => index.get(user)
}

/** @param user as it was sent: clients hash the name in their own spelling */
function createAccountFinder(find: AccountFinder, realm: string): DigestSettings['findAccount'] {
  let unknown: string | undefined
  return (user, algorithm, request) => {
    unknown ??= randomBytes(16).toString('hex')
    const standIn = unknown
    const canonical = normalizeName(user)
    return andThen(find(canonical, request), (account) => {
      const { name, secret } = account ?? { name: canonical, secret: undefined }
      const known = typeof secret === 'object' ? readHash(secret, algorithm) : secret
      const hash = hashAccount(algorithm, user, realm, typeof secret === 'string' ? secret : standIn)
      const isHash = typeof secret === 'object' && known !== undefined
      return { name, hash: isHash ? known : hash, isKnown: typeof known === 'string' }
    })
  }
}

function readHash(hashes: DigestHashes, algorithm: DigestAlgorithm): string | undefined {
  const hash = Object.hasOwn(hashes, algorithm) ? hashes[algorithm] : undefined
  return typeof hash === 'string' && /^(?:[\da-f]{32}){1,2}$/.test(hash) ? hash : undefined
}
