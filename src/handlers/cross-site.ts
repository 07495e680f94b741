import { isOwnOrigin } from '../core/authority.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { readField } from '../core/fields.ts'
import { andThen, type MaybePromise, type Step } from '../core/handler.ts'
import { skipToken } from '../protocol/field-value.ts'
import { isSafeMethod } from '../protocol/methods.ts'

export interface CrossSiteOptions {
  /** Whether an origin is one of those that CORS allows. Default: none is. */
  readonly allows?: (origin: string) => MaybePromise<boolean>
  /** Whether a request came by https. Default: nobody knows, and the own host counts with either scheme. */
  readonly isSecure?: (exchange: Exchange) => boolean
}

/**
 * Makes the step that refuses changes asked for by another site with the user's own credentials: browsers attach
 * remembered passwords, tickets and cookies by themselves, and a form of any site may be sent without a preflight.
 *
 * What tells the site is Sec-Fetch-Site, and Origin where it is absent or says that the sites differ. The own origin
 * is scheme and host of the target; programs send neither field and pass. A bearer token is never attached by a
 * browser, so a request that carries one, or nothing, passes too.
 */
export function createCrossSiteCheck(options: CrossSiteOptions = {}): Step {
  const { allows = () => false, isSecure = () => false } = options

  return function refuseCrossSite(exchange) {
    if (isSafeMethod(exchange.method) || !hasAmbientCredentials(exchange)) return undefined
    const { headers } = exchange
    const origin = readField(headers, 'origin')
    const site = readField(headers, 'sec-fetch-site')
    if (site === 'same-origin' || site === 'none') return undefined
    if (origin === undefined) return site === undefined ? undefined : refuse(exchange)
    const isOwn = isOwnOrigin(exchange.req, origin, isSecure(exchange) ? 'https' : 'unknown')
    if (site === undefined && isOwn) return undefined
    return andThen(allows(origin), (isAllowed) => (isAllowed === true ? undefined : refuse(exchange)))
  }
}

function refuse(exchange: Exchange): never {
  note(exchange, 'another site, with credentials that a browser attaches')
  throw new HttpError(403, 'ERR_CROSS_SITE', {
    detail: 'Changes with these credentials are not taken from other sites.',
  })
}

const AMBIENT = new Set(['basic', 'digest', 'negotiate', 'ntlm'])

/** Whether a request carries credentials that a browser may have attached without being told to. */
function hasAmbientCredentials({ headers, req }: Exchange): boolean {
  if (headers.cookie !== undefined && readField(headers, 'cookie') !== undefined) return true
  // A client certificate that was verified.
  if ((req.socket as { authorized?: boolean } | undefined)?.authorized === true) return true
  const authorization = headers.authorization === undefined ? undefined : readField(headers, 'authorization')
  return authorization !== undefined && AMBIENT.has(authorization.slice(0, skipToken(authorization, 0)).toLowerCase())
}
