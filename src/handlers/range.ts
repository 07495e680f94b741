import { HttpError } from '../core/errors.ts'
import type { Exchange, RequestView } from '../core/exchange.ts'
import { andThen, type MaybePromise } from '../core/handler.ts'
import { createHandler, type Handler } from '../core/node-handler.ts'
import { readOptions } from '../core/options.ts'
import { rangeReply } from '../core/range-reply.ts'
import { readTarget } from '../core/read-target.ts'
import type { RangedBody, Reply } from '../core/reply.ts'
import { selectRanges } from '../protocol/byte-range.ts'
import { evaluateIfRange, type Validators } from '../protocol/preconditions.ts'
import { evaluateConditions } from './evaluate.ts'
import { formatValidators, type KnownValidators, resolveValidators } from './validators.ts'

/** A representation of which any part can be sent. */
export interface RangeSource extends KnownValidators {
  /** Content-Type. */
  readonly contentType: string
  /** The content: in memory, or a way to read a part of it. */
  readonly content: string | Uint8Array | RangeReader
  /** Cache-Control. Default `no-cache`. */
  readonly cacheControl?: string
}

/** Content that is read in parts. */
export interface RangeReader {
  /** Length in bytes. */
  readonly size: number
  /** Reads bytes `first` to `last`, both inclusive. Of one version only, whatever happens meanwhile. */
  open(first: number, last: number): AsyncIterable<Uint8Array>
}

export interface RangeOptions {
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

/**
 * A piece that sends a representation, whole or in the ranges that were asked for (RFC 9110 §14), after evaluating the
 * preconditions (§13): 200, 206, 304, 412, 416. Other methods than GET and HEAD go on to `next`.
 * @param source gives the representation; `undefined` when there is none, and the request goes on to `next`
 * @returns a handler for `http.createServer`, Express and Connect, and for Koa through `koaMiddleware`
 * @throws TypeError for an option that does not exist
 * @example
 * app.get('/film', range(async () => ({ contentType: 'video/mp4', entityTag: '"7"', content: await openFilm() })))
 */
export function range(
  source: (request: RequestView) => MaybePromise<RangeSource | undefined>,
  options?: RangeOptions,
): Handler {
  if (typeof source !== 'function') throw new TypeError('range takes a function that gives the representation.')
  const { now = Date.now } = readOptions('range', options, ['now'])
  return createHandler({
    run(exchange) {
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD') return undefined
      readTarget(exchange)
      return andThen(source(exchange), (found) =>
        found === undefined ? undefined : createReply(exchange, found, now()),
      )
    },
    forwardErrors: true,
  })
}

function createReply(exchange: Exchange, source: RangeSource, now: number): Reply {
  const validators = resolveValidators(source, now)
  const caching = ['Cache-Control', source.cacheControl ?? 'no-cache']
  const tags = formatValidators(validators)
  if (evaluateConditions(exchange, validators, now) === 'not-modified') {
    return { status: 304, headers: [...tags.slice(0, 2), ...caching] }
  }
  const fields = ['Content-Type', source.contentType, ...tags, ...caching, 'Accept-Ranges', 'bytes']
  const { body, size } = readable(source.content)
  const selection = selectFor(exchange, validators, size, now)
  if (selection === 'unsatisfiable') {
    throw new HttpError(416, 'ERR_RANGE_NOT_SATISFIABLE', { headers: ['Content-Range', `bytes */${size}`] })
  }
  if (selection !== 'whole') return rangeReply(selection, fields, body, size)
  return { status: 200, headers: [...fields, 'Content-Length', String(size)], body }
}

/** Range counts on GET only, and only while If-Range still names the representation (RFC 9110 §13.1.5, §14.2). */
function selectFor({ headers, method }: Exchange, validators: Validators, size: number, now: number) {
  if (headers.range === undefined || method !== 'GET') return 'whole'
  const ifRange = headers['if-range']
  if (ifRange !== undefined && !evaluateIfRange(String(ifRange), validators, now)) return 'whole'
  return selectRanges(headers.range, size)
}

function readable(content: RangeSource['content']): { readonly body: RangedBody; readonly size: number } {
  if (typeof content === 'string') {
    const size = Buffer.byteLength(content)
    return { body: size === content.length ? content : Buffer.from(content), size }
  }
  if (content instanceof Uint8Array) return { body: content, size: content.length }
  const { size } = content
  const openRange = (first: number, last: number) => content.open(first, last)
  return { body: { size, open: () => openRange(0, size - 1), openRange }, size }
}
