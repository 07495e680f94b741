import { collectBytes } from '../body-types/collect-bytes.ts'
import { readConsumedJson } from '../body-types/consumed-json.ts'
import { decodeContent } from '../body-types/content-coding.ts'
import { type ParsedJson, parseJson } from '../body-types/json.ts'
import { findConsumedBody, readBytes, streamBytes, tooLarge } from '../body-types/read-body.ts'
import { hasBody } from '../core/discard-body.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../core/json.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import { isJsonType } from '../protocol/media-type.ts'
import { type Content, isStaged } from '../stores/types.ts'
import type { ResourceExchange } from './resource-exchange.ts'

const EMPTY = new Uint8Array(0)

/** Goes on with what was read. */
type Use<Input, Result> = (exchange: ResourceExchange, input: Input) => MaybePromise<Result>

/**
 * Reads the whole content, decoded from its content coding.
 * @param use goes on with it at once: a promise for every stage would cost more than a small document
 * @throws HttpError 413 above the limit, 408, 400 for a coding that is broken
 */
export function readContent<Result>(
  exchange: ResourceExchange,
  limit: number,
  use: Use<Uint8Array, Result>,
): MaybePromise<Result> {
  const consumed = findConsumedBody(exchange.req)
  if (consumed !== undefined) {
    const bytes = encodeConsumed(consumed.value, exchange.contentType, limit)
    exchange.keyed?.fingerprint.addWhole(bytes)
    return use(exchange, bytes)
  }
  return readUnconsumed(exchange, limit, use)
}

function readUnconsumed<Result>(
  exchange: ResourceExchange,
  limit: number,
  use: Use<Uint8Array, Result>,
): MaybePromise<Result> {
  const fingerprint = exchange.keyed?.fingerprint
  if (!hasBody(exchange.req)) {
    fingerprint?.addWhole(EMPTY)
    return use(exchange, EMPTY)
  }
  if (!isCoded(exchange)) {
    if (fingerprint === undefined) return readBytes(exchange, limit, use)
    return readBytes(exchange, limit, (exchange, bytes) => {
      fingerprint.addWhole(bytes)
      return use(exchange, bytes)
    })
  }
  return collectBytes(streamContent(exchange, limit), limit).then((bytes) => use(exchange, bytes))
}

/** The content as a stream, decoded from its content coding. */
export function streamContent(exchange: ResourceExchange, limit: number): AsyncIterable<Uint8Array> {
  const { contentCodings } = exchange.route.context
  const consumed = findConsumedBody(exchange.req)
  const tap = (source: AsyncIterable<Uint8Array>) => exchange.keyed?.fingerprint.tap(source) ?? source
  if (consumed !== undefined) return tap(streamConsumed(consumed.value, exchange.contentType, limit))
  if (!isCoded(exchange)) return tap(streamBytes(exchange, limit))
  const coding = exchange.field('content-encoding')!
  return decodeContent(tap(streamBytes(exchange, Number.POSITIVE_INFINITY)), coding, {
    accepted: contentCodings,
    limit,
  })
}

/** Reads the content for its fingerprint alone. @throws HttpError 413 above the limit of the method, 408 */
export async function takeContent(exchange: ResourceExchange): Promise<void> {
  const limit = exchange.action.content!.limit(exchange.contentType)
  // Coded, it may be a little larger than what it stands for.
  const most = isCoded(exchange) ? 2 * limit : limit
  const consumed = findConsumedBody(exchange.req)
  if (consumed === undefined && hasBody(exchange.req)) {
    for await (const _ of exchange.keyed!.fingerprint.tap(streamBytes(exchange, most)));
  } else await readContent(exchange, limit, () => undefined)
}

/** Reads the content as a JSON document. @see readContent */
export function readJson<Result>(exchange: ResourceExchange, use: Use<ParsedJson, Result>): MaybePromise<Result> {
  const { limits } = exchange.route.context
  const consumed = findConsumedBody(exchange.req)
  if (consumed !== undefined) {
    const parsed = readConsumedJson(consumed.value, limits)
    exchange.keyed?.fingerprint.addWhole(encodeConsumed(consumed.value, exchange.contentType, limits.bodySize))
    return use(exchange, isAsSent(exchange) ? parsed : notVerbatim(parsed))
  }
  return readUnconsumed(exchange, limits.bodySize, (exchange, bytes) => {
    const parsed = parseJson(bytes, limits)
    return use(exchange, isCoded(exchange) ? notVerbatim(parsed) : parsed)
  })
}

function notVerbatim(parsed: ParsedJson): ParsedJson {
  return { ...parsed, isVerbatim: false }
}

/** Whether the content is JSON that a schema is for, also where other content is kept as it comes. */
export function hasSchema({ route, contentType }: ResourceExchange): boolean {
  return route.schema !== undefined && isJsonType(contentType)
}

/** Whether the content has a content coding, which is decoded before it is stored. */
export function isCoded(exchange: ResourceExchange): boolean {
  const coding = exchange.field('content-encoding')
  return coding !== undefined && coding.toLowerCase() !== 'identity'
}

/** Whether the bytes that are read here are those that were sent. To be asked before they are read. */
export function isAsSent(exchange: ResourceExchange): boolean {
  const consumed = findConsumedBody(exchange.req)
  return !isCoded(exchange) && (consumed === undefined || consumed.value instanceof Uint8Array)
}

/** Gives up content that no path has come to show; it would stay in the store until that sweeps. */
export async function discardContent({ body }: Pick<Content, 'body'>): Promise<void> {
  if (isStaged(body)) await body.discard()
}

async function* streamConsumed(value: unknown, essence: string, limit: number): AsyncGenerator<Uint8Array> {
  if (essence === 'multipart/form-data' && !(value instanceof Uint8Array)) {
    throw new TypeError(
      'The multipart content was parsed before http-resource-service saw it. Mount the service before that parser.',
    )
  }
  yield encodeConsumed(value, essence, limit)
}

/** Content that a parser before us consumed, as bytes again. */
function encodeConsumed(value: unknown, essence: string, limit: number): Uint8Array {
  const bytes = value instanceof Uint8Array ? value : Buffer.from(writeConsumed(value, essence))
  if (bytes.length > limit) throw tooLarge(limit)
  return bytes
}

function writeConsumed(value: unknown, essence: string): string {
  if (typeof value === 'string') return value
  if (essence !== 'application/x-www-form-urlencoded' || !isJsonObject(value as JsonValue)) return JSON.stringify(value)
  const parameters = new URLSearchParams()
  addParameters(parameters, '', value as JsonObject)
  return parameters.toString()
}

/** Names as they were sent: parsers with "extended" syntax make `a[b]` a member `b` of `a`. */
function addParameters(parameters: URLSearchParams, prefix: string, members: JsonObject): void {
  for (const [member, value] of Object.entries(members)) {
    const name = prefix === '' ? member : `${prefix}[${member}]`
    for (const item of Array.isArray(value) ? value : [value]) {
      if (isJsonObject(item)) addParameters(parameters, name, item)
      else parameters.append(name, String(item))
    }
  }
}
