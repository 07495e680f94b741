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
