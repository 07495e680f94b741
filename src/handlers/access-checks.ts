import { carrierOf, connectionOf } from '../core/connection.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { isForwarded } from '../core/fields.ts'
import type { Step } from '../core/handler.ts'
import { andThen } from '../core/maybe-promise.ts'
import { createAvailability, type Log } from '../core/operator-log.ts'
import { createProxyTrust, type Peer, readPeer, type TrustProxy } from '../core/peer.ts'
import { isOwnOrigin, readAuthority, sentMethod } from '../core/place.ts'
import { emptyReply } from '../core/reply.ts'
import { parseAuthorization } from '../protocol/authorization.ts'
import { decideForwardedTransport } from '../protocol/forwarded.ts'
import { parseMediaType } from '../protocol/media-type.ts'
import { isSafeMethod, parseAuthority } from '../protocol/request-line.ts'
import type { Cors } from './cors.ts'

/** Checks of the host, of the transport, and of the site that asks for a change. A service has all of them, `requireHttps` one. */

const MISDIRECTED = emptyReply(421, ['Cache-Control', 'no-store'])

/**
 * Makes the step that refuses requests for hosts we do not serve (RFC 9110 §15.5.20). Without it a web page may point
 * a name of its own at this machine and read from us as if it were the same origin (DNS rebinding).
 * @param hosts names, with a port where the port matters; `*.example.test` for every name below one
 * @throws TypeError for an empty list, or a malformed host
 */
export function createHostCheck(hosts: readonly string[]): Step {
  if (!Array.isArray(hosts) || hosts.length === 0 || !hosts.every((host) => typeof host === 'string')) {
    throw new TypeError('"allowedHosts" is a list of at least one host name.')
  }
  const exact = new Set<string>()
  const suffixes: string[] = []
  for (const text of hosts as readonly string[]) {
    const isPattern = text.startsWith('*.')
    const authority = parseAuthority(isPattern ? text.slice(2) : text)
    if (authority === undefined || (isPattern && (authority.port !== '' || authority.host.startsWith('[')))) {
      throw new TypeError(`"allowedHosts" has "${text}", which is neither a host name nor "*." and a host name.`)
    }
    if (isPattern) suffixes.push('.' + authority.host)
    else exact.add(authority.port === '' ? authority.host : `${authority.host}:${authority.port}`)
  }

  function isServed(text: string): boolean {
    const authority = parseAuthority(text)
    if (authority === undefined) return false
    const { host, port } = authority
    // The default port of a scheme is left out (RFC 9110 §4.2.3), and a proxy may have ended TLS.
    const ports = port === '' ? ['443', '80'] : [port]
    if (exact.has(host) || ports.some((port) => exact.has(`${host}:${port}`))) return true
    return suffixes.some((suffix) => host.length > suffix.length && host.endsWith(suffix))
  }

  return function checkHost(exchange) {
    const authority = readAuthority(exchange)
    if (authority !== undefined && isServed(authority)) return undefined
    note(exchange, 'host not served')
    return MISDIRECTED
  }
}

interface HttpsReport {
  readonly log: Log
  /** The option that lets cleartext pass, for the message. */
  readonly remedy: string
}

const HOUR = 3_600_000

type Transport =
  /** TLS ends here. */
  | 'encrypted'
  /** TLS from a trusted proxy: what it says of its own client counts. */
  | 'encrypted proxy'
  | 'proxy'
  | 'local proxy'
  | 'local'
  | 'cleartext'

/**
 * Makes the rule that cleartext is refused, except from this machine without forwarding fields.
 * @throws TypeError for a proxy that is not an address
 */
