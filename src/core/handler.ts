import type { Exchange } from './exchange.ts'
import type { MaybePromise } from './maybe-promise.ts'
import { describeValue } from './option-values.ts'
import type { Place } from './place.ts'
import type { Reply } from './reply.ts'
import type { AnyRequest, AnyResponse } from './request-view.ts'

/** What a handler calls when the request is not for it, or, with an error, when it failed. */
export type Next = (error?: unknown) => void

/** What a handler is to its host. */
export type HandlerRole =
  /** Answers the requests that are for it; all others are for the host. */
  | 'endpoint'
  /** Stands before the routes of the host, sees every request, and refuses some of them. */
  | 'guard'
  /** A guard that reads the content and leaves it in `req.body`. */
  | 'body-parser'
  /** A guard that changes the method: it has to run before the host chooses the route. */
  | 'method-override'

/** One decision of a request. A reply ends the request; `undefined` goes on to the next step. */
export type Step<E extends Exchange = Exchange> = (exchange: E) => MaybePromise<Reply | undefined>

/**
 * The decision about a request. `undefined`: the request goes on to the host. `'gone'`: nothing is to be sent any more;
 * the client has left, or has its response.
 */
export type Decision = Reply | 'gone' | undefined

/**
 * A service or a standalone middleware: a function on `(req, res, next)` for every host that speaks `node:http`.
 * Adapters for other hosts are made by `createAdapter`, which uses the methods.
 */
export interface Handler {
  (req: AnyRequest, res: AnyResponse, next?: Next): void
  readonly role: HandlerRole
  /** The methods that it may answer on its own, for which the host need not have a route; `undefined` for all. */
  readonly methods: readonly string[] | undefined
  /**
   * Whether it answers a request target wherever it is mounted: that of a well-known URI (RFC 8615), which lies at the root
   * of the server. `attach` and `mount` hand such requests to it. `undefined` where it has none.
   */
  readonly isWellKnown?: ((target: string) => boolean) | undefined
  /**
   * Makes the exchange that the other methods take.
   * @param place where the handler is mounted. Default: what the host tells by `originalUrl` and `baseUrl`
   * @returns `undefined` when the request is outside the prefix that the handler is mounted at
   */
  createExchange(req: AnyRequest, res: AnyResponse, place?: Place): Exchange | undefined
  /** Decides on a request without writing anything. Throws unexpected errors where the handler forwards them. */
  decide(exchange: Exchange): MaybePromise<Decision>
  /**
   * Writes what was decided. A reply whose content cannot be read is still a clean 500.
   * @param next takes unexpected errors, where the handler forwards them
   * @returns a promise only for content that takes time; it never rejects
   */
  write(exchange: Exchange, reply: Reply, next?: Next): undefined | Promise<void>
  /** Decides and writes. Without `next`, a request that is not for the handler gets 404. */
  respond(exchange: Exchange, next?: Next): void
}

/** Whether a value is a handler: a function alone is not, since nothing could ask it to decide. */
export function isHandler(value: unknown): value is Handler {
  const { role, decide } = (value ?? {}) as Partial<Handler>
  return typeof value === 'function' && typeof role === 'string' && typeof decide === 'function'
}

/** @throws TypeError that names what was meant */
export function checkHandler(owner: string, value: unknown): void {
  if (isHandler(value)) return
  throw new TypeError(
    `${owner} takes a service or a standalone middleware, as createResourceService(store) or auth(options) return it, not ${describeValue(value)}.`,
  )
}
