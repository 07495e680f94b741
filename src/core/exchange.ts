import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse, ServerHttp2Stream } from 'node:http2'

/** A request as any host gives it: `node:http`, `node:https`, or the compatibility interface of `node:http2`. */
export type AnyRequest = IncomingMessage | Http2ServerRequest
/** A response as any host gives it. */
export type AnyResponse = ServerResponse | Http2ServerResponse

/** Who sends the request, as an authentication scheme found out. */
export interface Principal {
  /** The scheme that verified the credentials, in lower case. */
  readonly scheme: string
  /** The user name, or the subject of a token. */
  readonly id: string
  /** Claims of a token, or whatever a verifier of the user's own returned. */
  readonly claims?: Readonly<Record<string, unknown>>
}

/** What a hook may know of a request. */
export interface RequestView {
  /** The method, after X-HTTP-Method-Override where that is enabled. */
  readonly method: string
  /** The decoded path below the mount point. */
  readonly path: string
  /** The path prefix under which the host mounted us; empty at the root. */
  readonly mount: string
  /** The query, parsed when first asked for. */
  readonly query: URLSearchParams
  /** Request fields by lower-case name, as Node gives them. */
  readonly headers: IncomingHttpHeaders
  /** Values of the `{names}` in the pattern of the resource; for a piece, what the router of the host has found. */
  readonly params: Readonly<Record<string, string>>
  /** Who sends the request; `undefined` while nobody is known. */
  readonly principal: Principal | undefined
  /** Aborts when the client goes away. Made when first asked for. */
  readonly signal: AbortSignal
  /** The request of the host. */
  readonly req: IncomingMessage
}

/** Fields that every answer carries. */
export const BASE_FIELDS: readonly string[] = Object.freeze(['X-Content-Type-Options', 'nosniff'])
/** RFC 9113 §7. */
const INTERNAL_ERROR = 2
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze(Object.create(null))

/** How far the content of the request has been dealt with. */
export type BodyState = 'unread' | 'reading' | 'read'

/** A request that others wait for. */
export interface Undecided {
  /** It is decided how it is answered. */
  decided(): void
}

/** What frameworks add to a request; all of it optional. */
export interface HostRequest {
  readonly baseUrl?: string
  readonly originalUrl?: string
  /** What a router found in the path. */
  readonly params?: Readonly<Record<string, string>>
  /** What a body parser before us left. */
  body?: unknown
}

/**
 * One request and what has been found out about it so far. The one context object: it travels through all steps.
 * A class only so that the lazy properties cost nothing until they are read.
 */
export class Exchange implements RequestView {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly headers: IncomingHttpHeaders
  method: string
  mount = ''
  path = ''
  /** What follows `?` in the target, as received. */
  queryText = ''
  get params(): Readonly<Record<string, string>> {
    // Read anew each time: a router changes it from one layer to the next.
    const { params } = this.req as HostRequest
    return params !== undefined && Object.hasOwn(this.req, 'params') ? params : NO_PARAMS
  }

  principal: Principal | undefined = undefined
  /** Whether the request carried credentials that were accepted: answers to it are private (RFC 9111 §3.5). */
  isAuthorized = false
  /** Fields for every later reply, names and values in turn: CORS, security. */
  pending: readonly string[] = BASE_FIELDS
  /** The value of Vary so far. */
  vary = ''
  /** Whether the host takes requests that are not ours. */
  canPass = false
  bodyState: BodyState = 'unread'
  /** Milliseconds without progress after which a client that neither sends nor reads is given up. */
  idleTimeout = 30_000
  /** Set while a 100 Continue is owed: the client waits for it before it sends content (RFC 9110 §10.1.1). */
  sendContinue: (() => void) | undefined = undefined
  /** Told once it is decided how the request is answered, by whomever; for whoever waits behind it. */
  undecided: Undecided | undefined = undefined
  /** Names of the steps taken and reasons found; only while somebody listens. */
  trace: string[] | undefined = undefined

