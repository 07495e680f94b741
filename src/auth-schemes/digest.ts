import type { Exchange } from '../core/exchange.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { ACCOUNTS, FUNCTION, listOf, numberThat, oneOf, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { sentMethod, sentTarget } from '../core/place.ts'
import type { RequestView } from '../core/request-view.ts'
import { type ChallengeParameter, formatChallenge } from '../protocol/authorization.ts'
import { formatQuotedString } from '../protocol/field-value.ts'
import { isEqualSecret, passThrottle, reportAttempt, THROTTLE, type Throttle } from './accounts.ts'
import {
  type Account,
  computeResponse,
  createAccountFinder,
  DIGEST_ALGORITHMS,
  type DigestAlgorithm,
  type DigestCredentials,
  type DigestSecret,
  findByFunction,
  findInTable,
  parseDigestCredentials,
} from './digest-response.ts'
import { createNonces, SHARED_NONCES, type SharedNonces } from './nonces.ts'
import {
  type AuthResult,
  type AuthScheme,
  oncePerRequest,
  REALM,
  requireAnswer,
  toPrincipal,
  type Verdict,
} from './scheme.ts'

/** Options of `digest`. It needs either `accounts` or `findSecret`. */
export interface DigestOptions {
  /** What the client shows when it asks for a password, and hashes with it; printable ASCII. Default: `Resources`. */
  readonly realm?: string
  /** Secrets by user name: passwords in clear, or what `hashDigestSecret` makes of them. */
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
  /** Lets several processes take each other's nonces: `{ key, claim }`. Default: a nonce is good only where it was made. */
  readonly shared?: SharedNonces
  /**
   * The target of a request as its client sent it, where a proxy changes it on the way. Default: that of the request
   * line.
   */
  readonly targetOf?: (request: RequestView) => string
}

const LIFETIME = numberThat(
  (value) => value > 0 && value < Number.POSITIVE_INFINITY,
  'milliseconds, a finite number above 0',
)

const OPTIONS = {
  realm: REALM,
  accounts: ACCOUNTS,
  findSecret: FUNCTION,
  principal: FUNCTION,
  algorithms: withDefault(listOf(oneOf(...DIGEST_ALGORITHMS), 1), ['SHA-256']),
  nonceLifetime: withDefault(LIFETIME, 300_000),
  throttle: THROTTLE,
  shared: SHARED_NONCES,
  targetOf: FUNCTION,
} satisfies OptionTable<DigestOptions>

const MALFORMED: AuthResult = { outcome: 'rejected', reason: 'malformed Digest credentials' }
const NOT_OFFERED: AuthResult = { outcome: 'rejected', reason: 'realm or algorithm that was not offered' }
const MOVED: AuthResult = { outcome: 'rejected', reason: 'Digest credentials for another target' }
const WRONG: AuthResult = { outcome: 'rejected', reason: 'wrong user or password' }
const STALE: readonly ChallengeParameter[] = [{ name: 'stale', value: 'true', form: 'token' }]

/**
 * The Digest scheme (RFC 7616) with `qop=auth`: the password is not sent, and what is sent is good for one request with
 * one method and one target. Nothing is kept until a password was right.
 *
 * `auth-int` is not offered: it covers the content, which is read long after the credentials were judged.
 * @throws TypeError unless there is exactly one of `accounts` and `findSecret`, or for options that do not exist
 * @example
 * auth({ schemes: [digest({ realm: 'api', accounts: { ada: hashDigestSecret('ada', 'api', password) } })] })
 */
export function digest(options: DigestOptions): AuthScheme {
  const read = resolveOptions('digest', options, OPTIONS)
  const { realm, nonceLifetime, principal, throttle, shared, targetOf = ({ req }) => sentTarget(req) } = read
  // The client takes the first that it knows (RFC 7616 §3.7).
  const algorithms = DIGEST_ALGORITHMS.filter((name) => read.algorithms.includes(name))
  if ((read.accounts === undefined) === (read.findSecret === undefined)) {
    throw new TypeError('digest takes either "accounts" or "findSecret".')
  }
  const findAccount = createAccountFinder(
    read.accounts === undefined ? findByFunction(read.findSecret!) : findInTable(read.accounts, algorithms),
    realm,
  )
  const nonces = createNonces(realm, nonceLifetime, shared)

  function formatChallenges(more: readonly ChallengeParameter[]): readonly string[] {
    const nonce = nonces.create()
    return algorithms.map((algorithm) =>
      formatChallenge('Digest', [
        { name: 'realm', value: realm },
        { name: 'qop', value: 'auth' },
        { name: 'algorithm', value: algorithm, form: 'token' },
        { name: 'nonce', value: nonce },
        { name: 'charset', value: 'UTF-8', form: 'token' },
        ...more,
      ]),
    )
  }

  /**
   * The password was right: the client tries again by itself, with a new nonce (RFC 7616 §3.3). That tells a guess, so the
   * throttle may withhold it. It is not reported: a replay must not have failures forgotten.
   */
  function refuseNonce(user: string, exchange: Exchange): MaybePromise<AuthResult> {
    return passThrottle(throttle, user, exchange, () => ({
      outcome: 'rejected',
      reason: 'nonce expired or used',
      challenges: formatChallenges(STALE),
    }))
  }

  function judge(credentials: DigestCredentials, account: Account, exchange: Exchange): MaybePromise<AuthResult> {
    const { user, nonce, nc } = credentials
    const expected = computeResponse(credentials, account.hash, sentMethod(exchange.req))
    if (!isEqualSecret(expected, credentials.response)) {
      return reportAttempt(throttle, user, 'rejected', exchange, () => WRONG)
    }
    return andThen(nonces.claim(nonce, Number.parseInt(nc, 16)), (isFree) => {
      if (!requireAnswer('claim of digest', isFree)) return refuseNonce(user, exchange)
      return reportAttempt(throttle, user, 'accepted', exchange, () => accept(credentials, account, exchange))
    })
  }

  function accept(credentials: DigestCredentials, account: Account, exchange: Exchange): MaybePromise<AuthResult> {
    const { cnonce, nc } = credentials
    const { name } = account
    return andThen(principal === undefined ? true : principal(name, exchange), (verdict) => {
      const known = toPrincipal('digest', verdict, name)
      if (known === undefined) return WRONG
      // RFC 7616 §3.5: we know the password, too.
      const proof = computeResponse(credentials, account.hash, '')
      const info = `rspauth="${proof}", qop=auth, cnonce=${formatQuotedString(cnonce)}, nc=${nc}`
      return { outcome: 'accepted', principal: known, fields: ['Authentication-Info', info] }
    })
  }

  return {
    name: 'Digest',
    isAmbient: true,
    challenges: () => formatChallenges([]),
    authenticate: oncePerRequest((value, exchange) => {
      const credentials = parseDigestCredentials(value)
      if (credentials === undefined) return MALFORMED
      const { user, algorithm, uri } = credentials
      if (credentials.realm !== realm || !algorithms.includes(algorithm)) return NOT_OFFERED
      if (uri !== atOnce(targetOf(exchange))) return MOVED
      return passThrottle(throttle, user, exchange, () =>
        andThen(findAccount(user, algorithm, exchange), (account) => judge(credentials, account, exchange)),
      )
    }),
  }
}
