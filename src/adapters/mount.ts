import type { IncomingMessage } from 'node:http'
import { checkHandler, type Handler, type Next } from '../core/handler.ts'
import { createHandler } from '../core/node-handler.ts'
import { quoteValue } from '../core/option-values.ts'
import { findPlace, type Place, placeBelow } from '../core/place.ts'
import type { AnyRequest, AnyResponse } from '../core/request-view.ts'
import { parseRequestTarget } from '../protocol/request-target.ts'

/**
 * @param owner the public name that takes the prefix, for the message
 * @param option the name of the option; left out where the prefix is the first argument
 * @throws TypeError for a prefix that could never match
 */
export function checkPrefix(owner: string, prefix: unknown, option?: string): string {
  const subject = option === undefined ? `${owner} takes a prefix` : `${owner} takes as ${option}: a path`
  if (typeof prefix === 'string' && /^(?:\/(?::\w+|[^/:?#*\s][^/?#*\s]*))*$/.test(prefix)) {
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

/** @throws TypeError for a prefix in the place of the options, which names them */
export function refusePlainPrefix(owner: string, options: unknown): void {
  if (typeof options !== 'string') return
  throw new TypeError(`${owner} takes the prefix as an option: ${owner}(service, { prefix: '/api' }).`)
}

/** Takes no request: 404. */
const notFound = createHandler({ run: () => undefined, forwardErrors: true })

/**
 * Mounts a handler under a path prefix, as `app.use(prefix, handler)` does in Express; what it makes is a handler again, for
 * a plain server, any host and any adapter.
 *
 * A request is outside the prefix only where every program would say so, whether it decodes escapes, resolves dots,
 * collapses slashes, turns backslashes round, drops `;` parameters or ignores letter case. One that may be below it does
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

/** Makes a handler at another place. @param locate gives `undefined` for requests that are outside of it */
export function placeHandler(handler: Handler, locate: (place: Place) => Place | undefined): Handler {
  const { role, methods, isWellKnown, decide, write, respond } = handler
  const createExchange: Handler['createExchange'] = (req, res, place = findPlace(req as IncomingMessage)) => {
    const located = locate(place)
    if (located !== undefined) return handler.createExchange(req, res, located)
    // A well-known URI lies at the root of the server, wherever its handler is mounted (RFC 8615 §3).
    return isWellKnown?.(place.mount + place.target) === true ? handler.createExchange(req, res, place) : undefined
  }
  const placed = (req: AnyRequest, res: AnyResponse, next?: Next): void => {
    const exchange = createExchange(req, res)
    if (exchange !== undefined) respond(exchange, next)
    else if (next !== undefined) next()
    else notFound(req, res)
  }
  return Object.assign(placed, { role, methods, isWellKnown, createExchange, decide, write, respond })
}
