// The store contract: what the service needs to keep resources.
//
// A store maps paths to states. A path is a decoded, absolute path such as `/users/42` or `/docs/a b`; treat it as an
// opaque string that is compared exactly. Paths without a leading slash belong to the service itself (the queue of
// accepted work): keep them in the same way. The collection of `/users/42` is `/users`, and its name there is `42`; the
// collection of `/a` is the empty string, and `/` itself is a member of nothing.
//
// Every method may answer synchronously or with a promise.
//
// Content and changes are described in `write-types.ts`, lists and queries in `lists.ts`. The functions of `rules.ts` apply
// the rules of the contract.

import type { MaybePromise } from '../core/maybe-promise.ts'
import type { CollectionIndex, IndexedValues, ListOptions, Page } from './lists.ts'
import type {
  Content,
  ContentFields,
  CreateOptions,
  CreateResult,
  LargeBody,
  RemoveOptions,
  RemoveResult,
  SmallBody,
  StagedBody,
  WriteOptions,
  WriteResult,
} from './write-types.ts'

export type { ListOptions, Page } from './lists.ts'
export type * from './write-types.ts'

/** A state of a resource. */
export interface StoredResource extends ContentFields {
  /** The path that it was written to. */
  readonly path: string
  /**
   * Names this state. Never used again for this path: not after a change back, not after removal and re-creation, not
   * after a restart. At most 200 characters. The service makes a strong entity tag of it.
   */
  readonly version: string
  /** A complete entity tag that replaces the one made from `version`: `"abc"` or `W/"abc"`. `''`: send none. Malformed: 500. */
  readonly entityTag?: string | undefined
  /** Milliseconds since the epoch of the last change, never before that of an earlier state; left out when not known. */
  readonly lastModified?: number | undefined
  /**
   * Whether the resource changed only once within the second of `lastModified`; a removal is a change. Only then does that
   * second name one state, so that a date condition may rely on it. Where it is left out, the service takes it to be so once
   * that second is over by its own clock: this is right for resources that seldom change and are written by one process. A
   * store that several processes share must not leave it out: their clocks may differ by hours.
   */
  readonly dateIsStrong?: boolean | undefined
  /** Length of the content in bytes. */
  readonly size: number
  /**
   * The SHA-256 digest of the content, 32 bytes, for content that can be read only in pieces. Made while it is written:
   * responses carry it where a request wants a digest (RFC 9530), and content is never read for that. Left out by a store
   * that does not keep it: such responses have none.
   */
  readonly sha256?: Uint8Array | undefined
  /** The values that the content was written with, and the version of the index that they were made for. */
  readonly indexed?: { readonly index: Pick<CollectionIndex, 'version'>; readonly values: IndexedValues } | undefined
  /** Small content may be the store's own memory: read it, never change it. */
  readonly body: SmallBody | LargeBody
  /** Set when the resource is hidden (soft deletion); such states are returned only when `hidden` is asked for. */
  readonly hidden?: boolean | undefined
}

/** What a removed resource leaves behind. */
export interface Tombstone {
  readonly removed: true
  readonly path: string
  /** When it was removed, in milliseconds since the epoch. */
  readonly removedAt: number
}

/** What `read` finds. */
export type StoredState = StoredResource | Tombstone | undefined

/** What a definition may need of its store: refused when the service is made where the store does not have it. */
export interface StoreSupport {
  /**
   * Honours `expect` of related writes, `relatedTo`, and `relatedWrites` of removals, and passes the new state to `related`
   * of `create`.
   */
  readonly relatedExpect?: true
  /** Keeps `indexed` with each state and honours `query` of lists. */
  readonly queries?: true
  /** Honours `requires` of writes and `below` of removals. */
  readonly parents?: true
  /**
   * No state has an `entityTag`. If-Match of a small PUT is then decided by `write`, without a `read` before it: one round
   * trip instead of two.
   */
  readonly tagsAreVersions?: true
  /** Large content may have `locate`. */
  readonly redirects?: true
}

/**
 * Keeps resources. Three are ready: `memoryStore`, `sqliteStore`, `postgresStore`; `http-resource-service/testing`
 * proves one of your own.
 *
 * Errors: throw `HttpError` to choose the response (503 with Retry-After while a database is away), anything else is a
 * 500 that tells the client nothing.
 */
export interface ResourceStore {
  /** The optional parts of the contract that this store has. */
  readonly supports?: StoreSupport | undefined

  /**
   * The current state of a path. The object returned belongs to the caller, which may keep derived data on it: a store
   * that returns the same object for the same state saves the caller from deriving it again.
   */
  read(path: string, options?: ReadOptions): MaybePromise<StoredState>

  /** Writes a path in one atomic compare-and-swap. Fulfilled means durable and visible to every later read. */
  write(path: string, content: Content, options: WriteOptions): MaybePromise<WriteResult>

  /**
   * Writes a new member of a collection under a name that the store assigns: a positive safe integer in decimal, never
   * one that was used before, and larger than those that one process was given earlier.
   * @param collection path of the collection, `/users`; empty for the root
   * @param content the content, or a function that makes it once the name is known. It is called at most a few times, and
   *   only the content of the last call counts. A stream that several calls return is read once
   */
  create(
    collection: string,
    content: Content | ((name: string) => Content),
    options?: CreateOptions,
  ): MaybePromise<CreateResult>

  /** Removes a path in one atomic compare-and-swap. */
  remove(path: string, options: RemoveOptions): MaybePromise<RemoveResult>

  /**
   * A page of the direct members of a collection. Costs what the page costs, however large the collection. To return the
   * same object again says that nothing on the page has changed: the caller then uses what it derived from it again.
   */
  list(collection: string, options: ListOptions): MaybePromise<Page>

  /**
   * Takes content in before it is known where it belongs: the parts of an upload arrive before the item can be made.
   * Left out: the service keeps such parts in memory, up to its limit for parsed bodies.
   */
  stage?(body: AsyncIterable<Uint8Array>, options?: { readonly signal?: AbortSignal }): MaybePromise<StagedBody>

  /** Releases what the store holds of its own: timers, never the database handle that the user passed. */
  close?(): MaybePromise<void>
}

/** Options of a call that its caller may give up. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined
}

/** Options of `read` of a store. */
export interface ReadOptions {
  /** Whether hidden resources are returned; otherwise they look like tombstones. Default false. */
  readonly hidden?: boolean
  /** The caller needs no content: a store may then leave `body` empty. Default false. */
  readonly metadataOnly?: boolean
  /** Aborts when the client has left: a call that waits may then end with its reason. */
  readonly signal?: AbortSignal
}
