import type { IncomingMessage } from 'node:http'
import { HttpError, malformedField } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { ErrorHook } from '../core/failures.ts'
import { countField } from '../core/fields.ts'
import type { Handler } from '../core/handler.ts'
import { andThen, type MaybePromise } from '../core/maybe-promise.ts'
import { createHandler, findExchange } from '../core/node-handler.ts'
import { createLog, type Log } from '../core/operator-log.ts'
import { CHECKED_LATER, FUNCTION, LOG } from '../core/option-values.ts'
import { type OptionTable, refuseRenamedValue } from '../core/options.ts'
import { createAddressFinder, type TrustProxy } from '../core/peer.ts'
import { askEachReading, readTarget } from '../core/place.ts'
import { type AnyRequest, asJudged, type Principal, type RequestView } from '../core/request-view.ts'
import { formatCacheControl } from '../protocol/cache-control.ts'
import { createAuthentication } from './authentication.ts'
import { AUTHENTICATION_OPTIONS, type AuthenticationOptions, readAuth } from './authentication-options.ts'

export type { HostPrincipal, HostUser, RequireRule } from './authentication-options.ts'

/** Options of `auth`. It needs `schemes` or `principal`. */
export interface AuthOptions extends AuthenticationOptions {
  /**
   * Whether the principal may do this: `true`; `false` for 403; `'not-found'` for 404, where even existence is a
   * secret. Default: `true`.
   */
  readonly authorize?: (principal: Principal | undefined, request: RequestView) => MaybePromise<boolean | 'not-found'>
  /** Proxies whose forwarding fields give the address of the client, for a `throttle`. Default: none. */
  readonly trustProxy?: TrustProxy
  /** Called with unexpected errors. Default: `console.error`. */
  readonly onError?: ErrorHook
  /**
   * Receives `{ level, part, state, message, error }` when credentials cannot be verified, for instance because the keys of
   * an issuer cannot be fetched, and when they can be again. `false` turns it off. Default: one line on the console.
   */
  readonly log?: Log | boolean
}

const OPTIONS: OptionTable<AuthOptions> = {
  ...AUTHENTICATION_OPTIONS,
  authorize: FUNCTION,
  trustProxy: CHECKED_LATER,
  onError: FUNCTION,
  log: LOG,
}

/**
 * Standalone middleware that lets only requests of known and allowed users through (RFC 9110 §11). Others are answered 401,
 * 403 or 404; 429 and 503 come from the schemes. `principalOf(req)` gives the principal.
 *
 * Where there is a principal, the response gets `Cache-Control: private, no-cache` before the request goes on; a route
 * that sets the field itself replaces it.
 * @returns a handler for Express and Connect; a request that passes goes on to `next`
 * @throws TypeError without a scheme or a `principal`, with two schemes of one name, or without a challenge for 401
 * @example
 * app.use('/api', auth({ schemes: [basic({ verify })], requireAuth: 'writes' }))
 */
export function auth(options: AuthOptions): Handler {
  const settings = readAuth(options, OPTIONS)
  const { authorize, trustProxy, onError, log } = settings
  const { authenticate, watch, metadata } = createAuthentication(settings)
  watch(createLog(log))
  const findAddress = createAddressFinder(trustProxy)
  return createHandler({
    role: 'guard',
    isWellKnown: metadata?.isWellKnown,
    run(exchange) {
      // Before any credentials: a client that has none learns here where to get them.
      if (metadata?.covers(exchange)) return metadata.answer(exchange)
      readTarget(exchange)
      if (countField(exchange.req, 'authorization') > 1) {
        throw malformedField('The field authorization was sent more than once.')
      }
      if (findAddress !== undefined) exchange.findAddress = findAddress
      return andThen(authenticate(exchange), () => {
        if (authorize === undefined) return limitSharing(exchange)
        const verdict = askEachReading<boolean | 'not-found'>(
          exchange,
          () => authorize(exchange.principal, asJudged(exchange)),
          (verdict) => verdict !== true,
        )
        return andThen(verdict, (verdict) => {
          if (verdict === true) return limitSharing(exchange)
          refuseRenamedValue('authorize', 'authorize', verdict)
          if (verdict === 'not-found') throw new HttpError(404, 'ERR_NOT_FOUND')
          throw new HttpError(403, 'ERR_FORBIDDEN')
        })
      })
    },
    onError,
    forwardErrors: true,
  })
}

/** Puts on the host's response that it is for one user, as far as the host has not said so itself. */
function limitSharing(exchange: Exchange): undefined {
  const { res, sharing, host, adapterContext } = exchange
  if (sharing === 'public' || res.headersSent) return
  const present = exchange.hostField('cache-control')
  const value = formatCacheControl(present, sharing)
  res.setHeader('Cache-Control', value)
  if (present === undefined) exchange.usualCacheControl = value
  // Fastify and Hono send their own fields in the place of those on the response of Node.
  else host?.setField?.(adapterContext as never, 'Cache-Control', value)
}

/** The principal that `auth` has found for a request; `undefined` where there is none, or `auth` has not run. */
export function principalOf(req: AnyRequest): Principal | undefined {
  return findExchange(req as IncomingMessage)?.principal
}
