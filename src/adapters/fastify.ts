import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import { isPromise } from '../core/handler.ts'
import type { Handler } from '../core/node-handler.ts'
import type { Reply } from '../core/reply.ts'
import { type Decision, decideBelow } from './mount.ts'

/** As much of a Fastify request as is used. */
export interface FastifyRequestLike {
  readonly raw: object
}

/** As much of a Fastify reply as is used. */
export interface FastifyReplyLike {
  readonly raw: object
  hijack(): unknown
  callNotFound(): unknown
  getHeaders(): Record<string, unknown>
}

type Done = (error?: Error) => void

/** As much of a Fastify instance as is used; Fastify 5 has it. */
export interface FastifyInstanceLike {
  readonly prefix: string
  readonly supportedMethods: string[]
  addHttpMethod(method: string, options?: { hasBody: boolean }): unknown
  addHook(name: 'onRequest', hook: (request: FastifyRequestLike, reply: FastifyReplyLike, done: Done) => void): unknown
  route(options: {
    method: string[]
    url: string
    handler: (request: FastifyRequestLike, reply: FastifyReplyLike) => unknown
  }): unknown
}

/** A Fastify plugin: `app.register(plugin, { prefix })`. */
export type FastifyPlugin = (instance: FastifyInstanceLike, options: object, done: Done) => void

/**
 * Makes a Fastify plugin of a service or a piece; the prefix is that of `register`.
 *
 * It answers in its own `onRequest` hook: hooks of the surrounding application run before it, Fastify's content parsers
 * and its body limit do not, so that content reaches the service as it comes. Requests that the service has no
 * resource for end in Fastify's own 404. Unexpected errors go to Fastify's error handler where the service forwards them.
 * @example
 * await app.register(fastifyPlugin(service), { prefix: '/api' })
 */
export function fastifyPlugin(handler: Handler): FastifyPlugin {
  return (instance, _options, done) => {
    const { prefix } = instance
    // A method that Fastify does not know never reaches a plugin; 501 and 405 are the service's to say.
    for (const method of METHODS) {
      if (method !== 'CONNECT' && !instance.supportedMethods.includes(method)) {
        instance.addHttpMethod(method, { hasBody: true })
      }
    }

    instance.addHook('onRequest', (request, reply, done) => {
      const req = request.raw as IncomingMessage
      const res = reply.raw as ServerResponse
      let decision: Decision | undefined
      try {
        decision = decideBelow(prefix, handler, req, res)
      } catch (error) {
        return done(error as Error)
      }
      if (decision === undefined) return done()
      const { exchange } = decision
      const answer = (decided: Reply | undefined): void => {
        if (decided === undefined) return exchange.isClosed ? void reply.hijack() : done()
        reply.hijack()
        // What other hooks have set, CORS for instance, lives on Fastify's reply only.
        for (const [name, value] of Object.entries(reply.getHeaders())) {
          if (value !== undefined) res.setHeader(name, value as string)
        }
        handler.write(exchange, decided)
      }
      if (isPromise(decision.reply)) decision.reply.then(answer, done)
      else answer(decision.reply)
    })

    const method = instance.supportedMethods.slice()
    const notFound = (_request: FastifyRequestLike, reply: FastifyReplyLike): unknown => reply.callNotFound()
    instance.route({ method, url: '/*', handler: notFound })
    if (prefix !== '') instance.route({ method, url: '/', handler: notFound })
    done()
  }
}
