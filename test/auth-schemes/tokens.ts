import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

/** A key pair of an issuer. */
export interface Issuer {
  readonly publicKey: KeyObject
  readonly privateKey: KeyObject
  /** The public key as a JWK. */
  readonly jwk: { readonly kty: string } & Record<string, unknown>
  readonly alg: string
}

export function createIssuer(alg: 'RS256' | 'ES256' | 'EdDSA', kid?: string, modulusLength = 2048): Issuer {
  const pair =
    alg === 'RS256'
      ? generateKeyPairSync('rsa', { modulusLength })
      : alg === 'ES256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('ed25519')
  const jwk = { ...pair.publicKey.export({ format: 'jwk' }), ...(kid === undefined ? {} : { kid }) }
  return { ...pair, alg, jwk: jwk as Issuer['jwk'] }
}

export const now = () => Math.floor(Date.now() / 1000)

/** Claims of a good token, and what a test changes of them; `undefined` leaves one out. */
export function claims(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { iss: 'https://issuer.test', aud: 'api', sub: 'ada', exp: now() + 600, ...changes }
}

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** Signs a token from scratch: headers and payloads may be anything. */
export function signToken(
  key: KeyObject | Uint8Array | undefined,
  header: Readonly<Record<string, unknown>> | string,
  payload: unknown,
): string {
  const text = `${encode(header)}.${encode(payload)}`
  if (key === undefined) return `${text}.`
  if (key instanceof Uint8Array) return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  const hash = key.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  const signature = sign(hash, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
  return `${text}.${signature.toString('base64url')}`
}

/** A good token. */
export function issue(
  { privateKey, alg, jwk }: Issuer,
  changes: Readonly<Record<string, unknown>> = {},
  header: Readonly<Record<string, unknown>> = {},
): string {
  return signToken(
    privateKey,
    { alg, ...(jwk['kid'] === undefined ? {} : { kid: jwk['kid'] }), ...header },
    claims(changes),
  )
}

export function bearerHeader(token: string): { readonly headers: { readonly Authorization: string } } {
  return { headers: { Authorization: `Bearer ${token}` } }
}
