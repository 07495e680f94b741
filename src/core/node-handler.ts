import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Activity } from './activity.ts'
import { connectionOf, isBehindLast, waitInPipeline } from './connection.ts'
import { noteError, publishTrace, requests, startTrace } from './diagnostics.ts'
import { HttpError, isHttpError } from './errors.ts'
import { Exchange } from './exchange.ts'
import { createErrorReplies, type ErrorHook, type ErrorOptions, readThrown, toHostError } from './failures.ts'
import type { Decision, Handler, HandlerRole, Next } from './handler.ts'
import { isPromise, type MaybePromise } from './maybe-promise.ts'
import { findPlace, type Place } from './place.ts'
import type { Reply } from './reply.ts'
import type { AnyRequest, AnyResponse } from './request-view.ts'
import { countAnswer, waitInSession } from './session-load.ts'
import { watchConnection, watchStream } from './stalled-reader.ts'
import { passOnPending, removeFields } from './write-head.ts'
import { writeReply } from './write-reply.ts'

/** Not a reply: the request goes on to the host. */
export const PASS: Reply = Object.freeze({ status: 0, headers: [] })

interface HandlerOptions<E extends Exchange> extends ErrorOptions {
  /** The decision itself. */
  readonly run: (exchange: E) => MaybePromise<Reply | undefined>
  /** Default: `endpoint`. */
  readonly role?: HandlerRole
  /** Default: all of an endpoint, none of a guard. */
  readonly methods?: readonly string[]
  /** See `Handler.isWellKnown`. Default: none. */
  readonly isWellKnown?: ((target: string) => boolean) | undefined
  /** Default: the exchange that all middleware on one request shares. */
  readonly createExchange?: (req: IncomingMessage, res: ServerResponse, place: Place) => E
  /** Counts decisions that are being made, and content that is being sent. */
  readonly activity?: Activity
}

