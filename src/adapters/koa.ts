import type { IncomingMessage, ServerResponse } from 'node:http'
import { checkHandler, type Handler } from '../core/handler.ts'
import type { HostRequest } from '../core/request-view.ts'
import { removeContentFields } from '../core/write-head.ts'
import { mergeVary } from '../protocol/field-value.ts'
import { createAdapter, type HostAnswer, type HostFields } from './create-adapter.ts'
import { checkPrefix, mount, readPrefix } from './node.ts'

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
}

/** Koa middleware. */
export type KoaMiddleware = (context: KoaContext, next: () => Promise<unknown>) => unknown

/** Options of `koaMiddleware`. */
export interface KoaOptions {
  /**
   * A path prefix, with every spelling of it, as `mount` takes one: `koa-mount` knows one spelling only, and a guard behind
   * it does not see the others. Default: the root, or where `koa-mount` has mounted the middleware.
   */
  readonly prefix?: string
}

const adapt = createAdapter<KoaContext, unknown>({
  name: 'koaMiddleware',
  request: ({ req }) => req,
  response: ({ res }) => res,
  params: ({ params }) => params,
  answer,
  release(context) {
    context.respond = false
  },
  takeBack(context) {
    context.respond = true
  },
  setField: ({ res }, name, value) => void res.setHeader(name, value),
  fail(context, error, fields) {
    throw keepFields(context, error, fields)
  },
})

/**
 * Makes Koa middleware of a service or a standalone middleware.
 *
 * Small responses go through the context, so that other middleware can see and change them; streams, and responses to
 * content that is still arriving, are written directly. Unexpected errors are thrown to Koa where the handler forwards
 * them.
 * @throws TypeError for anything but a service or a standalone middleware, and for a prefix that could never match
 * @example
 * app.use(koaMiddleware(service, { prefix: '/api' }))
 */
export function koaMiddleware(handler: Handler, options: KoaOptions = {}): KoaMiddleware {
  checkHandler('koaMiddleware', handler)
  const prefix = checkPrefix('koaMiddleware', readPrefix('koaMiddleware', options), 'prefix')
  const serve = adapt(mount(prefix, handler))
  return (context, next) => {
    // Koa keeps both on its own objects.
    const req = context.req as IncomingMessage & { -readonly [Key in keyof HostRequest]: HostRequest[Key] }
    req.originalUrl ??= context.originalUrl
    if (req.body === undefined && context.request.body !== undefined) req.body = context.request.body
    return serve(context, () => {
      if (req.body !== undefined) context.request.body = req.body
      return next()
    })
  }
}

type ErrorHeaders = Readonly<Record<string, unknown>> | null | undefined

/** Headers that were put on an error: the response that they are for, and the headers that the error had of its own. */
const madeHeaders = new WeakMap<object, { readonly res: ServerResponse; readonly own: ErrorHeaders }>()

/**
 * Koa answers an error with no field but those of the error; what a middleware has put on every answer has to be among
 * them. Of two values one counts, but Vary has the names of both. A program may throw one error for many requests: what was put
 * on it for another response is not for this one.
 */
function keepFields({ res }: KoaContext, error: unknown, fields: HostFields): unknown {
  if (typeof error !== 'object' || error === null) return error
  const host = error as { headers?: ErrorHeaders }
  const made = host.headers ? madeHeaders.get(host.headers) : undefined
  if (fields.size === 0 && made === undefined) return error
  const own = made === undefined ? host.headers : made.own
  const present = made?.res === res ? host.headers : own
  const headers: Record<string, unknown> = { ...Object.fromEntries(fields), ...present }
  const vary = Object.keys(present ?? {}).find((name) => name.toLowerCase() === 'vary')
  if (vary !== undefined) headers[vary] = mergeVary(String(fields.get('Vary') ?? ''), String(headers[vary] ?? ''))
  madeHeaders.set(headers, { res, own })
  return Object.assign(host, { headers })
}

function answer(context: KoaContext, { status, fields, body }: HostAnswer): undefined {
  // Koa makes up a type for a body, and a body where there is none: the empty one comes first.
  if (body === undefined) context.body = ''
  context.status = status
  // Koa sets some for every body that it is given, also for one that another middleware meant to send.
  removeContentFields(context.res)
  for (const [name, value] of fields) context.res.setHeader(name, value)
  // A body leaves alone what is there already.
  if (body !== undefined) context.body = body
}
