import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import type { Log } from '../core/operator-log.ts'
import { CHECKED_LATER, describeValue, FUNCTION, PERIOD, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { askEachReading } from '../core/place.ts'
import { asJudged, asRead, type Principal, type RequestView } from '../core/request-view.ts'
import { type ChallengeParameter, formatChallenge, isToken68 } from '../protocol/authorization.ts'
import { type ProtectedResourceMetadataOptions, readResourceMetadata } from './resource-metadata.ts'
import {
  type AuthResult,
  type AuthScheme,
  copyResult,
  createMemory,
  REALM,
  toPrincipal,
  type Verdict,
} from './scheme.ts'

/** What a verifier found out about a token. */
export type TokenResult =
  | { readonly outcome: 'accepted'; readonly principal: Principal; readonly scopes: readonly string[] }
  /** `description` is sent to the client: printable ASCII, and nothing of the token. */
  | { readonly outcome: 'rejected'; readonly description: string }

/** Verifies tokens; `jwt` makes one. */
export interface TokenVerifier {
  /** @throws HttpError 503 while it cannot be known whether the token is good */
  verifyToken(token: string, request: RequestView): MaybePromise<TokenResult>
  /** Reports when tokens cannot be verified, and when they can be again. @returns what ends the reports */
  watch?(log: Log): () => void
}

/** Decides about an opaque token, for instance by introspection (RFC 7662). Throw an HttpError 503 while it cannot. */
export type OpaqueTokenVerifier = (token: string, request: RequestView) => MaybePromise<Verdict>

/** Options of `bearer`. */
export interface BearerOptions {
  /** The realm of the challenges (RFC 9110 §11.5); printable ASCII. Default: `Resources`. */
  readonly realm?: string
  /**
   * The scopes a request needs, all of them. A write whose response shows the current state needs those of a GET as well,
   * for instance every PATCH; see `Authorize`. Default: none.
   */
  readonly scope?: (request: RequestView) => readonly string[]
  /**
   * Milliseconds for which an opaque token is not verified again, whatever the request is: leave it at 0 where the verifier
   * decides by the host or the path. Default: 0. `jwt` has a cache of its own.
   */
  readonly cacheLifetime?: number
  /**
   * The metadata of the protected resource (RFC 9728): served at its well-known URI without credentials, and named in every
   * challenge as `resource_metadata`. A TypeError where it is malformed. Default: none.
   */
  readonly metadata?: ProtectedResourceMetadataOptions
}

const OPTIONS = {
  realm: REALM,
  scope: FUNCTION,
  cacheLifetime: withDefault(PERIOD, 0),
  metadata: CHECKED_LATER,
} satisfies OptionTable<BearerOptions>

/** Longer tokens are refused unparsed: parsing costs time that clients without a right could cause. */
const MAX_LENGTH = 8192
const CACHE_SIZE = 10_000

/**
 * The Bearer scheme (RFC 6750): tokens in the Authorization field, and nowhere else.
 * @param verifier made by `jwt`, or a function for opaque tokens
 * @throws TypeError for anything else, and for options that do not exist
 * @example
 * auth({ schemes: [bearer(jwt({ jwks, issuer, audience, algorithms: ['RS256'] }))] })
 */
export function bearer(verifier: TokenVerifier | OpaqueTokenVerifier, options: BearerOptions = {}): AuthScheme {
  const { realm, scope, cacheLifetime, metadata } = resolveOptions('bearer', options, OPTIONS)
  if (typeof verifier !== 'function' && typeof verifier?.verifyToken !== 'function') {
    throw new TypeError(`bearer takes a verifier, jwt(...) or a function, not ${describeValue(verifier)}.`)
  }
  if (typeof verifier !== 'function' && cacheLifetime > 0) {
    throw new TypeError('"cacheLifetime" is for opaque tokens: jwt has a cache of its own, with a "cacheSize".')
  }
  const tokens = typeof verifier === 'function' ? createOpaqueVerifier(verifier, cacheLifetime) : verifier
  const metadataUrl = metadata === undefined ? undefined : readResourceMetadata(metadata).url
  const challengeWith = createChallengeWriter(realm, metadataUrl)
  const challenges = [challengeWith([])]

  function conclude(result: TokenResult, exchange: Exchange): AuthResult {
    if (result.outcome === 'rejected') {
      const { description } = result
      const parameters = [
        { name: 'error', value: 'invalid_token' },
        { name: 'error_description', value: cleanDescription(description) },
      ]
      return { outcome: 'rejected', reason: description, challenges: [challengeWith(parameters)] }
    }
    if (scope !== undefined) {
      const wanted = wantedScopes(scope, exchange)
      const scopes = requireScopes('The verifier of a token', result.scopes)
      if (!wanted.every((name) => scopes.includes(name))) throw createScopeError(wanted, challengeWith)
    }
    return result
  }

  return {
    name: 'Bearer',
    isAmbient: false,
    metadata,
    challenges: () => challenges,
    ...(tokens.watch === undefined ? {} : { watch: (log) => tokens.watch!(log) }),
    authenticate(value, exchange) {
      // Two ways to send a token in one request (RFC 6750 §3.1).
      if (exchange.queryText !== '' && /(?:^|&)access_token=/.test(exchange.queryText)) {
        const error = [{ name: 'error', value: 'invalid_request' }]
        throw new HttpError(400, 'ERR_MALFORMED_QUERY', {
          detail: 'A token is sent in the Authorization field only.',
          headers: { 'WWW-Authenticate': challengeWith(error) },
        })
      }
      if (value.length > MAX_LENGTH) return conclude(MALFORMED, exchange)
      return andThen(tokens.verifyToken(value, exchange), (result) => conclude(result, exchange))
    },
  }
}

/** The scopes that a request needs, whichever way its path is read. */
function wantedScopes(scope: NonNullable<BearerOptions['scope']>, exchange: Exchange): readonly string[] {
  const ask = (request: RequestView): readonly string[] =>
    requireScopes('scope of bearer', atOnce(scope(asJudged(request))))
  if (exchange.readings === undefined && !exchange.revealsState) return ask(exchange)
  const wanted = new Set<string>()
  const collect = (): void => {
    for (const name of ask(exchange)) wanted.add(name)
    if (exchange.revealsState) for (const name of ask(asRead(exchange))) wanted.add(name)
  }
  askEachReading(exchange, collect, () => false)
  return [...wanted]
}

/** @throws TypeError for anything but a list: in the text "notes:readers" there is "notes:read" as well */
function requireScopes(owner: string, scopes: unknown): readonly string[] {
  if (Array.isArray(scopes) && scopes.every((name) => typeof name === 'string')) return scopes
  throw new TypeError(`${owner} gives scopes as a list of texts, not as ${describeValue(scopes)}.`)
}

/** What is said of a token that has not even the form of one. */
export const MALFORMED: TokenResult = { outcome: 'rejected', description: 'The token is malformed.' }

/**
 * Makes the error for a valid token whose scopes do not suffice (RFC 6750 §3.1): `authorize` or a verifier throws it.
 * @param scopes the scopes that the request needs
 * @param realm the realm of the challenge. Default: `Resources`
 * @returns a 403 `ERR_FORBIDDEN` with a Bearer challenge that names the scopes
 */
export function insufficientScope(scopes: readonly string[], realm = 'Resources'): HttpError {
  return createScopeError(scopes, createChallengeWriter(realm))
}

function createScopeError(scopes: readonly string[], challengeWith: ChallengeWriter): HttpError {
  const detail = 'The token lacks a scope that this request needs.'
  const parameters = [
    { name: 'error', value: 'insufficient_scope' },
    { name: 'error_description', value: detail },
    { name: 'scope', value: cleanDescription(scopes.join(' ')) },
  ]
  return new HttpError(403, 'ERR_FORBIDDEN', { detail, headers: { 'WWW-Authenticate': challengeWith(parameters) } })
}

type ChallengeWriter = (parameters: readonly ChallengeParameter[]) => string

/** @param metadataUrl where clients learn how to get a token (RFC 9728 §5.1) */
function createChallengeWriter(realm: string, metadataUrl?: string): ChallengeWriter {
  const metadata = metadataUrl === undefined ? [] : [{ name: 'resource_metadata', value: metadataUrl }]
  return (parameters) => formatChallenge('Bearer', [{ name: 'realm', value: realm }, ...parameters, ...metadata])
}

/** Neither quotes nor backslashes, not even escaped ones, and ASCII only (RFC 6750 §3). */
function cleanDescription(text: string): string {
  return text.replace(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, '')
}

function createOpaqueVerifier(verify: OpaqueTokenVerifier, cacheLifetime: number): TokenVerifier {
  const memory = createMemory<TokenResult>(CACHE_SIZE, cacheLifetime)

  function conclude(verdict: Verdict, key: string): TokenResult {
    const known = toPrincipal('bearer', verdict, '')
    if (known === undefined) return { outcome: 'rejected', description: 'The token is not valid.' }
    const id = known.id === '' ? readName(known.claims) : known.id
    if (id === undefined) throw new TypeError('The verifier of bearer gives an id, or claims whose "sub" is text.')
    const principal = { ...known, id }
    const result: TokenResult = { outcome: 'accepted', principal, scopes: readScopes(principal.claims) }
    memory.set(key, copyResult(result))
    return result
  }

  return {
    verifyToken(token, request) {
      const key = memory.keyOf(token)
      const known = memory.get(key)
      if (known !== undefined) return copyResult(known)
      if (!isToken68(token)) return MALFORMED
      return andThen(verify(token, request), (verdict) => conclude(verdict, key))
    },
  }
}

/**
 * Names who a token is for.
 * @returns `sub`, or `client_id` without a `sub`; empty without both; `undefined` for a value that is not text (RFC 7519
 *   §4.1.2): all such users would be one principal
 */
export function readName(claims: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const name = claims?.['sub'] ?? claims?.['client_id'] ?? ''
  return typeof name === 'string' ? name : undefined
}

/** The scopes of a token: `scope` (RFC 8693 §4.2), or `scp` where an issuer calls it so. */
export function readScopes(claims: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  const scope = claims?.['scope'] ?? claims?.['scp']
  if (typeof scope === 'string') return scope.split(' ').filter((name) => name !== '')
  return Array.isArray(scope) ? scope.filter((name) => typeof name === 'string') : []
}
