import type { JsonObject, JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Principal, RequestView } from '../core/request-view.ts'
import type { ContentFields, RelatedWrite, SmallBody } from '../stores/types.ts'
import { formatGiven } from './validation.ts'

/** A state of a resource as hooks see it. */
export interface ResourceState<Value = JsonValue> {
  /** The decoded path in the store. */
  readonly path: string
  /** The media type. */
  readonly contentType: string
  /** When it changed last, in milliseconds since the epoch; `undefined` where the store does not know. */
  readonly lastModified: number | undefined
  /** Length of the content in bytes. */
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
 * `undefined` counts as `false`.
 *
 * `current` is the state of the target, read before the hook is called, for every method and with or without
 * `resources`: softly deleted states too; the item where the target is a file of an item; `undefined` where there is
 * none, as for POST to a collection and for a listing. Each entry of a listing is asked about as well, as a GET of its own
 * path with its own state; entries that are refused are left out. A write happens only on the state that was shown; when
 * another request changes it first, the hook is asked again.
 *
 * The right to read is needed wherever the response to a write shows the current state. The hook is then called a second time,
 * with `request.method` `GET`, and both answers must be `true`: for PATCH, for every write with a condition (If-Match,
 * If-None-Match, If-Modified-Since, If-Unmodified-Since), for DELETE that answers with the representation, and for PUT that
 * does so for an item with files or where there is a `beforeWrite`. The same holds for a resource that was removed for good:
 * without the right to read (asked with `deleted: true` and no `value`) its 410 is the 404 of a path that never existed.
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
  /**
   * Makes its content from the stored content, and from the principal where users see different things: each has an entity
   * tag of their own. It must not depend on anything else, of which the tag and caches do not know.
   */
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
  /** Makes the property of the item that describes the file; `undefined` for none. Default: `{ name, type, size }`. */
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

/** What a write does to a resource. `restored`: PUT to a path whose resource is softly deleted. */
export type ChangeKind = 'created' | 'replaced' | 'patched' | 'deleted' | 'restored'

/** A state before or after a change. */
export interface ChangeState<Value = JsonValue> {
  /** The version of the store. */
  readonly version: string
  /** The entity tag as responses carry it, with its quotes; `undefined` where the state has none. */
  readonly tag: string | undefined
  /** The media type. */
  readonly contentType: string
  /** Length of the content in bytes. */
  readonly size: number
  /**
   * The content of a JSON resource, parsed when it is first read; `undefined` for other media types and for content above
   * `limits.bodySize`. Numbers that a JavaScript number cannot hold are rounded here, not in the store.
   */
  readonly value: Value | undefined
}

/** The state that `beforeWrite` replaces. */
export interface CurrentState<Value = JsonValue> extends ChangeState<Value> {
  /** @throws HttpError 409 where what is stored is not JSON, or too large to be parsed */
  readonly value: Value
}

/** What `beforeWrite` knows of the write. */
export interface WriteContext<Value = JsonValue> {
  /** Never `deleted`: a removal writes no value. */
  readonly kind: Exclude<ChangeKind, 'deleted'>
  /** The state that is replaced, softly deleted ones included; `undefined` for a new resource. */
  readonly current: CurrentState<Value> | undefined
  /** Who sends the request; `undefined` without credentials. */
  readonly principal: Principal | undefined
  /** The request. */
  readonly request: RequestView
  /** The time of the attempt, by the clock of the service. */
  readonly now: Date
  /** Values of the `{names}` in the pattern that the request was sent to. */
  readonly params: Readonly<Record<string, string>>
}

/**
 * Changes a JSON value before it is stored.
 *
 * Runs after validation and before every attempt to commit: again, from the value that was sent, when another request was
 * faster. The value has none of the server's properties (`id`, those of `files`, `state` and `problem` of accepted items),
 * and such properties of the result are ignored. The result is validated by the schema again.
 * @returns the value to store
 * @throws HttpError to refuse the write
 */
export type BeforeWrite<Value = JsonValue> = (
  value: Value,
  context: WriteContext<Value>,
) => MaybePromise<NoInfer<Value> | JsonValue>

/** A change of one resource. */
export interface Change<Value = JsonValue> {
  /** A UUID of version 7: unique, and ascending within a process as text. */
  readonly eventId: string
  /** What the write does to the resource. */
  readonly kind: ChangeKind
  /** The decoded path of the resource in the store. */
  readonly path: string
  /** Values of the `{names}` in the pattern of the resource. */
  readonly params: Readonly<Record<string, string>>
  /** The id of an item; `undefined` for documents and singletons. */
  readonly id: string | number | undefined
  /** `undefined` for `created`. */
  readonly before: ChangeState<Value> | undefined
  /** `undefined` for `deleted`. */
  readonly after: ChangeState<Value> | undefined
  /** Who caused the change. Of accepted work that is done after the response: its scheme and id, without claims. */
  readonly principal: Principal | undefined
  /** The request; `undefined` for accepted work that is done after the response. */
  readonly request: RequestView | undefined
  /** The time at which the change was made ready, by the clock of the service. */
  readonly at: Date
  /** The change without the request and without claims: what an audit trail may keep. */
  toJSON(): JsonObject
}

/** A resource that is written together with a change. */
export interface OutboxWrite {
  /** An absolute path, decoded: `/audit/7`. Not that of the change. */
  readonly path: string
  /** Small content: text or bytes; see {@link json}. */
  readonly content: ContentFields & { readonly body: SmallBody }
  /** `absent`: while a resource is there, nothing is written and the response is 409. Default `any`. */
  readonly expect?: RelatedWrite['expect']
}

/**
 * Gives the resources that are written in the same atomic step as a change. Synchronous, because the step may be under way;
 * called once for each attempt, and a few times at most within one.
 * @throws HttpError to refuse the change
 */
export type Outbox<Value = JsonValue> = (change: Change<Value>) => readonly OutboxWrite[]

/** Called once after a change is committed, in the process that committed it. Its failure goes to `onError`. */
export type AfterCommit<Value = JsonValue> = (change: Change<Value>) => MaybePromise<unknown>

/**
 * JSON content for an outbox or a store.
 * @param value anything that `JSON.stringify` makes text of
 * @throws TypeError for a value that JSON does not have, such as a function, and for a promise, a Map and the like, at any depth
 */
export function json(value: unknown): { readonly contentType: 'application/json'; readonly body: string } {
  const body = formatGiven(value, 'The caller of json()')
  if (body === undefined) throw new TypeError(`json() takes a value that JSON has, not ${typeof value}.`)
  return { contentType: 'application/json', body }
}

/** An item of an accepting collection, as its `process` hook gets it. */
export interface AcceptedMember<Value = JsonObject> {
  /** The decoded path in the store. */
  readonly path: string
  /** The name of the item, as its `id` has it. */
  readonly id: string | number
  /** The item as it is stored. */
  readonly value: Value
  /** Finds a file of the item, `size` in bytes; `undefined` where it has none of that name. */
  file(
    name: string,
  ): Promise<{ readonly contentType: string; readonly size: number; open(): AsyncIterable<Uint8Array> } | undefined>
  /** 1 for the first try. */
  readonly attempt: number
  /** Aborts when the service closes, and when another process has taken the work over. */
  readonly signal: AbortSignal
}

/**
 * The work behind an accepted creation. It may run more than once (after a crash, on a failure); its result is written once.
 * @returns properties to add to the item, or nothing; the `id` and the properties of the scope stay as they are
 * @throws HttpError below 500 to fail for good; anything else is tried again
 */
export type Process<Value = JsonObject> = (member: AcceptedMember<Value>) => MaybePromise<JsonObject | undefined | void>
