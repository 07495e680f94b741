import type { IncomingMessage, ServerResponse } from 'node:http'
import { hasBody } from '../core/discard-body.ts'
import type { Exchange, HostRequest } from '../core/exchange.ts'
import { isPromise, type MaybePromise } from '../core/handler.ts'
import type { Handler } from '../core/node-handler.ts'
import { collectPending } from '../core/pending.ts'
import type { Reply } from '../core/reply.ts'
import { completeHeaders, setFields } from '../core/write-reply.ts'

/** As much of a Koa context as is used; Koa 2 and 3 have it. */
export interface KoaContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly originalUrl: string
  readonly request: { body?: unknown }
  /** Where a router has been. */
  readonly params?: Readonly<Record<string, string>>
  body: unknown
  status: number
  respond?: boolean
  remove(name: string): void
}

/** Koa middleware. */
export type KoaMiddleware = (context: KoaContext, next: () => Promise<unknown>) => unknown

/** Content above this size is written by us, so that a slow reader and a late failure are seen. */
const SMALL = 1024 * 1024

/**
 * Makes Koa middleware of a service or a piece.
 *
 * Small answers go through the context, so that other middleware can see and change them; streams, and answers to
 * content that is still arriving, are written directly. Unexpected errors are thrown to Koa where the handler forwards
 * them.
 * @example
 * app.use(mount('/api', koaMiddleware(service)))
 */
export function koaMiddleware(handler: Handler): KoaMiddleware {
  return (context, next) => {
    const req = context.req as IncomingMessage & { -readonly [Key in keyof HostRequest]: HostRequest[Key] }
    // Koa keeps both on its own objects.
    req.originalUrl ??= context.originalUrl
    if (context.params !== undefined) req.params = context.params
    if (req.body === undefined && context.request.body !== undefined) req.body = context.request.body
    const exchange = handler.createExchange(req, context.res)
    exchange.canPass = true
    const fail = (error: unknown): never => {
      throw keepPending(exchange, error)
    }
    const proceed = (reply: Reply | undefined): unknown => {
      if (reply !== undefined) return answer(context, exchange, reply, handler)
      if (exchange.isClosed) return undefined
      if (req.body !== undefined) context.request.body = req.body
      return next().catch(fail)
    }
    let reply: MaybePromise<Reply | undefined>
    try {
      reply = handler.handle(exchange)
    } catch (error) {
      return fail(error)
    }
    return isPromise(reply) ? reply.then(proceed, fail) : proceed(reply)
  }
}

/** Koa answers an error with no field but those of the error; what a piece has put on every answer has to be among them. */
function keepPending(exchange: Exchange, error: unknown): unknown {
  const fields = collectPending(exchange, '')
  if (fields.size === 0 || typeof error !== 'object' || error === null) return error
  const host = error as { headers?: Readonly<Record<string, unknown>> }
  return Object.assign(host, { headers: { ...Object.fromEntries(fields), ...host.headers } })
}

function answer(context: KoaContext, exchange: Exchange, reply: Reply, handler: Handler): unknown {
  const { body } = reply
  const isSmall = body === undefined || typeof body === 'string' || (body instanceof Uint8Array && body.length <= SMALL)
  const isWholeRequest = exchange.bodyState === 'read' || !hasBody(exchange.req)
  if (!isSmall || !isWholeRequest) return writeDirectly(context, exchange, reply, handler)
  const { res } = context
  const headers = completeHeaders(exchange, reply, String(res.getHeader('vary') ?? ''))
  // The content of a HEAD may not have been read at all.
  if (body === undefined || exchange.method === 'HEAD') {
    // Koa makes up a type for a body, and a body where there is none: the empty one comes first.
    context.body = ''
    context.status = reply.status
    removeContentFields(context)
    setFields(res, headers)
  } else {
    // A body leaves alone what is there already.
    context.status = reply.status
    setFields(res, headers)
    context.body = body
  }
  return undefined
}

/** Koa sets them for every body that it is given, also for one that another middleware meant to send. */
function removeContentFields(context: KoaContext): void {
  context.remove('Content-Type')
  context.remove('Content-Length')
}

function writeDirectly(context: KoaContext, exchange: Exchange, reply: Reply, handler: Handler): Promise<void> {
  removeContentFields(context)
  context.respond = false
  return new Promise((resolve, reject) => {
    const forward = (error: unknown): void => {
      context.respond = true
      reject(keepPending(exchange, error))
    }
    const writing = handler.write(exchange, reply, forward)
    if (writing === undefined) resolve()
    else writing.then(resolve)
  })
}
