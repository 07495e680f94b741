import { decodeStream } from '../body-types/content-coding.ts'
import { collectFields, type FormPart, parseForm } from '../body-types/form.ts'
import { parseJson } from '../body-types/json.ts'
import { type BodyLimits, readLimits } from '../body-types/limits.ts'
import { type CollectedParts, collectParts, parseMultipart } from '../body-types/multipart.ts'
import { collectBytes, NO_BYTES, readBytes, streamBytes } from '../body-types/read-body.ts'
import { decodeText, isUtf8Charset } from '../body-types/text.ts'
import { HttpError, isHttpError, malformedField } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { ErrorHook } from '../core/failures.ts'
import { countField } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import { createHandler } from '../core/node-handler.ts'
import { BOOLEAN, CHECKED_LATER, FUNCTION, listOf, oneOf, withDefault } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { streamOf } from '../core/place.ts'
import {
  type ContentCoding,
  checkContentCoding,
  closeAnswered,
  declaredLength,
  findConsumedBody,
  hasBody,
} from '../core/request-content.ts'
import type { HostRequest } from '../core/request-view.ts'
import { isJsonType, type MediaType, parseMediaType } from '../protocol/media-type.ts'
import { CONTENT_METHODS } from '../protocol/request-line.ts'

export type { FilePart, FormField, FormPart } from '../body-types/form.ts'
export type { CollectedParts } from '../body-types/multipart.ts'

/** A kind of content that is parsed. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text'

const MEDIA_TYPES: Readonly<Record<BodyKind, string>> = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  multipart: 'multipart/form-data',
  text: 'text/plain',
}
const KINDS = Object.keys(MEDIA_TYPES) as BodyKind[]
const CODINGS: readonly ContentCoding[] = ['gzip', 'deflate', 'br']
const NO_CONTENT: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} }

/** Options of `bodyParse`. */
export interface BodyParseOptions {
  /** Kinds of content that are parsed. Default: all. */
  readonly accept?: readonly BodyKind[]
  /** Whether any other content becomes a stream of its bytes, instead of 415. Default: false. */
  readonly raw?: boolean
  /** See {@link BodyLimits} for the defaults. */
  readonly limits?: Partial<BodyLimits>
  /** Content codings that are decoded. Default: none. */
  readonly contentCodings?: readonly ContentCoding[]
  /** Called with unexpected errors where there is no `next`. Default: `console.error`. */
  readonly onError?: ErrorHook
}

const OPTIONS = {
  accept: withDefault(listOf(oneOf(...KINDS)), KINDS),
  raw: withDefault(BOOLEAN, false),
  limits: CHECKED_LATER,
  contentCodings: withDefault(listOf(oneOf(...CODINGS)), []),
  onError: FUNCTION,
} satisfies OptionTable<BodyParseOptions>

/** `req.body` of a `multipart/form-data` request: its parts, read from the network while they are iterated. */
export interface MultipartBody extends AsyncIterable<FormPart> {
  /** Reads all parts, or those that are left, into memory: files of at most `bodySize` bytes together. */
  collect(): Promise<CollectedParts>
}

/**
 * Standalone middleware that parses the content of a request into `req.body`, by its Content-Type: JSON into its
 * value, a urlencoded form into an object, text into a string, `multipart/form-data` into a {@link MultipartBody}.
 *
 * Empty content is decided by its Content-Type too, however its length is declared: no JSON and no multipart (400), an
 * empty form, an empty string. Without a Content-Type an empty request goes on, and `req.body` is undefined. GET and HEAD
 * go on as they are, and so does content that a parser before has consumed.
 * Invalid content is answered here: 400, 408, 413, 415, 422. What is read later, multipart and raw
 * content, throws the same {@link HttpError}s while it is read; content that is not read is dropped once the response is sent.
 * @returns a handler for Express and Connect, and for `node:http` with a `next` of your own
 * @throws TypeError for an option that does not exist or makes no sense
 * @example
 * app.use(bodyParse({ accept: ['json', 'multipart'] }))
 * app.post('/photos', async (req, res) => {
 *   for await (const part of req.body) if (part.kind === 'file') await save(part.content)
 *   res.status(201).end()
 * })
 */
