import type { MaybePromise } from '../core/maybe-promise.ts'
import { numberThat, PERIOD, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import type { RequestView } from '../core/request-view.ts'
import { createRemoteKeySource, createStaticKeySource, fetchJson, type KeySource } from './key-source.ts'
import type { Verdict } from './scheme.ts'
import { ALGORITHMS, isKeyFor, type KeyInput, readKeys, type VerificationKey } from './verification-key.ts'

/** The claims of a token. */
export type Claims = Readonly<Record<string, unknown>>

/** Options of `jwt`. It needs `issuer`, `audience`, and either `keys` or `jwks`. */
export interface JwtOptions {
  /** Keys that verify: JWKs, a JWK Set, KeyObjects, CryptoKeys, or the bytes of an HMAC secret: 32 for HS256, 48 for HS384, 64 for HS512. */
  readonly keys?: KeyInput | readonly KeyInput[]
  /**
   * Instead of `keys`: the address of the issuer's JWK Set, or a function that fetches one. A set of more than 1000 keys is not
   * used, nor is one at an address that has more than 1 MiB, is behind a redirect, or has more than one content coding; 503 where
   * no other is known.
   */
  readonly jwks?: string | URL | ((signal: AbortSignal) => MaybePromise<unknown>)
  /**
   * Whose tokens are accepted (`iss`). With several issuers, each key counts for all of them, and users with the same `sub` are
   * one principal. Where a `sub` is unique only within its issuer, let `principal` make an `id` of both (RFC 7519 §4.1.2).
   */
  readonly issuer: string | readonly string[]
  /** The name of this service in tokens (`aud`), or several names, one of which a token must have. */
  readonly audience: string | readonly string[]
  /** The signature algorithms that are accepted. Default: those with a public key; `HS256` must be asked for. */
  readonly algorithms?: readonly string[]
  /** Claims that a token must have besides `iss`, `aud` and `exp`. Default: none. */
  readonly requiredClaims?: readonly string[]
  /** The `typ` a token must have, `at+jwt` for instance (RFC 9068 §2.1). Default: any. */
  readonly typ?: string
  /** Milliseconds by which clocks may differ. Default: 5000. */
  readonly clockTolerance?: number
  /** The most milliseconds since a token was issued (`iat`). Default: no limit. */
  readonly maxTokenAge?: number
  /** The most milliseconds until a token expires (`exp`). Default: no limit. */
  readonly maxLifetime?: number
  /** The scopes of a token. Default: those in `scope` or `scp`. */
  readonly scopes?: (claims: Claims) => readonly string[]
  /**
   * Who the bearer is, asked once for each token. Default: `sub`, or `client_id`, with all claims; a token in which that is
   * not text is refused.
   */
  readonly principal?: (claims: Claims) => MaybePromise<Verdict>
  /** Whether a token was revoked, by its `jti` for instance; asked on every request. Default: no token is. */
  readonly isRevoked?: (claims: Claims, request: RequestView) => MaybePromise<boolean>
  /** How many verified tokens are cached; 0 verifies every signature again. Default: 10 000. */
  readonly cacheSize?: number
  /**
   * Times for `jwks`, in milliseconds. `freshFor`: the age from which the set is fetched again, by default 600 000. `staleFor`:
   * how much longer it is used until that succeeds, 3 600 000. `cooldown`: the least time between two fetches for unknown keys,
   * 30 000. `retryAfter`: the pause after a failure, 5000. `timeout`: the most that a fetch may take, content included, 5000.
   */
  readonly jwksTimes?: {
    readonly freshFor?: number
    readonly staleFor?: number
    readonly cooldown?: number
    readonly retryAfter?: number
    readonly timeout?: number
  }
}

/** Timers wait less than 2³¹ milliseconds, and an answer that is not waited for is none. */
const TIMEOUT = numberThat(
  (value) => value > 0 && value < 2 ** 31,
  'a number of milliseconds, more than 0 and less than 2147483648',
)

const JWKS_TIMES = {
  freshFor: withDefault(PERIOD, 600_000),
  staleFor: withDefault(PERIOD, 3_600_000),
  cooldown: withDefault(PERIOD, 30_000),
  retryAfter: withDefault(PERIOD, 5000),
  timeout: withDefault(TIMEOUT, 5000),
} satisfies OptionTable<NonNullable<JwtOptions['jwksTimes']>>

/** The names that an option has, one at least. @throws TypeError for anything else */
export function readNames(option: string, value: unknown): string[] {
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list) || list.length === 0 || !list.every((name) => typeof name === 'string' && name !== '')) {
    // An audience from a missing environment variable must not mean "any audience".
    throw new TypeError(`jwt needs "${option}": without it tokens meant for others, or made by others, would do.`)
  }
  return [...list]
}

