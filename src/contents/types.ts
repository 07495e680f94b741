import { HttpError } from '../core/errors.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'

/**
 * Where the SQL stores keep large content when it does not lie in their tables: bytes under keys, beside the states.
 *
 * A key is 16 to 100 lower-case hexadecimal digits. Each key is put once and never again, so the content of a key never
 * changes, and no conditional write is needed.
 */

/** Content as the service that keeps it has it. */
export interface PutContent {
  /** Length in bytes, as it is kept: the store of the states compares it with the length that it has passed on. */
  readonly size: number
}

/** What the address of content is for. */
export interface LocateRequest {
  readonly method: 'GET' | 'HEAD'
  /** The headers that this service would send with the content, by name as in RFC 9110: Content-Type and others. */
  readonly headers: Readonly<Record<string, string>>
  /** Ends the call with its reason. */
  readonly signal?: AbortSignal | undefined
}

/** Content that a listing has found, or the remains of a `put` that was never completed. */
export interface ListedContent {
  readonly key: string
  /** Milliseconds since it was last written, by one clock only: that of the service that keeps it. */
  readonly age: number
  /** Removes it. Removing what is gone already succeeds. */
  remove(): MaybePromise<void>
}

/**
 * Keeps large content. Two are ready: `fileContents` and `s3Contents`; `testContents` of
 * `http-resource-service/testing` proves one of your own.
 *
 * Errors: throw `HttpError` to choose the response: 503 with Retry-After while the service is away, 507 when it is full.
 */
export interface ContentStore {
  /**
   * Keeps content under a key that was never used before. Fulfilled means durable, whole, and readable by every process.
   * A source that throws means that nothing stays, and the call fails with its error. At most one chunk of the source is
   * asked for at a time, and its buffer may change once the next one is asked for.
   * @param options.signal ends the call with its reason; the source ends by the same signal
   */
  put(
    key: string,
    body: AsyncIterable<Uint8Array>,
    options?: { readonly signal?: AbortSignal | undefined },
  ): MaybePromise<PutContent>

  /**
   * Reads bytes `first` to `last`, both inclusive, costing about as much as it returns. Throws when the content is gone.
   * The next chunk is asked for only after the previous one is done with, so a buffer may be reused.
   */
  open(
    key: string,
    first: number,
    last: number,
    options?: { readonly signal?: AbortSignal | undefined },
  ): AsyncIterable<Uint8Array>

  /**
   * Reads bytes `first` to `last`, at most 64 KiB of them, at once. Worth it where that costs less than a stream. Throws
   * when the content is gone. Left out: everything is read by `open`.
   * @param options.buffer 64 KiB that the bytes may be read into; it is used again when they have been sent. What `read`
   *   gives is a part of this buffer, or bytes that stay as they are
   */
  read?(
    key: string,
    first: number,
    last: number,
    options?: { readonly buffer?: Uint8Array | undefined },
  ): MaybePromise<Uint8Array>

  /**
   * An address at which a client that has no credentials reads the content for a short time. Left out: this service sends
   * the content. The target answers ranges, and says as many of the given headers as it can.
   * @returns an absolute URL
   */
  locate?(key: string, request: LocateRequest): MaybePromise<string>

  /** Removes content. Removing what is gone already, or was never there, succeeds. */
  remove(key: string): MaybePromise<void>

  /** Everything that is kept, in any order, each once, with the remains of a `put` that was never completed. */
  list(): AsyncIterable<ListedContent>
}

/** The content of a key is not there any more: a later request finds the state that has replaced it. */
export function createGoneError(cause?: unknown): HttpError {
  return new HttpError(503, 'ERR_UNAVAILABLE', {
    detail: 'The content was replaced or removed while it was being read.',
    headers: { 'Retry-After': '0' },
    cause,
  })
}

/** @throws TypeError for a key that could leave the place that contents are kept in */
export function checkKey(key: string): string {
  if (/^[0-9a-f]{16,100}$/.test(key)) return key
  throw new TypeError(`The key of content is 16 to 100 lower-case hexadecimal digits, not ${JSON.stringify(key)}.`)
}
