import type { IncomingMessage } from 'node:http'
import type { Handler } from '../core/handler.ts'
import { createHandler } from '../core/node-handler.ts'
import type { HostRequest } from '../core/request-view.ts'
import { overrideMethod } from './override-method.ts'

/**
 * Standalone middleware that lets a POST with X-HTTP-Method-Override stand for PUT, PATCH or DELETE, for clients
 * behind something that lets only GET and POST through. Mount it before CORS, authentication and routes.
 * @returns a handler for Express and Connect; it changes `req.method`, and keeps what was sent as `req.originalMethod`
 * @example
 * app.use(methodOverride())
 */
export function methodOverride(): Handler
export function methodOverride(...options: unknown[]): Handler {
  if (options.length > 0) throw new TypeError('methodOverride takes no options: methodOverride().')
  return createHandler({
    role: 'method-override',
    run(exchange) {
      overrideMethod(exchange)
      const req = exchange.req as IncomingMessage & HostRequest
      if (exchange.method !== req.method) {
        req.originalMethod ??= req.method as string
        req.method = exchange.method
      }
      return undefined
    },
    forwardErrors: true,
  })
}
