/** Content: the part of the store contract about the bytes of a resource, and what describes them. */

import type { LocateRequest } from '../contents/types.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { CollectionIndex, IndexedValues } from './index-types.ts'

/** Small content: text is kept and sent as its UTF-8 bytes. */
export type SmallBody = string | Uint8Array

/** Content that is too large for memory, read in pieces. */
export interface LargeBody {
  /**
   * Reads bytes `first` to `last`, both inclusive, costing about as much as it returns.
   * The bytes are those of the state that this object belongs to. They stay for a while after it was replaced or removed,
   * for the answers that are being sent; when they are gone it throws. The next chunk is asked for only after the previous one is done with, so a buffer may be reused.
   * The signal aborts when the reader has left: a wait for the next chunk may then end with its reason.
   */
  open(first: number, last: number, options?: { readonly signal?: AbortSignal }): AsyncIterable<Uint8Array>
  /**
   * Reads bytes `first` to `last`, at most 64 KiB of them, at once: in one piece, or in the few that they are kept in.
   * Worth it where that costs less than a stream. Left out: everything is read by `open`.
   * @param options.buffer 64 KiB that the bytes may be read into; it is used again when they have been sent. What `read`
   *   gives is a part of this buffer, or bytes that stay as they are
   */
  read?(
    first: number,
    last: number,
    options?: { readonly buffer?: Uint8Array | undefined },
  ): MaybePromise<Uint8Array | readonly Uint8Array[]>
  /**
   * An address at which a client that has no credentials reads the content for a short time: GET and HEAD are answered 307
   * with it. Left out: this service sends the content. A store that has it says so: `supports.redirects`.
   * @returns an absolute URL
   */
  locate?(request: LocateRequest): MaybePromise<string>
}

/** What describes the bytes of a representation. Nothing else of a request is stored with them. */
export interface ContentFields {
  /** The media type, as Content-Type has it. */
  readonly contentType: string
  /** Content-Encoding, when the bytes are coded. */
  readonly contentEncoding?: string | undefined
  /** Content-Language. */
  readonly contentLanguage?: string | undefined
  /** The name to suggest when the content is saved. */
  readonly filename?: string | undefined
}

/** Content to be stored. */
export interface Content extends ContentFields {
  /**
   * Small content as one value; larger content as a stream, or as what `stage` returned. A stream that throws means
   * that nothing is written, and the call fails with its error. The buffers stay the caller's: a value may change once
   * the call is settled, a chunk once the next one is asked for.
   */
  readonly body: SmallBody | AsyncIterable<Uint8Array> | StagedBody
  /**
   * The values by which the item is selected and ordered, and the rules that they were made by. Only with stores that
   * support `queries`. Content without them, of a path in a collection that has an index, is indexed by its `valuesOf`.
   */
  readonly indexed?: { readonly index: CollectionIndex; readonly values: IndexedValues } | undefined
}

/** Content that a store has taken in but that no path shows yet. */
export interface StagedBody {
  readonly staged: true
  /** Length in bytes. */
  readonly size: number
  /**
   * Gives the content up. A write that is a conflict has not used it: it stays for another try. Content that is neither used
   * nor given up is swept by the store in time.
   */
  discard(): MaybePromise<void>
}
