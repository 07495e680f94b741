import { inspect } from 'node:util'
import { selectMediaType, withUtf8 } from '../protocol/media-type.ts'
import { type FailureEvent, formatLogText, publishFailure, writeToConsole } from './diagnostics.ts'
import { createProblem, HttpError, RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { atOnce, orElse } from './maybe-promise.ts'
import { contentReply, emptyReply, encodeText, type Reply, type ReplyBody } from './reply.ts'
import { toHttpError } from './unavailable.ts'
import { isFieldList } from './write-head.ts'

/** What a handler does with errors. */
export interface ErrorOptions {
  /** Called with unexpected errors, which the client never sees. Default: `console.error`. */
  readonly onError?: ErrorHook | undefined
  /** Makes the reply for an error. Default: {@link createErrorReply}. */
  readonly formatError?: ((error: HttpError, exchange: Exchange) => Reply) | undefined
  /**
   * Whether unexpected errors go to the host's `next(error)` where there is one. With `true` only to one that declares a
   * parameter: `guard(req, res, () => route(req, res))` would take an error for consent. Instrumentation wraps the `next` of
   * Express in a function that declares none, so that `'always'` asks for no parameter.
   */
  readonly forwardErrors: boolean | 'always'
}

/** What becomes of the errors of a handler: replies, reports, and errors for its host. */
interface ErrorReplies {
  readonly report: ReportFailure
  /** The reply for an error; none for a client that has left. */
  replyTo(error: unknown, exchange: Exchange): Reply | 'gone'
  format(error: HttpError, exchange: Exchange): Reply
  /** Gives up a request that a hook has frozen or emptied: what fails because of that would end the process. */
  abandon(exchange: Exchange, failure: unknown): 'gone'
  /** Whether an error is the host's. */
  isForwarded(error: unknown, exchange: Exchange): boolean
}

export function createErrorReplies({ onError, formatError, forwardErrors }: ErrorOptions): ErrorReplies {
  const report = createFailureReport(onError)

  function abandon(exchange: Exchange, failure: unknown): 'gone' {
    report(failure, exchange, 'request')
    exchange.breakOff()
    return 'gone'
  }

  function replyTo(error: unknown, exchange: Exchange): Reply | 'gone' {
    if (error instanceof RequestAborted || exchange.isAbort(error)) {
      exchange.breakOff()
      return 'gone'
    }
    const known = toHttpError(error)
    if (known.status >= 500 && known !== error) report(error, exchange, 'request')
    try {
      return format(known, exchange)
    } catch (failure) {
      return abandon(exchange, failure)
    }
  }

  function format(error: HttpError, exchange: Exchange): Reply {
    try {
      // The extensions of an error may be what JSON cannot hold.
      const reply =
        formatError === undefined
          ? createErrorReply(error, exchange)
          : completeReply(atOnce(formatError(error, exchange)), error)
      return exchange.isHttp2 ? forHttp2(reply) : reply
    } catch (formatFailure) {
      report(formatFailure, exchange, 'request')
      return createErrorReply(new HttpError(500, 'ERR_INTERNAL'), exchange)
    }
  }

  function isForwarded(error: unknown, exchange: Exchange): boolean {
    if (error instanceof RequestAborted || exchange.isAbort(error)) return false
    return forwardErrors !== false && toHttpError(error) !== error
  }

  return { report, replyTo, format, abandon, isForwarded }
}

/** The failure of a request, seen by the operator. */
export type ErrorHook = (error: unknown, exchange: Exchange) => void

/** Reports a failure to the operator. It never throws. */
export type ReportFailure = (error: unknown, exchange: Exchange, stage: FailureEvent['stage']) => void

/** @param onError receives each failure. Default: the console */
export function createFailureReport(onError: ErrorHook = logError): ReportFailure {
  return (error, exchange, stage) => {
    publishFailure({ error, stage, exchange })
    // A hook that fails must not cause another failure: the request still has to be answered.
    orElse<unknown>(
      () => onError(error, exchange),
      (failure) => logError(failure, exchange),
    )
  }
}

function logError(error: unknown, { method, mount, path }: Exchange): void {
  logFailure(`${method} ${formatLogText(mount + path)}`, error)
}

/** Writes a failure to the console. @param what failed */
export function logFailure(what: string, error: unknown): void {
  let failure: string
  try {
    failure = inspect(error)
  } catch {
    failure = 'The error cannot be shown.' // a getter of it throws
  }
  const lines = `http-resource-service: ${what} failed: ${failure}`.split('\n')
  writeToConsole('error', lines.map(formatLogText).join('\n'))
}

/** What the code that answers for a failure looks at. */
const NAMES = ['name', 'message', 'code', 'status', 'cause', 'detail'] as const

/**
 * What a hook or a store has thrown, as it is; an error in its place where it cannot be looked at: a proxy that throws, or
 * an error with a getter that does. Each look at it would be one more failure, in the code that answers for the first one.
 */
export function readThrown(thrown: unknown): unknown {
  if (Object(thrown) !== thrown) return thrown // a primitive value
  try {
    for (const name of NAMES) void (thrown as Readonly<Record<string, unknown>>)[name]
    Object.getPrototypeOf(thrown)
    return thrown
  } catch {
    return new TypeError('What was thrown cannot be read.', { cause: thrown })
  }
}

/**
 * The same for a host: an error in the place of a primitive value. Express lets a request go on, past the guard that failed, where
 * `next` gets nothing, `'route'` or `'router'`.
 */
export function toHostError(error: unknown): unknown {
  return Object(error) === error ? error : new Error(`Thrown: ${String(error)}`, { cause: error })
}

const OFFERS = ['application/problem+json', 'application/json', 'text/plain'].map((essence) => ({
  essence,
  parameters: new Map<string, string>(),
}))

/**
 * What is answered for an error: a problem document, text where the client takes text only, nothing for 412.
 * Errors are never stored by caches (RFC 9110 §15.1 would let them keep 404, 405, 410, 414 and 501).
 */
export function createErrorReply(error: HttpError, exchange: Exchange): Reply {
  const headers = [...listFields(error, ['content-type']), 'Cache-Control', 'no-store']
  if (error.status === 412) return emptyReply(412, headers)
  const problem = createProblem(error)
  const { title, detail } = problem
  const isText = OFFERS[selectMediaType(exchange.field('accept'), OFFERS)]?.essence === 'text/plain'
  const type = isText ? 'text/plain; charset=utf-8' : 'application/problem+json'
  const sentence = typeof detail === 'string' ? `${title}. ${detail}` : title
  const text = isText ? `${sentence}\n` : JSON.stringify(problem)
  return contentReply(error.status, encodeText(text), ['Content-Type', type, ...headers])
}

/** Fields that every answer has, or that only the writer can know: the length is counted. */
const OF_WRITER: readonly string[] = ['content-length', 'transfer-encoding', 'trailer', 'x-content-type-options']

/**
 * The fields of an error, names and values in turn. It may have those of a response that a hook was given: with two lengths,
 * or with a coding that the content does not have, the next answer on the connection could not be found (RFC 9112 §6.3).
 * @param others names in lower case of those that are left out as well
 */
function listFields(error: HttpError, others: readonly string[]): readonly string[] {
  return Object.entries(error.headers).flatMap(([name, value]) => {
    const key = name.toLowerCase()
    if (OF_WRITER.includes(key) || key === 'content-encoding' || others.includes(key)) return []
    return [value].flat().flatMap((item) => [spell(name), item])
  })
}

/** A name as every answer has it, whose own value this one replaces: those of a response of `fetch` have small letters. */
function spell(name: string): string {
  return name.replace(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase())
}

/** Fields of a connection of HTTP/1: with one of them, a client of HTTP/2 takes the answer for an error (RFC 9113 §8.2.2). */
const OF_CONNECTION = /^(?:connection|keep-alive|proxy-connection|upgrade|transfer-encoding|te|http2-settings)$/i

/** The same reply without the fields of a connection of HTTP/1, which it may have from a response that a hook was given. */
function forHttp2(reply: Reply): Reply {
  const { headers } = reply
  return { ...reply, headers: headers.filter((_, i) => !OF_CONNECTION.test(headers[i - (i % 2)]!)) }
}

/**
 * Completes a reply to an error that a function of the user has made: text is sent as UTF-8, and content with its length in
 * bytes, whatever Content-Length the function has given. Caches do not store it unless it says so. Fields of the error that
 * belong to its status, such as WWW-Authenticate of 401 (RFC 9110 §11.6.1) and Allow of 405 (§15.5.6), are added where the
 * reply does not have them.
 * @throws TypeError for what is not a reply, and for a body that cannot be sent
 */
export function completeReply(reply: Reply, error: HttpError): Reply {
  const { status, headers, body } = checkReply(reply)
  const content = typeof body === 'string' ? encodeText(body) : atOnce(body)
  const isUtf8Only = content !== body
  const own: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    const key = name.toLowerCase()
    if (OF_WRITER.includes(key)) continue
    own.push(name, isUtf8Only && key === 'content-type' ? withUtf8(headers[i + 1]!) : headers[i + 1]!)
  }
  // Of another status they would be wrong. The content may be of the type that the error says.
  const fields = status === error.status ? [...own, ...listFields(error, namesOf(own))] : own
  const names = namesOf(fields)
  if (!names.includes('cache-control')) fields.push('Cache-Control', 'no-store')
  // RFC 9110 §8.6: no Content-Length where there can be no content.
  if (content === undefined || content === '' || status === 204 || status === 304) return emptyReply(status, fields)
  if (typeof body === 'string' && !names.includes('content-type'))
    fields.push('Content-Type', 'text/plain; charset=utf-8')
  return { status, headers: [...fields, 'Content-Length', String(sizeOf(content))], body: content }
}

function namesOf(fields: readonly string[]): readonly string[] {
  return fields.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase())
}

function checkReply(reply: Partial<Reply> | undefined): Reply {
  const { status, headers } = reply ?? {}
  const isFinal = Number.isInteger(status) && status! >= 200 && status! <= 599
  if (isFinal && isFieldList(headers)) return reply as Reply
  throw new TypeError(
    'formatError returns { status, headers, body }: a status of 200 to 599, and names and values in turn, in Latin-1.',
  )
}

function sizeOf(content: ReplyBody): number {
  if (typeof content === 'string' || content instanceof Uint8Array) return content.length
  if (Number.isSafeInteger(content.size) && typeof content.open === 'function') return content.size
  throw new TypeError('formatError: the body of a reply must be a string, a Uint8Array or a ContentSource.')
}
