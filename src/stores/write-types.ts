// Content and changes: the part of the store contract about what is written, on which conditions, and the results.

import type { LocateRequest } from '../contents/types.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { CollectionIndex, IndexedValues } from './lists.ts'
import type { StoredResource, StoredState, Tombstone } from './types.ts'

/** Small content: text is kept and sent as its UTF-8 bytes. */
export type SmallBody = string | Uint8Array

/** Content that is too large for memory, read in pieces. */
export interface LargeBody {
  /**
   * Reads bytes `first` to `last`, both inclusive, costing about as much as it returns.
   * The bytes are those of the state that this object belongs to. They stay for a while after it was replaced or removed,
   * for the responses that are being sent; when they are gone it throws. The next chunk is asked for only after the previous one is done with, so a buffer may be reused.
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
   * An absolute URL at which a client that has no credentials reads the content for a short time: GET and HEAD are answered
   * 307 with it. Left out: this service sends the content. A store that has it says so: `supports.redirects`.
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

/**
 * The state in which a write may happen. Hidden resources and tombstones count as absent.
 * A version: only while the current state is still that one.
 */
export type Expectation = 'any' | 'absent' | 'present' | { readonly version: string }

/** What a write needs beside the state of its own path. */
export interface Requirement {
  /**
   * A path that must be present, and not hidden, in the same atomic step: else the outcome is `conflict` with `missing`,
   * and nothing is written. Only with stores that support `parents`.
   */
  readonly requires?: string | undefined
}

/** Options of `write` of a store. */
export interface WriteOptions extends Requirement {
  /** The state in which the write happens; otherwise it is a conflict. */
  readonly expect: Expectation
  /** Further resources to write in the same atomic step. */
  readonly related?: readonly RelatedWrite[]
  /**
   * The same, for resources that name the new state: called before anything is written, at most a few times; only the
   * result of the last call counts. Used only with stores that support `relatedExpect`, and not beside `related`.
   */
  readonly relatedTo?: (state: NewState) => readonly RelatedWrite[]
  /**
   * Ends the call with its reason, at once also while the source of the content is silent; nothing is written then, and
   * the source is closed.
   */
  readonly signal?: AbortSignal
}

/** A resource that is written in the same atomic step as another change. */
export interface RelatedWrite {
  /** The path that is written. */
  readonly path: string
  /** What is written there. */
  readonly content: Content
  /**
   * `any`: written whatever its state. `absent`: nothing of the whole step happens while a resource is there; used only
   * with stores that support `relatedExpect`. Default `any`.
   */
  readonly expect?: 'any' | 'absent'
  /**
   * Milliseconds after which the store may remove the resource, with a fraction perhaps, or `Infinity`. The store need not
   * list such a resource. This is a hint, for the records that the service keeps of first responses: a store that ignores
   * it lists the resource, and the service removes it. A later write without `retention` keeps the resource. Default: it
   * stays.
   */
  readonly retention?: number
}

/** The names of a state that is about to be written, the same as those of the resource that the write returns. */
export type NewState = Pick<StoredResource, 'version' | 'entityTag'>

/** Nothing was written: the state was not the expected one, or a related path that must be absent has a resource. */
export interface WriteConflict {
  readonly outcome: 'conflict'
  /** The state of the path itself. */
  readonly current: StoredState
  /**
   * The resource at the first related path that must be absent and is not. Such a path is judged before the state of the
   * path itself.
   */
  readonly related?: StoredResource | undefined
  /** The path of `requires`, where it is not present; judged first of all. `current` is then not looked at. */
  readonly missing?: string | undefined
}

export type WriteResult =
  | { readonly outcome: 'created' | 'replaced'; readonly resource: StoredResource }
  | WriteConflict

/** A creation conflicts only with a related path, or with `requires`. */
export type CreateResult =
  | { readonly outcome: 'created'; readonly resource: StoredResource }
  | (WriteConflict & ({ readonly related: StoredResource } | { readonly missing: string }))

/** Options of `create` of a store. */
export interface CreateOptions extends Requirement {
  /**
   * Further resources to write in the same atomic step, once the name is known. Stores that support `relatedExpect` pass
   * the names of the new state as well.
   */
  readonly related?: (name: string, state?: NewState) => readonly RelatedWrite[]
  /** As for `write`. */
  readonly signal?: AbortSignal
}

/** Options of `remove` of a store. */
export interface RemoveOptions {
  /** The state in which the removal happens; otherwise it is a conflict. `any`: an absent path is not one. */
  readonly expect: Exclude<Expectation, 'absent'>
  /**
   * `erase`: nothing stays. `tombstone`: content goes, the fact stays. `hide`: everything stays, under a new version, and
   * only reads that ask for hidden resources see it.
   */
  readonly mode: 'erase' | 'tombstone' | 'hide'
  /** Milliseconds after which a tombstone may be forgotten, with a fraction perhaps, or `Infinity`. Default: the store's own. */
  readonly retention?: number | undefined
  /**
   * Further paths to remove in the same atomic step, in the same mode, whatever their state. One at which there is nothing
   * stays as it is: another step that runs at the same time may write it.
   */
  readonly related?: readonly string[]
  /**
   * Resources to write in the same atomic step, as for `write`; none of them is the path, a related one, or below it. Used only with
   * stores that support `relatedExpect`.
   */
  readonly relatedWrites?: readonly RelatedWrite[]
  /**
   * Removes in the same atomic step everything below the path (`/tasks/7/…`), hidden states included, without a trace.
   * Only with stores that support `parents`, and not with the mode `hide`. Default false.
   */
  readonly below?: boolean
  /** As for `read`. */
  readonly signal?: AbortSignal
}

/** `absent`: there was nothing to remove. */
export type RemoveResult =
  | { readonly outcome: 'removed'; readonly resource: StoredResource }
  | { readonly outcome: 'absent'; readonly current: Tombstone | undefined }
  | Omit<WriteConflict, 'missing'>
