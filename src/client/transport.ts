import { type Answer, createError } from './answers.ts'
import { check, type FieldValues, kindOf, type ResourceClientOptions } from './client-options.ts'
import { type ContentReader, type RequestContent, sendContent } from './fetch.ts'
import { ResponseError, UsageError } from './results.ts'

/** Options of one request. */
export interface RequestOptions {
  /** Gives the request up: it rejects with the reason of the signal. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for one attempt; of a download, until its headers and until each piece. Default: that of the client. */
  readonly timeout?: number | undefined
}

/** Where a request of a program goes, and with which options. */
export interface Target<Options extends RequestOptions = RequestOptions> {
  readonly url: string
  readonly options: Options | undefined
}

interface ClientRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly content?: RequestContent
  /** Whether a second attempt does no harm: the request is safe, has a condition or a key. Default true. */
  readonly isRepeatable?: boolean
  /** Leaves the content to be read by the caller. */
  readonly isStream?: boolean
}

export type Send = (target: Target, request: ClientRequest) => Promise<Answer>

/** Statuses after which a request may be sent again. */
const TEMPORARY: readonly number[] = [429, 502, 503, 504]

const isSafe = (method: string): boolean => method === 'GET' || method === 'HEAD'

/** Sends requests: each attempt with fresh credentials and a limit of time, repeatable ones more than once. */
export function createTransport(given: ResourceClientOptions): Send {
  const { fetch, timeout = 30_000, retries = 3 } = given
  async function attempt(
    { url, options }: Target,
    { method, content, isStream }: ClientRequest,
    headers: Record<string, string>,
    isRepeated: boolean,
  ): Promise<Answer> {
    const { signal, timeout: limit = timeout } = options ?? {}
    const controller = new AbortController()
    // Content that is still to be read is stopped by the same signal.
    const release = whenAborted(signal, () => controller.abort(signal!.reason))
    const giveUp = (): void => controller.abort(new Error(`No response within ${limit} ms.`))
    const startTimer = () => setTimeout(giveUp, Math.min(limit, LONGEST_TIMER))
    const timer = startTimer()
    let stream: ContentReader | undefined
    try {
      const values = { method, headers, cache: 'no-store' as const, signal: controller.signal }
      const response = await untilAborted(sendContent(fetch, url, values, content), controller.signal)
      const { status } = response
      if (isStream && status < 300) stream = response.body?.getReader()
      // Always read, or the connection cannot be used again.
      const text = stream ? '' : await untilAborted(response.text(), controller.signal)
      const reader = stream && {
        // A transfer that is silent can be continued by another request.
        read() {
          const silence = startTimer()
          return untilAborted(stream!.read(), controller.signal).finally(() => clearTimeout(silence))
        },
        cancel() {
          release()
          // A stream that has failed rejects with its failure, which reading it has thrown.
          return stream!.cancel().catch(() => undefined)
        },
      }
      const target = response.redirected ? response.url : undefined
      const isWrite = !isSafe(method)
      const answer: Answer = { url, target, status, headers: response.headers, text, isWrite, isRepeated, reader }
      // RFC 9110 §15.4: after 301, 302 or 303 it may be the answer of a GET, such as a login page.
      if (isWrite && response.redirected && status === 200) {
        throw createError(answer, 'The write was redirected.')
      }
      return answer
    } finally {
      clearTimeout(timer)
      if (!stream) release()
    }
  }

  return async (target, request) => {
    const { method, isRepeatable = true } = request
    const signal = target.options?.signal
    let mayHaveTakenEffect = false
    for (let attempts = 1; ; attempts++) {
      const isLast = !isRepeatable || attempts > retries
      let isSent = false
      let wait: number | undefined
      try {
        const headers = { ...(await untilAborted(findHeaders(given), signal)), ...request.headers }
        try {
          new Headers(headers)
        } catch {
          // `fetch` would put the value, a secret, into its message.
          throw new UsageError('The token or a header is malformed.')
        }
        isSent = true
        const answer = await attempt(target, request, headers, mayHaveTakenEffect)
        if (isLast || !TEMPORARY.includes(answer.status)) return answer
        wait = choosePause(attempts, readRetryAfter(answer))
        if (wait === undefined) return answer
        // 429 refuses a request before it is done. The others may stand for an answer that was lost behind a proxy.
        mayHaveTakenEffect ||= answer.status !== 429
      } catch (cause) {
        signal?.throwIfAborted()
        if (cause instanceof ResponseError || cause instanceof UsageError) throw cause
        mayHaveTakenEffect ||= isSent
        if (isLast) {
          const reason = (cause as Error | undefined)?.message ?? String(cause)
          const options = { cause, mayHaveTakenEffect: mayHaveTakenEffect && !isSafe(method) }
          throw new ResponseError(0, undefined, `No response to ${method} ${target.url}: ${reason}`, options)
        }
        wait = choosePause(attempts)
      }
      await pause(wait!, signal)
    }
  }
}

async function findHeaders({ token, headers }: ResourceClientOptions): Promise<FieldValues> {
  const value = typeof token === 'function' ? await token() : token
  const fields = typeof headers === 'function' ? await headers() : headers
  check(kindOf(fields ?? {}) === 'object', 'takes as headers: object')
  return { ...fields, ...(value === undefined || value === null ? {} : { Authorization: `Bearer ${value}` }) }
}

/**
 * The pause before the next attempt, with a random part, so that clients do not come back together.
 * @param attempts those that failed
 * @returns `undefined` where the server asks for a pause of more than a minute
 */
function choosePause(attempts: number, retryAfter = 0): number | undefined {
  // A server that asks for a longer pause gets no other attempt.
  if (retryAfter > 60_000) return undefined
  return retryAfter + Math.random() * Math.min(10_000, 100 * 2 ** attempts)
}

/** Milliseconds of Retry-After (RFC 9110 §10.2.3), which is seconds or a date; `undefined` without one. */
export function readRetryAfter({ headers }: Pick<Answer, 'headers'>): number | undefined {
  const text = headers.get('retry-after') ?? ''
  const time = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isNaN(time) ? undefined : Math.max(0, time)
}

/** Milliseconds; a longer timer ends at once. */
export const LONGEST_TIMER: number = 2 ** 31 - 1

/** Waits, for 24 days at the longest. @throws the reason of the signal when it aborts */
export function pause(time: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const end = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(time, LONGEST_TIMER))
  })
  return untilAborted(end, signal).finally(() => clearTimeout(timer))
}

/** @throws the reason of the signal when it aborts first */
export function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  return new Promise((resolve, reject) => {
    const release = whenAborted(signal, () => reject(signal!.reason))
    promise.then(resolve, reject).finally(release)
  })
}

/** Calls `stop` once the signal aborts, at once where it has. @returns a function that removes the listener */
function whenAborted(signal: AbortSignal | undefined, stop: () => void): () => void {
  if (signal?.aborted) stop()
  else signal?.addEventListener('abort', stop)
  return () => signal?.removeEventListener('abort', stop)
}