/** Puts a node face on a decision: errors become replies, replies are written, and what is left goes to `next`. */
export function createHandler<E extends Exchange>(given: HandlerOptions<E>): Handler {
  const options: HandlerOptions<E> = Object.assign(Object.create(null), given)
  const { run, role = 'endpoint', activity, forwardErrors, isWellKnown } = options
  const { report, replyTo, format, abandon, isForwarded } = createErrorReplies(options)
  const create: (req: IncomingMessage, res: ServerResponse, place: Place) => Exchange =
    options.createExchange ?? sharedExchange
  const onLateFailure: ErrorHook = (error, exchange) => report(error, exchange, 'late')

  function takesErrors(next: Next | undefined): next is Next {
    return next !== undefined && (forwardErrors === 'always' || next.length > 0)
  }

  function decide(exchange: Exchange): MaybePromise<Decision> {
    const decision = runWithRoom(exchange)
    if (!isPromise(decision)) return conclude(exchange, decision)
    // What is decided in one turn need not be counted.
    activity?.begin(exchange)
    return Promise.resolve(decision).then(
      (decision) => conclude(exchange, decision),
      (error) => conclude(exchange, fail(exchange, error)),
    )
  }

  /** Waits while too many answers wait before this one. */
  function runWithRoom(exchange: Exchange): MaybePromise<Decision> {
    if (requests.hasSubscribers) startTrace(exchange)
    const room = exchange.isHttp2 ? waitInSession(exchange) : waitInPipeline(exchange)
    if (room !== undefined) return room.then(() => runUnlessEnded(exchange))
    try {
      return runUnlessEnded(exchange)
    } catch (error) {
      return fail(exchange, error)
    }
  }

  function runUnlessEnded(exchange: Exchange): MaybePromise<Decision> {
    return !exchange.isHttp2 && isBehindLast(exchange) ? 'gone' : run(exchange as E)
  }

  /** The request is decided: those that wait for it go on, and nothing waits for it. */
  function release(exchange: Exchange): void {
    if (activity !== undefined && (exchange.activityIndex >= 0 || activity.isDraining)) activity.end(exchange)
    exchange.inFlight?.decided()
  }

  function conclude(exchange: Exchange, decision: Decision): Decision {
    try {
      release(exchange)
      if (decision !== undefined && decision !== PASS) {
        if (decision === 'gone') return decision
        if (exchange.trace !== undefined) publishTrace(exchange, decision.status)
        expectAnswer(exchange, decision.body)
        return decision
      }
      if (exchange.isClosed || exchange.res.writableEnded) return 'gone'
      if (exchange.isHttp2) countAnswer(exchange, undefined)
      passOnPending(exchange)
      return undefined
    } catch (failure) {
      return abandon(exchange, failure)
    }
  }

  function fail(exchange: Exchange, thrown: unknown): Decision {
    const error = readThrown(thrown)
    if (isForwarded(error, exchange)) {
      release(exchange)
      passOnPending(exchange)
      throw toHostError(error)
    }
    noteError(exchange, error)
    return replyTo(error, exchange)
  }

  function write(exchange: Exchange, reply: Reply, next?: Next): undefined | Promise<void> {
    let writing: undefined | Promise<void>
    try {
      writing = writeReply(exchange, reply, onLateFailure)?.catch((error) => recover(exchange, reply, error, next))
    } catch (error) {
      return recover(exchange, reply, error, next)
    }
    if (writing === undefined || activity === undefined) return writing
    activity.begin(exchange)
    return writing.finally(() => activity.end(exchange))
  }

  /** The reply could not be written: a source that failed before its first byte, or a field that no message may hold. */
  function recover(exchange: Exchange, failed: Reply, thrown: unknown, next: Next | undefined): undefined {
    const { res } = exchange
    const error = readThrown(thrown)
    if (!res.headersSent) removeFields(res, failed.headers)
    if (takesErrors(next) && !res.headersSent && isForwarded(error, exchange)) {
      passOnPending(exchange)
      return void next(toHostError(error))
    }
    // Content that is lost or away: the state was read, so no call of the store has failed. After the head it is an error of
    // middleware that wraps the methods that write.
    const isLost = isHttpError(error) && error.status >= 500 && error.cause !== undefined
    if (isLost || res.headersSent) report(error, exchange, 'late')
    const reply = res.headersSent ? 'gone' : replyTo(error, exchange)
    if (reply === 'gone') return void exchange.breakOff()
    try {
      writeReply(exchange, reply, onLateFailure)?.catch(() => exchange.breakOff())
    } catch {
      exchange.breakOff()
    }
  }

  function send(exchange: Exchange, decision: Decision, next: Next | undefined): void {
    if (decision === 'gone') return
    if (decision !== undefined) write(exchange, decision, next)
    else if (next !== undefined) next()
    else write(exchange, format(new HttpError(404, 'ERR_NOT_FOUND'), exchange))
  }

  /** Errors that are the host's: without a host to take them they are answered all the same. */
  function refuse(exchange: Exchange, error: unknown, next: Next | undefined): void {
    if (takesErrors(next)) return next(error)
    const reply = replyTo(error, exchange)
    if (reply === 'gone') return exchange.breakOff()
    expectAnswer(exchange, reply.body)
    write(exchange, reply)
  }

  function respond(exchange: Exchange, next?: Next): void {
    exchange.canPass = next !== undefined
    let decision: MaybePromise<Decision>
    try {
      decision = decide(exchange)
    } catch (error) {
      return refuse(exchange, error, next)
    }
    if (!isPromise(decision)) return send(exchange, decision, next)
    decision.then(
      (decision) => send(exchange, decision, next),
      (error) => refuse(exchange, error, next),
    )
  }

  function createExchange(req: AnyRequest, res: AnyResponse, place?: Place): Exchange {
    const request = req as IncomingMessage
    return create(request, res as ServerResponse, place ?? findPlace(request))
  }

  const handler = (req: AnyRequest, res: AnyResponse, next?: Next): void => {
    checkResponse(res)
    respond(createExchange(req, res), next)
  }
  const methods = options.methods ?? (role === 'endpoint' ? undefined : [])
  return Object.assign(handler, { role, methods, isWellKnown, createExchange, decide, write, respond })
}

/** @throws TypeError for what a host passes that needs an adapter: a context and `next`, an instance and options */
export function checkResponse(res: AnyResponse): void {
  if (typeof (res as Partial<AnyResponse> | undefined)?.writeHead === 'function') return
  throw new TypeError(
    'A service or a standalone middleware takes (req, res, next) of node:http. Koa needs koaMiddleware(service), ' +
      'Fastify fastifyPlugin(service), Hono honoMiddleware(service), another host createAdapter.',
  )
}

const EXCHANGE = Symbol.for('http-resource-service.exchange')

/** The exchange that all middleware mounted on one request shares: made by the first, and placed anew by each. */
export function sharedExchange(req: IncomingMessage, res: ServerResponse, place: Place = findPlace(req)): Exchange {
  const host = req as IncomingMessage & { [EXCHANGE]?: Exchange }
  const known = host[EXCHANGE]
  if (known !== undefined) {
    known.place = place
    known.mount = place.mount
    known.takeRequest()
    return known
  }
  const exchange = new Exchange(req, res, place)
  host[EXCHANGE] = exchange
  return exchange
}

/** The exchange that a middleware made on this request, if one ran before us. */
export function findExchange(req: IncomingMessage): Exchange | undefined {
  return (req as IncomingMessage & { [EXCHANGE]?: Exchange })[EXCHANGE]
}

/** Sees to it that a client that does not read the answer is given up. */
function expectAnswer(exchange: Exchange, body: Reply['body']): void {
  if (exchange.isHttp2) {
    countAnswer(exchange, body)
    return watchStream(exchange)
  }
  const { socket } = exchange.req
  const connection = connectionOf(socket)
  connection.answer = exchange.res
  connection.idleTimeout = exchange.idleTimeout
  if (!connection.isWatched) watchConnection(socket, connection, exchange.slowestReader)
}