/** The signature algorithms that are accepted. @throws TypeError for one that is not known */
export function readAlgorithms(given: unknown): string[] {
  if (given === undefined) return [...ALGORITHMS.keys()].filter((alg) => !alg.startsWith('HS'))
  const algorithms = readNames('algorithms', given)
  for (const alg of algorithms) {
    if (!ALGORITHMS.has(alg)) throw new TypeError(`"algorithms" has "${alg}", which is not a signature algorithm here.`)
  }
  return algorithms
}

/** @throws TypeError for a secret that is shorter than the hash it is for (RFC 7518 §3.2) */
function requireLongSecrets(keys: readonly VerificationKey[], alg: string): void {
  const size = ALGORITHMS.get(alg)?.secret
  if (size === undefined) return
  const isShort = keys.some((key) => key.kty === 'oct' && (key.alg ?? alg) === alg && !isKeyFor(key, alg))
  if (!isShort || keys.some((key) => isKeyFor(key, alg))) return
  throw new TypeError(`"keys" needs a secret of at least ${size} bytes for ${alg} (RFC 7518 section 3.2).`)
}

function readUrl(jwks: unknown): URL {
  const text = jwks instanceof URL ? jwks.href : jwks
  const url = typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined
  // `fetch` refuses user information, and the report of it would have the password.
  if (url !== undefined && url.username + url.password === '') return url
  throw new TypeError(
    'jwt takes as jwks: the https address of a key set without user information, or a function that fetches it.',
  )
}

/** Where the keys of a verifier come from. @throws TypeError for options that are missing, or contradict each other */
export function createSource(
  { keys, jwks, jwksTimes, algorithms: given }: Readonly<JwtOptions>,
  algorithms: readonly string[],
): KeySource {
  if ((keys === undefined) === (jwks === undefined)) throw new TypeError('jwt takes either "keys" or "jwks".')
  const times = resolveOptions('jwksTimes', jwksTimes, JWKS_TIMES)
  if (keys !== undefined) {
    if (jwksTimes !== undefined) throw new TypeError('jwt has "jwksTimes" without "jwks".')
    const list = readKeys(keys)
    for (const alg of algorithms) requireLongSecrets(list, alg)
    const unused = algorithms.filter((alg) => !list.some((key) => isKeyFor(key, alg)))
    if (given !== undefined ? unused.length > 0 : unused.length === algorithms.length) {
      throw new TypeError(`"keys" has no key for ${unused.join(', ')}; an HMAC secret needs "algorithms": ["HS256"].`)
    }
    return createStaticKeySource(list)
  }
  // Anybody can read the key set of an issuer: nothing in it can be a secret.
  if (algorithms.some((alg) => alg.startsWith('HS'))) throw new TypeError('HMAC algorithms cannot be used with "jwks".')
  if (typeof jwks === 'function') return createRemoteKeySource(jwks, times, algorithms)
  const url = readUrl(jwks)
  const isLoopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback)) {
    throw new TypeError('"jwks" is an https address: over http an intermediary could change the keys and make tokens.')
  }
  return createRemoteKeySource((signal) => fetchJson(url.href, signal), times, algorithms)
}
