import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Handler } from '../core/node-handler.ts'
import { readOptions } from '../core/options.ts'
import { checkPrefix, decideBelow } from './mount.ts'

/** As much of a Hono context as is used. */
export interface HonoContext {
  readonly env: unknown
  readonly res: { readonly headers: Headers }
}

/** Hono middleware. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>

export interface HonoOptions {
  /** Where the middleware is mounted, such as `/api` for `app.use('/api/*', ...)`. Default: the root. */
  readonly prefix?: string
}

/** How `@hono/node-server` learns that an answer has been written to the socket already. */
const ALREADY_SENT = { 'x-hono-already-sent': 'true' }

/**
 * Makes Hono middleware of a service or a piece, for Hono on `@hono/node-server`.
 *
 * Answers are written to the response of `node:http`, with the fields that earlier middleware has set; requests that the
 * service has no resource for go on to the next middleware.
 * @throws TypeError for a prefix that does not start with a slash, or ends with one; when used on another runtime
 * @example
 * app.use('/api/*', honoMiddleware(service, { prefix: '/api' }))
 */
export function honoMiddleware(handler: Handler, options: HonoOptions = {}): HonoMiddleware {
  const { prefix = '' } = readOptions('honoMiddleware', options, ['prefix'])
  checkPrefix('honoMiddleware', prefix)
  return async (context, next) => {
    const { incoming: req, outgoing: res } = (context.env ?? {}) as {
      incoming?: IncomingMessage
      outgoing?: ServerResponse
    }
    if (req === undefined || res === undefined) {
      throw new TypeError('honoMiddleware runs on @hono/node-server only: there is no request of node:http here.')
    }
    const decision = decideBelow(prefix, handler, req, res)
    if (decision === undefined) return void (await next())
    const reply = await decision.reply
    if (reply !== undefined) {
      // One entry for each cookie: setting would keep the last.
      for (const [name, value] of context.res.headers) res.appendHeader(name, value)
      await handler.write(decision.exchange, reply)
    } else if (!decision.exchange.isClosed) return void (await next())
    const sent = new Response(null, { headers: ALREADY_SENT })
    // Until somebody asks for its body, the Response that @hono/node-server puts in place of the global one is sent from
    // a cache whatever the field says: a second head on this connection, which then breaks.
    void sent.body
    return sent
  }
}
