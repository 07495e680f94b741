import type { IncomingMessage, ServerResponse } from 'node:http'
import { readField } from '../core/fields.ts'
import { checkHandler, type Handler } from '../core/handler.ts'
import type { HostRequest } from '../core/request-view.ts'
import { CONTENT_FIELDS, removeContentFields } from '../core/write-head.ts'
import { isJsonType, parseMediaType } from '../protocol/media-type.ts'
import { createAdapter, type HostAnswer } from './create-adapter.ts'
import { checkPrefix, mount, readPrefix } from './node.ts'

/** As much of a Hono context as is used. */
export interface HonoContext {
  readonly env: unknown
  /** Whether `res` is what is going to be sent; where one handler alone matches, it never is. */
  readonly finalized: boolean
  readonly res: { readonly headers: Headers; readonly body: unknown }
  readonly req: {
    param(): Record<string, string>
    arrayBuffer(): Promise<ArrayBuffer>
    readonly bodyCache: object
    readonly raw: { readonly body: unknown }
  }
  header(name: string, value?: string, options?: { append?: boolean }): void
  body(data: Uint8Array<ArrayBuffer> | string | null, status?: never): Response
}

/** Hono middleware. */
export type HonoMiddleware = (context: HonoContext, next: () => Promise<void>) => Promise<Response | undefined>

/** Options of `honoMiddleware`. */
export interface HonoOptions {
  /**
   * Where the middleware is mounted, such as `/api` for `app.use('/api/*', ...)`: the whole path, that of applications around
   * included; see `mount`. Default: the root.
   */
  readonly prefix?: string
}

/** What `@hono/node-server` puts into the environment: both, or on another runtime neither. */
interface NodeBindings {
  readonly incoming?: IncomingMessage & HostRequest
  readonly outgoing: ServerResponse
}

function bindingsOf({ env }: HonoContext): NodeBindings {
  return (env ?? {}) as NodeBindings
}

const adapt = createAdapter<HonoContext, Response | undefined>({
  name: 'honoMiddleware',
  routesFirst: true,
  request(context) {
    const { incoming } = bindingsOf(context)
    if (incoming !== undefined) return incoming
    throw new TypeError('honoMiddleware runs on @hono/node-server only: there is no request of node:http here.')
  },
  response: (context) => bindingsOf(context).outgoing,
  params: ({ req }) => req.param(),
  field: ({ res }, name) => res.headers.get(name) ?? undefined,
  setField: (context, name, value) => context.header(name, value),
  answer,
  release(context, status) {
    const { outgoing } = bindingsOf(context)
    // One entry for each cookie: setting would keep the last.
    if (!outgoing.headersSent) {
      for (const [name, value] of context.res.headers) outgoing.appendHeader(name, value)
    }
    refuseOthers(outgoing)
    return createSentResponse(status)
  },
})

/**
 * Makes Hono middleware of a service or a standalone middleware, for Hono on `@hono/node-server`.
 *
 * Small responses are the Response that Hono gives to the middleware around, as for any route; streams, and responses to content
 * that is still arriving, are written to the response of `node:http`, and the middleware around sees their status. Requests that
 * the service has no resource for go on to the next middleware.
 * @throws TypeError for anything but a service or a standalone middleware, for `methodOverride`, which Hono's router
 *   does not wait for, and for a prefix that could never match; when used on another runtime
 * @example
 * app.use('/api/*', honoMiddleware(service, { prefix: '/api' }))
 */
export function honoMiddleware(handler: Handler, options: HonoOptions = {}): HonoMiddleware {
  checkHandler('honoMiddleware', handler)
  const given = readPrefix('honoMiddleware', options)
  // The pattern of the route, for the prefix of it.
  const path = typeof given === 'string' ? given.replace(/\/\*$/, '') : given
  const serve = adapt(mount(checkPrefix('honoMiddleware', path, 'prefix'), handler))
  return async (context, next) => {
    if (handler.role === 'endpoint' && isOpened(context)) await takeContent(context)
    return serve(context, async () => {
      if (handler.role === 'body-parser') leaveBody(context)
      await next()
      return undefined
    })
  }
}

