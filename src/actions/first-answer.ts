import { createHash, type Hash, hash as hashOf } from 'node:crypto'
import type { FilePart, FormField } from '../body-types/form.ts'
import { collectWhole } from '../core/byte-blocks.ts'
import { encodeText, type Reply } from '../core/reply.ts'
import { isLargeBody } from '../stores/rules.ts'
import type { LargeBody, SmallBody, StoredResource } from '../stores/types.ts'
import { decodeBody } from './resource-view.ts'

/** The collection of the records. Without a slash in front, so that no pattern of a definition lists them. */
export const RECORDS = 'idempotency'
/** Bytes of content that a record keeps. */
const MOST_RECORDED = 64 * 1024

/** The first answer to a key, as its record keeps it. */
interface FirstAnswer {
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
/** Fields that describe the content, or say that it was wanted (RFC 7240 §3). */
const OF_CONTENT: readonly string[] = [
  'Preference-Applied',
  'Content-Type',
  'Content-Length',
  'Content-Location',
  'Content-Language',
  'Content-Disposition',
]

/**
 * An answer that can be given again byte for byte: without dates, which are not known before the state is written, and
 * without content beyond 64 KiB, which no record keeps.
 */
export function makeRepeatable(reply: Reply): Reply {
  const { status, body } = reply
  const headers = omit(reply.headers, NOT_REPEATED)
  if (body === undefined) return { status, headers }
  if ((typeof body === 'string' || body instanceof Uint8Array) && body.length <= MOST_RECORDED)
    return { status, headers, body }
  const bare = omit(headers, OF_CONTENT)
  return status === 201 ? { status, headers: [...bare, 'Content-Length', '0'] } : { status: 204, headers: bare }
}

/** The text of a record: its facts in one line, then the content as it was sent. */
export function formatRecord(reply: Reply, expires: number, fingerprint: string): string {
  const headers = omit(reply.headers, ['Cache-Control'])
  // JSON writes Infinity as null.
  const facts = { expires, fingerprint, status: reply.status, headers, hasContent: reply.body !== undefined }
  return `${JSON.stringify(facts)}\n${reply.body === undefined ? '' : decodeBody(reply.body as SmallBody)}`
}

/** Reads a record. @param request whose end ends the wait for one that the store keeps in pieces */
export async function readRecord(
  { body, size }: StoredResource,
  request: { readonly signal: AbortSignal } | undefined,
): Promise<FirstAnswer> {
  const text = decodeBody(isLargeBody(body) ? await readLarge(body, size, request?.signal) : body)
  const end = text.indexOf('\n')
  const { expires, fingerprint, status, headers, hasContent } = JSON.parse(text.slice(0, end))
  const content = hasContent === true ? text.slice(end + 1) : undefined
  return { expires: expires ?? Number.POSITIVE_INFINITY, fingerprint, status, headers, content }
}

function readLarge(body: LargeBody, length: number, signal: AbortSignal | undefined): Promise<Uint8Array> {
  return collectWhole(body.open(0, length - 1, signal && { signal }), length, signal)
}

/** How many bytes of a record tell when it expires. */
const HEAD = 64

/** When a record expires, without reading more of it than its beginning. */
export async function readExpiry({ body, size }: StoredResource): Promise<number> {
  const length = Math.min(HEAD, size)
  const head = isLargeBody(body) ? await readLarge(body, length, undefined) : body.slice(0, HEAD)
  const expires = /^\{"expires":(\d+)/.exec(decodeBody(head))?.[1]
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

/** Bytes up to which content is copied to be hashed in one call: that costs a third of an object that hashes. */
const MOST_AT_ONCE = 16 * 1024

/**
 * A SHA-256 over the content of a request, by which its repetition is known from another request under the same key. A class:
 * an object literal with getters has a hidden class of its own, which only a full collection frees.
 */
export class Fingerprint {
  /** What it is made of: the bytes as they are received, or the parts of a form, whose boundary is another each time. */
  readonly kind: 'bytes' | 'parts'
  /** How much of the content it covers. */
  state: 'unread' | 'partial' | 'complete' = 'unread'
  readonly #head: string
  #hash: Hash | undefined
  #value: string | undefined

  /**
   * @param contentType Content-Type as received; of a form without its boundary
   * @param contentEncoding Content-Encoding as received
   */
  constructor(kind: Fingerprint['kind'], contentType: string, contentEncoding: string | undefined) {
    this.kind = kind
    this.#head = `${JSON.stringify([contentType, contentEncoding ?? ''])}\n`
  }

  /** Takes all of the content at once; a form has its parts taken instead. */
  addWhole(content: Uint8Array): void {
    if (this.kind === 'parts') {
      this.state = 'partial'
      return
    }
    if (content.length > MOST_AT_ONCE) this.#hash = this.#begin().update(content)
    else this.#value = hashOf('sha256', Buffer.concat([Buffer.from(this.#head), content]), 'base64url')
    this.state = 'complete'
  }

  /** The same content, which is taken as it is read. */
  tap(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    this.state = 'partial'
    return this.kind === 'bytes' ? this.#hashWhile(source) : source
  }

  addField({ name, value }: FormField): void {
    this.#addPart(['field', name, value])
  }

  /** Takes a file whose content is at hand. */
  addFile(file: Omit<FilePart, 'content'>, content: Uint8Array): void {
    this.#addDigest(file, createHash('sha256').update(content).digest('base64url'))
  }

  /** The content of a file, which is taken as it is read. */
  async *tapFile(file: FilePart): AsyncGenerator<Uint8Array> {
    const own = createHash('sha256')
    for await (const chunk of file.content) {
      own.update(chunk)
      yield chunk
    }
    this.#addDigest(file, own.digest('base64url'))
  }

  /** All parts of the form have been taken. */
  endForm(): void {
    this.state = 'complete'
  }

  /** In base64url; to be asked for once all of the content has been taken. */
  get value(): string {
    return (this.#value ??= (this.#hash ?? this.#begin()).digest('base64url'))
  }

  #begin(): Hash {
    return createHash('sha256').update(this.#head)
  }

  #addPart(part: readonly (string | undefined)[]): void {
    this.state = 'partial'
    // As JSON, so that no part can look like two.
    this.#hash ??= this.#begin()
    this.#hash.update(`${JSON.stringify(part)}\n`)
  }

  #addDigest({ name, filename, contentType }: Omit<FilePart, 'content'>, digest: string): void {
    this.#addPart(['file', name, filename, contentType, digest])
  }

  async *#hashWhile(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const hash = this.#begin()
    this.#hash = hash
    for await (const chunk of source) {
      hash.update(chunk)
      yield chunk
    }
    this.state = 'complete'
  }
}
