import { decodeStream } from '../body-types/content-coding.ts'
import { checkJson, type ParsedJson, parseJson, readConsumedJson } from '../body-types/json.ts'
import { tooLarge } from '../body-types/limits.ts'
import { collectBytes, NO_BYTES, readBytes, streamBytes } from '../body-types/read-body.ts'
import { readUpTo } from '../core/byte-blocks.ts'
import type { MaybePromise } from '../core/maybe-promise.ts'
import {
  type ConsumedBody,
  checkContentCoding,
  declaredLength,
  findConsumedBody,
  hasBody,
  isCoded,
} from '../core/request-content.ts'
import { parseContentDisposition } from '../protocol/content-disposition.ts'
import { readLanguages } from '../protocol/content-language.ts'
import { withoutCharset, withUtf8 } from '../protocol/media-type.ts'
import { isStaged } from '../stores/rules.ts'
import type { Content, StagedBody } from '../stores/types.ts'
import { encodeConsumed, streamConsumed } from './consumed-content.ts'
import type { ResourceExchange } from './resource-exchange.ts'

/** Goes on with what was read. */
type Use<Input, Result> = (exchange: ResourceExchange, input: Input) => MaybePromise<Result>

/** What a parser before us has left of content. Of no bytes there is nothing to leave: JSON parsers make `{}` of them. */
function findConsumed(exchange: ResourceExchange): ConsumedBody | undefined {
  return declaredLength(exchange) === 0 ? undefined : findConsumedBody(exchange)
}

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
  const consumed = findConsumed(exchange)
  if (consumed !== undefined) {
    const bytes = encodeConsumed(consumed.value, exchange, limit)
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
  if (!hasBody(exchange)) {
    fingerprint?.addWhole(NO_BYTES)
    return use(exchange, NO_BYTES)
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
  const consumed = findConsumed(exchange)
  const tap = (source: AsyncIterable<Uint8Array>) => exchange.keyed?.fingerprint.tap(source) ?? source
  if (consumed !== undefined) return tap(streamConsumed(consumed.value, exchange, limit))
  const coding = checkContentCoding(exchange.field('content-encoding'), contentCodings)
  if (coding === undefined) return tap(streamBytes(exchange, limit))
  return decodeStream(tap(streamBytes(exchange, Number.POSITIVE_INFINITY)), coding, { limit })
}

/** Reads the content for its fingerprint alone. @throws HttpError 413 above the limit of the method, 408 */
export async function readForFingerprint(exchange: ResourceExchange): Promise<void> {
  const limit = exchange.action.content!.limit(exchange.contentType)
  // Coded, it may be a little larger than what it stands for.
  const most = isCoded(exchange) ? 2 * limit : limit
  const consumed = findConsumed(exchange)
  if (consumed === undefined && hasBody(exchange)) {
    for await (const _ of exchange.keyed!.fingerprint.tap(streamBytes(exchange, most)));
  } else await readContent(exchange, limit, () => undefined)
}

/** Reads the content as a JSON document. @see readContent */
export function readJson<Result>(exchange: ResourceExchange, use: Use<ParsedJson, Result>): MaybePromise<Result> {
  const { limits } = exchange.route.context
  const consumed = findConsumed(exchange)
  if (consumed !== undefined) {
    const parsed = readConsumedJson(consumed.value, limits)
    exchange.keyed?.fingerprint.addWhole(encodeConsumed(consumed.value, exchange, limits.bodySize))
    return use(exchange, markCoded(exchange, parsed))
  }
  return readUnconsumed(exchange, limits.bodySize, (exchange, bytes) =>
    use(exchange, markCoded(exchange, parseJson(bytes, limits))),
  )
}

/** Says of a document that came in a coding that its text is not what was sent. */
function markCoded(exchange: ResourceExchange, parsed: ParsedJson): ParsedJson {
  return isCoded(exchange) ? { ...parsed, isVerbatim: false } : parsed
}

/** Whether the content is JSON that a schema is for, also where other content is kept as it comes. */
export function hasSchema({ route, hasJson }: ResourceExchange): boolean {
  return route.schema !== undefined && hasJson
}

/** Whether the bytes that are read here are those that were sent. To be asked before they are read. */
export function isAsSent(exchange: ResourceExchange): boolean {
  const consumed = findConsumed(exchange)
  return !isCoded(exchange) && (consumed === undefined || consumed.value instanceof Uint8Array)
}

/** Gives up content that no path has come to show; it would stay in the store until that sweeps. */
export async function discardContent({ body }: Pick<Content, 'body'>): Promise<void> {
  if (isStaged(body)) await body.discard()
}

/** Content up to this size is passed to the store as one value. */
export const SMALL_CONTENT: number = 64 * 1024

/** Content that is ready to be stored. */
export interface TakenContent {
  readonly body: Uint8Array | StagedBody
  readonly size: number
}

/** Takes in small content that is at hand. @throws HttpError 413 above what a store that stages nothing may be given */
export function takeAtHand({ route }: ResourceExchange, body: Uint8Array): TakenContent {
  const { limits, store } = route.context
  if (store.stage === undefined && body.length > limits.bodySize) throw tooLarge(limits.bodySize)
  return { body, size: body.length }
}

/** Takes in a stream of unknown length: a small one as a value, a large one by staging it. */
export async function takeIn(exchange: ResourceExchange, source: AsyncIterable<Uint8Array>): Promise<TakenContent> {
  const { limits, store } = exchange.route.context
  const content = await (store.stage ? readUpTo(source, SMALL_CONTENT) : collectBytes(source, limits.bodySize))
  const body = content instanceof Uint8Array ? content : await store.stage!(content, { signal: exchange.signal })
  return { body, size: body instanceof Uint8Array ? body.length : body.size }
}

/** Content that is proposed for the target, with the fields that are stored with it. */
export interface Proposal {
  readonly content: Content
  /** Whether it is stored as it was sent: only then may the answer carry validators (RFC 9110 §9.3.4). */
  readonly isVerbatim: boolean
}

/**
 * The content as it is kept: bytes in, the same bytes out. JSON is checked to be JSON where it is small enough to be
 * parsed, so that a broken document is refused here and not discovered by the next reader; it is stored verbatim all the
 * same, but for a byte order mark.
 */
export async function readRawContent(exchange: ResourceExchange): Promise<Proposal> {
  const isVerbatim = isAsSent(exchange)
  const { limits } = exchange.route.context
  const limit = exchange.action.content!.limit(exchange.contentType)
  const isJson = exchange.hasJson
  const most = isJson ? Math.max(limits.bodySize, SMALL_CONTENT) : SMALL_CONTENT
  // The length of coded content is not known.
  const length = isCoded(exchange) ? undefined : declaredLength(exchange)
  const isSmall = findConsumed(exchange) !== undefined || (length !== undefined && length <= most)
  const content = isSmall
    ? await readContent(exchange, limit, (_, bytes) => bytes)
    : length === undefined
      ? await readUpTo(streamContent(exchange, limit), most)
      : streamContent(exchange, limit)
  if (content instanceof Uint8Array) {
    const body = isJson && content.length <= limits.bodySize ? checkJson(content, limits) : content
    return { content: contentOf(exchange, body), isVerbatim: isVerbatim && body === content }
  }
  // A write that may have to be tried again, as one whose parent was missing, needs content that can be given twice.
  // The record of a first answer is made before the content is stored: its fingerprint has to be known by then.
  const { hidden, isConditional, keyed, route } = exchange
  // A hidden state is restored where no other client has done so first.
  const isCompared = isConditional || hidden !== undefined || keyed !== undefined || route.conflict !== undefined
  const mayRetry = isCompared || route.hasParent || route.observesChanges
  const body = mayRetry ? (await takeIn(exchange, content)).body : content
  return { content: contentOf(exchange, body), isVerbatim }
}

/** Whether a parser in front of the service has decoded the content from its charset: it is stored as UTF-8. */
export function isDecodedText(exchange: ResourceExchange): boolean {
  // Where the service has read the content itself, `req.body` is a value of the host that has nothing to do with it.
  return exchange.bodyState === 'unread' && typeof findConsumed(exchange)?.value === 'string'
}

/** The Content-Type that is stored with content. JSON has no charset (RFC 8259 §11), and that of members is the server's. */
export function storedType(exchange: ResourceExchange): string {
  const { contentType: essence, contentParameters: parameters, hasJson, route } = exchange
  if (hasJson && (parameters.size === 0 || route.idMember !== undefined)) return essence
  const field = exchange.field('content-type')?.trim() ?? essence
  if (!parameters.has('charset')) return field
  if (hasJson) return withoutCharset({ essence, parameters })
  return isDecodedText(exchange) ? withUtf8(field) : field
}

/** Content with the fields that are stored with it. @param contentType default: that of the request */
export function contentOf(
  exchange: ResourceExchange,
  body: Content['body'],
  contentType: string = storedType(exchange),
): Content {
  const { storedHeaders } = exchange.route
  if (storedHeaders.length === 0) return { contentType, body }
  const language = storedHeaders.includes('Content-Language') && exchange.field('content-language')
  const disposition = storedHeaders.includes('Content-Disposition') && exchange.field('content-disposition')
  return {
    contentType,
    contentLanguage: language ? readLanguages(language) || undefined : undefined,
    filename: disposition ? parseContentDisposition(disposition)?.filename : undefined,
    body,
  }
}
