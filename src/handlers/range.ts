import { AsyncResource } from 'node:async_hooks'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { judgeConditions, readConditions, wantsDigests } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import { hold } from '../core/held-file.ts'
import { andThen, atOnce, type MaybePromise } from '../core/maybe-promise.ts'
import { createHandler } from '../core/node-handler.ts'
import { CLOCK, describeValue } from '../core/option-values.ts'
import { type OptionTable, readProperty, resolveOptions } from '../core/options.ts'
import { readTarget } from '../core/place.ts'
import { type RangedBody, type Reply, rangeReply } from '../core/reply.ts'
import { addDigests, digestAtHand, digestKept } from '../core/reply-digests.ts'
import type { RequestView } from '../core/request-view.ts'
import { selectRanges } from '../protocol/byte-range.ts'
import { formatCacheControl } from '../protocol/cache-control.ts'
import { evaluateIfRange, type Validators } from '../protocol/preconditions.ts'
import { findValidators, formatValidators, type KnownState, readCacheControl, requireFieldValue } from './validators.ts'

/** A representation of which any part can be sent. */
export interface RangeSource extends KnownState {
  /** Content-Type. */
  readonly contentType: string
  /** The content: in memory, or a way to read a part of it. */
  readonly content: string | Uint8Array | RangeReader
  /**
   * The SHA-256 digest of a content that is read in parts, 32 bytes: behind `digestFields` responses carry it where a
   * request wants one. Default: none, and such responses have no Repr-Digest.
   */
  readonly sha256?: Uint8Array | undefined
}

/** Content that is read in parts, all of them of one version, whatever happens to it meanwhile. */
export interface RangeReader {
  /** Length in bytes. */
  readonly size: number
  /**
   * Reads bytes `first` to `last`, both inclusive. Called once for each part, once more where `digestFields` adds the
   * Content-Digest of a short one, and not at all for HEAD, 304, 416 and a size of 0.
   */
  open(first: number, last: number): AsyncIterable<Uint8Array>
  /** Called once, when nothing more will be read: after the response, or when the client has gone away. */
  close?(): unknown
}