export function createHttpsCheck(
  trustProxy: TrustProxy | undefined,
  { log, remedy }: HttpsReport,
  status: 403 | 426 = 403,
): { readonly step: Step; isSecure(exchange: Exchange): boolean } {
  const isTrusted = createProxyTrust(trustProxy)
  // Another middleware may trust other proxies.
  const TRANSPORT = Symbol('transport')
  // Any client can send cleartext: beside one that does, those that do not would make a line with every request.
  const availability = createAvailability('transport', 'Requests come over https again.', HOUR)
  availability.watch(log)

  function transportOf(exchange: Exchange): Transport {
    const connection = connectionOf(carrierOf(exchange)) as { [TRANSPORT]?: Transport }
    return (connection[TRANSPORT] ??= decideTransport(exchange))
  }

  function decideTransport(exchange: Exchange): Transport {
    const peer = readPeer(exchange.req)
    const isProxy = isTrusted(peer)
    if (peer.isEncrypted) return isProxy ? 'encrypted proxy' : 'encrypted'
    if (isProxy) return peer.isLocal ? 'local proxy' : 'proxy'
    return peer.isLocal ? 'local' : 'cleartext'
  }

  /** Whether a request came by https: over TLS, or over TLS to a trusted proxy. */
  function isSecure(exchange: Exchange, transport = transportOf(exchange)): boolean {
    if (transport === 'encrypted') return true
    if (transport === 'cleartext' || transport === 'local') return false
    const said = decideForwardedTransport(exchange.field('forwarded'), exchange.field('x-forwarded-proto'))
    return said === 'https' || (said === 'unknown' && transport === 'encrypted proxy')
  }

  /** The step, before anything of the request is looked at. */
  function refuseCleartext(exchange: Exchange): undefined {
    const transport = transportOf(exchange)
    if (isSecure(exchange, transport)) {
      availability.succeed()
      return undefined
    }
    // Cleartext from this machine does not cross a network, unless it was forwarded.
    if ((transport === 'local' || transport === 'local proxy') && !isForwarded(exchange)) return undefined
    note(exchange, isForwarded(exchange) ? `${transport}, forwarded` : transport)
    const error = createCleartextError(exchange, status)
    // Of a client that has left, the address is gone, also before Node notices: it may have been a proxy that is trusted.
    const peer = exchange.isClosed ? undefined : readPeer(exchange.req)
    const isKnown = peer?.address !== undefined || peer?.isLocal === true
    if (isKnown) availability.fail(() => describeRefusal(exchange, peer, error.status), error)
    throw error
  }

  function describeRefusal(exchange: Exchange, { address = 'a Unix socket' }: Peer, status: number): string {
    const proxy = isForwarded(exchange) ? 'It was forwarded by a proxy: if it' : 'If that is a proxy which'
    return (
      `A cleartext request from ${address} was refused with ${status}. ${proxy} ends TLS, name it in trustProxy ` +
      `and let it send X-Forwarded-Proto; to serve cleartext, ${remedy}.`
    )
  }

  return { step: refuseCleartext, isSecure }
}

function createCleartextError(exchange: Exchange, status: 403 | 426): HttpError {
  const detail = 'This service is reached by https only.'
  // HTTP/2 has no Upgrade (RFC 9113 §8.6).
  if (status === 403 || exchange.isHttp2) return new HttpError(403, 'ERR_CLEARTEXT', { detail })
  return new HttpError(426, 'ERR_UPGRADE_REQUIRED', {
    detail,
    headers: { Upgrade: 'TLS/1.2, HTTP/1.1', Connection: 'Upgrade' },
  })
}

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
    if (origin === undefined) return refuseOtherSite(exchange)
    const isOwn = isOwnOrigin(exchange, origin, isSecure(exchange) ? 'https' : 'unknown')
    if (site === undefined && isOwn) return undefined
    if (cors?.isAnyOrigin && needsPreflight(exchange)) return undefined
    return andThen(cors?.allows(origin), (isAllowed) =>
      isAllowed === true || isGrantedByHost(exchange, origin) ? undefined : refuseOtherSite(exchange),
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

function refuseOtherSite(exchange: Exchange): never {
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
