import type { JsonObject, JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import type { Principal, RequestView } from '../core/request-view.ts'
import type { ContentFields, RelatedWrite, SmallBody } from '../stores/types.ts'

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
  readonly principal: Principal | undefined
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
 * @throws TypeError for a value that JSON does not have, such as a function
 */
export function json(value: unknown): { readonly contentType: 'application/json'; readonly body: string } {
  const body = JSON.stringify(value) as string | undefined
  if (body === undefined) throw new TypeError(`json() takes a value that JSON has, not ${typeof value}.`)
  return { contentType: 'application/json', body }
}
