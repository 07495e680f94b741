import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

/** A request of `node:http`, of `node:https`, or of the compatibility interface of `node:http2`. */
export type AnyRequest = IncomingMessage | Http2ServerRequest
/** A response of the same. */
export type AnyResponse = ServerResponse | Http2ServerResponse

/** Who sends the request, as an authentication scheme found out. */
export interface Principal {
  /** The scheme that verified the credentials, in lower case; `host` for a user that the host has found. */
  readonly scheme: string
  /** The user name, the subject of a token, or the `id` that a verifier or the host gave. */
  readonly id: string
  /** Claims of a token, or whatever a verifier of the user's own returned. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
}

/** A principal without its claims, which may be secret. */
export function withoutClaims(principal: Principal | undefined): Pick<Principal, 'scheme' | 'id'> | undefined {
  return principal && { scheme: principal.scheme, id: principal.id }
}

/** What a hook may know of a request. */
export interface RequestView {
  /** The method, after X-HTTP-Method-Override where that is enabled. Functions that decide rights see GET in place of HEAD. */
  readonly method: string
  /** The decoded path below the mount point. */
  readonly path: string
  /** The path prefix at which the host has mounted the handler; empty at the root. */
  readonly mount: string
  /** The query, parsed when first asked for. */
  readonly query: URLSearchParams
  /** Request fields by lower-case name, as Node gives them. Do not change them: the handler has read some already. */
  readonly headers: IncomingHttpHeaders
  /**
   * Values of the `{names}` in the pattern of the resource; for standalone middleware, what the router of the host has
   * found.
   */
  readonly params: Readonly<Record<string, string>>
  /** Who sends the request; `undefined` while no principal is known. */
  readonly principal: Principal | undefined
  /** Aborts when the client goes away. Made when first asked for. */
  readonly signal: AbortSignal
  /** The request of the host. */
  readonly req: IncomingMessage
  /**
   * What the framework of the host calls its context: `ctx` of Koa, the request of Fastify, `c` of Hono; elsewhere the
   * same as `req`.
   */
  readonly hostContext: unknown
  /** The address of the client: that of the peer or, behind `trustProxy`, the one that the proxies name. */
  readonly clientAddress: string | undefined
}

/** What frameworks add to a request; all of it optional. */
export interface HostRequest {
  readonly baseUrl?: string
  readonly originalUrl?: string
  /** What was sent, where `method` is another one. */
  originalMethod?: string
  /** What a router found in the path. */
  readonly params?: Readonly<Record<string, string>>
  /** What a body parser before us left. */
  body?: unknown
  /** That a parser has the content: those of Express 4 and Connect then pass it over. */
  _body?: boolean
}

/** What an exchange can ask the host, where an adapter stands between them. */
export interface HostAccess {
  /** The values that the router of the host has found in the path. */
  readonly params?: ((context: never) => Readonly<Record<string, string>> | undefined) | undefined
  /** The value of a field that the host is going to send; several of one name in one value. */
  readonly field?: ((context: never, name: string) => string | undefined) | undefined
  /** Sets a field that the host is going to send. */
  readonly setField?: ((context: never, name: string, value: string) => void) | undefined
}

/**
 * A request as if it were a GET of the same target: rules that decide by the method are asked with it where the answer to
 * a write tells what a GET would.
 */
export function asRead(request: RequestView): RequestView {
  return new ReadView(request, request.path, () => request.params)
}

/**
 * A request as functions that decide rights see it: HEAD is a GET (RFC 9110 §9.3.2). Otherwise one that allows GET alone
 * would refuse HEAD, and one that refuses GET alone would let HEAD through.
 */
export function asJudged(request: RequestView): RequestView {
  return request.method === 'HEAD' ? asRead(request) : request
}

/**
 * A request as if it were a GET of another target with the same query: an entry of a listing is judged by it. A class: an
 * object literal with getters costs a hidden class for every entry.
 */
export class ReadView implements RequestView {
  readonly #request: RequestView
  readonly #readParams: () => RequestView['params']
  readonly method = 'GET'
  readonly path: string
  readonly mount: string
  readonly headers: RequestView['headers']
  readonly principal: RequestView['principal']
  readonly req: RequestView['req']
  readonly hostContext: unknown

  /**
   * @param path the decoded path of the target
   * @param readParams gives the values of the names in its pattern
   */
  constructor(request: RequestView, path: string, readParams: () => RequestView['params']) {
    this.#request = request
    this.#readParams = readParams
    this.path = path
    this.mount = request.mount
    this.headers = request.headers
    this.principal = request.principal
    this.req = request.req
    this.hostContext = request.hostContext
  }

  get query(): URLSearchParams {
    return this.#request.query
  }

  get params(): RequestView['params'] {
    return this.#readParams()
  }

  get signal(): AbortSignal {
    return this.#request.signal
  }

  get clientAddress(): string | undefined {
    return this.#request.clientAddress
  }
}