  #query: URLSearchParams | undefined
  #controller: AbortController | undefined

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.req = req
    this.res = res
    this.headers = req.headers
    this.method = req.method ?? ''
  }

  get query(): URLSearchParams {
    return (this.#query ??= new URLSearchParams('&' + this.queryText))
  }

  // An AbortController costs more than a whole small request, so nobody pays for one that is not read.
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController()
      this.#controller = controller
      if (this.isClosed && !this.isSent) controller.abort()
      else
        this.res.once('close', () => {
          if (!this.isSent) controller.abort()
        })
    }
    return this.#controller.signal
  }

  /** Whether HTTP/2 carries the exchange: no Connection field, no status text. */
  get isHttp2(): boolean {
    return isHttp2(this.req)
  }

  /** The stream of an HTTP/2 exchange: the response before it does not tell that it was reset, and cannot reset it. */
  get #stream(): ServerHttp2Stream {
    return (this.res as unknown as Http2ServerResponse).stream
  }

  /** Whether nothing can be sent any more: all has been, the client has gone away, or the exchange was broken off. */
  get isClosed(): boolean {
    // Node 20 and 22 do not tell an answer that waits behind another when their connection closes.
    return this.isHttp2 ? this.#stream.destroyed : this.res.destroyed || this.req.socket.destroyed
  }

  /** Whether the whole answer has left. */
  get isSent(): boolean {
    return this.isHttp2 ? this.res.writableEnded : this.res.writableFinished
  }

  /** Ends the exchange so that the client sees that the answer is not whole (RFC 9112 §8, RFC 9113 §8.1.1). */
  breakOff(): void {
    if (this.isHttp2) this.#stream.close(INTERNAL_ERROR)
    else this.res.destroy()
  }
}

/** Whether HTTP/2 carries a request. The version alone does not tell: over HTTP/1 a client may write what it likes. */
export function isHttp2(req: IncomingMessage): boolean {
  return req.httpVersionMajor === 2 && 'stream' in req
}

/**
 * The prefix under which a host mounted us: what `originalUrl` has and `url` lacks.
 * Express tells it as `baseUrl`; koa-mount and Connect only by rewriting `url`.
 */
export function findMount(req: IncomingMessage & HostRequest): string {
  if (req.baseUrl !== undefined) return req.baseUrl
  const { originalUrl } = req
  if (originalUrl === undefined || originalUrl === req.url) return ''
  const url = req.url ?? ''
  const path = url.startsWith('/?') ? url.slice(1) : url
  if (originalUrl.endsWith(url)) return originalUrl.slice(0, originalUrl.length - url.length)
  // "/api" and "/api?x" reach us as "/" and "/?x".
  return originalUrl.endsWith(path)
    ? originalUrl.slice(0, originalUrl.length - path.length)
    : originalUrl.split('?')[0]!
}

/**
 * The request target below the mount point, as received. Express 4 takes both slashes of "/api//users" for one when it
 * strips the mount: the second must not get lost, or one resource has two names.
 */
export function findTarget(req: IncomingMessage & HostRequest): string {
  const { url = '', baseUrl, originalUrl } = req
  const hasLostSlash =
    baseUrl !== undefined && baseUrl !== '' && originalUrl?.startsWith(`${baseUrl}//`) && !url.startsWith('//')
  return hasLostSlash ? `/${url}` : url
}

const EXCHANGE = Symbol.for('http-resource-service.exchange')

/** The exchange that pieces mounted on one request share; made by the first of them. */
export function sharedExchange(req: IncomingMessage, res: ServerResponse): Exchange {
  const host = req as IncomingMessage & { [EXCHANGE]?: Exchange }
  const known = host[EXCHANGE]
  if (known !== undefined) return known
  const exchange = new Exchange(req, res)
  host[EXCHANGE] = exchange
  return exchange
}

/** The exchange that a piece made on this request, if one ran before us. */
export function findExchange(req: IncomingMessage): Exchange | undefined {
  return (req as IncomingMessage & { [EXCHANGE]?: Exchange })[EXCHANGE]
}
