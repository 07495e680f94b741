import { type Answer, conditionOn, createError, readValidators, refuse, throwAfterWrite } from './answers.ts'
import { type Call, READING } from './read.ts'
import { toBlob, typeOf } from './request-content.ts'
import { type Failure, type ResourceHandle, ResponseError, type Success } from './results.ts'
import { LONGEST_TIMER, pause, type RequestOptions } from './transport.ts'
import { CHANGING, type Match } from './write.ts'

/** Options of `download`. */
export interface DownloadOptions extends RequestOptions {
  /** Continues a download of an earlier time: the bytes that are there, and the strong tag of their state. */
  readonly resume?: { readonly offset: number; readonly entityTag: string }
  /** Is called with the bytes received so far and all bytes, where the server says how many. */
  readonly onProgress?: (received: number, total: number | undefined) => void
}

/** Content as it arrives. It can be read once. */
export interface ResourceFile<Path extends string = string> extends ResourceHandle<Path>, AsyncIterable<Uint8Array> {
  readonly contentType: string
  /** The size of the whole content, where the server says it and the content is not coded. */
  readonly size: number | undefined
  /** Where the content begins: that of `resume`, or 0 where its state is not the current one, or Range is ignored. */
  readonly offset: number
  /** All that is left, in memory. */
  blob(): Promise<Blob>
  /** Gives up what has not been read. */
  cancel(): Promise<void>
}

/** What a read has brought: content, the end, or neither where the transfer broke. */
interface Piece {
  readonly done?: boolean
  readonly value?: Uint8Array | undefined
  readonly cause?: unknown
}

export type DownloadResult<Path extends string> =
  | Success<200 | 206, { readonly file: ResourceFile<Path> }>
  | Failure<(typeof READING)[number]>

const CHANGED = 'The content changed while it was transferred.'

export async function openContent(call: Call<DownloadOptions>): Promise<DownloadResult<string>> {
  const { url } = call
  const { resume, onProgress, signal } = call.options ?? {}
  let answer = await request(call, resume)
  // Nothing is left to send, or it is part of another state: the content is complete, or another one by now.
  if ([206, 416].includes(answer.status) && !continues(answer, resume)) {
    await answer.reader?.cancel()
    answer = await request(call)
  }
  const { headers, status } = answer
  if (status !== 200 && !continues(answer, resume)) {
    await answer.reader?.cancel()
    return refuse(answer, READING)
  }
  const [offset, length] = rangeOf(answer)
  const validators = readValidators(answer)
  // Ranges count bytes on the wire. Under a content coding those are not the bytes that are read here.
  const isCoded = headers.get('content-encoding')
  let size = isCoded ? undefined : length
  let reader = answer.reader
  const giveUp = () => reader?.cancel()

  async function* read(): AsyncGenerator<Uint8Array, void, void> {
    /** How often a transfer that breaks is continued without a byte in between. */
    const maxResumes = 5
    let at = offset
    /** Where the next piece of the response begins: before `at` where a server ignores Range (RFC 9110 §14.2). */
    let position = offset
    let failures = 0
    try {
      while (true) {
        // Only reading is tried again: what the consumer throws at the `yield` ends the loop.
        const piece: Piece = (await reader?.read().catch((cause: unknown) => ({ cause }))) ?? { done: true }
        position += piece.value?.length ?? 0
        if (position > at) {
          const value = piece.value!.subarray(at - position)
          at = position
          failures = 0
          onProgress?.(at, size)
          yield value
        }
        if (piece.done === false) continue
        if (piece.done && at === (size ?? at)) return
        await pause(Math.random() * 100 * ++failures, signal)
        const { entityTag } = validators
        // A weak tag does not vouch for bytes.
        if (!entityTag?.startsWith('"') || isCoded || failures > maxResumes) {
          throw failure(url, 'The transfer broke.', piece.cause)
        }
        await giveUp()
        const from = { offset: at, entityTag }
        const next = await request(call, from)
        reader = next.reader
        position = rangeOf(next)[0]
        if (!continues(next, from)) throw reader ? failure(url, CHANGED, piece.cause) : createError(next)
      }
    } finally {
      await giveUp()
    }
  }

  const content = read()
  const file: ResourceFile = {
    url,
    ...validators,
    contentType: headers.get('content-type') ?? 'application/octet-stream',
    size,
    offset,
    [Symbol.asyncIterator]: () => content,
    async blob() {
      const chunks: Uint8Array<ArrayBuffer>[] = []
      for await (const chunk of content) chunks.push(chunk as Uint8Array<ArrayBuffer>)
      return new Blob(chunks, { type: file.contentType })
    },
    async cancel() {
      // A read that waits ends without a piece, and nothing is missing then.
      size = undefined
      await giveUp()
      await content.return()
    },
  }
  return { ok: true, status: status as 200 | 206, file }
}

