import { createHash, type Hash, hash as hashOf } from 'node:crypto'
import type { FilePart, FormField } from '../body-types/form.ts'

/** A SHA-256 over the content of a request, by which its repetition is known from another request under the same key. */
export interface Fingerprint {
  /** What it is made of: the bytes as they are received, or the parts of a form, whose boundary is another each time. */
  readonly kind: 'bytes' | 'parts'
  /** How much of the content it covers. */
  readonly state: 'unread' | 'partial' | 'complete'
  /** Takes all of the content at once; a form has its parts taken instead. */
  addWhole(content: Uint8Array): void
  /** The same content, which is taken as it is read. */
  tap(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
  addField(field: FormField): void
  /** Takes a file whose content is at hand. */
  addFile(file: Omit<FilePart, 'content'>, content: Uint8Array): void
  /** The content of a file, which is taken as it is read. */
  tapFile(file: FilePart): AsyncIterable<Uint8Array>
  /** All parts of the form have been taken. */
  endForm(): void
  /** In base64url; to be asked for once all of the content has been taken. */
  readonly value: string
}

/** Bytes up to which content is copied to be hashed in one call: that costs a third of an object that hashes. */
const MOST_AT_ONCE = 16 * 1024

/**
 * Begins the fingerprint of a request.
 * @param contentType Content-Type as received; of a form without its boundary
 * @param contentEncoding Content-Encoding as received
 */
export function createFingerprint(
  kind: Fingerprint['kind'],
  contentType: string,
  contentEncoding: string | undefined,
): Fingerprint {
  return new BodyFingerprint(kind, `${JSON.stringify([contentType, contentEncoding ?? ''])}\n`)
}

/** A class: an object literal with getters has a hidden class of its own, which only a full collection frees. */
class BodyFingerprint implements Fingerprint {
  readonly kind: Fingerprint['kind']
  readonly #head: string
  #hash: Hash | undefined
  #state: Fingerprint['state'] = 'unread'
  #value: string | undefined

  constructor(kind: Fingerprint['kind'], head: string) {
    this.kind = kind
    this.#head = head
  }

  get state(): Fingerprint['state'] {
    return this.#state
  }

  addWhole(content: Uint8Array): void {
    if (this.kind === 'parts') {
      this.#state = 'partial'
      return
    }
    if (content.length > MOST_AT_ONCE) this.#hash = this.#begin().update(content)
    else this.#value = hashOf('sha256', Buffer.concat([Buffer.from(this.#head), content]), 'base64url')
    this.#state = 'complete'
  }

  tap(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    if (this.kind === 'bytes') return this.#hashWhile(source)
    this.#state = 'partial'
    return source
  }

  addField({ name, value }: FormField): void {
    this.#addPart(['field', name, value])
  }

  addFile(file: Omit<FilePart, 'content'>, content: Uint8Array): void {
    this.#addDigest(file, createHash('sha256').update(content).digest('base64url'))
  }

  async *tapFile(file: FilePart): AsyncGenerator<Uint8Array> {
    const own = createHash('sha256')
    for await (const chunk of file.content) {
      own.update(chunk)
      yield chunk
    }
    this.#addDigest(file, own.digest('base64url'))
  }

  endForm(): void {
    this.#state = 'complete'
  }

  get value(): string {
    return (this.#value ??= (this.#hash ?? this.#begin()).digest('base64url'))
  }

  #begin(): Hash {
    return createHash('sha256').update(this.#head)
  }

  #addPart(part: readonly (string | undefined)[]): void {
    this.#state = 'partial'
    // As JSON, so that no part can look like two.
    this.#hash ??= this.#begin()
    this.#hash.update(`${JSON.stringify(part)}\n`)
  }

  #addDigest({ name, filename, contentType }: Omit<FilePart, 'content'>, digest: string): void {
    this.#addPart(['file', name, filename, contentType, digest])
  }

  async *#hashWhile(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.#state = 'partial'
    const hash = this.#begin()
    this.#hash = hash
    for await (const chunk of source) {
      hash.update(chunk)
      yield chunk
    }
    this.#state = 'complete'
  }
}
