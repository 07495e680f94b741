import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Http2Server, Http2ServerResponse } from 'node:http2'
import type { Exchange } from '../core/exchange.ts'
import { readField } from '../core/fields.ts'
import { checkHandler, type Handler, isHandler, type Next } from '../core/handler.ts'
import { checkResponse, createHandler, sharedExchange } from '../core/node-handler.ts'
import { CHECKED_LATER, quoteValue } from '../core/option-values.ts'
import { type OptionTable, resolveOptions } from '../core/options.ts'
import { findPlace, hasWellFormedHost, type Place, placeBelow } from '../core/place.ts'
import type { AnyRequest, AnyResponse } from '../core/request-view.ts'
import { parseRequestTarget, pathOfTarget } from '../protocol/request-line.ts'

/** Takes no request: 404. */
const notFound = createHandler({ run: () => undefined, forwardErrors: true })

/**
 * Mounts a handler under a path prefix, as `app.use(prefix, handler)` does in Express; what it makes is a handler again, for
 * a plain server, any host and any adapter.
 *
 * A request is outside the prefix only where every program would say so, whether it decodes escapes, resolves dots,
 * collapses slashes, takes backslashes for slashes, drops `;` parameters or ignores letter case. One that may be below it does
 * not pass a guard: `auth`, `conditional` and `preflight` answer 400, the others decide. A service leaves it to the host.
 * @param prefix such as `/api`, or `/t/:tenant`, where a name stands for any segment; empty for the root
 * @returns a handler; requests outside the prefix go to `next`, or are answered 404 where there is none
 * @throws TypeError for a prefix that could never match, and for anything but a service or a standalone middleware
 * @example
 * createServer(mount('/api', service)).listen(8080)
 */
export function mount(prefix: string, handler: Handler): Handler {
  checkPrefix('mount', prefix)
  checkHandler('mount', handler)
  return prefix === '' ? handler : placeHandler(handler, (place) => placeBelow(place, prefix))
}

/** Handlers at another place, with the handlers that they were made of. */
const unplaced = new WeakMap<Listener, Listener>()

/** Makes a handler at another place. @param locate gives `undefined` for requests that are outside of it */
export function placeHandler(handler: Handler, locate: (place: Place) => Place | undefined): Handler {
  const { role, methods, isWellKnown, decide, write, respond } = handler
  const createExchange: Handler['createExchange'] = (req, res, place = findPlace(req as IncomingMessage)) => {
    const isUnclear = role !== 'endpoint' && !hasWellFormedHost(req as IncomingMessage)
    const located = isUnclear ? { ...place, isClear: false } : locate(place)
    if (located !== undefined) return handler.createExchange(req, res, located)
    // A well-known URI lies at the root of the server, wherever its handler is mounted (RFC 8615 §3).
    return isWellKnown?.(place.mount + place.target) === true ? handler.createExchange(req, res, place) : undefined
  }
  const placed = (req: AnyRequest, res: AnyResponse, next?: Next): void => {
    checkResponse(res)
    const exchange = createExchange(req, res)
    if (exchange !== undefined) respond(exchange, next)
    else if (next !== undefined) next()
    else notFound(req, res)
  }
  unplaced.set(placed, unplaced.get(handler) ?? handler)
  return Object.assign(placed, { role, methods, isWellKnown, createExchange, decide, write, respond })
}

/**
 * @param owner the public name that takes the prefix, for the message
 * @param option the name of the option; left out where the prefix is the first argument
 * @throws TypeError for a prefix that could never match
 */
