import type { IncomingMessage } from 'node:http'
import type { AnyRequest, AnyResponse, HostRequest } from '../core/exchange.ts'
import type { Handler, Next } from '../core/node-handler.ts'

type MountedRequest = IncomingMessage & { -readonly [Key in keyof HostRequest]: HostRequest[Key] }

/**
 * Shows a request to a handler as if the host had mounted it under a path prefix, as `app.use(prefix, handler)` does in
 * Express: `url` without the prefix, `originalUrl` with it.
 * @param prefix such as `/api`; empty for the root
 * @returns what puts the request back as it was; `undefined` when its target is not below the prefix
 */
export function enterMount(request: AnyRequest, prefix: string): (() => void) | undefined {
  const req = request as MountedRequest
  const { url = '', baseUrl, originalUrl } = req
  const rest = url.startsWith(prefix) ? url.slice(prefix.length) : undefined
  if (rest === undefined || (prefix !== '' && rest !== '' && rest[0] !== '/' && rest[0] !== '?')) return undefined
  req.originalUrl ??= url
  req.baseUrl = (baseUrl ?? '') + prefix
  if (prefix !== '') req.url = rest[0] === '/' ? rest : '/' + rest
  return () => {
    req.url = url
    if (baseUrl === undefined) delete req.baseUrl
    else req.baseUrl = baseUrl
    if (originalUrl === undefined) delete req.originalUrl
  }
}

/** @throws TypeError for a prefix that could never match */
export function checkPrefix(owner: string, prefix: string): string {
  if (typeof prefix !== 'string' || (prefix !== '' && (!prefix.startsWith('/') || prefix.endsWith('/')))) {
    throw new TypeError(`${owner} takes a prefix such as "/api", without a slash at the end, not "${prefix}".`)
  }
  return prefix
}

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
    if (leave === undefined) {
      if (next !== undefined) return next()
      res.statusCode = 404
      return void res.end()
    }
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
