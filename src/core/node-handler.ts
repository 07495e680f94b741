import type { IncomingMessage, ServerResponse } from 'node:http'
import { noteError, publishFailure, publishTrace, startTrace } from './diagnostics.ts'
import { createErrorReply, toHttpError } from './error-reply.ts'
import { HttpError, RequestAborted } from './errors.ts'
import { type AnyRequest, type AnyResponse, type Exchange, sharedExchange } from './exchange.ts'
import { isPromise, type MaybePromise } from './handler.ts'
import { passOnPending } from './pending.ts'
import type { Reply } from './reply.ts'
import { type WriteOptions, writeReply } from './write-reply.ts'

/** What a handler calls when the request is not for it, or, with an error, when it failed. */
export type Next = (error?: unknown) => void

/**
 * A piece or a service: a function on `(req, res, next)` for every host that speaks `node:http`, and a decision that
 * adapters for other hosts can ask for.
 */
export interface Handler {
  (req: AnyRequest, res: AnyResponse, next?: Next): void
  /** Decides on a request without writing anything; `undefined` when the request is not for this handler. */
  handle(exchange: Exchange): MaybePromise<Reply | undefined>
  /** Makes the exchange that `handle` takes. */
  createExchange(req: AnyRequest, res: AnyResponse): Exchange
  /**
   * Writes what was decided. A reply whose content cannot be read is still a clean 500.
   * @param next takes unexpected errors, where the handler forwards them
   * @returns a promise only for content that takes time; it never rejects
   */
  write(exchange: Exchange, reply: Reply, next?: Next): undefined | Promise<void>
}

/** Not a reply: the request is the host's. What the host does with it is its own affair. */
export const PASS: Reply = Object.freeze({ status: 0, headers: [] })

/** The failure of a request, seen by the operator. */
export type ErrorHook = (error: unknown, exchange: Exchange) => void

export interface HandlerOptions<E extends Exchange> {
  /** The decision itself. */
  readonly run: (exchange: E) => MaybePromise<Reply | undefined>
  /** Default: the exchange that pieces on one request share. */
  readonly createExchange?: (req: IncomingMessage, res: ServerResponse) => E
  /** Told of unexpected errors, which the client never sees. Default: `console.error`. */
  readonly onError?: ErrorHook | undefined
  /** Makes the reply for an error. Default: {@link createErrorReply}. */
  readonly formatError?: ((error: HttpError, exchange: Exchange) => Reply) | undefined
  /** Whether unexpected errors go to the host's `next(error)` where there is one. */
  readonly forwardErrors: boolean
}

const logError: ErrorHook = (error, exchange) => {
  console.error(`http-resource-service: ${exchange.method} ${exchange.mount}${exchange.path} failed:`, error)
}

