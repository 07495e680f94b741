import type { IncomingMessage } from 'node:http'
import type { Exchange } from '../core/exchange.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import type { HostRequest } from '../core/request-view.ts'
import { type ChallengeParameter, formatChallenge } from '../protocol/authorization.ts'
import { formatQuotedString } from '../protocol/field-value.ts'
import { type Account, type DigestHashes, type DigestOptions, resolveDigestOptions } from './digest-options.ts'
import {
  computeResponse,
  DIGEST_ALGORITHMS,
  type DigestCredentials,
  hashAccount,
  parseDigestCredentials,
} from './digest-response.ts'
import { oncePerRequest } from './once-per-request.ts'
import { isEqualSecret, normalizeName } from './secrets.ts'
import { passThrottle, reportAttempt } from './throttle.ts'
import { type AuthResult, type AuthScheme, toPrincipal } from './types.ts'

export type { DigestHashes, DigestOptions, DigestSecret, SharedNonces } from './digest-options.ts'
export type { DigestAlgorithm } from './digest-response.ts'

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
  const { realm, algorithms, lifetime, nonces, claim, findAccount, ...settings } = resolveDigestOptions(options)
  const { principal, throttle, targetOf = readSentTarget } = settings

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

  /** The password was right: the client tries again by itself, with a new nonce (RFC 7616 §3.3). */
  function refuseNonce(): AuthResult {
    return { outcome: 'rejected', reason: 'nonce expired or used', challenges: formatChallenges(STALE) }
  }

  function judge(credentials: DigestCredentials, account: Account, exchange: Exchange): MaybePromise<AuthResult> {
    const { nonce, nc } = credentials
    const isEqual = isEqualSecret(
      computeResponse(credentials, account.hash, readSentMethod(exchange)),
      credentials.response,
    )
    if (!isEqual || !account.isKnown) {
      reportAttempt(throttle, normalizeName(credentials.user), 'rejected', exchange)
      return WRONG
    }
    const time = nonces.readTime(nonce)
    if (time === undefined || Date.now() - time >= lifetime) return refuseNonce()
    return andThen(claim(nonce, Number.parseInt(nc, 16), time), (isFree) => {
      if (isFree !== true) return refuseNonce()
      reportAttempt(throttle, normalizeName(credentials.user), 'accepted', exchange)
      return accept(credentials, account, exchange)
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
      return passThrottle(throttle, normalizeName(user), exchange, () =>
        andThen(findAccount(user, algorithm, exchange), (account) => judge(credentials, account, exchange)),
      )
    }),
  }
}

/**
 * Makes of a password what `digest` can verify it with, for keeping in its stead.
 * @param realm the `realm` option of the scheme
 */
export function hashDigestSecret(user: string, realm: string, password: string): DigestHashes {
  return Object.fromEntries(DIGEST_ALGORITHMS.map((name) => [name, hashAccount(name, user, realm, password)]))
}

/** The target before the host cut off the path that we are mounted at. */
function readSentTarget({ req }: { readonly req: IncomingMessage }): string {
  return (req as IncomingMessage & HostRequest).originalUrl ?? req.url ?? ''
}

/** The method before X-HTTP-Method-Override. */
function readSentMethod({ req }: Exchange): string {
  return (req as IncomingMessage & { originalMethod?: string }).originalMethod ?? req.method ?? ''
}
