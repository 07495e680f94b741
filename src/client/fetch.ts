import { isBlob } from './request-content.ts'
import { UsageError } from './results.ts'

/** Reads content piece by piece. */
export interface ContentReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  /** Always called, also at the end. */
  cancel(): Promise<unknown>
}

/** As much of a response as is used; that of every `fetch` fits. */
export interface FetchResponse {
  readonly status: number
  /** The address that the response came from. */
  readonly url?: string
  /** Whether it is another one than that of the request (RFC 9110 §15.4). */
  readonly redirected?: boolean
  readonly headers: { get(name: string): string | null }
  readonly body: { getReader(): ContentReader } | null
  text(): Promise<string>
}

export interface FetchOptions {
  readonly method: string
  readonly headers: Record<string, string>
  /** The client keeps tags itself: a cache of the browser could answer with an older state. */
  readonly cache: 'no-store'
  /** Or FormData of the platform, of which not every `fetch` has the same type. */
  readonly body?: string | Blob | ReadableStream<Uint8Array>
  readonly duplex?: 'half'
  readonly signal: AbortSignal
}

/** As much of `fetch` as is used. */
export type Fetch = (url: string, options: FetchOptions) => Promise<FetchResponse>

/** Content of a request. It can be sent again. */
export interface RequestContent {
  readonly body: string | Blob | FormData
  /** Is called with the bytes that were sent so far. */
  readonly onProgress?: ((sent: number, total: number) => void) | undefined
}

/** As much of XMLHttpRequest as is used. */
interface XhrRequest {
  responseType: string
  readonly status: number
  readonly responseURL: string
  readonly response: ArrayBuffer
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null }
  onload: (() => void) | null
  onerror: (() => void) | null
  onabort: (() => void) | null
  open(method: string, url: string): void
  setRequestHeader(name: string, value: string): void
  getResponseHeader(name: string): string | null
  send(body: Blob): void
  abort(): void
}

/**
 * Sends a request. Progress is seen where the platform shows it: by XMLHttpRequest in browsers, whose `fetch` streams
 * content over HTTP/2 only, if at all; by a stream elsewhere.
 */
export async function sendContent(
  fetch: Fetch | undefined,
  url: string,
  options: Omit<FetchOptions, 'body' | 'duplex'>,
  content: RequestContent | undefined,
): Promise<FetchResponse> {
  const send = fetch ?? (globalThis.fetch as Fetch | undefined)
  if (!send) throw new UsageError('There is no global fetch: set the option "fetch".')
  const { body, onProgress } = content ?? {}
  const blob = body as Blob
  const { XMLHttpRequest: Xhr } = globalThis as { XMLHttpRequest?: new () => XhrRequest }
  if (onProgress && !fetch && Xhr) {
    return withoutText(blob, () => sendByXhr(new Xhr(), url, options, blob, onProgress))
  }
  const stream = onProgress && streamBlob(blob, onProgress)
  // A Blob of jsdom, which Vitest makes the global one: `fetch` of Node takes it and fails at its `stream`.
  const sent = stream ?? (isBlob(body) && !body.stream ? await body.arrayBuffer() : body)
  return withoutText(sent, () => send(url, { ...options, body: sent, duplex: stream && 'half' } as FetchOptions))
}

/**
 * Sends content that cannot become text meanwhile: a `fetch` that does not know its class would send `[object Blob]`. The
 * content of a program gets a `toString` for that time, since only the `fetch` knows which classes it takes.
 */
async function withoutText(body: unknown, send: () => Promise<FetchResponse>): Promise<FetchResponse> {
  if (typeof body !== 'object' || body === null) return send()
  const refuse = () => {
    throw new UsageError('The fetch does not take FormData or Blob of this class.')
  }
  Reflect.defineProperty(body, 'toString', { value: refuse, configurable: true })
  try {
    return await send()
  } finally {
    Reflect.deleteProperty(body, 'toString')
  }
}

function streamBlob(blob: Blob, onProgress: NonNullable<RequestContent['onProgress']>): ReadableStream<Uint8Array> {
  const chunkSize = 65_536
  let sent = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (sent) onProgress(sent, blob.size)
        if (sent >= blob.size) return controller.close()
        const chunk = await blob.slice(sent, sent + chunkSize).arrayBuffer()
        sent += chunk.byteLength
        controller.enqueue(new Uint8Array(chunk))
      },
    },
    // Nothing is read ahead: a chunk counts as sent when the next is asked for.
    { highWaterMark: 0 },
  )
}

function sendByXhr(
  xhr: XhrRequest,
  url: string,
  { method, headers, signal }: Omit<FetchOptions, 'body' | 'duplex'>,
  body: Blob,
  onProgress: NonNullable<RequestContent['onProgress']>,
): Promise<FetchResponse> {
  return new Promise((resolve, reject) => {
    xhr.open(method, url)
    xhr.responseType = 'arraybuffer'
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value)
    xhr.upload.onprogress = ({ loaded }) => onProgress(loaded, body.size)
    xhr.onerror = () => reject(new TypeError('The request failed.'))
    xhr.onabort = () => reject(signal.reason)
    xhr.onload = () =>
      resolve({
        status: xhr.status,
        headers: { get: (name) => xhr.getResponseHeader(name) },
        body: null,
        redirected: xhr.responseURL !== url,
        text: () => Promise.resolve(new TextDecoder().decode(xhr.response)),
      })
    // It may have been given up since its token was there.
    signal.throwIfAborted()
    signal.addEventListener('abort', () => xhr.abort())
    xhr.send(body)
  })
}
