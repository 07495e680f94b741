import { hash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { createGenerations } from '../core/caches.ts'
import type { Exchange } from '../core/exchange.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Log } from '../core/operator-log.ts'
import { type DefaultRule, describeValue, textLike, withDefault } from '../core/option-values.ts'
import { readProperty } from '../core/options.ts'
import type { Principal } from '../core/request-view.ts'
import { isWithin } from '../core/time.ts'
import type { ProtectedResourceMetadataOptions } from './resource-metadata.ts'

/** What a scheme says about the credentials of a request. */
export type AuthResult =
  /** The credentials are good. `fields` go into every answer, names and values in turn: Authentication-Info. */
  | { readonly outcome: 'accepted'; readonly principal: Principal; readonly fields?: readonly string[] }
  /**
   * 401. `challenges` replace the scheme's own in WWW-Authenticate, where the failure has to be named in them
   * (`error="invalid_token"`, `stale=true`, a token of Negotiate). `reason` is for the operator, never for the client.
   */
  | { readonly outcome: 'rejected'; readonly reason: string; readonly challenges?: readonly string[] }

/** An authentication scheme (RFC 9110 §11.1), for the option `schemes`: `basic`, `bearer`, `digest`, `negotiate`, or one of your own. */
export interface AuthScheme {
  /** The name in the Authorization field, compared case-insensitively: `Basic`. */
  readonly name: string
  /**
   * Whether browsers attach the credentials by themselves once a user has typed them in: changes that another site asks
   * for with them are refused (403). Default: true; false for credentials that only a program sets.
   */
  readonly isAmbient?: boolean
  /**
   * Whether every response is marked `private`, whatever `cacheControl` says: for credentials of a connection. Default:
   * false, because shared caches leave responses to requests with Authorization alone (RFC 9111 §3.5).
   */
  readonly isPrivate?: boolean
  /** The metadata of the resource that the scheme guards (RFC 9728), to be served at its well-known URI. Default: none. */
  readonly metadata?: ProtectedResourceMetadataOptions | undefined
  /** The challenges for a request without usable credentials, each a whole WWW-Authenticate value. */
  challenges(exchange: Exchange): readonly string[]
  /**
   * Verifies credentials.
   * @param value what follows the scheme name in Authorization
   * @throws HttpError for responses other than 401: 403 insufficient_scope, 429, 503 while keys cannot be fetched
   */
  authenticate(value: string, exchange: Exchange): MaybePromise<AuthResult>
  /**
   * Reports when credentials cannot be verified, and when they can be again.
   * @param log the `log` option of the service or middleware that uses the scheme
   * @returns what ends the reports
   */
  watch?(log: Log): () => void
}

/** What a verifier of the user's own says: who it is, `true` for just that name, or that the credentials are wrong. */
export type Verdict = boolean | null | undefined | VerifiedUser

/** Who was verified: an `id`, `claims`, or both. An object with neither is an error (500). */
export interface VerifiedUser {
  /** Default: the user name; for a token its `sub`, or its `client_id` without a `sub`. */
  readonly id?: string
  /**
   * Whatever else is known, for `authorize`. While a verdict is cached, each request has a copy of the object, but not of the
   * objects in it.
   */
  readonly claims?: Readonly<Record<string, unknown>>
}

/**
 * The principal that a verdict stands for; `undefined` when the credentials are wrong.
 * @param id the name, where the verdict has none of its own
 * @param rule what the function returns, for the error. Default: what a verifier returns
 * @throws TypeError for anything that is not a verdict: taking it for consent would let everybody in
 */
export function toPrincipal(scheme: string, verdict: Verdict, id: string, rule?: string): Principal | undefined {
  if (verdict === false || verdict === null || verdict === undefined) return undefined
  // Always a property of its own: a hook that reads `claims` must not find those that pollute the prototype.
  if (verdict === true) return { scheme, id, claims: undefined }
  const user: VerifiedUser = typeof verdict === 'object' ? verdict : {}
  const claims = readProperty(user, 'claims')
  const own = readProperty(user, 'id')
  const name = own ?? id
  // Rows of a query that found none, a Response and a boxed false have neither.
  const hasEither = claims === undefined ? typeof own === 'string' : typeof claims === 'object' && claims !== null
  if (!hasEither || typeof name !== 'string') {
    throw new TypeError(
      rule ??
        `The verifier of ${scheme} returns { id, claims }, one of them at least, true or false; id is text, claims an object.`,
    )
  }
  return { scheme, id: name, claims }
}

/** A result that is remembered, for one request: the next one must not see what a middleware writes on the principal. */
export function copyResult<Result extends { readonly outcome: string; readonly principal?: Principal }>(
  result: Result,
): Result {
  if (result.outcome !== 'accepted') return result
  return { ...result, principal: { ...result.principal, claims: copyClaims(result.principal?.claims) } }
}

/** Those of `jwt` are frozen; an object of a class stays as it is, since a copy would be without its methods. */
function copyClaims(claims: Principal['claims']): Principal['claims'] {
  if (claims === undefined || Object.isFrozen(claims)) return claims
  const prototype = Object.getPrototypeOf(claims)
  return prototype === Object.prototype || prototype === null ? Object.setPrototypeOf({ ...claims }, prototype) : claims
}

/** The answer of a function to a question. @throws TypeError for another: the operator would not hear of the refusal */
export function requireAnswer(name: string, answer: unknown): boolean {
  if (typeof answer === 'boolean') return answer
  throw new TypeError(`${name} returns true or false, not ${describeValue(answer)}.`)
}

/** Clients show a realm, and hash it. */
export const REALM: DefaultRule<string> = withDefault(
  textLike(/^[\x20-\x7e]+$/, 'text of printable ASCII characters'),
  'Resources',
)

/**
 * Verifies the credentials of one request once, however many guards share the scheme: credentials that are good for one
 * use would be refused by the second guard.
 */
export function oncePerRequest(authenticate: AuthScheme['authenticate']): AuthScheme['authenticate'] {
  const results = new WeakMap<IncomingMessage, ReturnType<AuthScheme['authenticate']>>()
  return (value, exchange) => {
    const known = results.get(exchange.req)
    if (known !== undefined) return known
    const result = authenticate(value, exchange)
    results.set(exchange.req, result)
    return result
  }
}

/**
 * What has been verified, by the exact credentials: at least `limit / 2` and at most `limit` entries. What has long not been
 * asked for goes first.
 * @param lifetime milliseconds for which an entry counts; with 0 for either nothing is hashed or kept
 */
export function createMemory<Value>(limit: number, lifetime: number = Number.POSITIVE_INFINITY) {
  type Entry = { readonly value: Value; readonly since: number }
  const isOff = limit === 0 || lifetime === 0
  // Half of the limit counts, and that is one entry at least.
  const entries = createGenerations<string, Entry>(isOff ? 0 : Math.max(2, limit))

  return {
    /** The key of credentials: their SHA-256, so that nothing which could be replayed stays in memory. */
    keyOf: (credentials: string): string => (isOff ? '' : hash('sha256', credentials, 'base64')),
    get(key: string): Value | undefined {
      const entry = entries.get(key)
      return entry !== undefined && isWithin(entry.since, lifetime) ? entry.value : undefined
    },
    set: (key: string, value: Value): void => entries.set(key, { value, since: Date.now() }, 1),
  }
}

/**
 * Reads padded base64 in its one spelling; `undefined` for anything else. Node ignores what is not base64: credentials
 * would have several spellings.
 */
export function parseBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}
