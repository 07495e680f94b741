import { createHash } from 'node:crypto'
import { DIGEST_LENGTHS, type DigestAlgorithm, formatDigest, selectDigestAlgorithm } from '../protocol/digest-fields.ts'
import { collectWhole } from './byte-blocks.ts'
import type { Exchange } from './exchange.ts'
import { andThen, type MaybePromise } from './maybe-promise.ts'
import { type ContentSource, forbidTransform, type Pieces, type Reply, type ReplyBody, SHORT } from './reply.ts'

/**
 * Makes the digest of the whole representation.
 * @param wanted the field that asks for it
 * @returns the field value; `undefined` where no algorithm that is wanted can be had without reading large content
 */
export type DigestWhole = (wanted: string) => MaybePromise<string | undefined>

/**
 * Adds Repr-Digest and Content-Digest to an answer, as far as the request wants them and they can be had without reading
 * large content (RFC 9530 §2, §3). Both are of the bytes as they are coded. An answer that carries one must not be
 * transformed on its way.
 * @param digestWhole the digest of the representation, of which a 206 carries a part and a HEAD nothing. Default: the
 *   content is all of it
 */
export function addDigests(exchange: Exchange, reply: Reply, digestWhole?: DigestWhole): MaybePromise<Reply> {
  const { status, body } = reply
  if (status !== 200 && status !== 201 && status !== 206) return reply
  const isHead = exchange.method === 'HEAD'
  if (body === undefined && !isHead) return reply
  const digestSent: DigestWhole = (wanted) => digestContent(exchange, body, wanted)
  const make = (name: string, digest: DigestWhole): MaybePromise<string | undefined> => {
    const wanted = exchange.field(name)
    return wanted === undefined ? undefined : digest(wanted)
  }
  return andThen(make('want-repr-digest', digestWhole ?? digestSent), (representation) => {
    // A HEAD has no content that a digest could be of.
    const ofContent = status === 206 ? digestSent : (digestWhole ?? digestSent)
    const content = isHead ? undefined : make('want-content-digest', ofContent)
    return andThen(content, (content) => {
      if (representation === undefined && content === undefined) return reply
      // Other bytes would have other digests.
      const headers = forbidTransform(reply.headers)
      if (representation !== undefined) headers.push('Repr-Digest', representation)
      if (content !== undefined) headers.push('Content-Digest', content)
      return { status, headers, body }
    })
  })
}

/** Digests of content by algorithm, made once for a state. */
const known = new WeakMap<object, Map<DigestAlgorithm, string>>()

/**
 * The digest of content at hand, made once.
 * @param keeper the object that stands for the state, beside which it is kept
 */
export function digestAtHand(wanted: string, content: string | Uint8Array, keeper: object): string | undefined {
  const algorithm = selectDigestAlgorithm(wanted)
  if (algorithm === undefined) return undefined
  let digests = known.get(keeper)
  if (digests === undefined) known.set(keeper, (digests = new Map()))
  let digest = digests.get(algorithm)
  if (digest === undefined) digests.set(algorithm, (digest = format(algorithm, [content])))
  return digest
}

/**
 * The digest of content that is not read for it.
 * @param sha256 as the store knows it
 * @throws TypeError where that has another length than 32 bytes
 */
export function digestKept(wanted: string, sha256: Uint8Array | undefined): string | undefined {
  if (sha256 === undefined || selectDigestAlgorithm(wanted, ['sha-256']) === undefined) return undefined
  if (sha256 instanceof Uint8Array && sha256.length === DIGEST_LENGTHS['sha-256']) {
    return formatDigest({ algorithm: 'sha-256', value: sha256 })
  }
  throw new TypeError('sha256 must be the SHA-256 digest of the content: a Uint8Array of 32 bytes.')
}

/** The digest of what is sent; `undefined` for content that would have to be read for it and is not short. */
function digestContent(
  exchange: Exchange,
  body: ReplyBody | undefined,
  wanted: string,
): MaybePromise<string | undefined> {
  const algorithm = selectDigestAlgorithm(wanted)
  if (algorithm === undefined || body === undefined) return undefined
  if (typeof body === 'string' || body instanceof Uint8Array) return format(algorithm, [body])
  if (body.size > SHORT) return digestKept(wanted, body.sha256)
  return andThen(readShort(exchange, body), (pieces) => format(algorithm, pieces))
}

function readShort(exchange: Exchange, source: ContentSource): MaybePromise<readonly Uint8Array[]> {
  const toList = (pieces: Pieces): readonly Uint8Array[] => (pieces instanceof Uint8Array ? [pieces] : pieces)
  if (source.read !== undefined) return andThen(source.read(), toList)
  const { signal } = exchange
  return collectWhole(source.open(signal), source.size, signal).then(toList)
}

function format(algorithm: DigestAlgorithm, pieces: readonly (string | Uint8Array)[]): string {
  const hash = createHash(algorithm === 'sha-256' ? 'sha256' : 'sha512')
  for (const piece of pieces) hash.update(piece)
  return formatDigest({ algorithm, value: hash.digest() })
}
