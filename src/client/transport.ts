import type { Answer } from './answer.ts'
import type { Fetch, FetchResponse } from './fetch.ts'
import { type RequestContent, sendContent } from './request-content.ts'
import { ResponseError } from './response-error.ts'
import { choosePause, isTemporary, parseRetryAfter, pause } from './retry.ts'

export interface ClientRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: RequestContent
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for one attempt. */
  readonly timeout?: number | undefined
  /** Whether a second attempt does no harm: the request is safe, has a condition or a key. */
  readonly isRepeatable: boolean
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

/** Sends requests: each attempt with fresh credentials and a limit of time, repeatable ones more than once. */
export function createTransport({ fetch, findHeaders, timeout, retries }: TransportOptions): Send {
  async function attempt(request: ClientRequest, isRepeated: boolean): Promise<Answer> {
    const { method, url, signal, content, isStream = false } = request
    const headers = { ...(await findHeaders()), ...request.headers }
    const controller = new AbortController()
    const stop = (): void => controller.abort(signal!.reason)
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    const limit = request.timeout ?? timeout
    const timer =
      limit < 2 ** 31
        ? setTimeout(() => controller.abort(new Error(`No response within ${limit} ms.`)), limit)
        : undefined
    // Content that is still to be read is stopped by the same signal.
    const release = (): void => signal?.removeEventListener('abort', stop)
    try {
      const options = { method, headers, cache: 'no-store' as const, signal: controller.signal }
      const response: FetchResponse = await sendContent(fetch, url, options, content)
      const { status } = response
      const isOpen = isStream && status < 300
      const reader = isOpen ? response.body?.getReader() : undefined
      // Always read, or the connection cannot be used again.
      const text = isOpen ? '' : await response.text()
      if (!isOpen) release()
      return { url, status, headers: response.headers, text, reader, isWrite: method !== 'GET', isRepeated }
    } catch (error) {
      release()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  return async (request) => {
    const { method, url, signal, isRepeatable } = request
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
          throw new ResponseError(0, undefined, message, { cause, mayHaveTakenEffect: method !== 'GET' })
        }
        wait = choosePause(attempts, undefined)
      }
      await pause(wait!, signal)
    }
  }
}
