import { createPublicKey, KeyObject, type webcrypto } from 'node:crypto'
import { describeSecret } from './accounts.ts'

/** The public members of a JSON Web Key (RFC 7517). */
export type PublicJwk = Readonly<Record<string, string>>

/** A key that signatures are verified with. */
export interface VerificationKey {
  readonly kty: 'RSA' | 'EC' | 'OKP' | 'oct'
  readonly kid?: string | undefined
  /** The algorithm it is for; `undefined` when any that suits its type will do. */
  readonly alg?: string | undefined
  readonly crv?: string | undefined
  readonly material: PublicJwk | Uint8Array | webcrypto.CryptoKey
  /** The imported key by algorithm: importing costs more than verifying. */
  readonly imported: Map<string, Promise<webcrypto.CryptoKey>>
}

/** What an algorithm asks of a key (RFC 7518 §3.1, RFC 8037 §3.1). */
interface AlgorithmNeeds {
  readonly kty: VerificationKey['kty']
  readonly crv?: string
  /** Bytes of an HMAC secret: as many as the hash has (RFC 7518 §3.2). */
  readonly secret?: number
}

/** The signature algorithms that are known. */
export const ALGORITHMS: ReadonlyMap<string, AlgorithmNeeds> = new Map<string, AlgorithmNeeds>([
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const).map((alg) => [alg, { kty: 'RSA' }] as const),
  ['ES256', { kty: 'EC', crv: 'P-256' }],
  ['ES384', { kty: 'EC', crv: 'P-384' }],
  ['ES512', { kty: 'EC', crv: 'P-521' }],
  ['EdDSA', { kty: 'OKP', crv: 'Ed25519' }],
  ['Ed25519', { kty: 'OKP', crv: 'Ed25519' }],
  ['HS256', { kty: 'oct', secret: 32 }],
  ['HS384', { kty: 'oct', secret: 48 }],
  ['HS512', { kty: 'oct', secret: 64 }],
])

/** Whether a key may verify what a header announces. A key is used for nothing but the algorithms of its own type. */
export function isKeyFor(key: VerificationKey, alg: string, kid?: unknown): boolean {
  const wanted = ALGORITHMS.get(alg)
  if (wanted === undefined || key.kty !== wanted.kty) return false
  if (wanted.secret !== undefined && sizeOf(key) < wanted.secret) return false
  if (wanted.crv !== undefined && key.crv !== undefined && key.crv !== wanted.crv) return false
  if (key.alg !== undefined && key.alg !== alg && wanted.kty !== 'OKP') return false
  return kid === undefined || key.kid === undefined || key.kid === kid
}

/** Bytes of an HMAC secret. */
function sizeOf({ material }: VerificationKey): number {
  if (material instanceof Uint8Array) return material.length
  const { length } = (material as webcrypto.CryptoKey).algorithm as { length?: number }
  return length === undefined ? Number.POSITIVE_INFINITY : length / 8
}

/** What a user may pass as a key. */
export type KeyInput = webcrypto.CryptoKey | KeyObject | Uint8Array | JsonWebKeyLike | JsonWebKeySetLike
/** A JSON Web Key. */
type JsonWebKeyLike = { readonly kty: string } & Readonly<Record<string, unknown>>
/** A JSON Web Key Set. */
interface JsonWebKeySetLike {
  readonly keys: readonly JsonWebKeyLike[]
}

const MIN_SECRET = 32

/** The keys that a user passed, each checked. @throws TypeError for a key that is private, weak, or not a key */
export function readKeys(input: KeyInput | readonly KeyInput[]): readonly VerificationKey[] {
  return (Array.isArray(input) ? (input as readonly KeyInput[]) : [input as KeyInput]).flatMap(readKey)
}

function readKey(input: KeyInput): readonly VerificationKey[] {
  if (typeof input !== 'object' || input === null) throw createKeyError(input)
  if (input instanceof Uint8Array) return [readSecret(input)]
  if (input instanceof KeyObject) return [readKeyObject(input)]
  if (Object.hasOwn(input, 'keys')) return (input as JsonWebKeySetLike).keys.flatMap((key) => readKey(key))
  if (Object.hasOwn(input, 'kty')) return [readJwk(input as JsonWebKeyLike)]
  return [readCryptoKey(input as webcrypto.CryptoKey)]
}

