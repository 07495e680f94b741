import { Buffer } from 'node:buffer'
import type { MaybePromise } from './maybe-promise.ts'

/** A reply is data: what will be answered, not the act of answering. The writer alone acts (`write-reply.ts`). */

/** Bytes in one piece, or in the few that they are kept in. */
export type Pieces = Uint8Array | readonly Uint8Array[]

/** Content that is read when it is sent, and not at all for HEAD. */
export interface ContentSource {
  /** Length in bytes. */
  readonly size: number
  /** Bytes that it holds in memory until it is sent. Default: one chunk. */
  readonly held?: number
  /**
   * Starts reading. The next chunk is asked for only after the previous one has left, so a source may use one
   * buffer repeatedly. Ends early through the iterator's `return`.
   * @param signal aborts when the client has left: `return` does not end a wait for a source that is silent
   */
  open(signal?: AbortSignal): AsyncIterable<Uint8Array>
  /**
   * Reads all of it at once, at most `SHORT` bytes, where that costs less than a stream.
   * @param buffer of `SHORT` bytes: what it gives may be a part of that; anything else stays as it is
   */
  readonly read?: ((buffer?: Uint8Array) => MaybePromise<Pieces>) | undefined
}

/** Content of which any part can be read without the rest. */
export interface RangedSource extends ContentSource {
  /** Reads bytes `first` to `last`, both inclusive. */
  openRange(first: number, last: number, signal?: AbortSignal): AsyncIterable<Uint8Array>
  /** Reads a range at once, where it is short. */
  readonly readRange?: ((first: number, last: number, buffer?: Uint8Array) => MaybePromise<Pieces>) | undefined
}

/** Bytes up to which content is read at once where it can be. */
export const SHORT: number = 64 * 1024

/** Content from which ranges can be cut; a string holds ASCII only. */
export type RangedBody = string | Uint8Array | RangedSource

/** A string holds ASCII only: it leaves in one write with the header section. Other text is a `Uint8Array`. */
export type ReplyBody = string | Uint8Array | ContentSource

export interface Reply {
  readonly status: number
  /** Field names and values in turn. Content-Length is among them whenever there is content, or none to come. */
  readonly headers: readonly string[]
  /** Left out when there is no content. */
  readonly body?: ReplyBody | undefined
  /** Kept by a caller that answers with the same `headers` repeatedly. */
  readonly kept?: KeptFields | undefined
}

/** Fields of an answer that is given repeatedly, and what the writer made of them the last time. */
export interface KeptFields {
  readonly headers: readonly string[]
  /** With those pending, and Vary. */
  completed: readonly string[] | undefined
  pending: readonly string[] | undefined
  vary: string
}

/** @see KeptFields */
export function keepFields(headers: readonly string[]): KeptFields {
  return { headers, completed: undefined, pending: undefined, vary: '' }
}

/** A reply with fields that are kept. */
export function keptReply(status: number, kept: KeptFields, body?: ReplyBody): Reply {
  return { status, headers: kept.headers, body, kept }
}

/** Text as it is sent: itself when it is ASCII, else its UTF-8 bytes. */
export function encodeText(text: string): string | Uint8Array {
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text)
}

/** A reply with content that is at hand. Content-Length is added. */
export function contentReply(status: number, body: string | Uint8Array, headers: readonly string[]): Reply {
  return { status, headers: [...headers, 'Content-Length', String(body.length)], body }
}

/** A reply with no content. Content-Length is 0, except on 204 and 304, which must not have one (RFC 9110 §8.6). */
export function emptyReply(status: number, headers: readonly string[]): Reply {
  return status === 204 || status === 304
    ? { status, headers }
    : { status, headers: [...headers, 'Content-Length', '0'] }
}
