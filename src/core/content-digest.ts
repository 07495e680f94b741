import { createHash, type Hash } from 'node:crypto'
import {
  DIGEST_ALGORITHMS,
  DIGEST_LENGTHS,
  type DigestAlgorithm,
  type DigestField,
  formatDigest,
  parseDigestField,
} from '../protocol/digest-fields.ts'
import { splitList } from '../protocol/field-value.ts'
import { HttpError, malformedField } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { mayStateDigests, readField } from './fields.ts'
import { findConsumedBody, hasBody, isCoded } from './request-content.ts'

/** Both are of the same bytes here: a request carries its representation whole (RFC 9530 §2, §3). */
const FIELDS = ['Content-Digest', 'Repr-Digest'] as const

type FieldName = (typeof FIELDS)[number]

const HASHES: Readonly<Record<DigestAlgorithm, string>> = { 'sha-256': 'sha256', 'sha-512': 'sha512' }

/** Compares the content of a request with the digests that its fields state, while it is read. */
export interface ContentVerifier {
  update(chunk: Uint8Array): void
  /**
   * Compares, once the content has been read whole. Digests in the trailer section count where `Trailer` announced them.
   * @throws HttpError 400 where a digest differs, a trailer field is malformed, or a required digest is missing
   */
  verify(): void
}

/**
 * Makes what verifies the content of a request (RFC 9530 §2).
 * @param isRequired whether the content needs a digest by an algorithm that is supported
 * @returns `undefined` where there is nothing to verify
 * @throws HttpError 400 for malformed fields, and for a required digest that is not there
 */
export function createContentVerifier(exchange: Exchange, isRequired = false): ContentVerifier | undefined {
  // Most requests state none.
  if (!isRequired && !mayStateDigests(exchange)) return undefined
  const announced = announcedTrailers(exchange)
  const stated = readFields((name) => exchange.field(name.toLowerCase()))
  if (announced.length === 0) {
    if (isRequired) requireDigest(stated)
    if (stated.every(({ field }) => field.digests.length === 0)) return undefined
  }
  const hashes = new Map<DigestAlgorithm, Hash>()
  // What a trailer will state is not known yet.
  const algorithms =
    announced.length > 0
      ? DIGEST_ALGORITHMS
      : stated.flatMap(({ field }) => field.digests.map((digest) => digest.algorithm))
  for (const algorithm of algorithms) hashes.set(algorithm, createHash(HASHES[algorithm]))

  return {
    update(chunk) {
      for (const hash of hashes.values()) hash.update(chunk)
    },
    verify() {
      const trailers = readFields((name) =>
        announced.includes(name) ? readField(exchange.req.trailers, name.toLowerCase()) : undefined,
      )
      const all = [...stated, ...trailers]
      if (isRequired) requireDigest(all)
      compare(all, hashes)
    },
  }
}

/**
 * Has the content of a request compared with the digests that its fields state (RFC 9530 §2): at once where it is at
 * hand, otherwise while `readBytes` or `streamBytes` reads it. Nothing happens where no field states one.
 * @param isRequired whether the content needs a digest by an algorithm that is supported
 * @throws HttpError 400 for malformed fields, for a digest that is required and missing, and for content at hand that
 *   has another digest; TypeError for a required digest of content of which a parser has left no bytes
 */
export function expectDigests(exchange: Exchange, isRequired: boolean): void {
  // A middleware that ran before may have made the verifier.
  if (exchange.verifier !== undefined && !isRequired) return
  const verifier = createContentVerifier(exchange, isRequired)
  if (verifier === undefined) return
  if (!hasBody(exchange)) return verifier.verify()
  const consumed = findConsumedBody(exchange)
  if (consumed === undefined) {
    exchange.verifier = verifier
    return
  }
  // A parser has decoded coded content, and its digest is that of the bytes as they came.
  if (consumed.value instanceof Uint8Array && !isCoded(exchange)) {
    verifier.update(consumed.value)
    verifier.verify()
  } else if (isRequired) {
    throw new TypeError(
      'The request content was parsed before http-resource-service saw it: its digest cannot be verified. ' +
        'Mount the service before the body parser, or let the parser leave the bytes in req.body.',
    )
  }
}

interface StatedField {
  readonly name: FieldName
  readonly field: DigestField
}

function announcedTrailers(exchange: Exchange): readonly FieldName[] {
  const names = splitList(exchange.field('trailer') ?? '').map((name) => name.toLowerCase())
  return FIELDS.filter((name) => names.includes(name.toLowerCase()))
}

function readFields(readField: (name: FieldName) => string | undefined): readonly StatedField[] {
  const stated: StatedField[] = []
  for (const name of FIELDS) {
    const value = readField(name)
    if (value === undefined) continue
    const field = parseDigestField(value)
    if (field === undefined) throw malformedField(`${name} is malformed.`)
    stated.push({ name, field })
  }
  const invalid = stated.flatMap(({ name, field }) =>
    field.invalid.map((algorithm) => ({
      algorithm,
      header: name,
      reason: `A digest by ${algorithm} has ${DIGEST_LENGTHS[algorithm]} bytes.`,
    })),
  )
  if (invalid.length > 0) {
    throw new HttpError(400, 'ERR_DIGEST_INVALID', {
      detail: invalid[0]!.reason,
      extensions: { 'invalid-digests': invalid },
    })
  }
  return stated
}

function requireDigest(stated: readonly StatedField[]): void {
  if (stated.some(({ field }) => field.digests.length > 0)) return
  const unsupported = stated.flatMap(({ name, field }) =>
    field.unknown.map((algorithm) => ({ algorithm, header: name })),
  )
  const isUnsupported = unsupported.length > 0
  throw new HttpError(400, isUnsupported ? 'ERR_DIGEST_UNSUPPORTED' : 'ERR_DIGEST_REQUIRED', {
    detail: 'The content needs a Content-Digest by sha-256 or sha-512.',
    headers: { 'Want-Content-Digest': 'sha-256=10, sha-512=9' },
    ...(isUnsupported && { extensions: { 'unsupported-algorithms': unsupported } }),
  })
}

/** Every digest that is stated by a known algorithm must match. */
function compare(stated: readonly StatedField[], hashes: ReadonlyMap<DigestAlgorithm, Hash>): void {
  const made = new Map([...hashes].map(([algorithm, hash]) => [algorithm, hash.digest()]))
  const mismatched = stated.flatMap(({ name, field }) =>
    field.digests
      .filter(({ algorithm, value }) => made.get(algorithm)?.equals(value) !== true)
      .map((digest) => ({
        algorithm: digest.algorithm,
        'provided-digest': formatDigest(digest).slice(digest.algorithm.length + 1),
        header: name,
      })),
  )
  if (mismatched.length === 0) return
  throw new HttpError(400, 'ERR_DIGEST_MISMATCH', {
    detail: 'The content that arrived has another digest than the request states.',
    extensions: { 'mismatched-digests': mismatched },
  })
}
