import { createHash } from 'node:crypto'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { type ContentSource, type Pieces, type Reply, type ReplyBody, SHORT } from '../core/reply.ts'
import { addNoTransform } from '../protocol/cache-control.ts'
import { type DigestAlgorithm, formatDigest, selectDigestAlgorithm } from '../protocol/digest-fields.ts'
import { isLargeBody, type StoredResource } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Digests of stored content by algorithm, made once for a state. */
const digests = new WeakMap<StoredResource, Map<DigestAlgorithm, Uint8Array>>()

/** Whether the request asks for digest fields on its answer (RFC 9530 §4). */
export function wantsDigests(exchange: ResourceExchange): boolean {
  return exchange.field('want-repr-digest') !== undefined || exchange.field('want-content-digest') !== undefined
}

/**
 * Adds Repr-Digest and Content-Digest to an answer, as far as the request wants them and they can be had without reading
 * large content (RFC 9530 §2, §3). Both are of the bytes as they are coded. An answer that carries one must not be
 * transformed on its way.
 */
export function addDigests(exchange: ResourceExchange, reply: Reply): MaybePromise<Reply> {
  if (reply.status !== 200 && reply.status !== 201 && reply.status !== 206) return reply
  const isHead = exchange.method === 'HEAD'
  if (reply.body === undefined && !isHead) return reply
  const ofRepresentation = digestRepresentation(exchange, reply, wantedIn(exchange, 'want-repr-digest'))
  return andThen(ofRepresentation, (representation) => {
    // A HEAD has no content that a digest could be of.
    const wanted = isHead ? undefined : wantedIn(exchange, 'want-content-digest')
    return andThen(digestContent(reply.body, wanted), (content) => withFields(reply, representation, content))
  })
}

function wantedIn(exchange: ResourceExchange, name: string): DigestAlgorithm | undefined {
  const field = exchange.field(name)
  return field === undefined ? undefined : selectDigestAlgorithm(field)
}

/** The digest of the whole representation, of which a 206 carries a part and a HEAD nothing. */
function digestRepresentation(
  exchange: ResourceExchange,
  reply: Reply,
  algorithm: DigestAlgorithm | undefined,
): MaybePromise<string | undefined> {
  if (algorithm === undefined) return undefined
  const { current, rendered, method, page } = exchange
  if (rendered !== undefined) return format(algorithm, [rendered])
  if (page !== undefined || (method !== 'GET' && method !== 'HEAD')) return digestContent(reply.body, algorithm)
  return current === undefined ? undefined : digestStored(current, algorithm)
}

function digestStored(resource: StoredResource, algorithm: DigestAlgorithm): string | undefined {
  const { body } = resource
  if (isLargeBody(body)) return undefined
  let known = digests.get(resource)
  if (known === undefined) digests.set(resource, (known = new Map()))
  let value = known.get(algorithm)
  if (value === undefined) known.set(algorithm, (value = hash(algorithm, [body])))
  return formatDigest({ algorithm, value })
}

/** The digest of what is sent; `undefined` for content that would have to be read for it and is not short. */
function digestContent(
  body: ReplyBody | undefined,
  algorithm: DigestAlgorithm | undefined,
): MaybePromise<string | undefined> {
  if (algorithm === undefined || body === undefined) return undefined
  if (typeof body === 'string' || body instanceof Uint8Array) return format(algorithm, [body])
  if (body.size > SHORT) return undefined
  return andThen(readShort(body), (pieces) => format(algorithm, pieces))
}

function readShort(source: ContentSource): MaybePromise<readonly Uint8Array[]> {
  const toList = (pieces: Pieces): readonly Uint8Array[] => (pieces instanceof Uint8Array ? [pieces] : pieces)
  return source.read === undefined ? gather(source.open()) : andThen(source.read(), toList)
}

async function gather(stream: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk.slice()) // the source may use its buffer again
  return chunks
}

function format(algorithm: DigestAlgorithm, pieces: readonly (string | Uint8Array)[]): string {
  return formatDigest({ algorithm, value: hash(algorithm, pieces) })
}

function hash(algorithm: DigestAlgorithm, pieces: readonly (string | Uint8Array)[]): Uint8Array {
  const hash = createHash(algorithm === 'sha-256' ? 'sha256' : 'sha512')
  for (const piece of pieces) hash.update(piece)
  return hash.digest()
}

function withFields(reply: Reply, representation: string | undefined, content: string | undefined): Reply {
  if (representation === undefined && content === undefined) return reply
  const headers = withNoTransform(reply.headers)
  if (representation !== undefined) headers.push('Repr-Digest', representation)
  if (content !== undefined) headers.push('Content-Digest', content)
  return { status: reply.status, headers, body: reply.body }
}

/** Other bytes would have other digests. */
function withNoTransform(headers: readonly string[]): string[] {
  const fields = [...headers]
  const at = fields.findIndex((name, index) => index % 2 === 0 && name === 'Cache-Control')
  if (at < 0) fields.push('Cache-Control', addNoTransform(''))
  else fields[at + 1] = addNoTransform(fields[at + 1]!)
  return fields
}
