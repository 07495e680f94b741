import { subtle, type webcrypto } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { CHECKED_LATER, FUNCTION, listOf, PERIOD, SIZE, TEXT, withDefault } from '../core/option-values.ts'
import { type OptionTable, readProperty, resolveOptions } from '../core/options.ts'
import type { RequestView } from '../core/request-view.ts'
import { MALFORMED, readName, readScopes, type TokenResult, type TokenVerifier } from './bearer.ts'
import { type Claims, createSource, type JwtOptions, readAlgorithms, readNames } from './jwt-options.ts'
import { copyResult, createMemory, requireAnswer, toPrincipal, type Verdict } from './scheme.ts'
import type { PublicJwk, VerificationKey } from './verification-key.ts'

export type { Claims, JwtOptions } from './jwt-options.ts'
export type { KeyInput } from './verification-key.ts'

/** A token whose signature was good, and when it counts, in milliseconds since the epoch. */
interface KnownToken {
  readonly accepted: TokenResult & { readonly outcome: 'accepted' }
  readonly claims: Claims
  readonly from: number
  readonly until: number
  readonly generation: number
}

const OPTIONS = {
  keys: CHECKED_LATER,
  jwks: CHECKED_LATER,
  issuer: CHECKED_LATER,
  audience: CHECKED_LATER,
  algorithms: CHECKED_LATER,
  requiredClaims: withDefault(listOf(TEXT), []),
  typ: TEXT,
  clockTolerance: withDefault(PERIOD, 5000),
  maxTokenAge: PERIOD,
  maxLifetime: PERIOD,
  scopes: FUNCTION,
  principal: FUNCTION,
  isRevoked: FUNCTION,
  cacheSize: withDefault(SIZE, 10_000),
  jwksTimes: CHECKED_LATER,
} satisfies OptionTable<JwtOptions>

type Jose = typeof import('jose')
let library: Promise<Jose> | undefined

/** Loaded by the first verifier, not by everybody who imports this package: it takes longer than all the rest. */
function loadJose(): Promise<Jose> {
  library ??= import('jose').catch((error: unknown) => {
    // As with too many open files: the next request tries again. Node 20 remembers the failure until the process ends.
    library = undefined
    throw error
  })
  return library
}

/** A token can be made to fit several keys; each costs a signature. */
const MAX_KEYS = 4
const INVALID: TokenResult = { outcome: 'rejected', description: 'The token is not valid.' }
const refuse = (name: string): TokenResult => ({
  outcome: 'rejected',
  description: `The ${name} of the token is not accepted.`,
})
const EXPIRED: TokenResult = { outcome: 'rejected', description: 'The token has expired.' }

/**
 * Verifies signed JSON Web Tokens (RFC 7519) for `bearer`.
 *
 * A signature is verified once for each token; on later requests only the times and the keys are looked at.
 * @throws TypeError when `issuer`, `audience`, or both `keys` and `jwks` are missing: each is a check that would silently not be made
 * @example
 * jwt({ jwks: 'https://login.example/jwks', issuer: 'https://login.example', audience: 'api', algorithms: ['RS256'] })
 */
