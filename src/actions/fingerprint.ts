import { createHash, type Hash, hash as hashOf } from 'node:crypto'
import type { FilePart, FormField } from '../body-types/types.ts'

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
  const head = `${JSON.stringify([contentType, contentEncoding ?? ''])}\n`
  let hash: Hash | undefined
  let state: Fingerprint['state'] = 'unread'
  let value: string | undefined

  const begin = (): Hash => createHash('sha256').update(head)

  function addPart(part: readonly (string | undefined)[]): void {
    state = 'partial'
    // As JSON, so that no part can look like two.
    hash ??= begin()
    hash.update(`${JSON.stringify(part)}\n`)
  }

  function addFile({ name, filename, contentType }: Omit<FilePart, 'content'>, digest: string): void {
    addPart(['file', name, filename, contentType, digest])
  }

  return {
    kind,

    get state() {
      return state
    },

    addWhole(content) {
      if (kind === 'parts') {
        state = 'partial'
        return
      }
      if (content.length > MOST_AT_ONCE) hash = begin().update(content)
      else value = hashOf('sha256', Buffer.concat([Buffer.from(head), content]), 'base64url')
      state = 'complete'
    },

    tap(source) {
      if (kind === 'bytes') return hashWhile(source)
      state = 'partial'
      return source
    },

    addField({ name, value }) {
      addPart(['field', name, value])
    },

    addFile(file, content) {
      addFile(file, createHash('sha256').update(content).digest('base64url'))
    },

    async *tapFile(file) {
      const own = createHash('sha256')
      for await (const chunk of file.content) {
        own.update(chunk)
        yield chunk
      }
      addFile(file, own.digest('base64url'))
    },

    endForm() {
      state = 'complete'
    },

    get value() {
      return (value ??= (hash ?? begin()).digest('base64url'))
    },
  }

  async function* hashWhile(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    state = 'partial'
    hash = begin()
    for await (const chunk of source) {
      hash.update(chunk)
      yield chunk
    }
    state = 'complete'
  }
}
