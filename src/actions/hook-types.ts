import type { JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { RequestView } from '../core/request-view.ts'

/** A state of a resource as hooks see it. */
export interface ResourceState<Value = JsonValue> {
  readonly path: string
  readonly contentType: string
  /** Milliseconds since the epoch. */
  readonly lastModified: number | undefined
  readonly size: number
  /** Whether the resource is deleted: softly, and then all of it is here, or for good, and then `value` is `undefined`. */
  readonly deleted: boolean
  /**
   * The content of a JSON resource, parsed when it is first read; `undefined` for other media types and for content too
   * large to parse.
   */
  readonly value: Value | undefined
}

/**
 * Whether a request may go on: `true`; `false` for 403; `'not-found'` for 404, where even existence is a secret.
 * Left undefined counts as false.
 *
 * `current` is the state of the target, read before the hook is called, for every method and with or without
 * `resources`: softly deleted states too; the item where the target is a file of an item; `undefined` where there is
 * none, as for POST to a collection and for a listing. Each entry of a listing is asked about as well, as a GET of its own
 * path with its own state; entries that are refused are left out. A write happens only on the state that was shown; when
 * another request changes it first, the hook is asked again.
 *
 * Reading is asked for wherever the answer to a write tells the current state. The hook is then called a second time,
 * with `request.method` `GET`, and both answers must be `true`: for PATCH, for every write with a condition (If-Match,
 * If-None-Match, If-Modified-Since, If-Unmodified-Since), and for DELETE that answers with the representation. The same
 * holds for a resource that was removed for good: without the right to read (asked with `deleted: true` and no `value`)
 * its 410 is the 404 of a path that never existed.
 *
 * The hook has no side effects: it may be called more than once for one request, for the reasons above, and again once
 * content that the store keeps in pieces has been fetched because the hook read `value`.
 */
export type Authorize<Value = JsonValue> = (
  principal: RequestView['principal'],
  request: RequestView,
  current: ResourceState<Value> | undefined,
) => MaybePromise<boolean | 'not-found'>

/**
 * Refuses a change that conflicts with the current state (409): PUT, PATCH, and PUT of a file of an item, where it sees
 * the item. Not asked about POST and DELETE, and not about a patch that changes nothing. Sees both states inside the atomic
 * step: the write happens only if the state it saw is still the current one.
 * @returns nothing, or a sentence that tells the client what is in the way
 */
export type ConflictHook<Value = JsonValue> = (
  proposed: ResourceState<Value>,
  current: ResourceState<Value> | undefined,
  request: RequestView,
) => MaybePromise<string | undefined>

/** A representation made from the stored one, offered in negotiation. */
export interface Rendition {
  /** Its media type. */
  readonly type: string
  /** Makes its content from the stored content. */
  readonly render: (content: Uint8Array, request: RequestView) => MaybePromise<string | Uint8Array>
}

/** A file that a form may carry. */
export interface FileOptions {
  /** Whether a form without it is refused (422). Default false. */
  readonly required?: boolean
  /**
   * Whether PUT to the file of an existing item stores it anew, with what the item says of it in the same atomic step.
   * Content-Disposition names it. Default false: 405.
   */
  readonly replaceable?: boolean
  /** What the member says of the file, under its name; `undefined` for nothing. Default: all that is known of it. */
  readonly describe?: (file: FileFacts) => JsonValue | undefined
}

/** What is known of a file. */
export interface FileFacts {
  /** The file name that was sent, cleaned; else the name of the part. */
  readonly name: string
  /** Its media type. */
  readonly type: string
  /** Bytes. */
  readonly size: number
}