export function jwt(options: JwtOptions): TokenVerifier {
  const read = resolveOptions('jwt', options, OPTIONS)
  const { typ, clockTolerance, maxTokenAge, maxLifetime = Number.POSITIVE_INFINITY, isRevoked } = read
  const issuer = readNames('issuer', read.issuer)
  const audience = readNames('audience', read.audience)
  const algorithms = readAlgorithms(read.algorithms)
  // What jose checks, with times in seconds; without a prototype, which could be polluted.
  const verifyOptions = Object.freeze(
    Object.assign(Object.create(null) as object, {
      issuer,
      audience,
      algorithms,
      clockTolerance: clockTolerance / 1000,
      requiredClaims: ['exp', ...read.requiredClaims],
      ...(typ === undefined ? {} : { typ }),
      ...(maxTokenAge === undefined ? {} : { maxTokenAge: maxTokenAge / 1000 }),
    }),
  )
  const source = createSource(read, algorithms)
  const memory = createMemory<KnownToken>(read.cacheSize)
  void loadJose().catch(() => {}) // reported by the first request that needs it

  function conclude(known: KnownToken, now: number, request: RequestView): MaybePromise<TokenResult> {
    if (now >= known.until) return EXPIRED
    if (now < known.from) return INVALID
    if (isRevoked === undefined) return copyResult(known.accepted)
    return andThen(isRevoked(known.claims, request), (revoked) =>
      requireAnswer('isRevoked of jwt', revoked) ? INVALID : copyResult(known.accepted),
    )
  }

  async function verifySignature(token: string, key: string, request: RequestView): Promise<TokenResult> {
    if (!isCompactJws(token)) return MALFORMED
    const { decodeProtectedHeader, errors, jwtVerify } = await loadJose()
    let header: { alg?: string; kid?: unknown; b64?: unknown }
    try {
      header = decodeProtectedHeader(token)
    } catch {
      return MALFORMED
    }
    const { alg, kid } = header
    if (typeof alg !== 'string' || !algorithms.includes(alg)) return refuse('alg')
    // The library looks at `b64` only where `crit` names it, and the payload of a JWT is never unencoded (RFC 7797 §7).
    if (readProperty(header, 'b64') === false) return INVALID
    const { generation } = source
    for (const candidate of (await source.find(alg, kid)).slice(0, MAX_KEYS)) {
      let payload: JWTPayload
      try {
        const { payload: claims } = await jwtVerify(token, await importKey(candidate, alg), verifyOptions)
        payload = deepFreeze(claims)
      } catch (error) {
        if (error instanceof errors.JWTExpired) return EXPIRED
        // Wrong claims under a right signature: no other key can help.
        if (error instanceof errors.JWTClaimValidationFailed) return refuse(error.claim)
        if (error instanceof errors.JWTInvalid) return INVALID
        continue
      }
      const verdict = read.principal === undefined ? true : await read.principal(payload)
      const known = describe(payload, verdict, generation)
      if ('outcome' in known) return known
      memory.set(key, known)
      return conclude(known, Date.now(), request)
    }
    return INVALID
  }

  function describe(claims: JWTPayload, verdict: Verdict, generation: number): KnownToken | TokenResult {
    const { exp = Number.NaN, iat = 0, nbf } = claims
    // JSON has numbers that are read as infinite: such a token would never expire.
    if (!Number.isFinite(exp) || exp * 1000 - Date.now() > maxLifetime + clockTolerance) return INVALID
    const name = readName(claims)
    const principal = toPrincipal('bearer', verdict, name ?? '')
    if (principal === undefined) return INVALID
    if (principal.id === '' && name === undefined) return refuse('sub')
    const scopes = read.scopes === undefined ? readScopes(claims) : atOnce(read.scopes(claims))
    const oldest = maxTokenAge === undefined ? Number.POSITIVE_INFINITY : (iat + 1) * 1000 + maxTokenAge
    return {
      accepted: { outcome: 'accepted', principal: { ...principal, claims: principal.claims ?? claims }, scopes },
      claims,
      from: nbf === undefined ? Number.NEGATIVE_INFINITY : nbf * 1000 - clockTolerance,
      until: Math.min(exp * 1000, oldest) + clockTolerance,
      generation,
    }
  }

  return {
    watch: source.watch,
    verifyToken(token, request) {
      const key = memory.keyOf(token)
      return andThen(source.refresh(), () => {
        const known = memory.get(key)
        const isCurrent = known?.generation === source.generation
        return isCurrent ? conclude(known, Date.now(), request) : verifySignature(token, key, request)
      })
    },
  }
}

/** Three parts in base64url, each in its one spelling: otherwise one token could be sent under several texts. */
function isCompactJws(token: string): boolean {
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return false
  return token.split('.').every((part) => Buffer.from(part, 'base64url').toString('base64url') === part)
}

function importKey(key: VerificationKey, alg: string): Promise<webcrypto.CryptoKey> {
  const imported = key.imported.get(alg) ?? importMaterial(key, alg)
  key.imported.set(alg, imported)
  return imported
}

async function importMaterial({ material }: VerificationKey, alg: string): Promise<webcrypto.CryptoKey> {
  if (material instanceof Uint8Array) {
    const algorithm = { name: 'HMAC', hash: `SHA-${alg.slice(2)}` }
    return subtle.importKey('raw', material, algorithm, false, ['verify'])
  }
  if (!Object.hasOwn(material, 'kty')) return material as webcrypto.CryptoKey
  const { importJWK } = await loadJose()
  return (await importJWK({ ...(material as PublicJwk) }, alg)) as webcrypto.CryptoKey
}

/** Claims are shared by all requests with one token: no hook may change what the next one sees. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(deepFreeze)
    Object.freeze(value)
  }
  return value
}
