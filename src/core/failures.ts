import { inspect } from 'node:util'
import { type FailureEvent, formatLogText, publishFailure, writeToConsole } from './diagnostics.ts'
import { completeReply, createErrorReply, forHttp2, toHttpError } from './error-reply.ts'
import { HttpError, RequestAborted } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { atOnce, orElse } from './maybe-promise.ts'
import type { Reply } from './reply.ts'

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
export interface ErrorReplies {
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
