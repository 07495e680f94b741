/** One exchange with a service: its deadline, the content of the request and that of the response. */

import { ByteBlocks } from '../../core/byte-blocks.ts'
import type { MaybePromise } from '../../core/maybe-promise.ts'

export type Deadline = ReturnType<typeof createDeadline>

/** Aborts a signal when something that has begun does not end in time. */
export function createDeadline(timeout: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  let timer: NodeJS.Timeout | undefined
  return {
    signal: (signal === undefined ? controller.signal : AbortSignal.any([signal, controller.signal])) as AbortSignal,
    begin(): void {
      timer = setTimeout(() => controller.abort(new Error(`No response within ${timeout} ms.`)), timeout)
    },
    end: (): void => clearTimeout(timer),
  }
}

/** The value of a promise that may never settle. @throws the reason of the signal */
export function beforeAbort<Value>(value: MaybePromise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const release = (): void => signal.removeEventListener('abort', onAbort)
    Promise.resolve(value).finally(release).then(resolve, reject)
  })
}

/** A list of a thousand names of 1024 bytes, each written as character references, has less. */
const MAX_SIZE = 16 * 1024 * 1024

/**
 * The text of a response that is read as a whole.
 * @throws Error where the service sends more than its interface ever does, so that memory stays bounded
 */
export async function readText({ body }: Response): Promise<string> {
  if (body === null) return ''
  const blocks = new ByteBlocks()
  // Leaving the loop cancels the rest.
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    blocks.push(chunk)
    if (blocks.size > MAX_SIZE) throw new Error(`The S3 service answered with more than ${MAX_SIZE} bytes.`)
  }
  return new TextDecoder().decode(blocks.drain())
}

/** Bytes of content that go to a stream at once. */
const PIECE_SIZE = 65_536

/**
 * The members of a `fetch` request that hold its content. The `fetch` of Node copies bytes, and 64 MiB of copies wait until
 * V8 frees them; a stream with Content-Length it sends as it is. With it an upload of a gigabyte grows the process by 20 MiB
 * in place of 60. Other runtimes send a stream chunked, which S3 refuses.
 * @param headers get Content-Length where it is needed
 */
export function prepareBody(body: Uint8Array, headers: Headers): Pick<RequestInit, 'body' | 'duplex'> {
  const isUndici = process.versions['undici'] !== undefined
  if (!isUndici || body.length <= PIECE_SIZE) return { body: body as Uint8Array<ArrayBuffer> }
  headers.set('Content-Length', String(body.length))
  return { body: streamPieces(body), duplex: 'half' }
}

function streamPieces(body: Uint8Array): ReadableStream<Uint8Array> {
  let from = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (from >= body.length) return controller.close()
        controller.enqueue(body.subarray(from, from + PIECE_SIZE))
        from += PIECE_SIZE
      },
    },
    { highWaterMark: 0 },
  )
}
