import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnyRequest, AnyResponse, Exchange, HostRequest } from '../core/exchange.ts'
import type { MaybePromise } from '../core/handler.ts'
import { createHandler, type Handler, type Next } from '../core/node-handler.ts'
import type { Reply } from '../core/reply.ts'

type MountedRequest = IncomingMessage & { -readonly [Key in keyof HostRequest]: HostRequest[Key] }

/**
 * Shows a request to a handler as if the host had mounted it under a path prefix, as `app.use(prefix, handler)` does in
 * Express: `url` without the prefix, `originalUrl` with it.
 * @param prefix such as `/api`; empty for the root
 * @returns what puts the request back as it was; `undefined` when its target is not below the prefix
 */
function enterMount(request: AnyRequest, prefix: string): (() => void) | undefined {
  const req = request as MountedRequest
  const { url = '', baseUrl, originalUrl } = req
  // An absolute-form target names the host before the path (RFC 9112 §3.2.2).
  const origin = url.startsWith('/') ? '' : (/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(url)?.[0] ?? '')
  const path = url.slice(origin.length)
  const rest = path.startsWith(prefix) ? path.slice(prefix.length) : undefined
  if (rest === undefined || (prefix !== '' && rest !== '' && rest[0] !== '/' && rest[0] !== '?')) return undefined
  req.originalUrl ??= url
  req.baseUrl = (baseUrl ?? '') + prefix
  if (prefix !== '') req.url = origin + (rest[0] === '/' ? rest : '/' + rest)
  return () => {
    req.url = url
    if (baseUrl === undefined) delete req.baseUrl
    else req.baseUrl = baseUrl
    if (originalUrl === undefined) delete req.originalUrl
  }
}

/** What a handler decides about a request whose host writes the answer. */
export interface Decision {
  readonly exchange: Exchange
  readonly reply: MaybePromise<Reply | undefined>
}

/**
 * Has a handler decide on a request as if it were mounted under a path prefix. The host goes on where it has no reply.
 * @returns `undefined` when the target is not below the prefix
 */
export function decideBelow(
  prefix: string,
  handler: Handler,
  req: IncomingMessage,
  res: ServerResponse,
): Decision | undefined {
  const leave = enterMount(req, prefix)
  if (leave === undefined) return undefined
  try {
    const exchange = handler.createExchange(req, res)
    exchange.canPass = true
    return { exchange, reply: handler.handle(exchange) }
  } finally {
    leave()
  }
}

/** @throws TypeError for a prefix that could never match */
export function checkPrefix(owner: string, prefix: string): string {
  if (typeof prefix !== 'string' || (prefix !== '' && (!prefix.startsWith('/') || prefix.endsWith('/')))) {
    throw new TypeError(`${owner} takes a prefix such as "/api", without a slash at the end, not "${prefix}".`)
  }
  return prefix
}

/** Takes no request: 404. */
const notFound = createHandler({ run: () => undefined, forwardErrors: true })

/**
 * Mounts a handler under a path prefix on a plain server, as `app.use(prefix, handler)` does in Express.
 * @param prefix such as `/api`; empty for the root
 * @returns a listener; requests outside the prefix go to `next`, or are answered 404 where there is none
 * @throws TypeError for a prefix that does not start with a slash, or ends with one
 * @example
 * createServer(mount('/api', service)).listen(8080)
 */
export function mount(prefix: string, handler: Handler): (req: AnyRequest, res: AnyResponse, next?: Next) => void {
  checkPrefix('mount', prefix)
  if (prefix === '') return handler
  return (req, res, next) => {
    const leave = enterMount(req, prefix)
    if (leave === undefined) return next === undefined ? notFound(req, res) : next()
    handler(
      req,
      res,
      next === undefined
        ? undefined
        : (error) => {
            leave()
            next(error)
          },
    )
  }
}