function answer(context: HonoContext, { status, fields, body }: HostAnswer): Response {
  const { outgoing } = bindingsOf(context)
  for (const name of CONTENT_FIELDS) context.header(name, undefined)
  removeContentFields(outgoing)
  for (const [name, value] of fields) {
    if (typeof value === 'string') context.header(name, value)
    // A Response would join them.
    else outgoing.setHeader(name, value)
  }
  const response = context.body((body ?? null) as string | Uint8Array<ArrayBuffer> | null, status as never)
  const length = fields.get('Content-Length')
  if (length !== undefined) limitLength(context, response, String(length))
  return response
}

/**
 * Takes the length of an answer off every other one: Hono puts the fields of a Response on the one that middleware or the
 * error handler makes in its place, and the next answer on the connection could not be found.
 */
function limitLength(context: HonoContext, response: Response, length: string): void {
  const { outgoing } = bindingsOf(context)
  const writeHead = outgoing.writeHead as (status: number, ...rest: unknown[]) => ServerResponse
  outgoing.writeHead = (status: number, ...rest: unknown[]) => {
    const { res, finalized } = context
    // Middleware that adds a field makes another Response of the same content.
    const isOther = finalized && res !== response && res.body !== response.body
    return writeHead.call(outgoing, status, ...(isOther ? rest.map((fields) => omitLength(fields, length)) : rest))
  }
}

function omitLength(fields: unknown, length: string): unknown {
  const isOurs = ([name, value]: [string, unknown]) => /^content-length$/i.test(name) && String(value) === length
  return Object.fromEntries(Object.entries(fields as object).filter((field) => !isOurs(field)))
}

/**
 * A Response that tells `@hono/node-server` that the answer has been written. Until somebody asks for its body, the Response
 * that it puts in place of the global one is sent from a cache whatever the field says: a second head on this connection,
 * which then breaks.
 */
function createSentResponse(status: number): Response {
  const init = { headers: { 'x-hono-already-sent': 'true' }, ...(status >= 200 && { status }) }
  const sent = new Response(null, init)
  void sent.body
  return sent
}

/**
 * Keeps what is written from now on free of every other answer. For a Response in its place, that of `timeout()` for instance,
 * `@hono/node-server` calls `writeHead`, and adds the text of the error to the content that is under way, unless the code of
 * the error says that the client has left.
 */
function refuseOthers(outgoing: ServerResponse): void {
  const writeHead = outgoing.writeHead as (...values: unknown[]) => ServerResponse
  outgoing.writeHead = (...values: unknown[]) => {
    if (!outgoing.headersSent) return writeHead.apply(outgoing, values)
    throw Object.assign(new Error('The answer has been sent.'), { code: 'ERR_STREAM_PREMATURE_CLOSE' })
  }
}

/**
 * Whether middleware before has opened the content, as `bodyLimit()` does: its stream takes the first of it, and then holds up
 * the rest. What middleware has made of it (`context.req.text()`) is not always what was sent, and stays where it is.
 */
function isOpened(context: HonoContext): boolean {
  const { incoming } = bindingsOf(context)
  const { raw, bodyCache } = context.req
  if (incoming === undefined || incoming.body !== undefined || Object.keys(bodyCache).length > 0) return false
  const symbols = Object.getOwnPropertySymbols(raw)
  // What `@hono/node-server` makes of a request for those who ask for its content; to ask would make it.
  const isMade = symbols.some(({ description }) => description === 'requestCache')
  const isReplaced = !symbols.some((symbol) => Reflect.get(raw, symbol) === incoming)
  return (isMade || isReplaced) && raw.body !== null
}

/** Takes the content from Hono, which keeps it for those who come later. */
async function takeContent(context: HonoContext): Promise<void> {
  try {
    bindingsOf(context).incoming!.body = Buffer.from(await context.req.arrayBuffer())
  } catch {
    // It is gone, or has broken off: the handler says so.
  }
}

/** What `bodyParse` has read is what `context.req` gives: the content itself is gone. */
function leaveBody(context: HonoContext): void {
  const { incoming } = bindingsOf(context)
  const body = incoming?.body
  if (body === undefined || (typeof body === 'object' && body !== null && Symbol.asyncIterator in body)) return
  const type = parseMediaType(readField(incoming!.headers, 'content-type') ?? '')?.essence ?? ''
  const text = isJsonType(type) ? JSON.stringify(body) : typeof body === 'string' ? body : formatForm(body as object)
  Object.assign(context.req.bodyCache, { text: Promise.resolve(text) })
}

function formatForm(fields: object): string {
  const pairs = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    for (const text of [value].flat()) pairs.append(name, String(text))
  }
  return pairs.toString()
}
