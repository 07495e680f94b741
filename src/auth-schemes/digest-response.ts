import { isUtf8 } from 'node:buffer'
import { hash, randomBytes } from 'node:crypto'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import type { RequestView } from '../core/request-view.ts'
import { parseAuthParameters } from '../protocol/authorization.ts'
import { parseExtendedValue } from '../protocol/content-disposition.ts'
import { describeSecret, indexAccounts, isPasswordHash, type NamedAccount, normalizeText } from './accounts.ts'

/** A hash of the Digest scheme (RFC 7616 §6.1). MD5 only for clients that know nothing else. */
export type DigestAlgorithm = 'SHA-256' | 'MD5'

/** Stands for a password in one realm: it is enough to log in there, but does not reveal the password. */
export type DigestHashes = Readonly<Partial<Record<DigestAlgorithm, string>>>

/** A password in clear, or what `hashDigestSecret` made of it. */
export type DigestSecret = string | DigestHashes

const HASHES: Readonly<Record<DigestAlgorithm, string>> = { 'SHA-256': 'sha256', MD5: 'md5' }

export const DIGEST_ALGORITHMS = Object.keys(HASHES) as readonly DigestAlgorithm[]

/** What a client sends (RFC 7616 §3.4). */
export interface DigestCredentials {
  readonly user: string
  readonly realm: string
  readonly nonce: string
  readonly uri: string
  readonly response: string
  readonly cnonce: string
  /** As sent: eight hexadecimal digits, 1 or more. */
  readonly nc: string
  readonly algorithm: DigestAlgorithm
}

/**
 * Reads Digest credentials; every parameter that the proof is made of must be there, once.
 * @returns `undefined` when one is missing or malformed, or asks for what is never offered: another quality of
 * protection, a hashed user name, a session
 */
export function parseDigestCredentials(value: string): DigestCredentials | undefined {
  const parameters = parseAuthParameters(value)
  if (parameters === undefined) return undefined
  const name = (parameters.get('algorithm') ?? 'MD5').toUpperCase()
  const algorithm = DIGEST_ALGORITHMS.find((algorithm) => algorithm === name)
  const user = readUser(parameters)
  const names = ['realm', 'nonce', 'uri', 'cnonce', 'nc', 'response']
  const [realm, nonce = '', uri = '', cnonce = '', nc = '', response = ''] = names.map((name) => parameters.get(name))
  if (user === undefined || algorithm === undefined || realm === undefined) return undefined
  if (![nonce, uri, cnonce].every((text) => /^[\x20-\x7e]+$/.test(text))) return undefined
  // Without qop there is no count, and a replay could not be detected (RFC 7616 §3.4).
  if (parameters.get('qop') !== 'auth' || parameters.get('userhash')?.toLowerCase() === 'true') return undefined
  // Counts begin at 1 (RFC 7616 §3.4).
  if (!/^(?!0{8})[\da-f]{8}$/i.test(nc) || !/^[\da-f]+$/.test(response)) return undefined
  return { user, realm, nonce, uri, response, cnonce, nc, algorithm }
}

/**
 * The user name: UTF-8, which Node shows as Latin-1, or in the extended form (RFC 7616 §3.4.4). Bytes that are not UTF-8
 * are Latin-1: some clients send the name so and hash it in UTF-8.
 */
