import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import type { Step } from '../core/handler.ts'
import { andThen } from '../core/maybe-promise.ts'
import { isOwnOrigin, sentMethod } from '../core/place.ts'
import { parseAuthorization } from '../protocol/authorization.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { isSafeMethod } from '../protocol/methods.ts'
import type { Cors } from './cors.ts'

/**
 * Makes the step that refuses changes asked for by another site with the user's own credentials: browsers attach
 * remembered passwords, tickets and cookies by themselves, and a form of any site may be sent without a preflight.
 *
 * The site is named by Sec-Fetch-Site, and by Origin where it is absent or says that the sites differ. The own origin
 * is scheme and host of the target; programs send neither field and pass. CORS of the host before this counts as the
 * service's own, where it names the origin and takes credentials. Whether browsers attach the credentials of a
 * principal is what its scheme says (`isAmbient`): a bearer token is attached by programs only, and passes.
 * @param isSecure whether a request is known to have come by https; otherwise the own host counts with either scheme
 * @param cors what CORS of the service allows. `*` names no origin, but lets any send what browsers ask about in a preflight:
 * they attach no credentials to that, so that the script has them
 */
export function createCrossSiteCheck(
  isSecure: (exchange: Exchange) => boolean,
  cors?: Pick<Cors, 'allows' | 'isAnyOrigin'>,
): Step {
  return function refuseCrossSite(exchange) {
    const origin = exchange.field('origin')
    const site = exchange.field('sec-fetch-site')
    // A program.
    if (origin === undefined && site === undefined) return undefined
    if (isSafeMethod(exchange.method) || !hasAmbientCredentials(exchange)) return undefined
    if (site === 'same-origin' || site === 'none') return undefined
    if (origin === undefined) return refuse(exchange)
    const isOwn = isOwnOrigin(exchange, origin, isSecure(exchange) ? 'https' : 'unknown')
    if (site === undefined && isOwn) return undefined
    if (cors?.isAnyOrigin && needsPreflight(exchange)) return undefined
    return andThen(cors?.allows(origin), (isAllowed) =>
      isAllowed === true || isGrantedByHost(exchange, origin) ? undefined : refuse(exchange),
    )
  }
}

const SAFELISTED_METHODS: readonly string[] = ['GET', 'HEAD', 'POST']
const FORM_TYPES: readonly string[] = ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']

/** Whether no form can send a request: browsers ask before they do (Fetch, "CORS-safelisted method" and "request-header"). */
function needsPreflight(exchange: Exchange): boolean {
  if (!SAFELISTED_METHODS.includes(sentMethod(exchange.req))) return true
  const essence = parseMediaType(exchange.field('content-type') ?? '')?.essence
  return essence !== undefined && !FORM_TYPES.includes(essence)
}

/** Whether CORS of the host lets this very origin send credentials (Fetch, "CORS check"); `*` lets none. */
function isGrantedByHost(exchange: Exchange, origin: string): boolean {
  return (
    exchange.hostField('access-control-allow-origin') === origin &&
    exchange.hostField('access-control-allow-credentials') === 'true'
  )
}

function refuse(exchange: Exchange): never {
  note(exchange, 'another site, with credentials that a browser attaches')
  throw new HttpError(403, 'ERR_CROSS_SITE', {
    detail: 'Changes with these credentials are not taken from other sites.',
  })
}

/** Schemes that browsers implement, for credentials that no scheme of the service has verified. */
const BROWSER_SCHEMES: ReadonlySet<string> = new Set(['basic', 'digest', 'negotiate', 'ntlm'])

/** Whether a request carries credentials that a browser may have attached by itself. */
function hasAmbientCredentials(exchange: Exchange): boolean {
  if (exchange.field('cookie') !== undefined) return true
  // A client certificate that was verified.
  if ((exchange.req.socket as { authorized?: boolean } | undefined)?.authorized === true) return true
  if (exchange.principal !== undefined) return exchange.isAmbient
  const scheme = parseAuthorization(exchange.field('authorization') ?? '')?.scheme
  return scheme !== undefined && BROWSER_SCHEMES.has(scheme)
}
