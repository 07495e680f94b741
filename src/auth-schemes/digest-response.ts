import { hash } from 'node:crypto'
import { parseAuthParameters } from '../protocol/authorization.ts'
import { parseExtendedValue } from '../protocol/content-disposition.ts'

/** A hash of the Digest scheme (RFC 7616 §6.1). MD5 only for clients that know nothing else. */
export type DigestAlgorithm = 'SHA-256' | 'MD5'

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
  /** As sent: eight hexadecimal digits. */
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
  const [realm, nonce, uri, cnonce] = ['realm', 'nonce', 'uri', 'cnonce'].map((name) => parameters.get(name))
  const nc = parameters.get('nc') ?? ''
  const response = parameters.get('response') ?? ''
  if (user === undefined || algorithm === undefined || realm === undefined) return undefined
  if (nonce === undefined || uri === undefined || cnonce === undefined) return undefined
  if (![nonce, uri, cnonce].every((text) => /^[\x20-\x7e]+$/.test(text))) return undefined
  // Without qop there is no count, and a replay could not be detected (RFC 7616 §3.4).
  if (parameters.get('qop') !== 'auth' || parameters.get('userhash')?.toLowerCase() === 'true') return undefined
  if (!/^[\da-f]{8}$/i.test(nc) || !/^[\da-f]+$/.test(response)) return undefined
  return { user, realm, nonce, uri, response, cnonce, nc, algorithm }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The user name: UTF-8, which Node shows as Latin-1, or in the extended form (RFC 7616 §3.4.4). Bytes that are not UTF-8
 * are Latin-1: some clients send the name so and hash it in UTF-8.
 */
function readUser(parameters: ReadonlyMap<string, string>): string | undefined {
  const plain = parameters.get('username')
  const extended = parameters.get('username*')
  if ((plain === undefined) === (extended === undefined)) return undefined
  if (plain === undefined) return parseExtendedValue(extended!)
  try {
    return utf8.decode(Buffer.from(plain, 'latin1'))
  } catch {
    return plain
  }
}

/** H(A1): all that need be known of a password (RFC 7616 §3.4.2). */
export function hashAccount(algorithm: DigestAlgorithm, user: string, realm: string, password: string): string {
  return digest(algorithm, `${user}:${realm}:${password.normalize('NFC')}`)
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
