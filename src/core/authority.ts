import type { IncomingMessage } from 'node:http'
import { formatOrigin, parseAuthority, parseTargetAuthority } from '../protocol/authority.ts'
import { type HostRequest, isHttp2 } from './exchange.ts'
import { readField } from './fields.ts'

/** The authority that a request is for, as received: `:authority`, that of an absolute-form target, or Host. */
export function readAuthority(req: IncomingMessage): string | undefined {
  const { headers } = req
  if (isHttp2(req)) return readField(headers, ':authority') ?? readField(headers, 'host')
  const target = (req as IncomingMessage & HostRequest).originalUrl ?? req.url ?? ''
  // An absolute-form target overrides Host (RFC 9112 §3.2.2).
  return parseTargetAuthority(target) ?? readField(headers, 'host')
}

/**
 * Whether `origin` is the origin of the request's own target: scheme, host and port.
 * @param transport `https` when the request is known to have come so. Otherwise a proxy may have ended TLS without
 * telling, and the same host counts with either scheme.
 */
export function isOwnOrigin(req: IncomingMessage, origin: string, transport: 'https' | 'unknown'): boolean {
  const text = readAuthority(req)
  const authority = text === undefined ? undefined : parseAuthority(text)
  if (authority === undefined) return false
  if (origin === formatOrigin('https', authority)) return true
  return transport === 'unknown' && origin === formatOrigin('http', authority)
}