/** Options of `range`. */
export interface RangeOptions {
  /** The clock, in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number
}

const OPTIONS = { now: CLOCK } satisfies OptionTable<RangeOptions>

/**
 * Standalone middleware that sends a representation, whole or in the ranges that were asked for (RFC 9110 §14), after
 * evaluating the preconditions (§13): 200, 206, 304, 412, 416. Other methods than GET and HEAD go on to `next`.
 *
 * Validators may come from `conditional` before it on the same route. Without any, If-Range never holds, and a client
 * that resumes a download gets the whole.
 * @param source gives the representation; `undefined` when there is none, and the request goes on to `next`
 * @returns a handler for `http.createServer`, Express and Connect, and for Koa through `koaMiddleware`. Cache-Control
 *   is what the source or the host says, otherwise `no-cache`
 * @throws TypeError for an option that does not exist
 * @example
 * // A file, bytes at hand, and a back end of your own
 * app.get('/film', range(() => openFile('film.mp4', { contentType: 'video/mp4' })))
 * app.get('/report', range(async () => ({ contentType: 'text/csv', entityTag: '"7"', content: await createReport() })))
 * app.get('/blobs/:id', range(async ({ params }) => {
 *   const blob = await bucket.head(params.id)
 *   if (blob === undefined) return undefined
 *   const open = (first, last) => bucket.read(params.id, { first, last })
 *   return { contentType: blob.type, entityTag: `"${blob.hash}"`, content: { size: blob.size, open } }
 * }))
 * // Koa
 * router.get('/film', koaMiddleware(range(() => openFile('film.mp4', { contentType: 'video/mp4' }))))
 */
export function range(
  source: (request: RequestView) => MaybePromise<RangeSource | undefined>,
  options?: RangeOptions,
): Handler {
  if (typeof source !== 'function') {
    throw new TypeError(
      `range takes a function that gives the representation, such as () => openFile(path, { contentType }), not ${describeValue(source)}.`,
    )
  }
  const { now } = resolveOptions('range', options, OPTIONS)
  return createHandler({
    methods: ['GET', 'HEAD'],
    run(exchange) {
      const isRead = exchange.method === 'GET' || exchange.method === 'HEAD'
      if (!isRead || !exchange.place.isClear) return undefined
      readTarget(exchange)
      return andThen(source(exchange), (found) => {
        if (found === undefined) return undefined
        if ((found?.content ?? undefined) === undefined) {
          throw new TypeError(
            `range takes { contentType, content }, or undefined where there is none, not ${describeValue(found)}.`,
          )
        }
        closeAfterwards(exchange, atOnce(found.content))
        const reply = createReply(exchange, found, now())
        return exchange.answersDigests && wantsDigests(exchange) ? digestReply(exchange, found, reply) : reply
      })
    },
    forwardErrors: true,
  })
}

/** Whatever becomes of the request, its response closes; nothing else is sure to happen. */
function closeAfterwards(exchange: Exchange, content: RangeSource['content']): void {
  if (typeof content === 'string' || content instanceof Uint8Array || content.close === undefined) return
  // The event comes from the connection, which has no context of the request.
  const close = AsyncResource.bind(async () => {
    try {
      await content.close?.()
    } catch {
      // Everything has been read, or the reader has left.
    }
  })
  if (exchange.isClosed) close()
  else exchange.onClose(close)
}

function createReply(exchange: Exchange, source: RangeSource, now: number): Reply {
  const validators = findValidators(exchange, source, now)
  const caching = formatCaching(exchange, source)
  const tags = formatValidators(validators, now)
  if (judgeConditions(exchange, readConditions(exchange), validators, now) === 'not-modified') {
    return { status: 304, headers: [...tags.slice(0, 2), ...caching] }
  }
  const contentType = requireFieldValue('contentType', source.contentType)
  const fields = ['Content-Type', contentType, ...tags, 'Accept-Ranges', 'bytes', ...caching]
  const { body, size } = readable(source.content)
  const selection = selectFor(exchange, validators, size, now)
  if (selection === 'unsatisfiable') {
    // What conditional before us has set describes the representation, not this error (§15.5.17).
    for (const name of ['ETag', 'Last-Modified']) exchange.res.removeHeader(name)
    throw new HttpError(416, 'ERR_RANGE_NOT_SATISFIABLE', { headers: { 'Content-Range': `bytes */${size}` } })
  }
  if (selection !== 'whole') return rangeReply(selection, fields, body, size)
  return { status: 200, headers: [...fields, 'Content-Length', String(size)], body }
}

function digestReply(exchange: Exchange, source: RangeSource, reply: Reply): MaybePromise<Reply> {
  const { content } = source
  return addDigests(exchange, reply, (wanted) =>
    typeof content === 'string' || content instanceof Uint8Array
      ? digestAtHand(wanted, content, reply)
      : digestKept(wanted, readProperty(source, 'sha256')),
  )
}

/** Cache-Control of the source, else of the host, whose field the reply replaces. */
function formatCaching(exchange: Exchange, source: RangeSource): readonly string[] {
  const cacheControl = readCacheControl(source)
  const ofHost = cacheControl === undefined ? exchange.hostField('cache-control') : undefined
  return ['Cache-Control', ofHost ?? formatCacheControl(cacheControl, exchange.sharing)]
}

/** Range counts on GET only, and only while If-Range still names the representation (RFC 9110 §13.1.5, §14.2). */
function selectFor(exchange: Exchange, validators: Validators, size: number, now: number) {
  const range = exchange.field('range')
  if (range === undefined || exchange.method !== 'GET') return 'whole'
  const ifRange = exchange.field('if-range')
  if (ifRange !== undefined && !evaluateIfRange(ifRange, validators, now)) return 'whole'
  return selectRanges(range, size)
}

function readable(content: RangeSource['content']): { readonly body: RangedBody; readonly size: number } {
  if (typeof content === 'string') {
    const size = Buffer.byteLength(content)
    return { body: size === content.length ? content : Buffer.from(content), size }
  }
  if (content instanceof Uint8Array) return { body: content, size: content.length }
  const { size } = content
  // Anything else would be sent as Content-Length, and awaited without end.
  if (!Number.isSafeInteger(size) || size < 0) {
    throw new TypeError(`The size of content is a number of bytes, not ${describeValue(size)}.`)
  }
  // An empty content has no first byte and no last one that a back end could be asked for.
  if (size === 0) return { body: '', size }
  // A HEAD, which reads nothing, would be 200 for what no GET can send.
  if (typeof content.open !== 'function') {
    throw new TypeError(`The open of content is a function of two positions, not ${describeValue(content.open)}.`)
  }
  const openRange = (first: number, last: number) => atOnce(content.open(first, last))
  return { body: { size, open: () => openRange(0, size - 1), openRange }, size }
}

const CHUNK = 64 * 1024

/** What a path may turn out to be when it names no file. */
const ABSENT: readonly unknown[] = ['ENOENT', 'ENOTDIR', 'EISDIR', 'ENAMETOOLONG', 'ELOOP', 'ENXIO']

/**
 * Opens a file as a representation for `range`. It is opened once, so the response is of one version although the file
 * may be replaced by renaming meanwhile, and closed when the response has been sent.
 *
 * Last-Modified is the file's own date. There is no ETag unless you give one: size and date do not tell every change.
 * @param path a path of your own; one made of a request has to be checked before
 * @param fields Content-Type and whatever else `range` takes beside the content
 * @returns `undefined` when there is no file, or something that is not a regular file
 * @throws the error of the file system for a file that cannot be opened
 * @example
 * createServer(range(() => openFile('film.mp4', { contentType: 'video/mp4' }))).listen(8080)
 */
export async function openFile(
  path: string | URL,
  fields: Omit<RangeSource, 'content'>,
): Promise<RangeSource | undefined> {
  // Opening a named pipe would otherwise wait for its other end.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(ignoreAbsent)
  if (file === undefined) return undefined
  try {
    const stat = await file.stat()
    if (stat.isFile()) return { lastModified: stat.mtimeMs, ...fields, content: createReader(file, stat.size) }
    await file.close()
    return undefined
  } catch (error) {
    await file.close()
    throw error
  }
}

function ignoreAbsent(error: unknown): undefined {
  if (!ABSENT.includes((error as NodeJS.ErrnoException).code)) throw error
}

function createReader(file: FileHandle, size: number): RangeReader {
  const close = hold(file)
  return {
    size,
    async *open(first, last) {
      void close // The file stays open for as long as it can be read.
      // The writer asks for a chunk when the one before has left: one buffer is enough.
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, last - first + 1))
      for (let at = first; at <= last; ) {
        const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK, last - at + 1), at)
        // Truncated since: the answer breaks off.
        if (bytesRead === 0) return
        yield buffer.subarray(0, bytesRead)
        at += bytesRead
      }
    },
    close,
  }
}