function createKeyError(input: unknown): TypeError {
  const bytes = typeof input === 'string' ? ': Buffer.from(secret) gives the bytes' : ''
  return new TypeError(
    `"keys" takes JWKs, a JWK Set, KeyObjects, CryptoKeys, or the bytes of an HMAC secret, not ${describeSecret(input)}${bytes}.`,
  )
}

function readKeyObject(key: KeyObject): VerificationKey {
  if (key.type === 'secret') return readSecret(key.export())
  if (key.type === 'private') throw new TypeError('"keys" has a private key: tokens are verified with the public one.')
  return readJwk(key.export({ format: 'jwk' }) as unknown as JsonWebKeyLike)
}

function readSecret(secret: Uint8Array, kid?: string, alg?: string): VerificationKey {
  // A shorter secret can be found by trying (RFC 7518 §3.2); the bytes are copied, so that they do not change under us.
  if (secret.length < MIN_SECRET) throw new TypeError(`An HMAC secret has at least ${MIN_SECRET} bytes.`)
  const material = Uint8Array.from(secret)
  return { kty: 'oct', kid, alg, material, imported: new Map() }
}

function readJwk(jwk: JsonWebKeyLike): VerificationKey {
  if (jwk.kty === 'oct' && typeof jwk['k'] === 'string') {
    return readSecret(Buffer.from(jwk['k'], 'base64url'), readText(jwk, 'kid'), readText(jwk, 'alg'))
  }
  if (Object.hasOwn(jwk, 'd')) {
    throw new TypeError('"keys" has a private key: tokens are verified with the public one.')
  }
  const key = parsePublicJwk(jwk)
  if (key === undefined || !isImportable(key)) throw new TypeError('"keys" has a JWK that cannot verify signatures.')
  return key
}

/** Whether a JWK is a key that is long enough. */
export function isImportable({ material }: VerificationKey): boolean {
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: { ...(material as PublicJwk) }, format: 'jwk' })
    return (asymmetricKeyDetails?.modulusLength ?? 2048) >= 2048
  } catch {
    return false
  }
}

function readCryptoKey(key: webcrypto.CryptoKey): VerificationKey {
  const name = key.algorithm?.name
  const crv = (key.algorithm as { namedCurve?: string } | undefined)?.namedCurve
  if (name === undefined) throw createKeyError(key)
  if (key.usages?.includes('verify') !== true) throw new TypeError('"keys" has a CryptoKey without the usage "verify".')
  const { length, modulusLength = 2048 } = key.algorithm as { length?: number; modulusLength?: number }
  if (modulusLength < 2048) throw new TypeError('"keys" has an RSA key of fewer than 2048 bits.')
  if (name === 'HMAC' && length !== undefined && length < MIN_SECRET * 8) {
    throw new TypeError(`An HMAC secret has at least ${MIN_SECRET} bytes.`)
  }
  const kty = name === 'HMAC' ? 'oct' : name.startsWith('RSA') ? 'RSA' : name === 'ECDSA' ? 'EC' : 'OKP'
  return { kty, crv: kty === 'OKP' ? name : crv, material: key, imported: new Map() }
}

/** Reads a public key; only its public members are kept. `undefined` for one that is not for signatures. */
export function parsePublicJwk(jwk: unknown): VerificationKey | undefined {
  if (typeof jwk !== 'object' || jwk === null) return undefined
  const kty = readText(jwk, 'kty')
  const use = readText(jwk, 'use')
  if ((kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') || (use !== undefined && use !== 'sig')) return undefined
  const operations = Object.hasOwn(jwk, 'key_ops') ? (jwk as { key_ops: unknown }).key_ops : undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify'))) return undefined
  const material: Record<string, string> = { kty }
  for (const name of ['crv', 'n', 'e', 'x', 'y']) {
    const value = readText(jwk, name)
    if (value !== undefined) material[name] = value
  }
  return {
    kty,
    kid: readText(jwk, 'kid'),
    alg: readText(jwk, 'alg'),
    crv: material['crv'],
    material,
    imported: new Map(),
  }
}

/** What makes a key another key. */
export function formatKeyIdentity({ kid, alg, material }: VerificationKey): string {
  return JSON.stringify([kid, alg, material])
}

function readText(object: object, name: string): string | undefined {
  const value = Object.hasOwn(object, name) ? (object as Record<string, unknown>)[name] : undefined
  return typeof value === 'string' ? value : undefined
}
