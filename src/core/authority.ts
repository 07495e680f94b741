import type { IncomingMessage } from 'node:http'
import {
  formatOrigin,
  isHost,
  normalizeHost,
  parseAuthority,
  parseTargetAuthority,
  parseTargetOrigin,
} from '../protocol/authority.ts'
import { type HostRequest, isHttp2 } from './exchange.ts'
import { readField } from './fields.ts'

/** The target of a request as the client sent it, whatever the host has made of it since. */
function sentTarget(req: IncomingMessage & HostRequest): string {
  return req.originalUrl ?? req.url ?? ''
}

/** The authority that a request is for, as received: `:authority`, that of an absolute-form target, or Host. */
export function readAuthority(req: IncomingMessage): string | undefined {
  if (isHttp2(req)) return readField(req.headers, ':authority') ?? readField(req.headers, 'host')
  // An absolute-form target overrides Host (RFC 9112 §3.2.2).
  return parseTargetAuthority(sentTarget(req)) ?? readField(req.headers, 'host')
}

/** The scheme of the target, where the request says it: in an absolute-form target, or in `:scheme`. */
export function readScheme(req: IncomingMessage): string | undefined {
  return isHttp2(req) ? readField(req.headers, ':scheme') : parseTargetOrigin(sentTarget(req))?.scheme
}

/** Whether a target is of none of the forms that requests for resources have, or in absolute-form for no http host. */
export function isTargetFormWrong(req: IncomingMessage): boolean {
  const target = sentTarget(req)
  if (target.charCodeAt(0) === 0x2f || target === '*') return false
  const origin = isHttp2(req) ? undefined : parseTargetOrigin(target)
  return origin === undefined || !/^https?$/.test(origin.scheme) || !isHost(origin.authority)
}

/**
 * Looks for a fault in Host and `:authority`.
 * @returns a sentence for the client; `undefined` without a fault
 */
export function findHostFault(req: IncomingMessage): string | undefined {
  const host = readField(req.headers, 'host')
  if (host !== undefined && !isHost(host)) return 'Host is malformed.'
  if (!isHttp2(req)) return undefined
  const authority = readField(req.headers, ':authority')
  if (authority === undefined) return undefined
  if (!isHost(authority)) return ':authority is malformed.'
  const scheme = readField(req.headers, ':scheme') ?? 'http'
  // RFC 9113 §8.3.1
  const isSame = host === undefined || normalizeHost(host, scheme) === normalizeHost(authority, scheme)
  return isSame ? undefined : 'Host and :authority differ.'
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