export function bodyParse(options?: BodyParseOptions): Handler {
  const given = resolveOptions('bodyParse', options, OPTIONS)
  const { raw, contentCodings, onError } = given
  const accept = [...new Set(given.accept)]
  const limits = readLimits('bodyParse', given.limits)
  if (accept.length === 0 && !raw) throw new TypeError('bodyParse without any kind to accept refuses all content.')
  const hint = raw ? '*/*' : accept.map((kind) => MEDIA_TYPES[kind]).join(', ')

  function unsupported(detail: string): HttpError {
    return new HttpError(415, 'ERR_UNSUPPORTED_MEDIA_TYPE', { detail, headers: { Accept: hint } })
  }

  function readKind({ essence, parameters }: MediaType): BodyKind | 'raw' {
    const kind = accept.find((kind) => (kind === 'json' ? isJsonType(essence) : MEDIA_TYPES[kind] === essence))
    if (kind === undefined && !raw) throw unsupported('The media type of the content is not supported.')
    // RFC 8259 §8.1
    if (kind === 'json' && !isUtf8Charset(parameters.get('charset'))) throw unsupported('JSON is encoded as UTF-8.')
    return kind ?? 'raw'
  }

  /** Content without a type is refused, unless it turns out to be empty. */
  function expectNothing(exchange: Exchange): Promise<undefined> {
    const refusal = unsupported('The content has no Content-Type.')
    if (declaredLength(exchange) !== undefined) throw refusal
    return readBytes(exchange, 0, () => undefined).catch((error) => {
      throw isHttpError(error) && error.status === 413 ? refusal : error
    })
  }

  return createHandler({
    role: 'body-parser',
    run(exchange) {
      const { req, method } = exchange
      // RFC 9110 §9.3.1, §9.3.2: content of GET and HEAD means nothing
      if (method === 'GET' || method === 'HEAD') return undefined
      const host = req as HostRequest
      const hasContent = hasBody(exchange)
      // With a Content-Type, content of these methods is empty and not absent.
      if (!hasContent && !CONTENT_METHODS.includes(method) && declaredLength(exchange) === undefined) return undefined
      // Of empty content nothing can have been lost.
      if ((hasContent || host.body !== undefined) && findConsumedBody(exchange) !== undefined) return undefined
      const type = readMediaType(exchange)
      if (type === undefined) return hasContent ? expectNothing(exchange) : undefined
      const kind = readKind(type)
      const coding = checkContentCoding(exchange.field('content-encoding'), contentCodings)
      host._body = true
      if (kind === 'multipart' || kind === 'raw') {
        const content = hasContent ? openContent(exchange) : NO_CONTENT
        const bytes = coding === undefined ? content : decodeStream(content, coding)
        host.body = kind === 'raw' ? bytes : createMultipartBody(parseMultipart(bytes, type, limits), limits)
        return undefined
      }
      const { bodySize } = limits
      const take = (bytes: Uint8Array): undefined => {
        host.body = parse(kind, bytes, type.parameters.get('charset'), limits)
      }
      if (coding === undefined) {
        return hasContent ? readBytes(exchange, bodySize, (_, bytes) => take(bytes)) : take(NO_BYTES)
      }
      const content = hasContent ? streamBytes(exchange, bodySize) : NO_CONTENT
      return collectBytes(decodeStream(content, coding), bodySize).then(take)
    },
    onError,
    forwardErrors: true,
  })
}

/** @throws HttpError 400 for a Content-Type that is malformed or repeated */
function readMediaType(exchange: Exchange): MediaType | undefined {
  const field = exchange.field('content-type')
  if (field === undefined) return undefined
  const type = countField(exchange.req, 'content-type') > 1 ? undefined : parseMediaType(field)
  if (type === undefined) throw malformedField('Content-Type is malformed.')
  return type
}

function parse(kind: 'json' | 'form' | 'text', bytes: Uint8Array, charset: string | undefined, limits: BodyLimits) {
  switch (kind) {
    case 'json':
      return parseJson(bytes, limits).value
    case 'form':
      return collectFields(parseForm(bytes, limits, charset))
    case 'text':
      return decodeText(bytes, charset)
  }
}

/**
 * The content as a stream that is read once. Whatever of it is not read when the answer is out is dropped: a client that
 * still sends would otherwise wait, and so would its next request on this connection.
 */
function openContent(exchange: Exchange): AsyncIterable<Uint8Array> {
  const { req, res, isHttp2 } = exchange
  let iterator: AsyncIterator<Uint8Array> | undefined
  const dropRest = (): void => {
    if (req.readableEnded) return
    iterator?.return?.()
    req.resume()
  }
  // The response of HTTP/2 is finished only when the client is, and nothing else limits how long that may take.
  const stream = isHttp2 ? streamOf(exchange) : undefined
  if (stream === undefined) res.once('finish', dropRest)
  else {
    stream.once('finish', () => {
      dropRest()
      closeAnswered(req, stream)
    })
  }
  return {
    [Symbol.asyncIterator]: () =>
      (iterator ??= streamBytes(exchange, Number.POSITIVE_INFINITY)[Symbol.asyncIterator]()),
  }
}

function createMultipartBody(parts: AsyncIterable<FormPart>, { bodySize }: BodyLimits): MultipartBody {
  return { [Symbol.asyncIterator]: () => parts[Symbol.asyncIterator](), collect: () => collectParts(parts, bodySize) }
}