/**
 * Asks for content. Where a redirect led to another resource, the header of the answer is that of the resource itself.
 * @throws ResponseError for content that changes meanwhile
 */
async function request(call: Call, from?: DownloadOptions['resume']): Promise<Answer> {
  // RFC 9110 §13.1.5: the range counts only while the state is the same.
  const headers = from ? { Range: `bytes=${from.offset}-`, 'If-Range': from.entityTag } : {}
  const answer = await call.send(call, { method: 'GET', headers, isStream: true })
  const { target, reader } = answer
  if (!target || !reader) return answer
  let kept: Answer | undefined
  try {
    const own = await call.send(call, { method: 'HEAD', headers: conditionOn('any') })
    if (own.status !== 200) return own
    // The base has moved as a whole: the header is that of the resource.
    if (own.target === target) return (kept = answer)
    // While the target has the same content, the tag that was read before is its own, or no longer the current one.
    if (identify(answer) !== identify(await call.send(call, { method: 'HEAD' }))) throw failure(call.url, CHANGED)
    return (kept = { ...own, reader })
  } finally {
    if (!kept) await reader.cancel()
  }
}

/**
 * Whether a response has the bytes that follow, alone or behind all others. A server that ignores If-Range sends those
 * of another state: the parts of one representation have one strong tag (RFC 9110 §15.3.7.3).
 */
function continues(answer: Answer, from: DownloadOptions['resume']): boolean | undefined {
  const { reader, headers } = answer
  return from && reader && [0, from.offset].includes(rangeOf(answer)[0]) && headers.get('etag') === from.entityTag
}

/** Identifies the content of a response: status, address without its signature, tag. */
function identify({ status, target, headers }: Answer): string {
  return [status, target?.split('?')[0], headers.get('etag')].join()
}

/** Where the range of a 206 begins, and the size of the whole content; -1 and `undefined` where it does not say. */
function rangeOf({ headers, status }: Answer): readonly [start: number, size: number | undefined] {
  const range = status === 206 ? headers.get('content-range') : `bytes 0-0/${headers.get('content-length')}`
  const [, start, size] = /^bytes (\d+)-\d+\/(\d+)?/i.exec(range ?? '') ?? []
  return [Number(start), (size && Number(size)) as number | undefined]
}

function failure(url: string, message: string, cause?: unknown): ResponseError {
  return new ResponseError(0, undefined, `${message} (${url})`, { cause })
}

/** Options of `upload`. */
export interface UploadOptions extends RequestOptions {
  /** The media type of the content. Default: that of the Blob, or `application/octet-stream`. */
  readonly contentType?: string
  /** Is called with the bytes sent so far and all bytes, at the latest when all were sent. */
  readonly onProgress?: (sent: number, total: number) => void
  /** Milliseconds for one attempt. Default: none, whatever that of the client is. */
  readonly timeout?: number | undefined
}

/** Content that can be sent again where a response is lost; a file of Node: `await openAsBlob(path)`. */
export type UploadContent = Blob | Uint8Array | string

export type UploadResult<Path extends string> =
  | Success<200 | 201 | 204, { readonly resource: ResourceHandle<Path> }>
  | Failure<(typeof CHANGING)[number]>

export async function uploadContent(
  call: Call<UploadOptions>,
  match: Match,
  content: UploadContent,
): Promise<UploadResult<string>> {
  const { url, options } = call
  const body = toBlob(content)
  const { contentType = typeOf(body), onProgress, timeout = LONGEST_TIMER, signal } = options ?? {}
  const headers = { 'Content-Type': contentType, ...conditionOn(match) }
  const target = { url, options: { ...options, timeout } }
  const answer = await call.send(target, { method: 'PUT', headers, content: { body, onProgress } })
  call.cache.forget(url)
  const { status } = answer
  if (status === 200 || status === 201 || status === 204) {
    onProgress?.(body.size, body.size)
    return { ok: true, status, resource: { url, ...readValidators(answer) } }
  }
  if (status === 412 && answer.isRepeated) {
    // The attempt whose answer was lost may be what changed the state.
    const current = await openContent({ ...call, options: { signal } }).catch(throwAfterWrite)
    if (current.ok) {
      const { file } = current
      const { entityTag, lastModified } = file
      if (await hasContent(file, body).catch(throwAfterWrite)) {
        return { ok: true, status: 204, resource: { url, entityTag, lastModified } }
      }
    }
  }
  return refuse(answer, CHANGING)
}

async function hasContent(content: AsyncIterable<Uint8Array>, blob: Blob): Promise<boolean> {
  let at = 0
  for await (const chunk of content) {
    const sent = new Uint8Array(await blob.slice(at, at + chunk.length).arrayBuffer())
    if (!chunk.every((byte, index) => byte === sent[index])) return false
    at += chunk.length
  }
  return at === blob.size
}
