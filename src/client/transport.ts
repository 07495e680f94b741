import type { Answer } from './answer.ts'
import type { Fetch, FetchResponse } from './fetch.ts'
import { type RequestContent, sendContent } from './request-content.ts'
import { ResponseError } from './response-error.ts'
import { choosePause, isTemporary, parseRetryAfter, pause } from './retry.ts'

/** Options of one request. */
export interface RequestOptions {
  readonly signal?: AbortSignal
  /** Milliseconds for one attempt. Default: that of the client. */
  readonly timeout?: number
}

export interface ClientRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: RequestContent
  readonly options?: RequestOptions | undefined
  /** Whether a second attempt does no harm: the request is safe, has a condition or a key. Default true. */
  readonly isRepeatable?: boolean
  /** Leaves the content to be read by the caller. */
  readonly isStream?: boolean
}

export interface TransportOptions {
  /** `undefined`: that of the platform. */
  readonly fetch: Fetch | undefined
  readonly findHeaders: () => Promise<Readonly<Record<string, string>>>
  readonly timeout: number
  readonly retries: number
}

export type Send = (request: ClientRequest) => Promise<Answer>

const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD'

/** Sends requests: each attempt with fresh credentials and a limit of time, repeatable ones more than once. */
export function createTransport({ fetch, findHeaders, timeout, retries }: TransportOptions): Send {
  async function attempt(request: ClientRequest, isRepeated: boolean): Promise<Answer> {
    const { method, url, options, content, isStream } = request
    const { signal, timeout: limit = timeout } = options ?? {}
    const headers = { ...(await findHeaders()), ...request.headers }
    const controller = new AbortController()
    const stop = (): void => controller.abort(signal!.reason)
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    const timer =
      limit < 2 ** 31
        ? setTimeout(() => controller.abort(new Error(`No response within ${limit} ms.`)), limit)
        : undefined
    let isOpen = false
    try {
      const values = { method, headers, cache: 'no-store' as const, signal: controller.signal }
      const response: FetchResponse = await sendContent(fetch, url, values, content)
      const { status } = response
      isOpen = isStream === true && status < 300
      const reader = isOpen ? response.body?.getReader() : undefined
      // Always read, or the connection cannot be used again.
      const text = isOpen ? '' : await response.text()
      const target = response.redirected ? response.url : undefined
      return { url, target, status, headers: response.headers, text, reader, isWrite: !isSafe(method), isRepeated }
    } finally {
      clearTimeout(timer)
      // Content that is still to be read is stopped by the same signal.
      if (!isOpen) signal?.removeEventListener('abort', stop)
    }
  }

  return async (request) => {
    const { method, url, options, isRepeatable = true } = request
    const signal = options?.signal
    let mayHaveTakenEffect = false
    for (let attempts = 1; ; attempts++) {
      const isLast = !isRepeatable || attempts > retries
      let wait: number | undefined
      try {
        const answer = await attempt(request, mayHaveTakenEffect)
        if (isLast || !isTemporary(answer.status)) return answer
        wait = choosePause(attempts, parseRetryAfter(answer.headers.get('retry-after'), Date.now()))
        if (wait === undefined) return answer
        await answer.reader?.cancel()
        // 429 refuses a request before it is done. The others may stand for an answer that was lost behind a proxy.
        mayHaveTakenEffect ||= answer.status !== 429
      } catch (cause) {
        if (signal?.aborted === true) throw signal.reason
        mayHaveTakenEffect = true
        if (isLast) {
          const reason = cause instanceof Error ? cause.message : String(cause)
          const message = `No response to ${method} ${url}: ${reason}`
          throw new ResponseError(0, undefined, message, { cause, mayHaveTakenEffect: !isSafe(method) })
        }
        wait = choosePause(attempts, undefined)
      }
      await pause(wait!, signal)
    }
  }
}
