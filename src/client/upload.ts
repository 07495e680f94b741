import { conditionOn } from './address.ts'
import { toBlob, typeOf } from './create.ts'
import { openContent } from './download.ts'
import { type ClientContext, type RequestOptions, readValidators } from './read.ts'
import { CHANGING, type Failure, type ResourceHandle, refuse, type Success } from './results.ts'
import { LONGEST_TIMER } from './retry.ts'
import type { Match } from './write.ts'

export interface UploadOptions extends RequestOptions {
  /** Default: that of the Blob, or `application/octet-stream`. */
  readonly contentType?: string
  /** Is called with the bytes sent so far and all bytes, at the latest when all were sent. */
  readonly onProgress?: (sent: number, total: number) => void
  /** Milliseconds for one attempt. Default: none. */
  readonly timeout?: number
}

/** Content that can be sent again where an answer is lost; a file of Node: `await openAsBlob(path)`. */
export type UploadContent = Blob | Uint8Array | string

export type UploadResult<Path extends string> =
  | Success<200 | 201 | 204, { readonly resource: ResourceHandle<Path> }>
  | Failure<(typeof CHANGING)[number]>

export async function uploadContent(
  context: ClientContext,
  url: string,
  match: Match,
  content: UploadContent,
  options: UploadOptions | undefined,
): Promise<UploadResult<string>> {
  const body = toBlob(content)
  const { onProgress, timeout = LONGEST_TIMER, signal } = options ?? {}
  const answer = await context.send({
    method: 'PUT',
    url,
    headers: { 'Content-Type': options?.contentType ?? typeOf(body), ...conditionOn(match) },
    content: { body, onProgress },
    options: { ...options, timeout },
  })
  context.cache.forget(url)
  const { status } = answer
  if (status === 200 || status === 201 || status === 204) {
    onProgress?.(body.size, body.size)
    return { ok: true, status, resource: { url, ...readValidators(answer) } }
  }
  if (status === 412 && answer.isRepeated) {
    // The attempt whose answer was lost may be what changed the state.
    const current = await openContent(context, url, signal && { signal })
    if (current.ok) {
      const { file } = current
      const { entityTag, lastModified } = file
      if (await hasContent(file, body)) return { ok: true, status: 204, resource: { url, entityTag, lastModified } }
    }
  }
  return refuse(answer, CHANGING)
}

async function hasContent(content: AsyncIterable<Uint8Array>, blob: Blob): Promise<boolean> {
  let at = 0
  for await (const chunk of content) {
    const sent = new Uint8Array(await blob.slice(at, at + chunk.length).arrayBuffer())
    if (sent.length !== chunk.length || !sent.every((byte, index) => byte === chunk[index])) return false
    at += chunk.length
  }
  return at === blob.size
}