/** Puts a node face on a decision: errors become replies, replies are written, and what is left goes to `next`. */
export function createHandler<E extends Exchange>(options: HandlerOptions<E>): Handler {
  const { run, onError = logError, formatError = createErrorReply, forwardErrors } = options
  const create = options.createExchange ?? (sharedExchange as (req: IncomingMessage, res: ServerResponse) => E)
  const writeOptions: WriteOptions = {
    onLateFailure: (error, exchange) => report(error, exchange, 'late'),
  }

  function report(error: unknown, exchange: Exchange, stage: 'request' | 'late'): void {
    publishFailure({ error, stage, exchange })
    try {
      const told: unknown = onError(error, exchange)
      if (isPromise(told)) told.then(undefined, (failure) => logError(failure, exchange))
    } catch (failure) {
      // Whoever is told of failures must not cause another: the request still has to be answered.
      logError(failure, exchange)
    }
  }

  /** The reply for an error, or the error itself where the host shall have it. */
  function replyTo(error: unknown, exchange: Exchange): Reply | undefined {
    if (error instanceof RequestAborted) {
      exchange.breakOff()
      return undefined
    }
    const known = toHttpError(error)
    if (known.status >= 500 && known !== error) report(error, exchange, 'request')
    try {
      return formatError(known, exchange)
    } catch (formatFailure) {
      report(formatFailure, exchange, 'request')
      return createErrorReply(new HttpError(500, 'ERR_INTERNAL'), exchange)
    }
  }

  function isForwarded(error: unknown): boolean {
    return forwardErrors && !(error instanceof RequestAborted) && toHttpError(error) !== error
  }

  function handle(exchange: Exchange): MaybePromise<Reply | undefined> {
    const reply = decide(exchange)
    if (!isPromise(reply)) return conclude(exchange, reply)
    return reply.then(
      (reply) => conclude(exchange, reply),
      (error) => conclude(exchange, fail(exchange, error)),
    )
  }

  function decide(exchange: Exchange): MaybePromise<Reply | undefined> {
    startTrace(exchange)
    try {
      return run(exchange as E)
    } catch (error) {
      return fail(exchange, error)
    }
  }

  function conclude(exchange: Exchange, reply: Reply | undefined): Reply | undefined {
    exchange.undecided?.decided()
    if (reply === PASS) return undefined
    if (reply !== undefined) publishTrace(exchange, reply.status)
    return reply
  }

  function fail(exchange: Exchange, error: unknown): Reply | undefined {
    if (isForwarded(error)) {
      exchange.undecided?.decided()
      passOnPending(exchange)
      throw error
    }
    noteError(exchange, error)
    return replyTo(error, exchange)
  }

  function write(exchange: Exchange, reply: Reply, next?: Next): undefined | Promise<void> {
    try {
      return writeReply(exchange, reply, writeOptions)?.catch((error) => recover(exchange, error, next))
    } catch (error) {
      return recover(exchange, error, next)
    }
  }

  /** The reply could not be written: a source that failed before its first byte, or a field that no message may hold. */
  function recover(exchange: Exchange, error: unknown, next: Next | undefined): undefined {
    const { res } = exchange
    if (next !== undefined && !res.headersSent && isForwarded(error)) {
      passOnPending(exchange)
      return void next(error)
    }
    const reply = res.headersSent ? undefined : replyTo(error, exchange)
    if (reply === undefined) return void exchange.breakOff()
    try {
      writeReply(exchange, reply, writeOptions)?.catch(() => exchange.breakOff())
    } catch {
      exchange.breakOff()
    }
  }

  function send(exchange: Exchange, reply: Reply | undefined, next: Next | undefined): void {
    if (reply !== undefined) write(exchange, reply, next)
    else if (exchange.isClosed || exchange.res.writableEnded) return
    else if (next !== undefined) next()
    else write(exchange, formatError(new HttpError(404, 'ERR_NOT_FOUND'), exchange))
  }

  function sendFailure(exchange: Exchange, error: unknown, next: Next | undefined): void {
    let reply: Reply | undefined
    try {
      reply = fail(exchange, error)
    } catch (error) {
      return refuse(exchange, error, next)
    }
    send(exchange, conclude(exchange, reply), next)
  }

  /** Errors that are the host's: with nobody to take them they are answered all the same. */
  function refuse(exchange: Exchange, error: unknown, next: Next | undefined): void {
    if (next !== undefined) return next(error)
    const reply = replyTo(error, exchange)
    if (reply === undefined) exchange.breakOff()
    else write(exchange, reply)
  }

  const handler = (req: AnyRequest, res: AnyResponse, next?: Next): void => {
    const exchange = handler.createExchange(req, res)
    exchange.canPass = next !== undefined
    let reply: MaybePromise<Reply | undefined>
    try {
      reply = decide(exchange)
    } catch (error) {
      return refuse(exchange, error, next)
    }
    if (!isPromise(reply)) return send(exchange, conclude(exchange, reply), next)
    reply.then(
      (reply) => send(exchange, conclude(exchange, reply), next),
      (error) => sendFailure(exchange, error, next),
    )
  }
  handler.handle = handle
  handler.write = write
  handler.createExchange = (req: AnyRequest, res: AnyResponse): Exchange =>
    create(req as IncomingMessage, res as ServerResponse)
  return handler
}
