import { collectBytes } from '../body-types/read-body.ts'
import { encodeText, type Reply } from '../core/reply.ts'
import { isLargeBody, type SmallBody, type StoredResource } from '../stores/types.ts'

/** The collection of the records. Without a slash in front, so that no pattern of a definition lists them. */
export const RECORDS = 'idempotency'
/** Bytes of content that a record keeps. */
const MOST = 64 * 1024
/** Bytes of a record beside the content: some fields. */
const MOST_BESIDE = 64 * 1024

/** The first answer to a key, as its record keeps it. */
export interface FirstAnswer {
  /** Milliseconds since the epoch from which the key may be used anew. */
  readonly expires: number
  /** Of the content that was answered. */
  readonly fingerprint: string
  readonly status: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly content: string | undefined
}

/** Fields that are another each time, or that a repetition has of its own. */
const NOT_REPEATED: readonly string[] = ['Date', 'Last-Modified']
/** Fields that describe the content. */
const OF_CONTENT: readonly string[] = [
  ...['Content-Type', 'Content-Length', 'Content-Location', 'Content-Language', 'Content-Disposition'],
  ...['X-Content-Type-Options', 'Content-Security-Policy'],
]

/**
 * An answer that can be given again byte for byte: without dates, which are not known before the state is written, and
 * without content beyond 64 KiB, which no record keeps.
 */
export function makeRepeatable(reply: Reply): Reply {
  const { status, body } = reply
  const headers = omit(reply.headers, NOT_REPEATED)
  if (body === undefined || sizeOf(body) <= MOST)
    return body === undefined ? { status, headers } : { status, headers, body }
  const bare = omit(headers, OF_CONTENT)
  return status === 201 ? { status, headers: [...bare, 'Content-Length', '0'] } : { status: 204, headers: bare }
}

/** The text of a record: its facts in one line, then the content as it was sent. */
export function formatRecord(reply: Reply, expires: number, fingerprint: string): string {
  const headers = omit(reply.headers, ['Cache-Control'])
  // JSON has no Infinity.
  const until = expires === Number.POSITIVE_INFINITY ? null : expires
  const facts = { expires: until, fingerprint, status: reply.status, headers, hasContent: reply.body !== undefined }
  return `${JSON.stringify(facts)}\n${reply.body === undefined ? '' : decode(reply.body as SmallBody)}`
}

/** Reads a record. @param signal ends the wait for one that the store keeps in pieces */
export async function readRecord(resource: StoredResource, signal: AbortSignal | undefined): Promise<FirstAnswer> {
  const { body, size } = resource
  const text = isLargeBody(body)
    ? decode(await collectBytes(body.open(0, size - 1, signal && { signal }), MOST + MOST_BESIDE))
    : decode(body)
  const end = text.indexOf('\n')
  const { expires, fingerprint, status, headers, hasContent } = JSON.parse(text.slice(0, end))
  const content = hasContent === true ? text.slice(end + 1) : undefined
  return { expires: expires ?? Number.POSITIVE_INFINITY, fingerprint, status, headers, content }
}

/** How many bytes of a record tell when it expires. */
const HEAD = 64

/** When a record expires, without reading more of it than its beginning. */
export async function readExpiry({ body, size }: StoredResource): Promise<number> {
  const head = isLargeBody(body)
    ? decode(await collectBytes(body.open(0, Math.min(HEAD, size) - 1), HEAD))
    : decode(typeof body === 'string' ? body.slice(0, HEAD) : body.subarray(0, HEAD))
  const expires = /^\{"expires":(\d+)/.exec(head)?.[1]
  return expires === undefined ? Number.POSITIVE_INFINITY : Number(expires)
}

/** The first answer once more (draft-ietf-httpapi-idempotency-key-header-07 §2.6). Shared caches must not keep it for others. */
export function replayedReply({ status, headers, content }: FirstAnswer): Reply {
  const all = [...headers, 'Idempotency-Replayed', '?1', 'Cache-Control', 'no-store']
  return content === undefined ? { status, headers: all } : { status, headers: all, body: encodeText(content) }
}

function omit(headers: readonly string[], names: readonly string[]): readonly string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    if (!names.includes(headers[i]!)) kept.push(headers[i]!, headers[i + 1]!)
  }
  return kept
}

function sizeOf(body: NonNullable<Reply['body']>): number {
  return typeof body === 'string' || body instanceof Uint8Array ? body.length : Number.POSITIVE_INFINITY
}

function decode(body: SmallBody): string {
  return typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.length).toString()
}