export function checkPrefix(owner: string, prefix: unknown, option?: string): string {
  const subject = option === undefined ? `${owner} takes a prefix` : `${owner} takes as ${option}: a path`
  if (typeof prefix === 'string' && /^(?:\/(?::\w+|[^/:?#*{}\s][^/?#*{}\s]*))*$/.test(prefix)) {
    // Dot segments, backslashes, and what is not ASCII are in no request target that the prefix could begin.
    if (parseRequestTarget(prefix || '/') !== undefined) return prefix
    throw new TypeError(`${subject} as it is sent, with escapes and without dot segments, not ${quoteValue(prefix)}.`)
  }
  if (typeof prefix === 'function' && option === undefined)
    throw new TypeError(`${owner} takes the prefix first: ${owner}('/api', service).`)
  throw new TypeError(
    `${subject} such as '/api' or '/t/:tenant', without a slash or a star at the end, not ${quoteValue(prefix)}.`,
  )
}

interface PrefixOptions {
  readonly prefix?: string
}

const PREFIX_OPTIONS = { prefix: CHECKED_LATER } satisfies OptionTable<PrefixOptions>

/**
 * The option `prefix` of middleware for a host, for `checkPrefix`.
 * @throws TypeError for a prefix in the place of the options, and for another option
 */
export function readPrefix(owner: string, options: PrefixOptions): unknown {
  if (typeof options === 'string') {
    throw new TypeError(`${owner} takes the prefix as an option: ${owner}(service, { prefix: '/api' }).`)
  }
  const { prefix = '' } = resolveOptions(owner, options, PREFIX_OPTIONS)
  return prefix
}

/** A server of `node:http`, `node:https` or `node:http2`. */
export type AnyServer = Server | Http2Server

/** Options of `attach`. */
export interface AttachOptions {
  /**
   * Path prefix below which requests go straight to the service, without passing through the host's own listeners:
   * faster, but the host's middleware does not see them. `''` for all paths. What the service has no definition for
   * still goes to the host. Default: everything goes through the host.
   */
  readonly direct?: string
}

const OPTIONS = { direct: CHECKED_LATER } satisfies OptionTable<AttachOptions>

type Listener = (req: IncomingMessage, res: ServerResponse, next?: Next) => void

/**
 * Enables what needs the server object: the service decides on `Expect: 100-continue` before the client sends its content
 * (RFC 9110 §10.1.1), and `OPTIONS *` and the well-known URI of its metadata (RFC 9728) reach it under any mount prefix.
 *
 * A standalone middleware is attached with `direct`: it then runs before everything of the host, its router included.
 *
 * Call it when the host's own listeners have been added. A server without any gets the service as its listener.
 * @param server a server that may be listening already
 * @param service the service, or any other handler
 * @throws TypeError for anything but a server and a handler
 */
export function attach(server: AnyServer, service: Handler, options: AttachOptions = {}): void {
  if (isHandler(server)) throw new TypeError('attach takes the server first: attach(server, service).')
  checkServer(server)
  checkHandler('attach', service)
  const { direct } = resolveOptions('attach', options, OPTIONS)
  if (direct !== undefined) checkPrefix('attach', direct, 'direct')
  const emitter = server as Server
  const straight = direct === undefined ? undefined : mount(direct, service)
  const whole = unplaced.get(service)
  // `*` is below no prefix.
  const own: Listener =
    whole === undefined ? service : (req, res, next) => (req.url === '*' ? whole : service)(req, res, next)

  function listenBefore(hosts: readonly Listener[]): Listener {
    if (hosts.length === 0) return own
    const toHost: Listener = (req, res) => {
      for (const host of hosts) host.call(server, req, res)
    }
    return (req, res) => {
      const isForService = req.url === '*' || service.isWellKnown?.(req.url ?? '') === true
      const first = isForService ? own : straight
      if (first === undefined) toHost(req, res)
      // Declares no parameter: a guard answers its errors itself, as behind every `next` that would take one for consent.
      else first(req, res, (...errors) => (errors.length === 0 ? toHost(req, res) : answerError(req, res, errors[0])))
    }
  }

  const listen = listenBefore(takeListeners(emitter, 'request').filter((listener) => listener !== service))
  // Those of another handler that was attached before, or of the host: left in place, they would answer as well.
  const continued = takeListeners(emitter, 'checkContinue')
  const listenHeld = continued.length === 0 ? listen : listenBefore(continued)
  emitter.on('request', listen)
  emitter.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    // Node emits the event for such a request too, and telemetry wraps it. Where other listeners take such requests, as those of
    // another `attach` do, they are called instead.
    if (holdContinue(req, res) && continued.length === 0) emitter.emit('request', req, res)
    else listenHeld(req, res)
  })
  const unknown = takeListeners(emitter, 'checkExpectation')
  emitter.on('checkExpectation', (req: IncomingMessage, res: ServerResponse) => {
    // Over HTTP/2 Node knows the expectation in lower case only. Java and PHP send it as `100-Continue`.
    if (readField(req.headers, 'expect')?.toLowerCase() === '100-continue') emitter.emit('checkContinue', req, res)
    else if (unknown.length === 0) res.writeHead(417, { 'Content-Length': 0 }).end()
    else for (const host of unknown) host.call(server, req, res)
  })
}

/** Answers an error that a service forwards: listeners take none, and a request that has failed must not get to them. */
function answerError(req: IncomingMessage, res: ServerResponse, error: unknown): void {
  const run = (exchange: Exchange): never => {
    exchange.path = pathOfTarget(exchange.place.target)
    throw error
  }
  createHandler({ run, forwardErrors: false })(req, res)
}

function takeListeners(emitter: Server, event: 'request' | 'checkContinue' | 'checkExpectation'): Listener[] {
  const listeners = emitter.listeners(event) as Listener[]
  emitter.removeAllListeners(event)
  return listeners
}

/** @throws TypeError that names what was meant: applications of frameworks look like servers */
function checkServer(server: unknown): void {
  const { on, listeners, removeAllListeners } = (server ?? {}) as Partial<Server>
  const isEmitter = [on, listeners, removeAllListeners].every((method) => typeof method === 'function')
  if (isEmitter && typeof (server as Partial<Server>).address === 'function') return
  throw new TypeError(
    'attach takes a server, as createServer(app) or app.listen() returns it (Fastify: app.server, Nest: app.getHttpServer()), not an application.',
  )
}

/** Requests whose 100 Continue is held back, or has been sent. */
const held = new WeakSet<IncomingMessage>()

/** Sends 100 Continue when the content is read or discarded, and not before. @returns whether it is new that it is held */
function holdContinue(req: IncomingMessage, res: ServerResponse): boolean {
  if (held.has(req)) return false
  held.add(req)
  const exchange = sharedExchange(req, res)
  const send = (): void => {
    exchange.sendContinue = undefined
    req.off('newListener', onListener)
    req.off('resume', send)
    // Node throws where anything is sent on a stream that its client has reset. It resumes a HEAD request then by itself.
    const { stream } = res as unknown as Partial<Http2ServerResponse>
    if (!res.headersSent && stream?.closed !== true) res.writeContinue()
  }
  const onListener = (event: string | symbol): void => {
    if (event === 'data' || event === 'readable') send()
  }
  exchange.sendContinue = send
  req.on('newListener', onListener)
  // A host that discards content before it answers, as Express does for its 404, has no listener for it.
  req.on('resume', send)
  return true
}
