import type { IncomingMessage, ServerResponse } from 'node:http'
import { viewOf } from '../core/byte-blocks.ts'
import type { Exchange } from '../core/exchange.ts'
import { checkHandler, type Decision, type Handler } from '../core/handler.ts'
import { isPromise, type MaybePromise } from '../core/maybe-promise.ts'
import { BOOLEAN, FUNCTION, TEXT, withDefault } from '../core/option-values.ts'
import { completeOptions, type OptionTable, resolveOptions } from '../core/options.ts'
import type { Reply } from '../core/reply.ts'
import { hasUnreadBody } from '../core/request-content.ts'
import type { AnyRequest, AnyResponse } from '../core/request-view.ts'
import { addClosing, collectPending, completeHeaders, hasPending } from '../core/write-head.ts'
import { isInOnePiece } from '../core/write-reply.ts'
import { formatCacheControl } from '../protocol/cache-control.ts'
import { isFieldValue, mergeVary } from '../protocol/field-value.ts'

/** Response fields by name. */
export type HostFields = ReadonlyMap<string, string | readonly string[]>

/** A complete response, for a host to send. */
export interface HostAnswer {
  readonly status: number
  /** By name; a field that is sent in several lines, as WWW-Authenticate may be, has a list. None of the host is among them. */
  readonly fields: HostFields
  /**
   * At most 1 MiB, on HTTP/2 16 KiB; text is ASCII, and bytes are a Buffer. `undefined` also for HEAD, whose Content-Length is
   * among the fields.
   */
  readonly body: string | Uint8Array | undefined
}

/**
 * How an adapter reaches a host.
 * @typeParam Context what the host hands to its middleware for one request
 * @typeParam Result what the host takes back from it
 */
export interface AdapterOptions<Context, Result> {
  /** The name of the function that is made; its TypeErrors begin with it. */
  readonly name: string
  /** The request of `node:http` or `node:http2`. */
  readonly request: (context: Context) => AnyRequest
  /** Its response. */
  readonly response: (context: Context) => AnyResponse
  /**
   * Tells the host that the response of Node is written directly, not by the host. Called before it is written; the
   * fields that the host keeps elsewhere have to be set on the response here.
   * @param status the status of the response; 0 when the client has left
   */
  readonly release: (context: Context, status: number) => Result
  /**
   * Sends a response through the host, so that what the host runs afterwards sees it. Streams, content above
   * 1 MiB (HTTP/2: 16 KiB), and responses to a request whose content is still arriving are written to the response of Node
   * even so. Default: every response is written to it.
   */
  readonly answer?: (context: Context, answer: HostAnswer) => Result
  /** The reverse of `release`, for a response that could not be begun; without it such a failure is answered 500. */
  readonly takeBack?: (context: Context) => void
  /** Fails the request with an unexpected error. Default: the error is thrown. @param fields are to be on the response */
  readonly fail?: (context: Context, error: unknown, fields: HostFields) => Result
  /** A field of the response that the host keeps elsewhere than on the response of Node. @param name in lower case */
  readonly field?: (context: Context, name: string) => string | undefined
  /**
   * Sets a field of the response when `next` is done, where the host has not begun to send it by then: for a host that sets Vary
   * anew, or keeps fields elsewhere. `auth` sets Cache-Control of the host before `next`, where that has to be `private`.
   * Default: none is set.
   */
  readonly setField?: (context: Context, name: string, value: string) => void
  /** The values that the router of the host has found in the path. Default: `params` of the request. */
  readonly params?: (context: Context) => Readonly<Record<string, string>> | undefined
  /** What hooks get as `hostContext`. Default: the context. */
  readonly hostContext?: (context: Context) => unknown
  /** Whether the host has chosen the route before the adapter runs. `methodOverride` is refused then. Default false. */
  readonly routesFirst?: boolean
}

/** Middleware of a host. @param next lets the request go on */
export type Adapted<Context, Result> = (context: Context, next: () => MaybePromise<Result>) => MaybePromise<Result>

const OPTIONS: OptionTable<AdapterOptions<never, unknown>> = {
  name: TEXT,
  request: FUNCTION,
  response: FUNCTION,
  release: FUNCTION,
  answer: FUNCTION,
  takeBack: FUNCTION,
  fail: FUNCTION,
  field: FUNCTION,
  setField: FUNCTION,
  params: FUNCTION,
  hostContext: FUNCTION,
  routesFirst: withDefault(BOOLEAN, false),
}

/** @throws TypeError for an option that is missing, misspelt or of the wrong type */
function readAdapter(given: AdapterOptions<never, unknown>): object {
  const read = resolveOptions('createAdapter', given, OPTIONS)
  for (const needed of ['name', 'request', 'response', 'release'] as const) {
    if (read[needed] === undefined) throw new TypeError(`createAdapter needs ${needed}: ${OPTIONS[needed].text}.`)
  }
  return Object.freeze(completeOptions(read, OPTIONS))
}

/** Fields of replies that are kept, by their list: grouping them anew costs a tenth of a small answer through Koa. */
const grouped = new WeakMap<readonly string[], HostFields | 'malformed'>()

function fieldsOf(reply: Reply, list: readonly string[]): HostFields | 'malformed' {
  if (reply.kept === undefined) return groupFields(list)
  let fields = grouped.get(list)
  if (fields === undefined) grouped.set(list, (fields = groupFields(list)))
  return fields
}

function groupFields(list: readonly string[]): HostFields | 'malformed' {
  const fields = new Map<string, string | readonly string[]>()
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i]!
    const value = list[i + 1]!
    if (!isFieldValue(value)) return 'malformed'
    const before = fields.get(name)
    fields.set(name, before === undefined ? value : [before, value].flat())
  }
  return fields
}