function readUser(parameters: ReadonlyMap<string, string>): string | undefined {
  const plain = parameters.get('username')
  const extended = parameters.get('username*')
  if ((plain === undefined) === (extended === undefined)) return undefined
  if (plain === undefined) return parseExtendedValue(extended!)
  const bytes = Buffer.from(plain, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : plain
}

/** H(A1) of an account. */
export interface Account {
  /** The name of the account, whatever spelling was sent. */
  readonly name: string
  readonly hash: string
}

/** Finds the secret of a user by the one spelling of the name. */
type SecretFinder = (user: string, request: RequestView) => MaybePromise<NamedAccount<DigestSecret> | undefined>

/** Finds accounts by a function: the spelling that it is given is the name. */
export function findByFunction(
  findSecret: (user: string, request: RequestView) => MaybePromise<DigestSecret | null | undefined>,
): SecretFinder {
  return (user, request) =>
    andThen(findSecret(user, request), (secret) => {
      if (secret === undefined || secret === null) return undefined
      // Taken for a wrong password, it would refuse every client without a report.
      const isSecret =
        typeof secret === 'object'
          ? DIGEST_ALGORITHMS.some((name) => readHash(secret, name) !== undefined)
          : typeof secret === 'string' && !isPasswordHash(secret)
      if (isSecret) return { name: user, secret }
      throw new TypeError(
        'findSecret of digest returns a password as text, what hashDigestSecret made of one, or undefined for no user; ' +
          `it gave ${typeof secret === 'string' ? 'a hash of another kind' : describeSecret(secret)}.`,
      )
    })
}

/** Finds accounts in a table. @throws TypeError for an account that cannot log in by each algorithm */
export function findInTable(
  accounts: Readonly<Record<string, DigestSecret>>,
  algorithms: readonly DigestAlgorithm[],
): SecretFinder {
  const entries = Object.entries(accounts)
  for (const [user, secret] of entries) {
    // Colons separate what is hashed: two accounts could have one hash.
    if (user.includes(':')) throw new TypeError(`The user name "${user}" has a colon, which Digest cannot tell apart.`)
    if (typeof secret === 'string' && isPasswordHash(secret)) {
      throw new TypeError(`The account "${user}" has a hash of another kind: Digest needs hashDigestSecret.`)
    }
    const isComplete =
      typeof secret === 'string' ||
      (secret !== null && algorithms.every((name) => readHash(secret, name) !== undefined))
    if (!isComplete) throw new TypeError(`The account "${user}" has neither a password nor a hash for each algorithm.`)
  }
  const index = indexAccounts(entries)
  return (user) => index.get(user)
}

/**
 * Makes what gives H(A1) of a user, or of a name that does not exist: the same work for both, and for the latter the hash of a
 * random password.
 * @returns a function of the name as it was sent: clients hash it in their own spelling
 */
export function createAccountFinder(
  find: SecretFinder,
  realm: string,
): (user: string, algorithm: DigestAlgorithm, request: RequestView) => MaybePromise<Account> {
  let unknown: string | undefined
  return (user, algorithm, request) => {
    const standIn = (unknown ??= randomBytes(16).toString('hex'))
    const canonical = normalizeText(user)
    return andThen(find(canonical, request), (account) => {
      const { name, secret } = account ?? { name: canonical, secret: undefined }
      const known = typeof secret === 'object' ? readHash(secret, algorithm) : undefined
      const made = hashAccount(algorithm, user, realm, typeof secret === 'string' ? secret : standIn)
      return { name, hash: known ?? made }
    })
  }
}

function readHash(hashes: DigestHashes, algorithm: DigestAlgorithm): string | undefined {
  const hash = Object.hasOwn(hashes, algorithm) ? hashes[algorithm] : undefined
  return typeof hash === 'string' && /^(?:[\da-f]{32}){1,2}$/.test(hash) ? hash : undefined
}

/**
 * Hashes a password for `digest`, to be stored in its place (H(A1) of RFC 7616 §3.4.2).
 * @param user the user name, as clients send it
 * @param realm the `realm` option of the scheme: another realm needs another hash
 * @param password the password in clear
 * @returns a hash for each algorithm, in hexadecimal
 */
export function hashDigestSecret(user: string, realm: string, password: string): DigestHashes {
  return Object.fromEntries(DIGEST_ALGORITHMS.map((name) => [name, hashAccount(name, user, realm, password)]))
}

/** H(A1): all that need be known of a password (RFC 7616 §3.4.2). */
export function hashAccount(algorithm: DigestAlgorithm, user: string, realm: string, password: string): string {
  return digest(algorithm, `${user}:${realm}:${normalizeText(password)}`)
}

/** The proof that the client knows the password (RFC 7616 §3.4.1). @param account H(A1) */
export function computeResponse(credentials: DigestCredentials, account: string, method: string): string {
  const { algorithm, nonce, nc, cnonce, uri } = credentials
  const request = digest(algorithm, `${method}:${uri}`)
  return digest(algorithm, `${account}:${nonce}:${nc}:${cnonce}:auth:${request}`)
}

function digest(algorithm: DigestAlgorithm, text: string): string {
  return hash(HASHES[algorithm], text)
}
