import { carrierOf, connectionOf } from '../core/connection.ts'
import { note } from '../core/diagnostics.ts'
import { HttpError } from '../core/errors.ts'
import type { Exchange } from '../core/exchange.ts'
import { isForwarded } from '../core/fields.ts'
import type { Step } from '../core/handler.ts'
import { createAvailability, type Log } from '../core/operator-log.ts'
import { createProxyTrust, type Peer, readPeer, type TrustProxy } from '../core/peer.ts'
import { decideForwardedTransport } from '../protocol/forwarded.ts'

interface HttpsReport {
  readonly log: Log
  /** The option that lets cleartext pass, for the message. */
  readonly remedy: string
}

interface HttpsCheck {
  /** Refuses cleartext, before anything of the request is looked at. */
  readonly step: Step
  /** Whether a request came by https: over TLS, or over TLS to a trusted proxy. */
  isSecure(exchange: Exchange): boolean
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
): HttpsCheck {
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

  function isSecure(exchange: Exchange, transport = transportOf(exchange)): boolean {
    if (transport === 'encrypted') return true
    if (transport === 'cleartext' || transport === 'local') return false
    const said = decideForwardedTransport(exchange.field('forwarded'), exchange.field('x-forwarded-proto'))
    return said === 'https' || (said === 'unknown' && transport === 'encrypted proxy')
  }

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