/**
 * Makes an adapter: a function that makes middleware of a host from a service or a standalone middleware. Those for
 * Koa, Fastify and Hono are made by it.
 *
 * The host has to run on the requests and responses of Node. Hosts that call `(req, res, next)` need no adapter. For a
 * prefix use `mount`.
 * @returns a function of a handler, which throws a TypeError for anything else
 * @example
 * // hapi: server.ext('onRequest', (request, h) => serve({ request, h }, () => h.continue))
 * const hapiExtension = createAdapter({
 *   name: 'hapiExtension',
 *   request: ({ request }) => request.raw.req,
 *   response: ({ request }) => request.raw.res,
 *   release: ({ h }) => h.abandon,
 * })
 * const serve = hapiExtension(mount('/api', service))
 */
export function createAdapter<Context, Result>(
  given: AdapterOptions<Context, Result>,
): (handler: Handler) => Adapted<Context, Result> {
  const options = readAdapter(given) as AdapterOptions<Context, Result>
  const { name, request, response, release, answer, takeBack, setField } = options

  function fail(context: Context, exchange: Exchange, error: unknown): Result {
    if (options.fail === undefined) throw error
    const fields = collectPending(exchange, '')
    // Koa drops what `auth` has said of caching, and caches may keep an error such as 404 that says nothing (RFC 9110 §15.1).
    if (exchange.sharing !== 'public') fields.set('Cache-Control', formatCacheControl(undefined, exchange.sharing))
    return options.fail(context, error, fields)
  }

  function writeDirectly(handler: Handler, context: Context, exchange: Exchange, reply: Reply): MaybePromise<Result> {
    const result = release(context, reply.status)
    let failure: { readonly error: unknown } | undefined
    const forward = (error: unknown): void => {
      takeBack?.(context)
      failure = { error }
    }
    const conclude = (): Result => (failure === undefined ? result : fail(context, exchange, failure.error))
    const writing = handler.write(exchange, reply, takeBack && forward)
    return writing === undefined ? conclude() : writing.then(conclude)
  }

  function send(handler: Handler, context: Context, exchange: Exchange, reply: Reply): MaybePromise<Result> {
    const { body } = reply
    // More is written to the response of Node, where the progress of a slow reader and a late failure are seen.
    const isLarge = body !== undefined && !isInOnePiece(exchange, body)
    if (answer === undefined || exchange.isBegun || isLarge || hasUnreadBody(exchange)) {
      return writeDirectly(handler, context, exchange, reply)
    }
    const list = completeHeaders(exchange, reply, varyOf(context, exchange))
    const fields = fieldsOf(reply, addClosing(exchange, list))
    // The writer knows what to do about a field that no message may hold; a host may fail half way through it.
    if (fields === 'malformed') return writeDirectly(handler, context, exchange, reply)
    const content = exchange.method === 'HEAD' ? undefined : body
    // Koa makes JSON of bytes that are not a Buffer.
    const bytes = content instanceof Uint8Array ? viewOf(content) : content
    return answer(context, { status: reply.status, fields, body: bytes })
  }

  /** The host may set fields anew, such as Vary: what it has set is merged with what every answer has to carry. */
  function complete(context: Context, exchange: Exchange, result: Result): Result {
    if (setField === undefined || !hasPending(exchange) || exchange.res.headersSent) return result
    for (const [name, value] of collectPending(exchange, varyOf(context, exchange))) {
      const key = name.toLowerCase()
      const known = options.field === undefined ? exchange.hostField(key) : options.field(context, key)
      if (name === 'Vary' || known === undefined) setField(context, name, String(value))
    }
    return result
  }

  /** Vary as it is on the answer so far: the host's own, and that of middleware on the response of Node. */
  function varyOf(context: Context, exchange: Exchange): string {
    return mergeVary(options.field?.(context, 'vary') ?? '', String(exchange.res.getHeader('vary') ?? ''))
  }

  function goOn(context: Context, exchange: Exchange, next: () => MaybePromise<Result>): MaybePromise<Result> {
    const result = next()
    if (!isPromise(result)) return complete(context, exchange, result)
    return Promise.resolve(result).then(
      (result) => complete(context, exchange, result),
      (error) => fail(context, exchange, error),
    )
  }

  return (handler) => {
    checkHandler(name, handler)
    if (options.routesFirst && handler.role === 'method-override') {
      throw new TypeError(
        `${name} comes too late for methodOverride, since the host has chosen the route: use attach(server, methodOverride(), { direct: '' }), or the option methodOverride of the service.`,
      )
    }

    return (context, next) => {
      const req = request(context) as IncomingMessage
      const exchange = handler.createExchange(req, response(context) as ServerResponse)
      if (exchange === undefined) return next()
      exchange.host = options
      exchange.adapterContext = context
      exchange.hostContext = options.hostContext === undefined ? context : options.hostContext(context)
      exchange.canPass = true
      const conclude = (decision: Decision): MaybePromise<Result> => {
        if (decision === undefined) return goOn(context, exchange, next)
        return decision === 'gone' ? release(context, 0) : send(handler, context, exchange, decision)
      }
      let decision: MaybePromise<Decision>
      try {
        decision = handler.decide(exchange)
      } catch (error) {
        return fail(context, exchange, error)
      }
      if (!isPromise(decision)) return conclude(decision)
      return decision.then(conclude, (error) => fail(context, exchange, error))
    }
  }
}
